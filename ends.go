package rpcpool

import (
	"context"
	"time"
)

// This file has how calls end that nobody answered.

// ended gives the error of a call that its caller or Close has ended.
func (k *call) ended() error {
	if err := callerEnd(k.ctx); err != nil {
		return k.interrupted(err)
	}
	if k.pool.shut.Load() {
		return ErrClosed
	}
	return nil
}

// interrupted adds the story of the call to its caller's own end; other errors
// it leaves as they are.
func (k *call) interrupted(err error) error {
	end := callerEnd(k.ctx)
	if end == nil || isError(err) {
		return err
	}
	if over := k.overBudget(); over != nil {
		return over
	}
	return &InterruptedError{Err: end, Attempts: k.attempts}
}

// callerEnd gives why the caller's context has ended; nil while it hasn't. A socket
// whose deadline is the context's may fail a moment before the context's own timer
// fires: that is the caller's end, and nobody's fault.
func callerEnd(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		return context.DeadlineExceeded
	}
	return nil
}

func hasEnded(ctx context.Context) bool { return callerEnd(ctx) != nil }

// exhausted is the error of a call that nobody answered (rule A4.4).
func (k *call) exhausted() error {
	if k.rangeRefusals > 0 {
		return &LogsRangeTooLargeError{SuggestedSpan: k.named, Attempts: k.attempts}
	}
	c := k.chain
	c.mu.Lock()
	defer c.mu.Unlock()
	if k.caution != nil && (k.sawStale || k.demand.latest && c.allLag(time.Now())) {
		return c.staleError(k.attempts, &k.demand, &k.policy, time.Now())
	}
	err := &NoHealthyRPCError{Chain: c.ref, Attempts: k.attempts}
	if c.ring != nil {
		err.Listed = len(c.ring.endpoints)
		err.RetryAt = c.ring.firstBack(k.want.need, time.Now())
	}
	return err
}

func (k *call) outOfProxies() step {
	k.err = &ProxyError{Attempts: k.attempts, RetryAt: k.pool.proxies.firstBack(time.Now())}
	return finished
}
