package rpcpool

import (
	"context"
	"errors"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/bomzrpc/rpcpool/internal/redact"
)

// This file has how hooks are told of what calls do.

// callWatch is what hooks see of one call. There is none where no hook wants to know of
// calls or attempts.
type callWatch struct {
	pool   *poolState
	ctx    context.Context // as hooks have given it
	start  CallStart
	began  time.Time
	counts *watchCounts // own, or those of the whole of a hedged read
	own    watchCounts

	seen *attemptWatch // the attempt whose end hooks haven't seen; nil if none
}

type watchCounts struct {
	attempts atomic.Int64 // that were begun
	hedged   atomic.Bool
}

// ofLeg is the part of a hedged read's watch that one of its two calls has.
func (w *callWatch) ofLeg() *callWatch {
	if w == nil {
		return nil
	}
	return &callWatch{pool: w.pool, ctx: w.ctx, start: w.start, began: w.began, counts: w.counts}
}

// hedge notes that a second RPC is asked.
func (w *callWatch) hedge() *callWatch {
	if w != nil {
		w.counts.hedged.Store(true)
	}
	return w
}

// watchCall tells hooks that a call begins; nil where none wants to know of calls or
// attempts.
func (c *chainState) watchCall(ctx context.Context, kind CallKind, method string, elements int) *callWatch {
	hooks := c.pool.hooks
	if !hooks.watchCalls() {
		return nil
	}
	w := &callWatch{
		pool: c.pool, ctx: ctx, began: time.Now(),
		start: CallStart{ChainLabels: c.labels(), Kind: kind, Method: method, Elements: elements},
	}
	w.counts = &w.own
	w.ctx = observed(ctx, thread(ctx, hooks.call, func(h CallHook, ctx context.Context) context.Context {
		return h.CallStarted(ctx, w.start)
	}))
	return w
}

// watchRequest is watchCall for a request.
func (c *chainState) watchRequest(ctx context.Context, req request) *callWatch {
	if !c.pool.hooks.watchCalls() {
		return nil
	}
	return c.watchCall(ctx, kindOf(ctx, req), req.method(), 0)
}

// errNotReturned stands for the error of a call that a panic ends.
var errNotReturned = errors.New("rpcpool: the call didn't return")

// end tells hooks that the call has ended.
func (w *callWatch) end(result CallResult) {
	end := CallEnd{
		CallStart: w.start, Result: result, Attempts: int(w.counts.attempts.Load()), Hedged: w.counts.hedged.Load(), Duration: time.Since(w.began),
	}
	tell(w.pool.hooks.call, func(h CallHook) { h.CallEnded(w.ctx, end) })
}

// tellEnd tells hooks that the call ends with an error, or nil.
func (k *call) tellEnd(err error) {
	k.tellAttempt(&outcome{}, k.here.took) // where a panic came between
	req := k.req
	if ballot, ok := req.(*vote); ok {
		req = ballot.request
	}
	if pinned, ok := req.(*snapshotRequest); ok && err != nil {
		err = pinned.explain(err)
	}
	result := resultOf(err)
	if _, sends := req.(*sentTransaction); sends && k.leavesOpen(err) {
		result = ResultUnknown
	}
	k.watch.end(result)
}

// kindKey has the kind of the calls that are made with a context, where the type of the
// request doesn't say it.
type kindKey struct{}

// asKind gives a context for calls of a kind, if any hook wants to know.
func (p *poolState) asKind(ctx context.Context, kind CallKind) context.Context {
	if !p.hooks.watchCalls() {
		return ctx
	}
	return context.WithValue(ctx, kindKey{}, kind)
}

// kindOf says what made a call.
func kindOf(ctx context.Context, req request) CallKind {
	if kind, ok := ctx.Value(kindKey{}).(CallKind); ok {
		return kind
	}
	switch r := req.(type) {
	case *pieceRequest:
		return KindLogs
	case *batchedRequest:
		return KindBatchElement
	case *runRequest:
		return KindRun
	case *restRequest:
		return KindHTTP
	case *snapshotRequest:
		return KindSnapshot
	case *sentTransaction:
		return KindSend
	case *vote:
		if _, sends := r.request.(*sentTransaction); sends {
			return KindSend
		}
		return KindQuorum
	}
	return KindCall
}

// results are the errors that calls end with, those first that wrap others.
var results = []struct {
	is     func(error) bool
	result CallResult
}{
	{isOf[*TxOutcomeUnknownError], ResultUnknown},
	{isOf[*AmbiguousError], ResultAmbiguous},
	{isOf[*PartialAnswerError], ResultPartial},
	{isOf[*SnapshotError], ResultSnapshot},
	{isOf[*StaleError], ResultStale},
	{isOf[*BudgetError], ResultBudget},
	{isOf[*LogsRangeTooLargeError], ResultRange},
	{isOf[*NoCapableRPCError], ResultNoCapable},
	{isOf[*NoHealthyRPCError], ResultNoHealthy},
	{isOf[*ProxyError], ResultProxy},
	{isOf[*PoolAPIError], ResultPoolAPI},
	{isOf[*HostError], ResultHost},
	{isOf[*RequestError], ResultRequest},
	{isOf[*RPCError], ResultRPCError},
	{isOf[*HTTPError], ResultHTTPError},
	{is(ErrClosed), ResultClosed},
	{is(errNotReturned), ResultPanic},
	{is(context.DeadlineExceeded), ResultDeadline},
	{is(context.Canceled), ResultCanceled},
}

func isOf[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

func is(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

// resultOf names an error that a call ends with.
func resultOf(err error) CallResult {
	if err == nil {
		return ResultOK
	}
	for _, known := range results {
		if known.is(err) {
			return known.result
		}
	}
	return ResultOther
}

// observedContext is a context with the values of another one, that hooks have made of it:
// they see what they have put there, and nothing of it changes the call.
type observedContext struct {
	context.Context
	values context.Context
}

func observed(ctx, values context.Context) context.Context {
	// Contexts of a user's own type needn't be comparable, pointers are.
	if reflect.TypeOf(ctx).Kind() == reflect.Pointer && ctx == values {
		return ctx
	}
	return &observedContext{ctx, values}
}

// Value gives the hooks' values, but for those that the library goes by.
func (c *observedContext) Value(key any) any {
	switch key.(type) {
	case budgetKey, tokenKey, kindKey:
		return c.Context.Value(key)
	}
	return c.values.Value(key)
}

// attemptWatch is what hooks see of one attempt.
type attemptWatch struct {
	ctx   context.Context
	start AttemptStart
}

// watchAttempt tells hooks that an attempt begins, and gives the context that it has.
func (k *call) watchAttempt(v *visit, req request) context.Context {
	number := k.watch.counts.attempts.Add(1)
	if len(k.pool.hooks.attempt) == 0 {
		return k.ctx
	}
	seen := &attemptWatch{start: AttemptStart{
		ChainLabels: k.chain.labels(), Kind: k.watch.start.Kind, Method: req.method(),
		RPC: v.e.label, Proxy: v.proxy.label, Number: int(number),
		Hedged: k.leg != nil && k.leg.avoid != nil, Question: req != k.req,
	}}
	seen.ctx = observed(k.ctx, thread(k.ctx, k.pool.hooks.attempt, func(h AttemptHook, ctx context.Context) context.Context {
		return h.AttemptStarted(ctx, seen.start)
	}))
	k.watch.seen = seen
	return seen.ctx
}

// tellAttempt tells hooks that the attempt has ended that they have seen begin, if there is
// one. An outcome without a verdict is nobody's.
func (k *call) tellAttempt(out *outcome, took time.Duration) {
	seen := k.watch.seen
	if seen == nil {
		return
	}
	k.watch.seen = nil
	end := AttemptEnd{
		AttemptStart: seen.start, Verdict: out.verdict, Class: classOf(out),
		Detail: out.detail, Bytes: len(out.result), Duration: took,
	}
	if out.verdict == "" {
		end.Detail = "the call ended"
	}
	tell(k.pool.hooks.attempt, func(h AttemptHook) { h.AttemptEnded(seen.ctx, end) })
}

func classOf(out *outcome) FailureClass {
	class, _ := failureClassOf(out)
	return class
}

// tellCooldown tells hooks of a change of an RPC. The caller has filled in what the lock of
// the chain is needed for, and holds it no more.
func (k *call) tellCooldown(e *endpoint, event CooldownEvent) { k.chain.tellCooldown(k.ctx, e, event) }

func (c *chainState) tellCooldown(ctx context.Context, e *endpoint, event CooldownEvent) {
	if len(c.pool.hooks.cooldown) == 0 {
		return
	}
	event.ChainLabels, event.RPC = c.labels(), e.label
	tell(c.pool.hooks.cooldown, func(h CooldownHook) { h.CooldownChanged(ctx, event) })
}

// tellFailure tells hooks that a failure is held against an RPC.
func (k *call) tellFailure(f *callFailure, n int, until time.Time) {
	f.told = true
	k.tellCooldown(f.endpoint, CooldownEvent{Change: RPCCooled, Verdict: f.verdict, Class: f.class, Until: until, FailuresInRow: n})
}

// tellUndone tells hooks that a failure doesn't count any more.
func (k *call) tellUndone(f *callFailure) {
	if !f.told || f.served || len(k.pool.hooks.cooldown) == 0 {
		return
	}
	f.told = false
	k.chain.mu.Lock()
	n, until := f.endpoint.health.standing()
	k.chain.mu.Unlock()
	k.tellCooldown(f.endpoint, CooldownEvent{Change: RPCUndone, Verdict: f.verdict, Class: f.class, Until: until, FailuresInRow: n})
}

// tellBack tells hooks that RPCs are as good as new.
func (k *call) tellBack(back ...*endpoint) {
	for _, e := range back {
		k.tellCooldown(e, CooldownEvent{Change: RPCBack})
	}
}

// staleEvent says what is known of an RPC's head. The caller holds c.mu.
func (c *chainState) staleEvent(e *endpoint) StaleEvent {
	head := e.heads.claim()
	return StaleEvent{
		ChainLabels: c.labels(), RPC: e.label, Head: head, HighWater: c.heads.mark, Lag: c.heads.lag(head),
	}
}

// tellStale tells hooks that an RPC is passed over because of its head.
func (k *call) tellStale(e *endpoint, ejected bool) {
	if len(k.pool.hooks.stale) == 0 {
		return
	}
	k.chain.mu.Lock()
	event := k.chain.staleEvent(e)
	k.chain.mu.Unlock()
	event.Ejected = ejected
	tell(k.pool.hooks.stale, func(h StaleHook) { h.RPCStale(k.ctx, event) })
}

// tellAdmission tells hooks what was found out about an RPC before the request went to it.
func (k *call) tellAdmission(v *visit) {
	if v.behind {
		v.behind = false
		k.tellStale(v.e, false)
	}
	if v.back {
		v.back = false
		k.tellBack(v.e)
	}
}

// tellNews tells hooks of forks.
func (k *call) tellNews(e *endpoint, news *headNews) {
	event := ForkEvent{ChainLabels: k.chain.labels(), RPC: e.label, Block: news.block}
	switch {
	case news.rolledBack:
		event.Kind, event.Block = ForkRollback, 0
	case news.conflict != nil:
		event.Kind, event.Other = ForkBetween, news.conflict.label
	case news.reorg:
		event.Kind = ForkReorg
	default:
		return
	}
	tell(k.pool.hooks.stale, func(h StaleHook) { h.ForkSeen(k.ctx, event) })
	k.tellBack(news.freed...)
}

// tellList tells hooks of a request for a list.
func (p *poolState) tellList(event *ListEvent, err error) {
	if len(p.hooks.list) == 0 {
		return
	}
	if err != nil {
		event.Error = p.shownDirectoryError(err)
		if api, ok := errors.AsType[*PoolAPIError](err); ok {
			event.StatusCode = api.StatusCode
		}
	}
	tell(p.hooks.list, func(h ListHook) { h.ListFetched(context.Background(), *event) })
}

// directorySource is the source of what the directory gives.
func (p *poolState) directorySource() ListSource {
	switch {
	case p.api != nil:
		return ListFromPool
	case !p.cacheLists:
		return ListFromStatic
	}
	return ListFromDirectory
}

// tellReports tells hooks what became of reports.
func (r *reporter) tellReports(change ReportChange, why string, reports ...Report) {
	if len(r.hooks.report) == 0 {
		return
	}
	for _, report := range reports {
		event := ReportEvent{
			Chain: report.Chain, RPC: redact.URL(report.URL), Change: change, Kind: report.Error, Detail: report.Detail, Error: why,
		}
		tell(r.hooks.report, func(h ReportHook) { h.ReportChanged(context.Background(), event) })
	}
}

// tellProxy tells hooks of a change of a proxy.
func (r *proxyRing) tellProxy(event ProxyEvent) {
	tell(r.hooks.proxy, func(h ProxyHook) { h.ProxyChanged(context.Background(), event) })
}

// event says what is known of a proxy. The caller holds the ring's lock.
func (p *proxy) event(change ProxyChange) ProxyEvent {
	n, until := p.health.standing()
	return ProxyEvent{Proxy: p.label, Change: change, Until: until, FailuresInRow: n, Deaths: p.deaths.Load()}
}

// tellSwitch tells hooks that another proxy is in use, if it is: by their places.
func (r *proxyRing) tellSwitch(from, to int) {
	if from == to || len(r.hooks.proxy) == 0 {
		return
	}
	r.mu.Lock()
	event := r.proxies[to].event(ProxySwitched)
	r.mu.Unlock()
	event.From = r.proxies[from].label
	r.tellProxy(event)
}

// tellSplit tells hooks that a piece is asked for again in smaller ones.
func (p *logPieces) tellSplit(piece *logPiece, size uint64, cause SplitCause) {
	c := p.query.chain.s
	if len(c.pool.hooks.split) == 0 {
		return
	}
	event := RangeSplitEvent{
		ChainLabels: c.labels(), From: piece.from, To: piece.to, Span: piece.span(), NewSpan: size, Cause: cause,
	}
	tell(c.pool.hooks.split, func(h RangeSplitHook) { h.RangeSplit(p.ctx, event) })
}
