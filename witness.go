package rpcpool

import (
	"math/rand/v2"
	"time"
)

// This file has how others are asked about an RPC's head that can't be believed yet.

// confirm asks other operators' RPCs for their heads, where an RPC's is ahead of what is
// plausible or behind what is due, and then goes back to that RPC. Where no other can be
// asked it is believed alone, unless that contradicts what is known. Others are asked from
// another place on each time, so that it isn't always the same ones.
func (k *call) confirm(e *endpoint, others []*endpoint) step {
	asked := map[string]bool{k.chain.source(e): true}
	from, open := 0, len(k.waits.full)+len(k.trials)
	if len(others) > 0 {
		from = rand.IntN(len(others))
		others, from = k.chain.unwarnedFirst(others, from, k.want.method)
	}
	for i := range others {
		other := others[(from+i)%len(others)]
		source := k.chain.source(other)
		if asked[source] {
			continue
		}
		if len(asked) > witnessesForAClaim {
			break
		}
		asked[source] = true
		switch s := k.visit(&visit{e: other, onlyHead: true, always: k.spokeBefore(other, e)}); s {
		case finished, anew:
			return s
		}
		if k.isConfirmed(e) {
			break
		}
	}
	return k.settleDoubt(e, len(k.waits.full)+len(k.trials) > open)
}

// spokeBefore tells whether an RPC last said its head before another one did, so that it
// may be further by now, however recent its word is.
func (k *call) spokeBefore(one, other *endpoint) bool {
	c := k.chain
	c.mu.Lock()
	defer c.mu.Unlock()
	return one.heads.at.Before(other.heads.at)
}

// isConfirmed tells whether other operators have said enough about an RPC's head: one is
// as far, where it was ahead of all, or one is further, where it may be behind.
func (k *call) isConfirmed(e *endpoint) bool {
	c := k.chain
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.heads.believes(e) {
		return false
	}
	for _, other := range c.ring.endpoints {
		if c.ring.source(other) != c.ring.source(e) && other.heads.claim() >= e.heads.claim() && !other.heads.at.Before(e.heads.at) {
			return other.heads.claim() > e.heads.claim() || !k.heldBack(e)
		}
	}
	return false
}

// heldBack tells whether the RPC is believed and others were asked because a newer block
// is due. The caller holds the chain's lock.
func (k *call) heldBack(e *endpoint) bool {
	return k.chain.heads.overdue(k.chain.ring, e, time.Now())
}

// source says who an RPC's word counts for.
func (c *chainState) source(e *endpoint) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ring.source(e)
}

// heardOthers tells whether another operator has said its head since an RPC did, or not
// long before. The caller holds c.mu.
func (c *chainState) heardOthers(e *endpoint) bool {
	since := e.heads.at.Add(-c.heads.sampleAge())
	for _, other := range c.ring.endpoints {
		if c.ring.source(other) != c.ring.source(e) && !other.heads.at.IsZero() && other.heads.at.After(since) {
			return true
		}
	}
	return false
}

// settleDoubt goes on with an RPC whose head others were asked about. open: there are some
// who can't be asked just now.
func (k *call) settleDoubt(e *endpoint, open bool) step {
	c, now := k.chain, time.Now()
	c.mu.Lock()
	c.heads.askedAround = now
	believed := c.heads.believes(e) || !open && !c.heardOthers(e) && c.heads.takeAlone(e)
	good := believed && c.heads.lag(e.heads.claim()) <= k.policy.MaxLag && e.heads.claim() >= k.demand.floor
	c.mu.Unlock()
	held := k.held
	k.held = nil
	switch {
	case !believed || held != nil && !good:
		k.sawStale = true
		k.tellStale(e, false)
		if held != nil {
			k.refuteHeld(held)
		}
		return next
	case held != nil:
		return k.succeed(e, held.proxy, held.out)
	}
	if s := k.visit(&visit{e: e}); s != unconfirmed {
		return s
	}
	k.held, k.sawStale = nil, true
	k.tellStale(e, false)
	return next
}

// heldAnswer is an answer with a head in it that others are asked about before it is
// handed out.
type heldAnswer struct {
	e     *endpoint
	proxy *proxy
	out   outcome
	took  time.Duration
}

// refuteHeld puts an answer that wasn't handed out among the failed attempts.
func (k *call) refuteHeld(held *heldAnswer) {
	held.e.meter.failures[SemanticFailure].Add(1)
	held.out.verdict = VerdictStale // its detail says why it was doubted
	k.note(held.e, held.proxy, k.want.method, &held.out, held.took)
}
