package proxydial

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// session is one run of a Dialer, in the caller's goroutine. What ends it closes
// the connection under it, which works for every net.Conn and wakes every read
// and write; which of the ends it was is asked afterwards.
type session struct {
	proxy   *Proxy
	attempt *Attempt
	phase   Phase

	whole context.Context // ends with the caller's context or the attempt's
	limit context.Context // of the present step: whole, until the target is asked for also HandshakeTimeout

	raw     net.Conn    // to the proxy
	conn    net.Conn    // what is spoken over: raw, or TLS over it
	unwatch func() bool // false: the limit came first, and raw is closed
	sendErr error
}

func (d *Dialer) newSession(ctx context.Context) (s *session, release func()) {
	whole, cancelWhole := context.WithCancel(ctx)
	s = &session{proxy: d.Proxy, attempt: AttemptFrom(ctx), whole: whole, limit: whole}
	forget, cancelLimit := func() bool { return true }, func() {}
	if d.HandshakeTimeout > 0 {
		s.limit, cancelLimit = context.WithTimeout(whole, d.HandshakeTimeout)
	}
	if s.attempt != nil {
		forget = context.AfterFunc(s.attempt.Context, func() {
			if !s.attempt.Served() {
				cancelWhole()
			}
		})
		s.limit = withKnownDeadline(s.limit, s.attempt.Context)
	}
	return s, func() {
		forget()
		cancelLimit()
		cancelWhole()
	}
}

// knownDeadline is a context that somebody else ends at its deadline.
type knownDeadline struct {
	context.Context
	deadline time.Time
}

func (k knownDeadline) Deadline() (time.Time, bool) { return k.deadline, true }

// withKnownDeadline makes other's deadline known through ctx: a net.Dialer shares
// out the time between the addresses of a name by it.
func withKnownDeadline(ctx, other context.Context) context.Context {
	deadline, ok := other.Deadline()
	if !ok {
		return ctx
	}
	if own, ok := ctx.Deadline(); ok && own.Before(deadline) {
		return ctx
	}
	return knownDeadline{ctx, deadline}
}

func (s *session) enter(p Phase) {
	s.phase = p
	s.attempt.SetPhase(p)
}

// reach connects to the proxy. Where it fails, nothing is left open.
func (s *session) reach(d *Dialer) error {
	s.enter(PhaseDial)
	if s.ended() {
		return s.broke(nil)
	}
	var err error
	if d.Dial == nil {
		s.raw, err = new(net.Dialer).DialContext(s.limit, "tcp", s.proxy.addr())
	} else {
		s.raw, err = dialOwned(s.limit, d.Dial, s.proxy.addr())
	}
	if err != nil {
		return s.broke(err)
	}
	s.conn = s.raw
	s.watch()
	if s.proxy.scheme.tls {
		if err := s.startTLS(d.RootCAs); err != nil {
			s.abandon()
			return err
		}
	}
	return nil
}

func (s *session) watch() {
	raw := s.raw
	s.unwatch = context.AfterFunc(s.limit, func() { _ = raw.Close() })
}

func (s *session) startTLS(roots *x509.CertPool) error {
	s.enter(PhaseTLS)
	host, _, _ := strings.Cut(s.proxy.host, "%") // no certificate names a zone
	conn := tls.Client(s.raw, &tls.Config{
		ServerName: host,
		NextProtos: []string{"http/1.1"}, // CONNECT and absolute form are spoken in it alone
		RootCAs:    roots,
		MinVersion: tls.VersionTLS12,
	})
	if err := conn.HandshakeContext(s.limit); err != nil {
		return s.broke(err)
	}
	s.conn = conn
	return nil
}

// ask has the proxy connect to the target.
func (s *session) ask(to target) error {
	switch s.proxy.scheme.protocol {
	case socks5:
		return s.askSOCKS5(to)
	case socks4:
		return s.askSOCKS4(to)
	default:
		return s.askCONNECT(to)
	}
}

// startAsking ends what HandshakeTimeout covers.
func (s *session) startAsking() error {
	if !s.unwatch() {
		return s.broke(net.ErrClosed)
	}
	s.limit = s.whole
	s.watch()
	s.enter(PhaseConnect)
	return nil
}

// finish hands the connection over, free of the session's ends.
func (s *session) finish() (net.Conn, error) {
	if !s.unwatch() || s.ended() || s.sendErr != nil {
		s.abandon()
		return nil, s.broke(s.sendErr)
	}
	_ = s.conn.SetDeadline(time.Time{}) // a Dial of the user's may have left one
	s.enter(PhaseReady)
	return s.conn, nil
}

// abandon closes the connection, without the ceremony of TLS.
func (s *session) abandon() {
	s.unwatch()
	_ = s.raw.Close()
}

// send writes. A failure is kept for the end only, since what the proxy said
// before it closed tells more: a refusal may come before the request was read.
func (s *session) send(message []byte) {
	if _, err := s.conn.Write(message); err != nil {
		s.sendErr = err
	}
}

// read fills b, and takes not one byte more: the next ones may be the tunnel's.
func (s *session) read(b []byte) error {
	if _, err := io.ReadFull(s.conn, b); err != nil {
		return s.broke(err)
	}
	return nil
}

// end gives why the session must end, with the cause that the context was given;
// 0 and nil while it need not. The attempt's end comes first: the other contexts
// may end as its consequence, and then know less; but where the attempt was served,
// the session may outlive it. The limit has the caller's end and cause, being derived
// from its context.
func (s *session) end() (Reason, error) {
	ends := []context.Context{s.attempt.Own(), s.limit}
	if s.attempt.Served() {
		ends = ends[1:]
	}
	for _, ctx := range ends {
		err := ctx.Err()
		if err == nil {
			continue
		}
		reason := Canceled
		if errors.Is(err, context.DeadlineExceeded) {
			reason = Timeout
		}
		if cause := context.Cause(ctx); !errors.Is(err, cause) {
			err = fmt.Errorf("%w: %w", err, cause)
		}
		return reason, err
	}
	return 0, nil
}

func (s *session) ended() bool {
	reason, _ := s.end()
	return reason != 0
}

// broke makes the error of a failed dial, read, write or TLS handshake: an end of
// the session wins over its consequences.
func (s *session) broke(err error) *Error {
	if reason, end := s.end(); reason != 0 {
		return &Error{Phase: s.phase, Reason: reason, Err: end}
	}
	return &Error{Phase: s.phase, Reason: reasonOf(s.phase, err), Err: err}
}

// found makes the error of an answer that was read and judged.
func (s *session) found(reason Reason, what findingError) *Error {
	e := &Error{Phase: s.phase, Reason: reason}
	if what != "" {
		e.Err = what
	}
	return e
}
