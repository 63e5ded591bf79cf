package rpcpool

import (
	"fmt"
	"strings"
	"time"
)

// StaleError says that no RPC was fresh enough for a read (rule B5). There is no quiet
// fallback to old data: wait and ask again, set [Config.MaxWait], or allow more blocks by
// [Freshness.MaxLag].
type StaleError struct {
	// Chain is the reference that the handle was made with.
	Chain string
	// HighWater is the high-water mark: the highest head that is believed.
	HighWater uint64
	// Needed is the block that an RPC must have for this read: HighWater less MaxLag, the
	// block that the read names, or the one that the caller has seen already.
	Needed uint64
	// Lags are the RPCs of the list, with what is known of their heads.
	Lags []RPCLag
	// Attempts are the call's failed attempts, in order, masked.
	Attempts []Attempt
	// RetryAt is when the first RPC that cools may be tried again; zero where none cools.
	RetryAt time.Time
}

// RPCLag is the head of one RPC.
type RPCLag struct {
	// RPC is the masked URL.
	RPC string
	// Head is the block that it said, or the list says of it; 0 where unknown.
	Head uint64
	// Lag is the number of blocks that Head is under the high-water mark.
	Lag uint64
	// Age is how long ago it said so; 0 where only the list says it.
	Age time.Duration
	// Doubt says why the head isn't taken at its word; empty where it is.
	Doubt string
}

func (e *StaleError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "rpcpool: no RPC of chain %q is fresh: block %d is needed, the high-water mark is %d", e.Chain, e.Needed, e.HighWater)
	for i, l := range e.Lags {
		if i == shownAttempts {
			fmt.Fprintf(&b, "; and %d more", len(e.Lags)-i)
			break
		}
		if i == 0 {
			b.WriteString(" (")
		} else {
			b.WriteString("; ")
		}
		b.WriteString(l.String())
	}
	if len(e.Lags) > 0 {
		b.WriteString(")")
	}
	b.WriteString("; wait and ask again, set Config.MaxWait, or allow more by Freshness.MaxLag")
	writeAttempts(&b, e.Attempts)
	return b.String()
}

func (l RPCLag) String() string {
	switch {
	case l.Head == 0:
		return l.RPC + ": head unknown"
	case l.Doubt != "":
		return fmt.Sprintf("%s: head %d, %s", l.RPC, l.Head, l.Doubt)
	}
	return fmt.Sprintf("%s: head %d, %d behind", l.RPC, l.Head, l.Lag)
}

func (*StaleError) rpcPoolError() {}

// allLag tells whether every RPC that cools does so because it lags. The caller holds
// c.mu.
func (c *chainState) allLag(now time.Time) bool {
	if c.ring == nil {
		return false
	}
	lagging := false
	for _, e := range c.ring.endpoints {
		if e.health.cooling(now) {
			if !e.heads.ejected {
				return false
			}
			lagging = true
		}
	}
	return lagging
}

// staleError makes the error. The caller holds c.mu.
func (c *chainState) staleError(attempts []Attempt, d *headDemand, p *Freshness, now time.Time) *StaleError {
	v := &c.heads
	err := &StaleError{Chain: c.ref, HighWater: v.mark, Attempts: attempts, Needed: max(v.mark-min(v.mark, p.MaxLag), d.floor)}
	if d.named {
		err.Needed = d.number
	}
	if c.ring == nil {
		return err
	}
	err.RetryAt = c.ring.firstBack(requirement{}, now)
	for _, e := range c.ring.endpoints {
		h := &e.heads
		lag := RPCLag{RPC: e.label, Head: h.claim(), Lag: v.lag(h.claim())}
		if !h.at.IsZero() {
			lag.Age = now.Sub(h.at)
		}
		lag.Doubt = v.doubt(e, now)
		err.Lags = append(err.Lags, lag)
	}
	return err
}

// doubt says why an RPC's head isn't taken at its word.
func (v *headView) doubt(e *endpoint, now time.Time) string {
	h := &e.heads
	switch {
	case e.expelled:
		return "on another chain"
	case !v.believes(e):
		return "which no other operator's RPC has reached"
	case h.doubtful:
		return "has lagged a moment ago"
	case h.dipAt(now) > 0:
		return fmt.Sprintf("goes back by %d at times", h.dipAt(now))
	}
	return ""
}
