package rpcpool

import (
	"math/rand/v2"
	"time"
)

// This file has what a call waits for when there is no RPC to try: its turn at one that
// has as many calls as it may (rule B10), the trial of one that comes back (rule B7), or,
// where the user allows it, an RPC that is fit again (rules B5, B8).

// waits is what a call has waited for.
type waits struct {
	full []*endpoint // passed over in this walk because they have enough calls
	turn bool        // the call was woken for its turn and hasn't entered an RPC since
	done int         // waits for an RPC to be fit again
	end  time.Time   // when the patience for these ends; zero before the first
}

const (
	// A crowd that waits for the same moment comes back spread over a tenth of the wait,
	// and a second at most.
	jitterShare = 10
	maxJitter   = time.Second

	// Between two looks whether an RPC has caught up, an eighth of a block time.
	minFreshWait = 50 * time.Millisecond
	maxFreshWait = time.Second
)

// turns are the calls that wait for their turn at an RPC of a handle. Guarded by
// chainState.mu. Each call that leaves an RPC wakes one of them, in order.
type turns struct{ waiting []chan struct{} }

// enter counts the call in at an RPC; false where that has as many as it may.
func (k *call) enter(e *endpoint) bool {
	limit := int64(k.pool.maxInFlight)
	if limit == 0 {
		k.moveReservation(e)
		return true
	}
	for {
		n := e.busy.Load()
		if n >= limit {
			return false
		}
		if e.busy.CompareAndSwap(n, n+1) {
			k.waits.turn = false
			k.moveReservation(e)
			return true
		}
	}
}

// moveReservation has the call counted at the RPC that it is at.
func (k *call) moveReservation(e *endpoint) {
	if k.reserved == nil || k.reserved == e {
		return
	}
	c := k.chain
	c.mu.Lock()
	defer c.mu.Unlock()
	k.release()
	k.reserve(e)
}

// exit counts the call out, and lets the next one in.
func (k *call) exit(v *visit) {
	if v.probe == nil && k.pool.maxInFlight == 0 {
		return
	}
	c := k.chain
	c.mu.Lock()
	defer c.mu.Unlock()
	v.endProbe()
	if k.pool.maxInFlight > 0 {
		v.e.busy.Add(-1)
		c.turns.wakeOne()
	}
}

func (t *turns) wakeOne() {
	if len(t.waiting) > 0 {
		close(t.waiting[0])
		t.waiting = t.waiting[1:]
	}
}

// passTurnOn wakes the next in the queue where the call was woken and found nothing to
// enter. Where another call was quicker, that one will wake the next.
func (k *call) passTurnOn() {
	if !k.waits.turn {
		return
	}
	k.waits.turn = false
	if len(k.waits.full) > 0 {
		return
	}
	c := k.chain
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turns.wakeOne()
}

// waitForTurn waits where RPCs were passed over only because others were at them: until
// one of them may be tried. False where there is nothing to wait for, or the call ended.
func (k *call) waitForTurn() bool {
	var turn, decided <-chan struct{}
	if k.caution != nil && len(k.trials) > 0 {
		decided = k.trials[0].done
	}
	if len(k.waits.full) > 0 {
		ready, free := k.queueUp()
		if free {
			return true // one has come free meanwhile
		}
		if ready != nil {
			turn = ready
			defer k.dequeue(ready)
		}
	}
	if turn == nil && decided == nil {
		return false
	}
	if held, ok := k.req.(waitsForOthers); ok {
		held.pause()
		defer held.resume()
	}
	select {
	case <-turn:
		k.waits.turn = true
		return true
	case <-decided:
		return true
	case <-k.ctx.Done():
	case <-k.pool.working.Done():
	}
	k.err = k.ended()
	return false
}

// queueUp joins those who wait for a turn. free tells that an RPC can be tried at once. There
// is nothing to wait for where those that have come free are left alone by now: nobody is at
// them who could pass a turn on.
func (k *call) queueUp() (ready chan struct{}, free bool) {
	c, now := k.chain, time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := false
	for _, e := range k.waits.full {
		switch {
		case e.busy.Load() >= int64(k.pool.maxInFlight):
			taken = true
		case !k.line.leftAlone(e, now):
			return nil, true
		}
	}
	if !taken {
		return nil, false
	}
	ready = make(chan struct{})
	c.turns.waiting = append(c.turns.waiting, ready)
	return ready, false
}

// dequeue leaves the queue. A turn that came and isn't used is passed on.
func (k *call) dequeue(ready chan struct{}) {
	c := k.chain
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, waiting := range c.turns.waiting {
		if waiting == ready {
			c.turns.waiting = append(c.turns.waiting[:i], c.turns.waiting[i+1:]...)
			return
		}
	}
	if !k.waits.turn {
		c.turns.wakeOne()
	}
}

// waitsForOthers is a request that others wait for as long as it is on its way: an
// element of a batch. While it waits for its turn it isn't.
type waitsForOthers interface {
	pause()
	resume()
}

// waitForAnRPC waits until an RPC that nobody answered by may be fit again. False where
// the user's patience is used up, nothing is to be expected within it, or the call ended.
func (k *call) waitForAnRPC() bool {
	now := time.Now()
	if k.pool.maxWait == 0 || k.err != nil || k.rangeRefusals > 0 {
		return false
	}
	if k.waits.end.IsZero() {
		k.waits.end = now.Add(k.pool.maxWait)
	}
	at := k.nextChance(now)
	if at.IsZero() || at.After(k.waits.end) || !now.Before(k.waits.end) {
		return false
	}
	wait := at.Sub(now)
	if jitter := min(wait/jitterShare, maxJitter, k.waits.end.Sub(at)); jitter > 0 {
		wait += rand.N(jitter)
	}
	k.waits.done++
	if k.caution != nil {
		k.sawStale = false
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-k.ctx.Done():
	case <-k.pool.working.Done():
	}
	k.err = k.ended()
	return false
}

// nextChance is when an RPC may be fit again: its pause ends, or the chain has had time
// for another block. Zero where nothing is to be expected.
func (k *call) nextChance(now time.Time) time.Time {
	c := k.chain
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ring == nil {
		return time.Time{}
	}
	at := c.ring.firstBack(k.want.need, now)
	if k.caution != nil && k.sawStale {
		look := now.Add(min(max(c.heads.pace.perBlock()/8, minFreshWait), maxFreshWait))
		if at.IsZero() || look.Before(at) {
			at = look
		}
	}
	return at
}
