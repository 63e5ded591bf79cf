package rpcpool

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"
)

// Hedge is how a handle asks a second RPC when the first one is slow, see [WithHedge].
type Hedge struct {
	// Delay is how long the first answer is waited for before a second RPC is asked.
	// Default: 0, the time within which 95 % of the handle's answers came, at least 10 ms;
	// 1 s before there were 20.
	Delay time.Duration
	// MaxExtra is the share of calls that a second request may be made for, so that it
	// doesn't double the load when all RPCs are slow. Default: 0, which is 0.05, one call in
	// twenty; 1 is all of them. Unused share is kept for ten calls.
	MaxExtra float64
}

const (
	defaultExtra    = 0.05
	minHedgeDelay   = 10 * time.Millisecond
	unknownDelay    = time.Second
	enoughLatencies = 20

	oneHedge  = 1_000_000 // the price of a second request, in millionths of one
	keptHedge = 10 * oneHedge
)

// WithHedge makes a handle whose reads are asked of a second RPC, through another proxy
// where there is one, when the first is slow. The first real answer counts and the other
// request is cancelled, for which nobody is blamed. An answer that says that there is
// nothing (null, []), and an error, waits for the other one as long as Delay. What has
// effects is never hedged, and neither is [Chain.Run], a batch or a chunked log query. The
// handle has a list, cursor and cooldowns of its own.
func WithHedge(h Hedge) ChainOption {
	return func(key *chainKey) { key.hedged, key.hedge = true, h }
}

// check says what can't be used.
func (h *Hedge) check() error {
	switch {
	case h.Delay < 0:
		return &ConfigError{"Hedge.Delay", h.Delay.String() + " is negative; use a positive value, or 0 for what 95 % of answers take"}
	case !(h.MaxExtra >= 0 && h.MaxExtra <= 1): // not a number, too
		return &ConfigError{"Hedge.MaxExtra", fmt.Sprint(h.MaxExtra, " isn't between 0 and 1")}
	}
	return nil
}

// hedging is the state of a hedging handle. It needs no lock.
type hedging struct {
	pool    *poolState
	delay   time.Duration
	share   int64 // of a second request that each call brings
	purse   atomic.Int64
	latency histogram
}

func newHedging(p *poolState, h Hedge) *hedging {
	share := h.MaxExtra
	if share == 0 {
		share = defaultExtra
	}
	return &hedging{pool: p, delay: h.Delay, share: int64(share * oneHedge)}
}

// mayHedge tells whether a request may be sent twice at the same time: a read whose method
// is known.
func (h *hedging) mayHedge(req request) bool {
	call, ok := req.(*callRequest)
	return ok && h.pool.repeats.allow(call.name) && classesOf(call.name)&(sends|rawSends) == 0
}

// wait gives how long the first answer is waited for.
func (h *hedging) wait() time.Duration {
	switch {
	case h.delay > 0:
		return h.delay
	case h.latency.count.Load() < enoughLatencies:
		return unknownDelay
	}
	_, p95, _ := h.latency.quantiles()
	return max(p95, minHedgeDelay)
}

// earn adds a call's share of a second request.
func (h *hedging) earn() {
	for {
		have := h.purse.Load()
		if h.purse.CompareAndSwap(have, min(have+h.share, max(keptHedge, h.share))) {
			return
		}
	}
}

// pay takes the price of a second request; false where there isn't enough.
func (h *hedging) pay() bool {
	for {
		have := h.purse.Load()
		if have < oneHedge {
			return false
		}
		if h.purse.CompareAndSwap(have, have-oneHedge) {
			return true
		}
	}
}

// hedgeLeg is one of the two calls of a hedged read.
type hedgeLeg struct {
	at    atomic.Pointer[hedgePlace] // where its request is
	avoid *hedgePlace                // where the other one's is; nil for the first
	watch *callWatch                 // what hooks see of both; nil where none wants to
}

type hedgePlace struct {
	e *endpoint
	p *proxy
}

// hedgeEnd is what came of a leg.
type hedgeEnd struct {
	leg    *hedgeLeg
	result json.RawMessage
	err    error
	took   time.Duration
}

// isReal tells whether the answer needn't wait for another.
func (e *hedgeEnd) isReal() bool {
	return e.err == nil && string(e.result) != "null" && string(e.result) != "[]"
}

// doHedged carries a read round the ring, and once more beside it where it takes long.
func (c *chainState) doHedged(ctx context.Context, req request) (result json.RawMessage, err error) {
	h := c.hedge
	var watch *callWatch
	if c.pool.hooks.watchCalls() && c.invalid == nil && c.pool.begin() { // counted in, so that Close waits for what hooks are told
		defer c.pool.done()
		watch = c.watchRequest(ctx, req)
		ctx = watch.ctx
		defer func() { watch.end(resultOf(err)) }()
	}
	h.earn()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ends := make(chan hedgeEnd, 2)
	first := &hedgeLeg{watch: watch}
	c.startLeg(ctx, req, first, ends)
	delay := h.wait()
	timer := time.NewTimer(delay)
	defer timer.Stop()
	running := 1
	var best *hedgeEnd // of those that could be better
	var patience <-chan time.Time
	for {
		select {
		case <-timer.C:
			if best == nil && first.at.Load() != nil && h.pay() {
				c.startLeg(ctx, req, &hedgeLeg{avoid: first.at.Load(), watch: watch.hedge()}, ends)
				running++
			}
		case end := <-ends:
			running--
			best = better(best, &end)
			if end.isReal() && end.leg != first && running > 0 {
				c.outrun(first.at.Load().e)
			}
			if end.isReal() || running == 0 {
				h.note(best)
				return best.result, best.err
			}
			if isAnswer(best.err) && patience == nil {
				patience = time.After(delay)
			}
		case <-patience:
			h.note(best)
			return best.result, best.err
		}
	}
}

// note keeps how long an answer took.
func (h *hedging) note(end *hedgeEnd) {
	if isAnswer(end.err) {
		h.latency.add(end.took)
	}
}

// better gives the end that counts for more: a real answer, then one that says that there
// is nothing, then a node's error, then that nobody answered.
func better(one, other *hedgeEnd) *hedgeEnd {
	if one == nil || worth(other) > worth(one) {
		return other
	}
	return one
}

func worth(e *hedgeEnd) int {
	switch {
	case e.isReal():
		return 3
	case e.err == nil:
		return 2
	case isAnswer(e.err):
		return 1
	}
	return 0
}

// outrunTwice is how often in a row an RPC is outrun by a second one before calls begin
// elsewhere: once may be chance, one that hangs would cost every call the delay.
const outrunTwice = 2

// outrun notes that the second RPC of a hedged read has answered before the first one. That
// one isn't blamed.
func (c *chainState) outrun(e *endpoint) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.outrun++; e.outrun >= outrunTwice {
		e.outrun = 0
		c.moveOn(e)
	}
}

// startLeg makes one of the two calls. It belongs to the pool: the one that loses ends a
// little later than the caller goes on.
func (c *chainState) startLeg(ctx context.Context, req request, leg *hedgeLeg, ends chan<- hedgeEnd) {
	began := time.Now()
	k, err := c.startUnseen(ctx, req)
	if err != nil {
		ends <- hedgeEnd{leg: leg, err: err}
		return
	}
	k.leg, k.watch = leg, leg.watch.ofLeg()
	if leg.avoid != nil {
		k.want.exclude = map[string]bool{leg.avoid.e.url: true}
	}
	if !c.pool.start(func() {
		result, err := k.finish()
		ends <- hedgeEnd{leg, result, err, time.Since(began)}
	}) {
		k.abandon()
		ends <- hedgeEnd{leg: leg, err: ErrClosed}
	}
}
