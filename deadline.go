package rpcpool

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// This file has how a call divides its caller's time (rule C1): attempts, fetches of the
// list, checks of proxies and waits come out of one deadline, and no RPC that hangs can
// eat all of it.

const (
	// minAttempt is the least time that an attempt gets, where the caller has that long.
	minAttempt = 250 * time.Millisecond
	// minLeftOver is what a full attempt must leave of the caller's time to those after it.
	minLeftOver = time.Second
)

// hurriedTwice is how many hurried attempts in a row without an answer take the current
// proxy's place from it.
const hurriedTwice = 2

// errNoPatience says that half of the caller's time went by.
var errNoPatience = errors.New("rpcpool: half of the caller's time is over")

// allot gives the time for an attempt that begins now: [Config.Timeout], or half of what
// the caller's deadline leaves where that is nearer (or so near that nothing would be left
// for another). The only RPC there is gets it all.
func (k *call) allot(now time.Time) time.Duration {
	full := k.pool.timeout
	deadline, ok := k.ctx.Deadline()
	if !ok {
		return full
	}
	left := deadline.Sub(now)
	switch {
	case left >= full+minLeftOver:
		return full
	case k.line.lone:
		return min(left, full)
	}
	return min(max(left/2, minAttempt), left)
}

// endedEarly tells whether an attempt's time ran out although it had less than an RPC
// must be given before it is blamed.
func (k *call) endedEarly(out *outcome, given, took time.Duration) bool {
	if out.given > 0 {
		given = min(given, out.given)
	}
	return out.timedOut && given < k.pool.timeout && took >= given-time.Millisecond
}

// hurryOn leaves an RPC, or a proxy, that a hurried attempt got no answer from: the
// cursor goes on, so that the next call doesn't begin at it again, and nobody is blamed.
func (k *call) hurryOn(v *visit, out outcome) step {
	_, limited := k.ctx.Deadline()
	k.hurried = k.hurried || limited
	if out.verdict == VerdictProxyFail {
		if other := k.otherProxy(v.proxy, v.triedOther); other != nil {
			v.proxy, v.triedOther = other, true
			return sameRPC
		}
	}
	// Whether it was the RPC or the proxy that hung isn't known: the next attempt differs
	// in both.
	k.shunned = v.proxy
	if v.proxy.hurried.Add(1) >= hurriedTwice {
		k.pool.proxies.other(v.proxy, time.Now())
	}
	k.moveOn(v.e)
	return next
}

// moveOn takes the cursor off an RPC that isn't blamed.
func (k *call) moveOn(e *endpoint) {
	c := k.chain
	c.mu.Lock()
	defer c.mu.Unlock()
	c.moveOn(e)
}

// moveOn is the same. The caller holds c.mu.
func (c *chainState) moveOn(e *endpoint) {
	c.stepOff(e)
	e.hesitated = time.Now()
}

// leftOpen makes the caller's own end an AmbiguousError where the request that it
// interrupted may have had its effect.
func (k *call) leftOpen(v *visit, out *outcome) {
	if !out.mayHaveRun {
		return
	}
	k.attempts = append(k.attempts, Attempt{
		RPC: v.e.label, Proxy: v.proxy.label, Verdict: out.verdict, Class: classOf(out),
		Detail: fmt.Sprintf("interrupted (%v) after it was sent", k.err), Duration: v.took,
	})
	k.err = &AmbiguousError{Method: k.want.method, Attempts: k.attempts, Err: k.err}
}

// halfOfWhatIsLeft gives a channel that says when half of the time to a context's
// deadline is over; nil where it has none.
func halfOfWhatIsLeft(ctx context.Context) (<-chan time.Time, func()) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return nil, func() {}
	}
	timer := time.NewTimer(time.Until(deadline) / 2)
	return timer.C, func() { timer.Stop() }
}
