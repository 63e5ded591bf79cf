package rpcpool

import (
	"context"
	"time"
)

// SharedView is what the bots of a fleet know in common, see [Config.Shared]: each
// publishes what it finds out about RPCs and proxies, and takes over what others found out.
// plugins/redis has one over Redis, rpcpooltest one in memory. What it does wrong (an error,
// a panic, a call that doesn't return) harms no call of a pool; the pool then goes on alone.
// docs/FLEET.md says what is shared, how late, and what is made of it.
//
// Both methods may be called by several pools at a time, each in a goroutine of its own.
type SharedView interface {
	// Publish hands facts to the others, in order. A pool calls it ten times a second at
	// most, one call at a time, gives it 5 s, and tries again what gave an error.
	Publish(ctx context.Context, facts []Fact) error
	// Follow gives take what others publish, in order, until ctx ends or the view is lost,
	// for which it gives an error; the pool calls it again after a while. It calls take as
	// soon as it is connected, with what was published before and still holds, at once or in
	// parts, or with nothing. Facts of the pool's own may be among them. take is quick, keeps
	// nothing of the slice and may be called from any goroutine.
	//
	// A fact that was kept for a while has that time taken off For and added to Age.
	Follow(ctx context.Context, take func(facts []Fact)) error
}

// FactKind is what a [Fact] says.
type FactKind string

// The kinds of facts.
const (
	FactCooldown    FactKind = "cooldown"    // the RPC failed, and cools for Fact.For
	FactRest        FactKind = "rest"        // the RPC asked to be left alone for Fact.For
	FactUnsupported FactKind = "unsupported" // the RPC doesn't serve Fact.Method
	FactHead        FactKind = "head"        // the RPC has block Fact.Head
	FactProxyDead   FactKind = "proxy_dead"  // the proxy carries nothing
	FactClear       FactKind = "clear"       // the RPC answered again, or an answer came through the proxy
)

// Fact is a hint by one process to the others of a fleet. It has times that last rather
// than moments, so that no two clocks are ever compared. Nothing in it is secret.
type Fact struct {
	// Kind is what it says.
	Kind FactKind
	// From is the pool that says it: a random id, new for each pool.
	From string
	// Chain is the key of the RPC's chain, such as "eip155:8453"; empty for a proxy.
	Chain string
	// ID says which RPC or proxy it is: the HMAC-SHA256 of its URL under
	// [Config.SharedSecret], in 64 hex digits.
	ID string
	// Label is the masked URL, for people who look into the view; nothing is made of it.
	Label string
	// Method is what an unsupported fact is about; empty in others.
	Method string
	// Head is the block of a head fact; 0 in others.
	Head uint64
	// For is how long it holds from now on. Receivers make 900 s of more.
	For time.Duration
	// Age is how long ago it was found out.
	Age time.Duration
}

// maxFactText bounds each text of a fact: who writes to the view may write anything.
const maxFactText = 128

// Valid tells whether a fact is well-formed: its kind is known, its texts are short and
// printable, it has what its kind needs and still holds. Pools put others aside.
func (f *Fact) Valid() bool {
	if !isID(f.ID) || f.Age < 0 || f.For < 0 || f.For == 0 && f.Kind != FactClear {
		return false
	}
	for _, text := range []string{f.From, f.Chain, f.Label, f.Method} {
		if len(text) > maxFactText || !isPrintable(text) {
			return false
		}
	}
	switch f.Kind {
	case FactCooldown, FactRest:
		return f.Chain != ""
	case FactUnsupported:
		return f.Chain != "" && f.Method != ""
	case FactHead:
		return f.Chain != "" && f.Head > 0
	case FactProxyDead:
		return f.Chain == ""
	case FactClear:
		return true
	}
	return false
}

func isID(text string) bool {
	if len(text) != 64 {
		return false
	}
	for _, r := range []byte(text) {
		if (r < '0' || r > '9') && (r < 'a' || r > 'f') {
			return false
		}
	}
	return true
}

func isPrintable(text string) bool {
	for _, b := range []byte(text) {
		if b < ' ' || b > '~' {
			return false
		}
	}
	return true
}

// SharedStats is how a pool's part in a fleet goes, see [Config.Shared].
type SharedStats struct {
	// Connected tells whether the view is followed at the moment and the last facts could
	// be published.
	Connected bool
	// Published is the number of facts that were handed over, Taken that of others' that
	// were taken over.
	Published, Taken uint64
	// Dropped is the number of own facts that were given up: too many were waiting, or they
	// had ceased to hold before the view took them.
	Dropped uint64
	// Refused is the number of others' facts that were put aside because they aren't valid.
	Refused uint64
	// Outages is how often the view was lost.
	Outages uint64
}

// SharedStats tells how the pool's part in a fleet goes; all zero without [Config.Shared].
func (p *Pool) SharedStats() SharedStats {
	if p.s.sharing == nil {
		return SharedStats{}
	}
	return p.s.sharing.statistics()
}
