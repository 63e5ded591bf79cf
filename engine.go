package rpcpool

import (
	"context"
	"encoding/json"
	"time"
)

const (
	checkProxyAfter  = 3 // different RPCs that one call couldn't reach through a proxy (rule A7.1)
	maxRangeRefusals = 3 // refusals that end a log query (rule A5)
)

// request is what a call carries round the ring.
type request interface {
	// method is the JSON-RPC method; empty where it isn't known.
	method() string
	// encodedParams are the params as JSON; nil where they aren't known.
	encodedParams() []byte
	// piece says what piece of a chunked log query this is; zero for other requests.
	piece() logPieceNeeds
	// send makes one attempt and says what came of it. ctx ends with the attempt.
	send(ctx context.Context, to target) outcome
}

// target is where an attempt goes.
type target struct {
	chain    string // the chain's key
	endpoint *endpoint
	proxy    *proxy
	stays    bool // in the line for a connection also where the RPC is left alone meanwhile
}

// call is one request on its way round the ring.
type call struct {
	ctx   context.Context
	pool  *poolState
	chain *chainState
	req   request
	shape shape
	key   string // the chain's key in the list
	want  wanted
	line  lineup // of the walk under way

	*caution // what is made sure of before a request goes to an RPC; nil: nothing
	here     visit
	waits    waits

	attempts      []Attempt
	tried         map[string]bool // URLs; an RPC that leaves the list and returns is the same
	rangeRefusals int
	named         uint64    // the widest span that a provider named
	reserved      *endpoint // what the walk began with, for pieces that are spread

	failures      []callFailure
	proxyFailures []proxyFailure

	// What the call shares with others, and what that makes of its context.
	budget  *budget
	callers context.Context // the caller's own, where the budget has a time
	cancel  context.CancelFunc

	leg   *hedgeLeg  // of a hedged read; nil else
	watch *callWatch // what hooks see; nil where none wants to

	shunned  *proxy // through which a hurried attempt got no answer
	hurried  bool   // an attempt in this round was cut short by the caller's deadline
	arrived  bool   // the request may have reached an RPC and had no good answer
	result   json.RawMessage
	err      error
	doubtful bool // err is about a raw transaction that may have been taken before
}

// callFailure is a failure of an RPC that this call saw. It becomes a report if
// it still stands when the call ends.
type callFailure struct {
	endpoint *endpoint
	failure  *failure
	report   string
	detail   string
	verdict  Verdict
	class    FailureClass
	told     bool // hooks know of it
	noticed  bool // that it no longer stands was acted upon
	served   bool // the RPC answered later in the call
}

// proxyFailure is a proxy's refusal of an RPC, which may turn out to be the RPC's
// doing (rule A5.1).
type proxyFailure struct {
	endpoint *endpoint
	proxy    *proxy
	failure  *failure
}

// step is how a call goes on after an RPC was tried.
type step int

const (
	next     step = iota // with the next candidate
	sameRPC              // with the same RPC, through the visit's proxy
	anew                 // with candidates taken anew: failures were undone
	finished             // not at all: there is a result or an error
)

// do carries a request round the ring until it has an answer.
func (c *chainState) do(ctx context.Context, req request) (json.RawMessage, error) {
	if c.hedge != nil && c.hedge.mayHedge(req) {
		return c.doHedged(ctx, req)
	}
	k, err := c.start(ctx, req)
	if err != nil {
		return nil, err
	}
	return k.finish()
}

// start begins a call, which must be finished.
func (c *chainState) start(ctx context.Context, req request) (*call, error) {
	k, err := c.startUnseen(ctx, req)
	if err == nil {
		if k.watch = c.watchRequest(k.ctx, req); k.watch != nil {
			k.ctx = k.watch.ctx
		}
	}
	return k, err
}

// startUnseen is start without telling hooks.
func (c *chainState) startUnseen(ctx context.Context, req request) (*call, error) {
	if c.invalid != nil {
		return nil, c.invalid
	}
	if !c.pool.begin() {
		return nil, ErrClosed
	}
	k := c.newCall(ctx, req)
	k.useBudget()
	k.beCareful()
	return k, nil
}

// finish carries the call to its end. Whatever the way out, a panic of the user's
// function included, the failures that stand are settled and reported.
func (k *call) finish() (result json.RawMessage, err error) {
	defer k.pool.done()
	if k.cancel != nil {
		defer k.cancel()
	}
	if k.watch != nil && k.leg == nil {
		err = errNotReturned // as it stays where the user's function panics
		defer func() { k.tellEnd(err) }()
	}
	defer k.settle()
	k.run()
	if k.doubtful {
		if hash, found := k.chain.lookUp(k.pool.asKind(k.ctx, KindInternal), k.req.encodedParams()); found {
			return hash, nil
		}
	}
	return k.result, k.err
}

// abandon ends a call that was started and isn't carried out.
func (k *call) abandon() {
	if k.watch != nil && k.leg == nil {
		k.tellEnd(k.err)
	}
	if k.cancel != nil {
		k.cancel()
	}
	k.pool.done()
}

func (c *chainState) newCall(ctx context.Context, req request) *call {
	k := &call{ctx: ctx, pool: c.pool, chain: c, req: req, shape: shapeOf(req.method(), req.encodedParams())}
	k.want = wanted{shape: &k.shape, logPieceNeeds: req.piece()}
	k.want.spread = k.want.spread || c.pool.mode == LeastOutstanding
	return k
}

// run makes rounds until there is a result or an error, and waits between them where
// the user allows it.
func (k *call) run() {
	for k.makeRounds() != finished {
		if !k.waitForAnRPC() {
			if k.err == nil {
				k.err = k.exhausted()
			}
			return
		}
	}
}

// makeRounds walks round the ring MaxRounds times; next means that nobody answered.
func (k *call) makeRounds() step {
	// Attempts that the caller's deadline cut short are no evidence: as long as there is
	// time, there is another round.
	for round := 0; round < k.pool.maxRounds || k.hurried; round++ {
		k.hurried = false
		maxAge := k.pool.refreshInterval
		if round > 0 || k.waits.done > 0 {
			maxAge = minRefetch
		}
		if err := k.chain.ensureList(k.ctx, maxAge); err != nil {
			k.err = k.interrupted(err)
			return finished
		}
		if k.chain.policy != nil {
			k.chain.startSampling()
			k.demand.insists = round > 0 || k.waits.done > 0
		}
		if k.prepare(round) == finished || k.walkRing() == finished {
			return finished
		}
	}
	return next
}

// prepare derives what the call needs from the list. An RPC that has it must be
// listed, even if it is cooling (rule A3.2).
func (k *call) prepare(round int) step {
	c := k.chain
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ring == nil {
		return next
	}
	k.key = c.ring.key
	k.want.need = k.shape.need(c.archive, c.ring.head)
	if round == 0 && len(c.ring.endpoints) > 0 && !c.ring.capable(k.want.need) {
		k.err = &NoCapableRPCError{
			Chain: c.ref, Method: k.want.method, Needs: k.want.need.names(), Listed: len(c.ring.endpoints),
		}
		return finished
	}
	return next
}

// walkRing walks round the ring once, and again from the start as often as a
// dead proxy is found on the way. That is once for each proxy, or a few times more
// where one comes back meanwhile; the limit is for proxies that do nothing else.
func (k *call) walkRing() step {
	for range 4 + 2*len(k.pool.proxies.proxies) {
		s := k.walkOn(k.lineUp)
		if s == next && k.pool.lastResort {
			s = k.walkOn(k.lineUpTheRest)
		}
		if s != anew {
			return s
		}
	}
	return next
}

// walkOn walks until nobody is left to try or to wait for, and then sees whether that is a
// proxy's doing.
func (k *call) walkOn(lineUp func() bool) step {
	s := k.walk(lineUp)
	for s == next && k.waitForTurn() {
		s = k.walk(lineUp)
	}
	if k.err != nil {
		return finished
	}
	if s == next {
		return k.checkSuspects()
	}
	return s
}

// walk tries the candidates in turn. They are taken once, at its start: what
// changes meanwhile counts in the next walk (rule A4.2a).
func (k *call) walk(lineUp func() bool) step {
	k.waits.full = k.waits.full[:0]
	if k.caution != nil {
		k.trials = k.trials[:0]
	}
	defer k.passTurnOn()
	if !lineUp() {
		return next
	}
	for i := 0; ; i++ {
		e := k.line.at(k.chain, i)
		if e == nil {
			return next
		}
		k.here = visit{e: e}
		s := k.visit(&k.here)
		if s == unconfirmed {
			s = k.confirm(e, k.line.after(k.chain, i))
		}
		if s == next && k.noticeUndone() {
			s = anew
		}
		if s != next {
			return s
		}
	}
}

// visit makes attempts on one RPC, through one proxy or, where the proxy is at
// fault or its address is blocked, through several.
func (k *call) visit(v *visit) step {
	if ballot, ok := k.req.(*vote); ok && !v.onlyHead && !ballot.claim(v.e) {
		return next // another vote asks this operator
	}
	if !k.enter(v.e) {
		k.waits.full = append(k.waits.full, v.e)
		return next
	}
	defer k.exit(v)
	if v.proxy = k.firstProxy(); v.proxy == nil {
		return k.outOfProxies()
	}
	for {
		req := k.req
		if k.caution != nil {
			question, s, settled := k.admit(v)
			if settled {
				return s
			}
			if question != nil {
				req = question
			}
		}
		var out outcome
		deaths := k.attempt(v, req, &out)
		if k.watch != nil {
			k.tellAttempt(&out, v.took)
		}
		if k.err != nil {
			return finished
		}
		if s := k.act(v, req, &out, deaths); s != sameRPC {
			return s
		}
	}
}

// act does what the outcome of an attempt asks for. A request that may have had its
// effect before it failed isn't sent again: a second one could have it twice (rule C2).
// Neither is one whose answer broke off after a part of it was handed out (rule C5). Who
// is at fault is so all the same.
func (k *call) act(v *visit, req request, out *outcome, deaths uint64) step {
	s := k.follow(v, req, out, deaths)
	switch {
	case out.mayHaveRun:
		open := &AmbiguousError{Method: k.want.method, Attempts: k.attempts}
		if isInterruption(k.err) { // the caller left while a proxy was checked
			open.Err = k.err
		}
		k.err = open
	case out.partial:
		k.err = &PartialAnswerError{Attempts: k.attempts}
	default:
		return s
	}
	return finished
}

// follow does what the table of rule A5 says.
func (k *call) follow(v *visit, req request, out *outcome, deaths uint64) step {
	e, p := v.e, v.proxy
	switch {
	case out.crowded:
		// Nothing was sent: the round doesn't count, unless the line took an attempt's time.
		k.hurried = k.hurried || v.took < k.pool.timeout
		k.moveOn(e)
		return next
	case out.early:
		return k.hurryOn(v, *out)
	}
	switch out.verdict {
	case VerdictOK:
		return k.answered(v, req, *out)
	case VerdictCaller:
		return k.refused(*out)
	case VerdictProxyFail:
		if s := k.proxyFailed(e, p, *out, deaths); s != sameRPC {
			return s
		}
		// Other calls may bring proxies back as fast as they fail here.
		v.refusals++
		v.proxy = k.pool.proxies.current(time.Now())
		if v.proxy == nil || v.refusals > len(k.pool.proxies.proxies) {
			return k.outOfProxies()
		}
		return sameRPC
	case VerdictIPBlocked:
		other := k.otherProxy(p, v.triedOther)
		if other == nil {
			return k.rpcFailed(e, *out)
		}
		v.proxy, v.triedOther = other, true
		return sameRPC
	case VerdictConnFail:
		return k.connFailed(e, p, *out, deaths)
	case VerdictUnsupported, VerdictRange, VerdictNoState:
		return k.passOver(e, req, *out)
	case VerdictStale:
		return k.stale(e, *out)
	case VerdictWrongChain:
		return k.expel(e, *out)
	}
	return k.rpcFailed(e, *out)
}
