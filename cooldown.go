package rpcpool

import (
	"slices"
	"time"
)

// Cooldowns double with each failure in a row (rule A4.5).
const (
	firstCooldown = 60 * time.Second
	maxCooldown   = 900 * time.Second
)

// cooldownAfter is how long an RPC or proxy is left alone after n failures in a row.
func cooldownAfter(n int) time.Duration {
	d := firstCooldown
	for i := 1; i < n && d < maxCooldown; i++ {
		d *= 2
	}
	return min(d, maxCooldown)
}

// failure is one failure of an RPC or a proxy, kept apart from the count as long
// as the call that saw it may still take it back.
type failure struct {
	at time.Time

	// What a failed connection to an RPC hangs on: the proxy that it went
	// through, and how many deaths that proxy had seen when the attempt began.
	// nil where the failure stands whatever becomes of the proxy.
	proxy  *proxy
	deaths uint64

	confirmed bool // the proxy passed a check since: the failure stands for good
	undone    bool // taken back by the call that saw it
}

// stands tells whether the failure counts. A failed connection doesn't once the
// proxy that it went through was found dead (rule A7.3): that is derived here from
// the proxy's state rather than undone by whoever found out, so that it holds for
// the failures of all calls at once and takes back no others (rule A7.4).
func (f *failure) stands() bool {
	if f.undone {
		return false
	}
	return f.proxy == nil || f.confirmed || f.proxy.deaths.Load() == f.deaths
}

// ledger has the failures in a row of one RPC or proxy, from which its cooldown
// is derived. It has no lock of its own: the one of its owner guards it.
type ledger struct {
	settled     int       // failures that nobody can take back any more
	lastSettled time.Time // when the last of them was
	pending     []*failure
}

// record notes a failure that may be taken back until it is settled.
func (l *ledger) record(f *failure) { l.pending = append(l.pending, f) }

// settle makes a failure that stands a part of the count, and drops one that
// doesn't. One that a success has wiped out since stays wiped out.
func (l *ledger) settle(f *failure) {
	i := slices.Index(l.pending, f)
	if i < 0 {
		return
	}
	l.pending = slices.Delete(l.pending, i, i+1)
	if !f.stands() {
		return
	}
	l.settled++
	if f.at.After(l.lastSettled) {
		l.lastSettled = f.at
	}
}

// reset is what a success does: no failures, no cooldown.
func (l *ledger) reset() { *l = ledger{} }

// clean tells whether there is nothing to reset.
func (l *ledger) clean() bool { return l.settled == 0 && len(l.pending) == 0 }

// standing gives the number of failures in a row and when the cooldown that
// follows from them ends; 0 and the zero time where there are none.
func (l *ledger) standing() (n int, until time.Time) {
	n, last := l.settled, l.lastSettled
	for _, f := range l.pending {
		if !f.stands() {
			continue
		}
		n++
		if f.at.After(last) {
			last = f.at
		}
	}
	if n == 0 {
		return 0, time.Time{}
	}
	return n, last.Add(cooldownAfter(n))
}

// cooling tells whether the cooldown lasts at now.
func (l *ledger) cooling(now time.Time) bool {
	if l.clean() {
		return false
	}
	_, until := l.standing()
	return now.Before(until)
}
