package proxydial

import (
	"context"
	"sync/atomic"
)

// Phase is how far an attempt has come (rule A5.4).
type Phase int32

// The phases, in the order in which an attempt goes through them. Not every
// proxy has all of them.
const (
	// PhaseNone is before the first dial, or while a pooled connection is used.
	PhaseNone Phase = iota
	// PhaseDial is the connection to the proxy itself, its name's lookup included.
	PhaseDial
	// PhaseTLS is TLS to an https:// proxy.
	PhaseTLS
	// PhaseGreeting is the SOCKS5 greeting and login.
	PhaseGreeting
	// PhaseConnect is from when the proxy is asked for the target until it answers.
	PhaseConnect
	// PhaseTargetTLS is TLS with the target through the tunnel. The dialer doesn't
	// see it: whoever does sets it by SetPhase.
	PhaseTargetTLS
	// PhaseReady is when the connection is up.
	PhaseReady
)

// String gives a phrase that fits after "while", such as "connecting to the proxy".
func (p Phase) String() string {
	switch p {
	case PhaseNone:
		return "waiting for a connection"
	case PhaseDial:
		return "connecting to the proxy"
	case PhaseTLS:
		return "setting up TLS with the proxy"
	case PhaseGreeting:
		return "greeting the proxy"
	case PhaseConnect:
		return "asking the proxy for the target"
	case PhaseTargetTLS:
		return "setting up TLS with the target"
	case PhaseReady:
		return "waiting for the answer"
	default:
		return "in an unknown phase"
	}
}

// Attempt is an attempt's own context, with a box for its phase. It finds itself among
// the values of every context that is derived from it. Nothing else gets to the dialer:
// net/http dials under [context.WithoutCancel] of the request's context, so that neither
// its deadline nor its end would reach the dialer, and dials would outlive their attempts
// (rule A5.4).
//
// The methods that aren't Context's are safe for concurrent use and do nothing on a nil
// Attempt.
type Attempt struct {
	context.Context // when it ends, every dial for the attempt ends, too, but see SetServed
	phase           atomic.Int32
	served          atomic.Bool
}

type attemptKey struct{}

// Value gives what ctx.Value gives, and the Attempt itself to [AttemptFrom].
func (a *Attempt) Value(key any) any {
	if key == (attemptKey{}) {
		return a
	}
	return a.Context.Value(key)
}

// WithAttempt gives a new Attempt whose own context is ctx, once as the context and once
// as what it is.
func WithAttempt(ctx context.Context) (context.Context, *Attempt) {
	a := &Attempt{Context: ctx}
	return a, a
}

// AttemptFrom gives the Attempt that ctx carries; nil if none.
func AttemptFrom(ctx context.Context) *Attempt {
	a, _ := ctx.Value(attemptKey{}).(*Attempt)
	return a
}

// Phase gives the phase that was set last. It speaks of the last dial that ran
// for the attempt: where net/http served the request on a pooled connection
// meanwhile, it says nothing about the request.
func (a *Attempt) Phase() Phase {
	if a == nil {
		return PhaseNone
	}
	return Phase(a.phase.Load())
}

// SetPhase sets the phase.
func (a *Attempt) SetPhase(p Phase) {
	if a != nil {
		a.phase.Store(int32(p))
	}
}

// Own gives the attempt's own context, for work on a new connection that isn't the
// dialer's, such as TLS with the target. A nil Attempt has one that never ends.
func (a *Attempt) Own() context.Context {
	if a == nil {
		return context.Background()
	}
	return a.Context
}

// SetServed notes that the attempt has a connection. A dial for it that still runs, because
// that connection is another one, which came free meanwhile, is nobody's in particular any
// more: it needn't end with the attempt, and the next one may have its connection.
func (a *Attempt) SetServed() {
	if a != nil {
		a.served.Store(true)
	}
}

// Served tells whether SetServed was called.
func (a *Attempt) Served() bool { return a != nil && a.served.Load() }
