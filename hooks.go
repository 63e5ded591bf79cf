package rpcpool

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"runtime/debug"
	"strings"
	"sync/atomic"
)

// Hook is a value that is told what happens in a [Pool], for metrics, traces and the like:
// any value that implements one or more of [CallHook], [AttemptHook], [CooldownHook],
// [ProxyHook], [ListHook], [ReportHook], [RangeSplitHook] and [StaleHook]. See
// [Config.Hooks] and docs/OBSERVABILITY.md.
//
// Hooks only observe. Their methods are called by many goroutines at once, so they must be
// safe for concurrent use, and on the goroutine on which the thing happens, so they must be
// quick: a call waits for them. No lock of the library is held meanwhile: a hook may call
// [Chain.Stats], [Pool.ProxyStats] and their like, and even make calls on another chain,
// with a context of its own (not from AttemptStarted, when the request has its place among
// [Config.MaxRequests] already); but not [Pool.Close], which waits for the hook. A hook that
// panics harms nobody: the panic is recovered, the first one of each hook is logged at error
// level, and the call goes on.
//
// The events of one call come in order, each method of all hooks in the order of
// Config.Hooks. Those of different calls, and those of the pool's own goroutines (lists,
// reports, checks of proxies), may overtake each other. A call's last event comes before
// the call returns, except for the slower request of a hedged read, which ends a little
// later; after [Pool.Close] has returned no more come of calls that it could wait for.
//
// Events hold nothing that must be kept secret: RPCs and proxies by their masked labels, no
// params, results or URLs. Beside each field stands whether its values are a bounded set,
// so that it may label a metric. New fields may be added to events.
type Hook any

// CallHook is told of calls: those of the user, each element of a batch and the batch as a
// whole, each piece of a log query, and those that the library makes by itself (see
// [CallKind]). What can't begin has no events: after Close, on a handle that can't be used,
// with params that can't be written as JSON.
type CallHook interface {
	// CallStarted is called before anything is done. What it returns, a context derived
	// from ctx, is what the call's other events get, attempts included, and a function
	// given to [Chain.Run]: its values are seen there. Its deadline and end mean nothing to
	// the call, and nothing of it is sent to anybody. nil is ctx.
	CallStarted(ctx context.Context, start CallStart) context.Context
	// CallEnded is called once for each CallStarted.
	CallEnded(ctx context.Context, end CallEnd)
}

// AttemptHook is told of attempts: each one request to one RPC through one proxy. (One more
// where a kept connection was dead, or where [CheckHeads] asks for a head first. Elements of
// a batch that travel together are an attempt each. What a function given to [Chain.Run]
// sends is all one attempt.)
type AttemptHook interface {
	// AttemptStarted is called when the request is about to be sent. The context that it
	// returns is for AttemptEnded, and as of CallStarted.
	AttemptStarted(ctx context.Context, start AttemptStart) context.Context
	// AttemptEnded is called once for each AttemptStarted.
	AttemptEnded(ctx context.Context, end AttemptEnd)
}

// CooldownHook is told when RPCs are left alone, and when they are back. That a cooldown is
// over by the clock isn't told: nothing runs then; CooldownEvent.Until says when that is.
type CooldownHook interface {
	CooldownChanged(ctx context.Context, event CooldownEvent)
}

// ProxyHook is told what becomes of proxies. The context is no call's.
type ProxyHook interface {
	ProxyChanged(ctx context.Context, event ProxyEvent)
}

// ListHook is told of each request for a list of RPCs. The context is no call's.
type ListHook interface {
	ListFetched(ctx context.Context, event ListEvent)
}

// ReportHook is told what becomes of reports (rule A8): each is queued and then sent, failed
// or dropped, or dropped at once. The sender is another goroutine, so that a report may be
// sent before its being queued is told. The context is no call's.
type ReportHook interface {
	ReportChanged(ctx context.Context, event ReportEvent)
}

// RangeSplitHook is told when a piece of a log query is asked for again in smaller pieces
// (rules A9.2, A9.5).
type RangeSplitHook interface {
	RangeSplit(ctx context.Context, event RangeSplitEvent)
}

// StaleHook is told of RPCs that lag, and of blocks with two hashes; only with
// [WithFreshness] or a [ReadToken].
type StaleHook interface {
	// RPCStale is called when an RPC is passed over because of its head (rules B3, B4).
	RPCStale(ctx context.Context, event StaleEvent)
	// ForkSeen is called when a block turns out to have two hashes (rule B11), or the chain
	// to have gone back.
	ForkSeen(ctx context.Context, event ForkEvent)
}

// hookKinds are the interfaces of which a hook implements some.
var hookKinds = []reflect.Type{
	reflect.TypeFor[CallHook](), reflect.TypeFor[AttemptHook](), reflect.TypeFor[CooldownHook](),
	reflect.TypeFor[ProxyHook](), reflect.TypeFor[ListHook](), reflect.TypeFor[ReportHook](),
	reflect.TypeFor[RangeSplitHook](), reflect.TypeFor[StaleHook](),
}

// checkHook says why a value is no hook; empty where it is one. A method that looks like a
// hook's and isn't one would never be called, and nobody would know.
func checkHook(h Hook) string {
	if h == nil {
		return "is nil; leave it out"
	}
	is := reflect.TypeOf(h)
	if is.Kind() == reflect.Pointer && reflect.ValueOf(h).IsNil() {
		return "is a nil " + is.String() + "; leave it out"
	}
	pointer := reflect.PointerTo(is)
	fits := false
	for _, kind := range hookKinds {
		switch {
		case is.Implements(kind):
			fits = true
		case is.Kind() != reflect.Pointer && pointer.Implements(kind):
			return fmt.Sprintf("is a %s, whose pointer implements %s; give the pointer", is, kind.Name())
		default:
			for m := range kind.Methods() {
				if name := m.Name; hasMethod(is, name) {
					return fmt.Sprintf("is a %s, which has a method %s and doesn't implement %s; it needs %s",
						is, name, kind.Name(), signatures(kind))
				}
			}
		}
	}
	if fits {
		return ""
	}
	names := make([]string, len(hookKinds))
	for i, kind := range hookKinds {
		names[i] = kind.Name()
	}
	return fmt.Sprintf("is a %s, which implements none of %s", is, strings.Join(names, ", "))
}

func hasMethod(t reflect.Type, name string) bool {
	_, has := t.MethodByName(name)
	return has
}

// signatures writes an interface's methods.
func signatures(kind reflect.Type) string {
	var methods []string
	for m := range kind.Methods() {
		methods = append(methods, m.Name+strings.TrimPrefix(m.Type.String(), "func"))
	}
	return strings.Join(methods, " and ")
}

// hookSet has a pool's hooks by what they are told of. Without any it costs a look at a
// length.
type hookSet struct {
	call     []hooked[CallHook]
	attempt  []hooked[AttemptHook]
	cooldown []hooked[CooldownHook]
	proxy    []hooked[ProxyHook]
	list     []hooked[ListHook]
	report   []hooked[ReportHook]
	split    []hooked[RangeSplitHook]
	stale    []hooked[StaleHook]
}

// watchCalls tells whether any hook wants to know of calls or attempts.
func (s *hookSet) watchCalls() bool { return len(s.call) > 0 || len(s.attempt) > 0 }

// hooked is a hook in one of its parts.
type hooked[T any] struct {
	hook  T
	guard *hookGuard
}

// hookGuard keeps a hook's panics from the library.
type hookGuard struct {
	name   string
	log    *slog.Logger
	scrub  func(string) string
	logged atomic.Bool
}

func newHookSet(hooks []Hook, log *slog.Logger, scrub func(string) string) *hookSet {
	s := &hookSet{}
	for i, h := range hooks {
		guard := &hookGuard{name: fmt.Sprintf("Hooks[%d] (%T)", i, h), log: log, scrub: scrub}
		addHook(&s.call, h, guard)
		addHook(&s.attempt, h, guard)
		addHook(&s.cooldown, h, guard)
		addHook(&s.proxy, h, guard)
		addHook(&s.list, h, guard)
		addHook(&s.report, h, guard)
		addHook(&s.split, h, guard)
		addHook(&s.stale, h, guard)
	}
	return s
}

func addHook[T any](to *[]hooked[T], h Hook, guard *hookGuard) {
	if part, ok := h.(T); ok {
		*to = append(*to, hooked[T]{part, guard})
	}
}

// tell calls each of the hooks.
func tell[T any](hooks []hooked[T], call func(T)) {
	for i := range hooks {
		hooks[i].tell(call)
	}
}

func (h *hooked[T]) tell(call func(T)) {
	defer h.guard.recover()
	call(h.hook)
}

// thread leads a context through the hooks, each of which may make another of it.
func thread[T any](ctx context.Context, hooks []hooked[T], call func(T, context.Context) context.Context) context.Context {
	if len(hooks) == 0 {
		return ctx
	}
	return thread(hooks[0].thread(ctx, call), hooks[1:], call)
}

func (h *hooked[T]) thread(ctx context.Context, call func(T, context.Context) context.Context) (next context.Context) {
	next = ctx // also where it panics
	defer h.guard.recover()
	if made := call(h.hook, ctx); made != nil {
		next = made
	}
	return next
}

// recover ends a hook's panic. It is deferred itself: only so does it see the panic.
func (g *hookGuard) recover() {
	fault := recover()
	if fault == nil || !g.logged.CompareAndSwap(false, true) {
		return
	}
	g.log.Error("rpcpool: a hook panicked; this is logged once, and nothing else is harmed",
		keyHook, g.name, keyPanic, clip(g.scrub(fmt.Sprint(fault)), maxReportDetail), keyStack, string(debug.Stack()))
}
