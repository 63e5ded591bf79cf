package rpcpool

import (
	"context"
	"math"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
)

// caution is what a call makes sure of, and what it has found out.
type caution struct {
	demand   headDemand
	policy   Freshness
	sawStale bool // an RPC was passed over because of its head
	held     *heldAnswer
	trials   []*probe // of other calls, whose RPCs were passed over in this walk
}

// beCareful says what must be made sure of before this call's request goes to an RPC.
// With none of the features in use it costs a look at three fields and at the context.
func (k *call) beCareful() {
	c := k.chain
	token, hasToken := k.ctx.Value(tokenKey{}).(ReadToken)
	if !k.pool.verifyChainID && c.policy == nil && !hasToken {
		return
	}
	fixed := k.shape.method == "" || isPinned(k.req) // its block is, whatever the heads are
	if fixed && !k.pool.verifyChainID && c.policy == nil {
		return
	}
	k.caution = &caution{}
	if fixed || c.policy == nil && !hasToken {
		return
	}
	k.demand = headDemandOf(k.shape.method, k.req.encodedParams())
	if c.policy != nil {
		k.policy = *c.policy
	} else { // a token alone asks for its block, and for nothing else
		k.policy = Freshness{MaxLag: math.MaxUint64, EjectLag: math.MaxUint64}
		k.demand.onlyFloor = true
	}
	if !k.demand.latest {
		return
	}
	k.demand.floor, k.demand.home = token.Block, token.url
	if c.policy != nil && c.policy.ReadYourWrites {
		c.mu.Lock()
		defer c.mu.Unlock()
		k.demand.floor = max(k.demand.floor, c.writes.floor)
		if home := c.writes.home(time.Now()); home != nil && k.demand.home == "" {
			k.demand.home = home.url
		}
	}
}

// isPinned tells whether a request is of a snapshot's block.
func isPinned(req request) bool {
	if ballot, ok := req.(*vote); ok {
		req = ballot.request
	}
	_, pinned := req.(*snapshotRequest)
	return pinned
}

// preferHome puts the RPC that reads stay on first.
func preferHome(list []*endpoint, url string) {
	at := slices.IndexFunc(list, func(e *endpoint) bool { return e.url == url })
	if at > 0 {
		home := list[at]
		copy(list[1:at+1], list[:at])
		list[0] = home
	}
}

// calibration: two headers at the first read say the time between blocks at once.

const (
	calibrationBlocks = 128
	calibrateEvery    = 60 * time.Second // until it succeeds
)

// wantsCalibration tells whether the time between blocks is to be found out. The caller
// holds c.mu.
func (c *chainState) wantsCalibration(now time.Time) bool {
	pace := &c.heads.pace
	if pace.fixed > 0 || pace.stamps.measured > 0 || c.policy == nil || c.heads.mark == 0 || now.Before(c.calibrateFrom) {
		return false
	}
	c.calibrateFrom = now.Add(calibrateEvery)
	return true
}

// calibrate asks for two headers. That they can't be had doesn't matter: heads are seen
// to grow, too.
func (c *chainState) calibrate() {
	c.pool.start(func() {
		ctx, cancel := context.WithTimeout(c.pool.asKind(c.pool.working, KindInternal), c.pool.timeout)
		defer cancel()
		raw, err := c.call(ctx, methodBlockByNumber, []any{tagLatest, false})
		if err != nil {
			return
		}
		head := headOfBlock(methodBlockByNumber, nil, raw)
		if !head.known || head.stamp == 0 {
			return
		}
		// What the answers say is taken in where they arrive.
		_, _ = c.call(ctx, methodBlockByNumber, []any{quantity(head.number - min(head.number, calibrationBlocks)), false})
	})
}

// quantity writes a number as JSON-RPC has it.
func quantity(number uint64) string { return "0x" + strconv.FormatUint(number, 16) }

// startSampling begins to ask every RPC for its head in the background, if the user
// wants that and it hasn't begun. The handle has a policy.
func (c *chainState) startSampling() {
	if c.policy.SampleEvery > 0 && c.sampling.CompareAndSwap(false, true) {
		c.pool.start(c.sample)
	}
}

// sample asks every RPC that isn't cooling for its head, over and over, until the pool is
// closed. What is found out counts as in any call.
func (c *chainState) sample() {
	ticker := time.NewTicker(c.policy.SampleEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-c.pool.working.Done():
			return
		}
		var round errgroup.Group
		round.SetLimit(samplesAtOnce)
		for _, e := range c.listed() {
			round.Go(func() error {
				c.sampleOne(e)
				return nil
			})
		}
		_ = round.Wait()
	}
}

const samplesAtOnce = 8

func (c *chainState) listed() []*endpoint {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ring == nil {
		return nil
	}
	return c.ring.endpoints
}

func (c *chainState) sampleOne(e *endpoint) {
	if c.passesOver(e) {
		return
	}
	k, err := c.start(c.pool.asKind(c.pool.working, KindInternal), newEncodedRequest(c.pool, methodBlockNumber, []byte(noParams)))
	if err != nil {
		return
	}
	defer k.abandon()
	defer k.settle()
	_ = k.prepare(1)
	v := visit{e: e, onlyHead: true, always: true}
	_ = k.visit(&v)
	if v.asked == 0 && k.err == nil {
		k.err = k.exhausted()
	}
}
