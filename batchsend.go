package rpcpool

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	maxBatch      = 100                   // requests that travel as one
	maxBatchBytes = 1 << 20               // and the bytes that they have together
	batchesAtOnce = 4                     // of one call
	singlesAtOnce = 16                    // of one call, where the RPC takes no batches
	batchPatience = 50 * time.Millisecond // how long requests wait for others to travel with

	// batches stands among the methods that an RPC is marked as not serving.
	batches = "(batches)"
)

// batchElement is one call of a batch, and what came of it.
type batchElement struct {
	call   *callRequest
	result json.RawMessage
	err    error // set from the beginning where the call can't be sent
}

// doBatch carries every element round the ring that has no error yet. Each is a call
// of its own for the engine; they meet where they are sent.
func (c *chainState) doBatch(ctx context.Context, elements []batchElement) {
	var todo []*batchElement
	for i := range elements {
		if elements[i].err == nil {
			todo = append(todo, &elements[i])
		}
	}
	if c.pool.hooks.watchCalls() && c.invalid == nil && len(todo) > 0 && c.pool.begin() { // as in doHedged
		defer c.pool.done()
		watch := c.watchCall(ctx, KindBatch, "", len(elements))
		ctx = watch.ctx
		defer func() { watch.end(resultOf(batchError(elements))) }()
	}
	if len(todo) == 1 {
		todo[0].result, todo[0].err = c.do(c.pool.asKind(ctx, KindBatchElement), todo[0].call)
		return
	}
	b := &batchRun{
		ctx: ctx, pool: c.pool, chain: c,
		posts: make(chan struct{}, batchesAtOnce), singles: make(chan struct{}, singlesAtOnce),
		waiting: map[batchWay]*batchGroup{},
	}
	b.singly.Store(c.beginsWithoutBatches())
	b.run(todo)
}

// beginsWithoutBatches tells whether the RPC that calls begin at is known to refuse
// batches.
func (c *chainState) beginsWithoutBatches() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ring != nil && len(c.ring.endpoints) > 0 && !c.ring.endpoints[c.cursor].serves(batches, time.Now())
}

// batchRun is a batch under way: its elements go through the engine in parallel, and
// those that come to be sent to the same RPC through the same proxy wait for each
// other and travel as one.
type batchRun struct {
	ctx   context.Context // the caller's
	pool  *poolState
	chain *chainState

	posts, singles chan struct{} // have room for what may be under way at once
	singly         atomic.Bool   // an RPC without batches was met

	mu      sync.Mutex // protects what follows
	moving  int        // elements that may yet come to be sent: they neither wait nor are under way
	waiting map[batchWay]*batchGroup
	timer   *time.Timer // sends what waits, whoever still moves; nil where nothing waits
	senders sync.WaitGroup
}

// batchWay is what requests have in common that can travel together.
type batchWay struct {
	endpoint *endpoint
	proxy    *proxy
}

// batchGroup is requests that travel together.
type batchGroup struct {
	to       target
	members  []*batchedRequest
	bytes    int
	allotted time.Duration // the time that the shortest of their attempts has
}

// batchedRequest is an element on its way round the ring.
type batchedRequest struct {
	*callRequest
	run     *batchRun
	place   int              // among the elements
	hasLane bool             // it may travel alone without asking
	news    chan batchAnswer // has room for one
	ahead   *sync.WaitGroup  // others wait until this one goes on; nil if none
}

// batchAnswer is what came of travelling together.
type batchAnswer struct {
	out   outcome
	alone bool            // the RPC takes no batches: travel alone instead
	ahead *sync.WaitGroup // to be told when this one goes on; nil if none
}

// run carries the elements round the ring, and ends with the last of them.
func (b *batchRun) run(todo []*batchElement) {
	var next atomic.Int64
	var workers sync.WaitGroup
	b.moving = min(len(todo), batchesAtOnce*maxBatch)
	for range b.moving {
		workers.Go(func() {
			defer b.stop()
			for {
				i := int(next.Add(1)) - 1
				if i >= len(todo) {
					return
				}
				b.carry(i, todo[i])
			}
		})
	}
	workers.Wait()
	b.senders.Wait()
	b.flush() // only the timer may be left
}

// carry takes one element round the ring. Once an RPC without batches was met, no more
// are begun than may travel alone at once, so that they needn't wait on their way.
func (b *batchRun) carry(place int, e *batchElement) {
	r := &batchedRequest{callRequest: e.call, run: b, place: place, news: make(chan batchAnswer, 1)}
	// Where places are waited for, that comes first: who had a lane and waited for a place
	// would wait for those who have a place and wait for a lane.
	if b.singly.Load() && !b.pool.isBounded(b.ctx) {
		b.stop()
		r.hasLane = b.enter(b.singles)
		b.start()
		if r.hasLane {
			defer func() { <-b.singles }()
		}
	}
	e.result, e.err = b.chain.do(b.ctx, r)
	r.goOn()
}

// enter takes one of the places for what may be under way at once; false when the
// caller's context ended before there was one.
func (b *batchRun) enter(places chan struct{}) bool {
	select {
	case places <- struct{}{}:
		return true
	case <-b.ctx.Done():
		return false
	}
}

// start counts an element as moving.
func (b *batchRun) start() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.moving++
}

// stop counts an element out: it waits, is under way, or has ended. If it was the last
// that moved, nobody can join those that wait any more.
func (b *batchRun) stop() {
	b.mu.Lock()
	var ready []*batchGroup
	if b.moving--; b.moving == 0 {
		ready = b.takeWaiting()
	}
	b.mu.Unlock()
	b.launch(ready)
}

// flush sends what waits, although some may still move.
func (b *batchRun) flush() {
	b.mu.Lock()
	ready := b.takeWaiting()
	b.mu.Unlock()
	b.launch(ready)
}

// takeWaiting takes all groups that wait. The caller holds b.mu.
func (b *batchRun) takeWaiting() []*batchGroup {
	if b.timer != nil {
		b.timer.Stop()
		b.timer = nil
	}
	var ready []*batchGroup
	for way, g := range b.waiting {
		ready = append(ready, g)
		delete(b.waiting, way)
	}
	return ready
}

func (b *batchRun) launch(groups []*batchGroup) {
	for _, g := range groups {
		b.senders.Go(func() { b.deliver(g) })
	}
}

// send makes one attempt for the element, together with others where that can be.
func (r *batchedRequest) send(ctx context.Context, to target) outcome {
	r.goOn()
	allotted := r.pool.timeout
	if deadline, ok := ctx.Deadline(); ok {
		allotted = min(allotted, time.Until(deadline))
	}
	if !r.pool.repeats.allow(r.name) {
		return r.alone(to, allotted)
	}
	if !r.run.chain.takesBatches(to.endpoint) {
		r.run.singly.Store(true)
		return r.alone(to, allotted)
	}
	answer := r.run.join(r, to, allotted)
	if answer.alone {
		out := r.alone(to, allotted)
		out.before = out.before || answer.out.before
		return out
	}
	r.ahead = answer.ahead
	return answer.out
}

// pause and resume have the others of the batch not wait for an element that waits for
// its turn itself.
func (r *batchedRequest) pause()  { r.goOn(); r.run.stop() }
func (r *batchedRequest) resume() { r.run.start() }

// goOn tells those who wait for it that the element goes on.
func (r *batchedRequest) goOn() {
	if r.ahead != nil {
		r.ahead.Done()
		r.ahead = nil
	}
}

// alone sends the element by itself. Its attempt's time begins when it is its turn, not
// when it began to wait for it: an RPC isn't blamed for our own queue.
func (r *batchedRequest) alone(to target, allotted time.Duration) outcome {
	b := r.run
	b.stop()
	defer b.start()
	if !r.hasLane {
		if !b.enter(b.singles) {
			return callerGone()
		}
		defer func() { <-b.singles }()
	}
	ctx, cancel := b.within(allotted)
	defer cancel()
	return r.callRequest.send(ctx, to)
}

// within gives the context of an attempt that has so much time. Where the caller's own
// context ends sooner it is that one's end, and not the attempt's, that the attempt sees.
func (b *batchRun) within(allotted time.Duration) (context.Context, context.CancelFunc) {
	if end, ok := b.ctx.Deadline(); ok && time.Until(end) <= allotted {
		return context.WithCancel(b.ctx)
	}
	return context.WithTimeout(b.ctx, allotted)
}

// callerGone is the outcome of what wasn't sent because the caller's context ended: it
// is nobody's, for the engine looks at the context first.
func callerGone() outcome { return failed(VerdictConnFail, reportConn, "the caller's context ended") }

// takesBatches tells whether an RPC isn't known to refuse batches.
func (c *chainState) takesBatches(e *endpoint) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return e.serves(batches, time.Now())
}

// join waits with others for the way that they have in common, and gives what came of
// it. Nobody waits longer than batchPatience.
func (b *batchRun) join(r *batchedRequest, to target, allotted time.Duration) batchAnswer {
	way := batchWay{to.endpoint, to.proxy}
	var ready []*batchGroup
	b.mu.Lock()
	g := b.waiting[way]
	if g != nil && g.bytes+len(r.body) > maxBatchBytes {
		ready, g = append(ready, g), nil
	}
	if g == nil {
		g = &batchGroup{to: to, allotted: allotted}
		b.waiting[way] = g
	}
	g.members = append(g.members, r)
	g.bytes += len(r.body)
	g.allotted = min(g.allotted, allotted)
	if len(g.members) == maxBatch {
		ready = append(ready, g)
		delete(b.waiting, way)
	}
	if b.moving--; b.moving == 0 {
		ready = append(ready, b.takeWaiting()...)
	} else if b.timer == nil && len(b.waiting) > 0 {
		b.timer = time.AfterFunc(batchPatience, b.flush)
	}
	b.mu.Unlock()
	b.launch(ready)
	return <-r.news
}

// deliver sends a group and hands out what came of it. Those with an answer of their
// own come first, and the others when these have gone on: a success wipes out what
// stands against an RPC, and must not wipe out what this very answer brings.
func (b *batchRun) deliver(g *batchGroup) {
	slices.SortFunc(g.members, func(one, other *batchedRequest) int { return one.place - other.place })
	answers := b.exchange(g)
	b.mu.Lock()
	b.moving += len(answers)
	b.mu.Unlock()
	var answered sync.WaitGroup
	for i, r := range g.members {
		if verdict := answers[i].out.verdict; verdict == VerdictOK || verdict == VerdictCaller {
			answered.Add(1)
			answers[i].ahead = &answered
			r.news <- answers[i]
		}
	}
	answered.Wait()
	for i, r := range g.members {
		if answers[i].ahead == nil {
			r.news <- answers[i]
		}
	}
}
