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

// failure is one failure of an RPC or a proxy. As long as the call that saw it may
// still take it back, it is kept apart from the count.
type failure struct {
	at time.Time

	// What a failed connection to an RPC hangs on: the proxy that it went
	// through, and how many deaths that proxy had seen when the attempt began.
	// nil where the failure stands whatever becomes of the proxy.
	proxy  *proxy
	deaths uint64

	final     bool // nothing takes it back: the RPC answered, or the proxy is dead beyond doubt
	confirmed bool // the proxy passed a check since: the failure stands for good
	undone    bool // taken back by the call that saw it

	// echo says that another request of the same batch has brought the failure
	// into the books: however many travelled together, the RPC failed once.
	echo bool
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
// is derived. It has no lock of its own: the one of its owner guards it. What it
// costs to ask grows with the number of proxies, not with that of the failures.
type ledger struct {
	settled     int       // failures that nobody can take back any more
	lastSettled time.Time // when the last of them was
	open        []*openFailures
}

// openFailures are those that may be taken back and hang on the same thing.
type openFailures struct {
	proxy    *proxy
	deaths   uint64
	failures map[*failure]struct{}
	last     time.Time // when the last of them was
}

func (o *openFailures) stand() bool { return o.proxy == nil || o.proxy.deaths.Load() == o.deaths }

// record notes a failure.
func (l *ledger) record(f *failure) {
	if f.final {
		l.count(f)
		return
	}
	group := l.groupOf(f)
	if group == nil {
		group = &openFailures{proxy: f.proxy, deaths: f.deaths, failures: map[*failure]struct{}{}}
		l.open = append(l.open, group)
	}
	group.failures[f] = struct{}{}
	group.last = later(group.last, f.at)
}

func (l *ledger) groupOf(f *failure) *openFailures {
	for _, group := range l.open {
		if group.proxy == f.proxy && group.deaths == f.deaths {
			return group
		}
	}
	return nil
}

func (l *ledger) count(f *failure) {
	l.settled++
	l.lastSettled = later(l.lastSettled, f.at)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// settle makes a failure that stands a part of the count, and drops one that
// doesn't. One that a success has wiped out since stays wiped out.
func (l *ledger) settle(f *failure) {
	if l.remove(f) && f.stands() {
		l.count(f)
	}
}

// undo takes a failure back; false where it didn't count.
func (l *ledger) undo(f *failure) bool {
	f.undone = true
	return l.remove(f)
}

// remove takes an open failure out; false where it isn't there.
func (l *ledger) remove(f *failure) bool {
	group := l.groupOf(f)
	if group == nil {
		return false
	}
	if _, there := group.failures[f]; !there {
		return false
	}
	delete(group.failures, f)
	if len(group.failures) == 0 {
		l.open = slices.DeleteFunc(l.open, func(o *openFailures) bool { return o == group })
		return true
	}
	if f.at.Equal(group.last) {
		group.last = time.Time{}
		for other := range group.failures {
			group.last = later(group.last, other.at)
		}
	}
	return true
}

// reset is what a success does: no failures, no cooldown.
func (l *ledger) reset() { *l = ledger{} }

// clean tells whether there is nothing to reset.
func (l *ledger) clean() bool { return l.settled == 0 && len(l.open) == 0 }

// standing gives the number of failures in a row and when the cooldown that
// follows from them ends; 0 and the zero time where there are none.
func (l *ledger) standing() (n int, until time.Time) {
	n, last := l.settled, l.lastSettled
	for _, group := range l.open {
		if group.stand() {
			n += len(group.failures)
			last = later(last, group.last)
		}
	}
	if n == 0 {
		return 0, time.Time{}
	}
	return n, last.Add(cooldownAfter(n))
}

// settledUntil is when the cooldown ends that follows from what nobody can take back; zero
// where there is none.
func (l *ledger) settledUntil() time.Time {
	if l.settled == 0 {
		return time.Time{}
	}
	return l.lastSettled.Add(cooldownAfter(l.settled))
}

// stands tells whether there is a failure that counts, its cooldown over or not.
func (l *ledger) stands() bool {
	if l.clean() {
		return false
	}
	n, _ := l.standing()
	return n > 0
}

// cooling tells whether the cooldown lasts at now.
func (l *ledger) cooling(now time.Time) bool {
	if l.clean() {
		return false
	}
	_, until := l.standing()
	return now.Before(until)
}
