package rpcpool_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// hookLog is a hook that keeps every event, in order.
type hookLog struct {
	mu     sync.Mutex // protects what follows
	events []recorded

	each func(event any) // called for every event, without the lock; may be nil
}

type recorded struct {
	ctx   context.Context
	event any
}

// spanKey is what the hookLog puts into contexts, as a tracer would.
type spanKey struct{}

func (r *hookLog) note(ctx context.Context, event any) {
	r.mu.Lock()
	r.events = append(r.events, recorded{ctx, event})
	r.mu.Unlock()
	if r.each != nil {
		r.each(event)
	}
}

func (r *hookLog) CallStarted(ctx context.Context, e rpcpool.CallStart) context.Context {
	r.note(ctx, e)
	return context.WithValue(ctx, spanKey{}, span(ctx)+"/call "+e.Method)
}

func (r *hookLog) CallEnded(ctx context.Context, e rpcpool.CallEnd) { r.note(ctx, e) }

func (r *hookLog) AttemptStarted(ctx context.Context, e rpcpool.AttemptStart) context.Context {
	r.note(ctx, e)
	return context.WithValue(ctx, spanKey{}, fmt.Sprint(span(ctx), "/attempt ", e.Number))
}

func (r *hookLog) AttemptEnded(ctx context.Context, e rpcpool.AttemptEnd)       { r.note(ctx, e) }
func (r *hookLog) CooldownChanged(ctx context.Context, e rpcpool.CooldownEvent) { r.note(ctx, e) }
func (r *hookLog) ProxyChanged(ctx context.Context, e rpcpool.ProxyEvent)       { r.note(ctx, e) }
func (r *hookLog) ListFetched(ctx context.Context, e rpcpool.ListEvent)         { r.note(ctx, e) }
func (r *hookLog) ReportChanged(ctx context.Context, e rpcpool.ReportEvent)     { r.note(ctx, e) }
func (r *hookLog) RangeSplit(ctx context.Context, e rpcpool.RangeSplitEvent)    { r.note(ctx, e) }
func (r *hookLog) RPCStale(ctx context.Context, e rpcpool.StaleEvent)           { r.note(ctx, e) }
func (r *hookLog) ForkSeen(ctx context.Context, e rpcpool.ForkEvent)            { r.note(ctx, e) }

func span(ctx context.Context) string {
	text, _ := ctx.Value(spanKey{}).(string)
	return text
}

// of gives the events of a type, in order.
func of[E any](r *hookLog) (events []E) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, each := range r.events {
		if event, ok := each.event.(E); ok {
			events = append(events, event)
		}
	}
	return events
}

// lines are the events in short, in order, without those of lists and reports, which
// other goroutines tell.
func (r *hookLog) lines() (lines []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, each := range r.events {
		if line := shortly(each.event); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

func host(label string) string {
	_, name, _ := strings.Cut(label, "://")
	name = strings.TrimPrefix(name, "***@")
	name, _, _ = strings.Cut(name, ".")
	return name
}

func shortly(event any) string {
	switch e := event.(type) {
	case rpcpool.CallStart:
		return fmt.Sprintf("start %s %s", e.Kind, e.Method)
	case rpcpool.CallEnd:
		return fmt.Sprintf("end %s %d", e.Result, e.Attempts)
	case rpcpool.AttemptStart:
		return fmt.Sprintf("attempt %d %s %s %s", e.Number, host(e.RPC), host(e.Proxy), e.Method)
	case rpcpool.AttemptEnd:
		return fmt.Sprintf("attempted %d %s %s", e.Number, e.Verdict, e.Class)
	case rpcpool.CooldownEvent:
		return fmt.Sprintf("rpc %s %s %s %d", host(e.RPC), e.Change, e.Verdict, e.FailuresInRow)
	case rpcpool.ProxyEvent:
		return fmt.Sprintf("proxy %s %s", host(e.Proxy), e.Change)
	case rpcpool.RangeSplitEvent:
		return fmt.Sprintf("split %d-%d %d>%d %s", e.From, e.To, e.Span, e.NewSpan, e.Cause)
	case rpcpool.StaleEvent:
		return fmt.Sprintf("stale %s %d under %d", host(e.RPC), e.Lag, e.HighWater)
	case rpcpool.ForkEvent:
		return fmt.Sprintf("%s %s %s", e.Kind, host(e.RPC), host(e.Other))
	}
	return ""
}

// watched makes a pool with a hookLog.
func watched(t *testing.T, w *rpcpooltest.World, change ...func(*rpcpool.Config)) (*rpcpool.Pool, *hookLog) {
	t.Helper()
	r := &hookLog{}
	pool := open(t, w, append(change, func(cfg *rpcpool.Config) { cfg.Hooks = append(cfg.Hooks, r) })...)
	return pool, r
}

// agrees checks what must be so after any story: as many attempts were begun as requests
// were sent, each has its end, each call too, and reports were sent as the pool has them.
func (r *hookLog) agrees(t *testing.T, w *rpcpooltest.World) {
	t.Helper()
	sent, requests, nowhere := map[string]int{}, map[string]int{}, 0
	for _, line := range w.Requests() {
		fields := strings.Fields(line)
		switch fields[0] {
		case "check":
			continue
		case "-": // it didn't come beyond the proxy
			nowhere++
		default:
			requests[fields[0]]++
		}
		requests["by "+fields[1]]++
	}
	starts := of[rpcpool.AttemptStart](r)
	for _, e := range starts {
		if nowhere == 0 {
			sent[host(e.RPC)]++
		}
		sent["by "+host(e.Proxy)]++
	}
	if nowhere > 0 {
		maps.DeleteFunc(requests, func(name string, _ int) bool { return !strings.HasPrefix(name, "by ") })
	}
	assert.Equal(t, requests, sent, "attempts as they arrived, and as hooks were told")
	assert.Len(t, of[rpcpool.AttemptEnd](r), len(starts), "each attempt has an end")
	assert.Len(t, of[rpcpool.CallEnd](r), len(of[rpcpool.CallStart](r)), "each call has an end")
	attempts := 0
	for _, e := range of[rpcpool.CallEnd](r) {
		attempts += e.Attempts
	}
	assert.Equal(t, len(starts), attempts, "attempts as calls count them")
	var told, got []string
	for _, e := range of[rpcpool.ReportEvent](r) {
		if e.Change == rpcpool.ReportSent {
			told = append(told, host(e.RPC)+" "+e.Kind)
		}
	}
	for _, report := range w.Pool.Reports() {
		got = append(got, host(report.URL)+" "+report.Error)
	}
	slices.Sort(told)
	slices.Sort(got)
	assert.Equal(t, got, told, "reports as they arrived, and as hooks were told")
}

// changes counts what happened to RPCs, by "NAME CHANGE".
func (r *hookLog) changes() map[string]int {
	counts := map[string]int{}
	for _, e := range of[rpcpool.CooldownEvent](r) {
		counts[host(e.RPC)+" "+string(e.Change)]++
	}
	return counts
}

// One call that fails over tells its events in order, with what they are about; the
// contexts that a hook makes reach the attempts and what they do.
func TestHooksTellACallInOrder(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1", w.Node("r1", rpcpooltest.Status(500)), w.Node("r2", rpcpooltest.Result("0x2a").Delay(time.Second)))
		pool, r := watched(t, w)
		_, err := pool.Chain("1").Call(t.Context(), "eth_call")
		require.NoError(t, err)
		synctest.Wait() // for the report, which another goroutine sends
		require.Equal(t, []string{
			"start call eth_call",
			"attempt 1 r1 p1 eth_call", "attempted 1 rpc_fail protocol", "rpc r1 cooled rpc_fail 1",
			"attempt 2 r2 p1 eth_call", "attempted 2 ok none",
			"end ok 2",
		}, r.lines())
		queued := slices.IndexFunc(r.events, func(e recorded) bool { return e.event == any(of[rpcpool.ReportEvent](r)[0]) })
		end := slices.IndexFunc(r.events, func(e recorded) bool { _, is := e.event.(rpcpool.CallEnd); return is })
		require.Less(t, queued, end, "the end comes when all is settled")
		ended := of[rpcpool.AttemptEnd](r)[1]
		require.Equal(t, rpcpool.AttemptStart{
			ChainLabels: rpcpool.ChainLabels{Chain: "1"}, Kind: rpcpool.KindCall, Method: "eth_call",
			RPC: "http://r2.test/***", Proxy: "socks5://***@p1.test:1080", Number: 2,
		}, ended.AttemptStart)
		require.Equal(t, time.Second, ended.Duration)
		require.Equal(t, len(`"0x2a"`), ended.Bytes)
		require.Equal(t, time.Second, of[rpcpool.CallEnd](r)[0].Duration)
		require.Contains(t, of[rpcpool.AttemptEnd](r)[0].Detail, "HTTP status 500")
		require.WithinDuration(t, time.Now().Add(59*time.Second), of[rpcpool.CooldownEvent](r)[0].Until, 0)
		spans := map[string]string{}
		for _, each := range r.events {
			spans[shortly(each.event)] = span(each.ctx)
		}
		require.Equal(t, map[string]string{
			"": "", "start call eth_call": "", "end ok 2": "/call eth_call",
			"attempt 1 r1 p1 eth_call": "/call eth_call", "attempted 1 rpc_fail protocol": "/call eth_call/attempt 1",
			"rpc r1 cooled rpc_fail 1": "/call eth_call",
			"attempt 2 r2 p1 eth_call": "/call eth_call", "attempted 2 ok none": "/call eth_call/attempt 2",
		}, spans)
		time.Sleep(61 * time.Second)
		r.agrees(t, w)
	})
}

// contextLog is a handler that writes what the context of a record has.
type contextLog struct {
	slog.Handler
	mu    *sync.Mutex
	spans *[]string
}

func (h contextLog) Enabled(context.Context, slog.Level) bool { return true }
func (h contextLog) Handle(ctx context.Context, record slog.Record) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	*h.spans = append(*h.spans, record.Message+" "+span(ctx))
	return nil
}

// A function given to Run, and the record of an attempt, see the hooks' context.
func TestHooksContextReachesRunAndTheLog(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1", w.Node("r1"))
		var logged []string
		pool, _ := watched(t, w, func(cfg *rpcpool.Config) {
			cfg.Logger = slog.New(contextLog{slog.DiscardHandler, &sync.Mutex{}, &logged})
		})
		err := pool.Chain("1").Run(t.Context(), func(ctx context.Context, _ string, _ *http.Client) error {
			require.Equal(t, "/call /attempt 1", span(ctx))
			return nil
		})
		require.NoError(t, err)
		require.Contains(t, logged, "rpcpool: attempt /call ")
	})
}

// strayHook gives contexts that have nothing to do with the call's, or end at once.
type strayHook struct{ hookLog }

func (h *strayHook) CallStarted(context.Context, rpcpool.CallStart) context.Context {
	ctx, cancel := context.WithCancel(rpcpool.WithBudget(context.Background(), rpcpool.Budget{Attempts: 1, Time: time.Nanosecond}))
	cancel()
	return ctx
}

func (h *strayHook) AttemptStarted(context.Context, rpcpool.AttemptStart) context.Context { return nil }

// What a hook makes of a context changes nothing of the call: neither its end, nor its
// deadline, nor the budget that it has.
func TestHooksContextChangesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1", w.Node("r1", rpcpooltest.Status(500)), w.Node("r2", rpcpooltest.Result("0x1").Delay(time.Second)))
		pool := open(t, w, func(cfg *rpcpool.Config) { cfg.Hooks = []rpcpool.Hook{&strayHook{}} })
		_, err := pool.Chain("1").Call(t.Context(), "eth_call")
		require.NoError(t, err)
		ctx := rpcpool.WithBudget(within(t, time.Minute), rpcpool.Budget{Attempts: 1})
		time.Sleep(2 * time.Minute)
		_, err = pool.Chain("1").Call(ctx, "eth_call")
		require.ErrorIs(t, err, context.DeadlineExceeded, "the caller's own end counts")
		ctx = rpcpool.WithBudget(t.Context(), rpcpool.Budget{Attempts: 1})
		for range 2 {
			_, err = pool.Chain("1").Call(ctx, "eth_call")
		}
		require.ErrorAs(t, err, new(*rpcpool.BudgetError), "and so does the caller's own budget")
		err = pool.Chain("1").Run(t.Context(), func(ctx context.Context, url string, client *http.Client) error {
			for range 4 {
				req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"eth_call"}`))
				require.NoError(t, err)
				req.Header.Set("Content-Type", "application/json")
				res, err := client.Do(req)
				if err != nil {
					return err
				}
				res.Body.Close()
			}
			return nil
		})
		require.NoError(t, err, "the hook's budget of one request isn't the function's")
	})
}

// listContext is a context that can't be compared.
type listContext struct {
	context.Context
	list []string
}

// A context of a type that can't be compared is as good as any.
func TestHooksTakeAnyContext(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1", w.Node("r1"))
		pool := open(t, w, func(cfg *rpcpool.Config) { cfg.Hooks = []rpcpool.Hook{keepsContext{}} })
		_, err := pool.Chain("1").Call(listContext{t.Context(), []string{"x"}}, "eth_call")
		require.NoError(t, err)
	})
}

// keepsContext is a hook that leaves contexts as they are.
type keepsContext struct{}

func (keepsContext) CallStarted(ctx context.Context, _ rpcpool.CallStart) context.Context { return ctx }
func (keepsContext) CallEnded(context.Context, rpcpool.CallEnd)                           {}
func (keepsContext) AttemptStarted(ctx context.Context, _ rpcpool.AttemptStart) context.Context {
	return ctx
}
func (keepsContext) AttemptEnded(context.Context, rpcpool.AttemptEnd) {}

// Each fault of a story is told as often as the script caused it, by its class.
func TestHooksCountWhatTheScriptCaused(t *testing.T) {
	waiting := func(cfg *rpcpool.Config) { cfg.MaxWait = 20 * time.Second }
	for name, story := range map[string]struct {
		nodes   [][]rpcpooltest.Reply
		proxies [][]rpcpooltest.ProxyReply // one without a script where there are none
		change  func(*rpcpool.Config)
		calls   int
		verdict map[rpcpool.Verdict]int
		class   map[rpcpool.FailureClass]int
		rpcs    map[string]int
		proxy   map[rpcpool.ProxyChange]int
		result  rpcpool.CallResult
	}{
		"500, and back": {
			nodes: [][]rpcpooltest.Reply{{rpcpooltest.Status(500).Times(1)}, {rpcpooltest.Result("0x1").Times(1), rpcpooltest.Status(500)}},
			calls: 2, verdict: map[rpcpool.Verdict]int{"ok": 2, "rpc_fail": 2},
			class:  map[rpcpool.FailureClass]int{rpcpool.NoFailure: 2, rpcpool.ProtocolFailure: 2},
			rpcs:   map[string]int{"r1 cooled": 1, "r1 back": 1, "r2 cooled": 1},
			result: rpcpool.ResultOK,
		},
		"429 with Retry-After": {
			nodes: [][]rpcpooltest.Reply{{rpcpooltest.RateLimited(5 * time.Second).Times(2)}}, change: waiting,
			calls: 1, verdict: map[rpcpool.Verdict]int{"ok": 1, "ip_blocked": 2},
			class:  map[rpcpool.FailureClass]int{rpcpool.NoFailure: 1, rpcpool.RateLimitFailure: 2},
			rpcs:   map[string]int{"r1 rested": 2, "r1 back": 1},
			result: rpcpool.ResultOK,
		},
		"429 without waiting": {
			nodes: [][]rpcpooltest.Reply{{rpcpooltest.RateLimited(5 * time.Second)}},
			calls: 1, verdict: map[rpcpool.Verdict]int{"ip_blocked": 1},
			class:  map[rpcpool.FailureClass]int{rpcpool.RateLimitFailure: 1},
			rpcs:   map[string]int{"r1 cooled": 1},
			result: rpcpool.ResultNoHealthy,
		},
		"resets": {
			nodes: [][]rpcpooltest.Reply{{rpcpooltest.Reset()}, {rpcpooltest.Reset()}, {}},
			calls: 1, verdict: map[rpcpool.Verdict]int{"ok": 1, "conn_fail": 2},
			class:  map[rpcpool.FailureClass]int{rpcpool.NoFailure: 1, rpcpool.TransportFailure: 2},
			rpcs:   map[string]int{"r1 cooled": 1, "r2 cooled": 1},
			result: rpcpool.ResultOK,
		},
		"pruned": {
			nodes: [][]rpcpooltest.Reply{{rpcpooltest.Error(-32000, "required historical state unavailable")}, {}},
			calls: 1, verdict: map[rpcpool.Verdict]int{"ok": 1, "no_state": 1},
			class:  map[rpcpool.FailureClass]int{rpcpool.NoFailure: 1, rpcpool.SemanticFailure: 1},
			result: rpcpool.ResultOK,
		},
		"a revert": {
			nodes: [][]rpcpooltest.Reply{{rpcpooltest.Error(3, "execution reverted")}},
			calls: 1, verdict: map[rpcpool.Verdict]int{"caller": 1},
			class:  map[rpcpool.FailureClass]int{rpcpool.NoFailure: 1},
			result: rpcpool.ResultRPCError,
		},
		"a proxy that carries nothing": {
			nodes:   [][]rpcpooltest.Reply{{}, {}, {}, {}},
			proxies: [][]rpcpooltest.ProxyReply{{rpcpooltest.ProxyCode(5)}, {}},
			calls:   1, verdict: map[rpcpool.Verdict]int{"ok": 1, "conn_fail": 3},
			class:  map[rpcpool.FailureClass]int{rpcpool.NoFailure: 1, rpcpool.TransportFailure: 3},
			rpcs:   map[string]int{"r1 cooled": 1, "r1 undone": 1, "r2 cooled": 1, "r2 undone": 1, "r3 cooled": 1, "r3 undone": 1},
			proxy:  map[rpcpool.ProxyChange]int{rpcpool.ProxyDead: 1, rpcpool.ProxySwitched: 1},
			result: rpcpool.ResultOK,
		},
		"a proxy that can't be reached, and comes back": {
			nodes:   [][]rpcpooltest.Reply{{}},
			proxies: [][]rpcpooltest.ProxyReply{{rpcpooltest.ProxyRefuse().Times(1)}},
			calls:   2, verdict: map[rpcpool.Verdict]int{"ok": 1, "proxy_fail": 1},
			class:  map[rpcpool.FailureClass]int{rpcpool.NoFailure: 2},
			proxy:  map[rpcpool.ProxyChange]int{rpcpool.ProxyDead: 1, rpcpool.ProxyBack: 1},
			result: rpcpool.ResultOK,
		},
		"every proxy refuses an RPC": {
			nodes:   [][]rpcpooltest.Reply{{}, {}},
			proxies: [][]rpcpooltest.ProxyReply{{rpcpooltest.ProxyCode(2).Times(1)}, {rpcpooltest.ProxyCode(2).Times(1)}},
			calls:   1, verdict: map[rpcpool.Verdict]int{"ok": 1, "proxy_fail": 2},
			class:  map[rpcpool.FailureClass]int{rpcpool.NoFailure: 3},
			rpcs:   map[string]int{"r1 cooled": 1},
			proxy:  map[rpcpool.ProxyChange]int{rpcpool.ProxyCooled: 2, rpcpool.ProxyUndone: 2, rpcpool.ProxySwitched: 1},
			result: rpcpool.ResultOK,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				if story.proxies == nil {
					w.Proxy("p1")
				}
				for i, script := range story.proxies {
					w.Proxy(fmt.Sprintf("p%d", i+1), script...)
				}
				var listed []*rpcpooltest.Node
				for i, script := range story.nodes {
					listed = append(listed, w.Node(fmt.Sprintf("r%d", i+1), script...))
				}
				w.List("1", listed...)
				check := w.Node("check")
				change := story.change
				if change == nil {
					change = func(*rpcpool.Config) {}
				}
				pool, r := watched(t, w, change, func(cfg *rpcpool.Config) { cfg.ProxyCheckURL = check.URL() })
				for i := range story.calls {
					if i > 0 {
						time.Sleep(61 * time.Second)
					}
					_, _ = pool.Chain("1").Call(t.Context(), "eth_call", map[string]any{}, "0x1")
				}
				time.Sleep(time.Second)
				r.agrees(t, w)
				verdicts, classes, proxies := map[rpcpool.Verdict]int{}, map[rpcpool.FailureClass]int{}, map[rpcpool.ProxyChange]int{}
				for _, e := range of[rpcpool.AttemptEnd](r) {
					verdicts[e.Verdict]++
					classes[e.Class]++
				}
				for _, e := range of[rpcpool.ProxyEvent](r) {
					proxies[e.Change]++
				}
				assert.Equal(t, story.verdict, verdicts)
				assert.Equal(t, story.class, classes)
				assert.Equal(t, orEmpty(story.rpcs), r.changes())
				assert.Equal(t, orEmpty(story.proxy), proxies)
				ends := of[rpcpool.CallEnd](r)
				assert.Equal(t, story.result, ends[len(ends)-1].Result)
			})
		})
	}
}

func orEmpty[K comparable](m map[K]int) map[K]int {
	if m == nil {
		return map[K]int{}
	}
	return m
}

// A piece that is refused as too large is told with the size that follows from it.
func TestHooksTellOfSplits(t *testing.T) {
	for name, c := range map[string]struct {
		refusal string
		want    []string
	}{
		"named":  {"block range too large, max is 250", []string{"split 1-1000 1000>250 named"}},
		"halved": {"block range too large", []string{"split 1-1000 1000>500 halved", "split 1-500 500>250 halved"}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				w.Proxy("p1")
				node := w.Node("r1", rpcpooltest.LogsUpTo(250, rpcpooltest.Error(-32000, c.refusal)))
				w.List("1", node)
				pool, r := watched(t, w)
				_, err := pool.Chain("1").GetLogsChunked(t.Context(), rpcpool.LogFilter{FromBlock: 1, ToBlock: 1000})
				require.NoError(t, err)
				refused := 0
				for _, q := range node.Requests() {
					if from, to, _ := rpcpooltest.LogRange(q.Params); to-from >= 250 {
						refused++
					}
				}
				require.Len(t, of[rpcpool.RangeSplitEvent](r), refused)
				require.Equal(t, c.want, slices.DeleteFunc(r.lines(), func(line string) bool { return !strings.HasPrefix(line, "split") }))
				for _, e := range of[rpcpool.CallStart](r) {
					require.Equal(t, rpcpool.KindLogs, e.Kind)
				}
				r.agrees(t, w)
			})
		})
	}
}

// An RPC that lags far is told as stale with its lag, and as cooled; a read that nobody is
// fresh enough for ends as stale.
func TestHooksTellOfStaleRPCs(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.SetKeepAlive(false) // each request has a connection of its own, none is spare
		r := &hookLog{}
		_, chain := freshWorld(t, w, rpcpool.Freshness{BlockTime: testBlockTime}, [][]rpcpooltest.EVMFault{{rpcpooltest.Lagging(10)}, {}, {}},
			func(cfg *rpcpool.Config) { cfg.Hooks = []rpcpool.Hook{r} })
		for range 3 {
			latestBalance(t, chain)
			time.Sleep(testBlockTime)
		}
		stale := of[rpcpool.StaleEvent](r)
		require.NotEmpty(t, stale)
		require.Equal(t, "r1", host(stale[0].RPC))
		require.Equal(t, rpcpool.ChainLabels{Chain: "1", Policy: "fresh"}, stale[0].ChainLabels)
		require.Equal(t, uint64(10), stale[0].Lag)
		require.Equal(t, stale[0].HighWater-10, stale[0].Head)
		ejected := 0
		for _, e := range stale {
			if e.Ejected {
				ejected++
			}
		}
		require.Equal(t, 1, ejected)
		require.Equal(t, map[string]int{"r1 cooled": 1}, r.changes())
		questions := 0
		for _, e := range of[rpcpool.AttemptStart](r) {
			if e.Question {
				questions++
				require.Equal(t, "eth_blockNumber", e.Method)
			}
		}
		require.Equal(t, requestsOf(w, "eth_blockNumber"), questions)
		r.agrees(t, w)
	})
}

// An RPC that lags a little is passed over before a read goes to it, which is told, and is
// held against nobody.
func TestHooksTellOfRPCsThatAreABlockBehind(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		r := &hookLog{}
		_, chain := freshWorld(t, w, rpcpool.Freshness{BlockTime: testBlockTime}, [][]rpcpooltest.EVMFault{{}, {rpcpooltest.Lagging(1)}, {}},
			func(cfg *rpcpool.Config) { cfg.Hooks, cfg.Mode = []rpcpool.Hook{r}, rpcpool.RoundRobin })
		for range 6 {
			latestBalance(t, chain) // all at one moment, within one block
		}
		stale := of[rpcpool.StaleEvent](r)
		require.NotEmpty(t, stale)
		for _, e := range stale {
			require.Equal(t, "r2", host(e.RPC))
			require.Equal(t, uint64(1), e.Lag)
			require.Equal(t, e.HighWater, e.Head+e.Lag)
			require.False(t, e.Ejected)
		}
		require.Empty(t, r.changes())
	})
}

// An RPC whose head is good again after its cooldown is told as back when its trial is
// passed, once.
func TestHooksTellOfATrialThatIsPassed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		evm := rpcpooltest.NewEVM(1, 1000)
		evm.SetBlockTime(testBlockTime)
		r2 := w.Node("r2", evm.Serve(rpcpooltest.Lagging(10)))
		w.List("1", w.Node("r1", evm.Serve()), r2, w.Node("r3", evm.Serve()))
		pool, r := watched(t, w, func(cfg *rpcpool.Config) { cfg.Mode = rpcpool.RoundRobin })
		chain := pool.Chain("1", rpcpool.WithFreshness(rpcpool.Freshness{BlockTime: testBlockTime}))
		for range 6 {
			latestBalance(t, chain)
		}
		require.Equal(t, map[string]int{"r2 cooled": 1}, r.changes())
		r2.Script(evm.Serve())
		time.Sleep(61 * time.Second)
		for range 6 {
			latestBalance(t, chain)
		}
		require.Equal(t, map[string]int{"r2 cooled": 1, "r2 back": 1}, r.changes())
	})
}

// Two RPCs that have different hashes for a block are told of once for each time that
// statistics count it.
func TestHooksTellOfForks(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		r := &hookLog{}
		_, chain := freshWorld(t, w, rpcpool.Freshness{BlockTime: testBlockTime}, [][]rpcpooltest.EVMFault{{}, {rpcpooltest.ForkedFrom(990)}},
			func(cfg *rpcpool.Config) { cfg.Hooks, cfg.Mode = []rpcpool.Hook{r}, rpcpool.RoundRobin })
		for range 4 {
			_, err := chain.Call(t.Context(), "eth_getBlockByNumber", "latest", false)
			require.NoError(t, err)
		}
		forks := of[rpcpool.ForkEvent](r)
		require.NotEmpty(t, forks)
		require.Len(t, forks, int(chain.Stats()[0].Forks))
		require.Equal(t, rpcpool.ForkBetween, forks[0].Kind)
		require.ElementsMatch(t, []string{"r1", "r2"}, []string{host(forks[0].RPC), host(forks[0].Other)})
	})
}

// An RPC on another chain is told as expelled, and as back when another list comes.
func TestHooksTellOfTheWrongChain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		r1, r2, r3 := w.Node("r1", rpcpooltest.NewEVM(5, 100).Serve()), w.Node("r2", rpcpooltest.NewEVM(1, 100).Serve()), w.Node("r3")
		w.Pool.Lists("1", rpcpooltest.PoolList("eip155:1", r1, r2).Times(1), rpcpooltest.PoolList("eip155:1", r1, r2, r3))
		pool, r := watched(t, w, func(cfg *rpcpool.Config) { cfg.VerifyChainID = true })
		_, err := pool.Chain("1").Call(t.Context(), "eth_gasPrice")
		require.NoError(t, err)
		require.Equal(t, map[string]int{"r1 expelled": 1}, r.changes())
		require.Equal(t, rpcpool.SemanticFailure, of[rpcpool.CooldownEvent](r)[0].Class)
		time.Sleep(601 * time.Second)
		_, err = pool.Chain("1").Call(t.Context(), "eth_gasPrice")
		require.NoError(t, err)
		require.Equal(t, map[string]int{"r1 expelled": 1, "r1 back": 1}, r.changes())
	})
}

// Each request for a list is told, with where the list in use is from.
func TestHooksTellOfLists(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		r1, r2 := w.Node("r1"), w.Node("r2")
		w.Pool.Lists("1", rpcpooltest.PoolList("eip155:1", r1, r2).Delay(time.Second).Times(1), rpcpooltest.PoolStatus(503))
		w.Pool.Lists("2", rpcpooltest.PoolStatus(404))
		pool, r := watched(t, w)
		call := func(p *rpcpool.Pool, ref string) { _, _ = p.Chain(ref).Call(t.Context(), "eth_call") }
		call(pool, "1")
		time.Sleep(601 * time.Second)
		call(pool, "1")
		call(pool, "2")
		require.NoError(t, pool.Close())
		later, again := watched(t, w) // another program, which finds the file
		call(later, "1")

		for i, want := range []rpcpool.ListEvent{
			{ChainLabels: rpcpool.ChainLabels{Chain: "1"}, Source: rpcpool.ListFromPool, RPCs: 2, Duration: time.Second},
			{ChainLabels: rpcpool.ChainLabels{Chain: "1"}, Source: rpcpool.ListFromMemory, RPCs: 2, StatusCode: 503},
			{ChainLabels: rpcpool.ChainLabels{Chain: "2"}, Source: rpcpool.ListFromNowhere, StatusCode: 404},
			{ChainLabels: rpcpool.ChainLabels{Chain: "1"}, Source: rpcpool.ListFromCache, RPCs: 2, StatusCode: 503},
		} {
			got := append(of[rpcpool.ListEvent](r), of[rpcpool.ListEvent](again)...)[i]
			require.Equal(t, want.StatusCode != 0, got.Error != "", "%+v", got)
			got.Error = ""
			require.Equal(t, want, got)
		}
		require.Equal(t, len(w.Pool.Asked()), len(of[rpcpool.ListEvent](r))+len(of[rpcpool.ListEvent](again)))
		ends := of[rpcpool.CallEnd](r)
		require.Equal(t, rpcpool.ResultPoolAPI, ends[len(ends)-1].Result)
	})
}

// The list that proxies are checked by is told as such.
func TestHooksTellOfListsForChecks(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1", rpcpooltest.ProxyCode(5))
		w.List("8453", w.Node("r1"), w.Node("r2"), w.Node("r3"))
		w.List("eip155:1", w.Node("check1"), w.Node("check2"), w.Node("check3"))
		pool, r := watched(t, w)
		_, err := pool.Chain("8453").Call(t.Context(), "eth_call")
		require.ErrorAs(t, err, new(*rpcpool.ProxyError))
		require.Equal(t, []rpcpool.ListEvent{
			{ChainLabels: rpcpool.ChainLabels{Chain: "8453"}, Source: rpcpool.ListFromPool, RPCs: 3},
			{ChainLabels: rpcpool.ChainLabels{Chain: "eip155:1"}, Source: rpcpool.ListFromPool, RPCs: 3, Checks: true},
		}, of[rpcpool.ListEvent](r))
		require.True(t, of[rpcpool.ProxyEvent](r)[0].Checked)
	})
}

// complaints is a Directory of RPCs that nobody can reach, which takes reports slowly.
type complaints struct {
	rpcs int
	wait time.Duration
	took atomic.Int64
	fail error
}

func (d *complaints) RPCs(context.Context, string) (*rpcpool.List, error) {
	list := &rpcpool.List{Key: "eip155:1"}
	for i := range d.rpcs {
		list.RPCs = append(list.RPCs, rpcpool.RPC{URL: fmt.Sprintf("http://nobody%d.test/key-%d", i, i)})
	}
	return list, nil
}

// Report takes its time; it is only called inside a bubble.
func (d *complaints) Report(context.Context, rpcpool.Report) error {
	time.Sleep(d.wait)
	d.took.Add(1)
	return d.fail
}

// Every report is told: those that were taken, those that weren't, and those for which
// there was no room.
func TestHooksTellOfReports(t *testing.T) {
	for name, fail := range map[string]error{"taken": nil, "refused": io.ErrUnexpectedEOF} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				w.Proxy("p1")
				check := w.Node("check")
				lists := &complaints{rpcs: 1100, wait: time.Millisecond, fail: fail}
				pool, r := watched(t, w, func(cfg *rpcpool.Config) {
					cfg.Directory, cfg.MaxRounds, cfg.ProxyCheckURL = lists, 1, check.URL()
				})
				_, err := pool.Chain("1").Call(t.Context(), "eth_call")
				require.ErrorAs(t, err, new(*rpcpool.NoHealthyRPCError))
				time.Sleep(time.Minute)
				counts := map[rpcpool.ReportChange]int{}
				for _, e := range of[rpcpool.ReportEvent](r) {
					counts[e.Change]++
					require.Equal(t, "conn", e.Kind)
					require.Equal(t, e.Change == rpcpool.ReportFailed, e.Error != "")
				}
				done := rpcpool.ReportSent
				if fail != nil {
					done = rpcpool.ReportFailed
				}
				require.Equal(t, map[rpcpool.ReportChange]int{
					rpcpool.ReportQueued: 1024, rpcpool.ReportDropped: 1100 - 1024, done: int(lists.took.Load()),
				}, counts)
				require.Equal(t, int64(1024), lists.took.Load())
			})
		})
	}
}

// What is queued when Close gives up waiting is told as dropped.
func TestHooksTellOfReportsThatCloseDrops(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		check := w.Node("check")
		lists := &complaints{rpcs: 10, wait: 900 * time.Millisecond}
		pool, r := watched(t, w, func(cfg *rpcpool.Config) {
			cfg.Directory, cfg.MaxRounds, cfg.ProxyCheckURL = lists, 1, check.URL()
		})
		_, err := pool.Chain("1").Call(t.Context(), "eth_call")
		require.Error(t, err)
		require.NoError(t, pool.Close())
		counts := map[rpcpool.ReportChange]int{}
		for _, e := range of[rpcpool.ReportEvent](r) {
			counts[e.Change]++
		}
		require.Equal(t, 10, counts[rpcpool.ReportQueued])
		require.Equal(t, 2, counts[rpcpool.ReportSent])
		require.Equal(t, 10, counts[rpcpool.ReportSent]+counts[rpcpool.ReportDropped]+counts[rpcpool.ReportFailed])
		time.Sleep(time.Second) // the Directory's last call ends
	})
}

// Calls are told by what made them.
func TestHooksTellWhatMadeACall(t *testing.T) {
	hash := "0x" + strings.Repeat("ab", 32)
	for name, c := range map[string]struct {
		make func(ctx context.Context, chain *rpcpool.Chain)
		want []string
	}{
		"a batch": {func(ctx context.Context, chain *rpcpool.Chain) {
			_ = chain.BatchCallContext(ctx, []rpcpool.BatchElem{{Method: "eth_call"}, {Method: "eth_call"}})
		}, []string{"start batch ", "start batch_element eth_call", "start batch_element eth_call"}},
		"a batch of one": {func(ctx context.Context, chain *rpcpool.Chain) {
			_ = chain.BatchCallContext(ctx, []rpcpool.BatchElem{{Method: "eth_call"}})
		}, []string{"start batch ", "start batch_element eth_call"}},
		"Run": {func(ctx context.Context, chain *rpcpool.Chain) {
			_ = chain.Run(ctx, func(context.Context, string, *http.Client) error { return nil })
		}, []string{"start run "}},
		"an SDK": {func(ctx context.Context, chain *rpcpool.Chain) {
			postTo(ctx, chain.HTTPClient(), `{"jsonrpc":"2.0","id":1,"method":"eth_call"}`)
		}, []string{"start http eth_call"}},
		"an SDK's batch": {func(ctx context.Context, chain *rpcpool.Chain) {
			postTo(ctx, chain.HTTPClient(), `[{"jsonrpc":"2.0","id":1,"method":"eth_call"}]`)
		}, []string{"start batch ", "start batch_element eth_call"}},
		"a quorum": {func(ctx context.Context, chain *rpcpool.Chain) {
			_, _ = chain.Quorum(2).Call(ctx, "eth_getBalance", someAccount, "0x1")
		}, []string{"start quorum eth_getBalance", "start quorum eth_getBalance"}},
		"a transaction": {func(ctx context.Context, chain *rpcpool.Chain) {
			_, _ = chain.SendRawTransaction(ctx, []byte{1, 2, 3})
		}, []string{"start send eth_sendRawTransaction"}},
		"a receipt": {func(ctx context.Context, chain *rpcpool.Chain) {
			_, _ = chain.WaitReceipt(ctx, hash)
		}, []string{"start internal eth_getTransactionReceipt"}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				w.Proxy("p1")
				receipt := map[string]any{"blockNumber": "0x1", "blockHash": hash}
				w.List("1", w.Node("r1", rpcpooltest.Result(receipt).Method("eth_getTransactionReceipt")), w.Node("r2"))
				pool, r := watched(t, w)
				c.make(t.Context(), pool.Chain("1"))
				require.Equal(t, c.want, slices.DeleteFunc(r.lines(), func(line string) bool { return !strings.HasPrefix(line, "start") }))
				require.Len(t, of[rpcpool.CallEnd](r), len(c.want))
			})
		})
	}
}

func postTo(ctx context.Context, client *http.Client, body string) {
	req, _ := http.NewRequestWithContext(ctx, http.MethodPost, "http://base", strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	if res, err := client.Do(req); err == nil {
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
}

// A hedged read is one call with two attempts; the slower one ends without a verdict.
func TestHooksTellOfAHedgedRead(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.Proxy("p2")
		w.List("1", w.Node("r1", rpcpooltest.Hang()), w.Node("r2"))
		pool, r := watched(t, w)
		chain := pool.Chain("1", rpcpool.WithHedge(rpcpool.Hedge{Delay: hedgeDelay, MaxExtra: 1}))
		_, err := chain.Call(t.Context(), "eth_call")
		require.NoError(t, err)
		synctest.Wait()
		require.Len(t, of[rpcpool.CallStart](r), 1)
		require.Equal(t, "hedged", of[rpcpool.CallStart](r)[0].Policy)
		end := of[rpcpool.CallEnd](r)[0]
		require.True(t, end.Hedged)
		require.Equal(t, 2, end.Attempts)
		attempts := of[rpcpool.AttemptEnd](r)
		require.Len(t, attempts, 2)
		slices.SortFunc(attempts, func(a, b rpcpool.AttemptEnd) int { return a.Number - b.Number })
		require.Equal(t, rpcpool.Verdict(""), attempts[0].Verdict)
		require.False(t, attempts[0].Hedged)
		require.Equal(t, rpcpool.VerdictOK, attempts[1].Verdict)
		require.True(t, attempts[1].Hedged)
	})
}

// However a call ends, its end is told, and that of its attempt: by a panic or the
// caller's deadline, or Close.
func TestHooksTellHowACallEnds(t *testing.T) {
	for name, c := range map[string]struct {
		make func(t *testing.T, pool *rpcpool.Pool)
		want rpcpool.CallResult
	}{
		"a panic": {func(t *testing.T, pool *rpcpool.Pool) {
			require.Panics(t, func() {
				_ = pool.Chain("1").Run(t.Context(), func(context.Context, string, *http.Client) error { panic("no") })
			})
		}, rpcpool.ResultPanic},
		"a deadline": {func(t *testing.T, pool *rpcpool.Pool) {
			_, err := pool.Chain("1").Call(within(t, time.Second), "eth_call")
			require.Error(t, err)
		}, rpcpool.ResultDeadline},
		"a cancellation": {func(t *testing.T, pool *rpcpool.Pool) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			_, err := pool.Chain("1").Call(ctx, "eth_call")
			require.Error(t, err)
		}, rpcpool.ResultCanceled},
		"Close": {func(t *testing.T, pool *rpcpool.Pool) {
			time.AfterFunc(time.Second, func() { _ = pool.Close() })
			_, err := pool.Chain("1").Call(t.Context(), "eth_call")
			require.ErrorIs(t, err, rpcpool.ErrClosed)
		}, rpcpool.ResultClosed},
		"an effect that may have come": {func(t *testing.T, pool *rpcpool.Pool) {
			_, err := pool.Chain("1").Call(t.Context(), "evm_mine")
			require.ErrorAs(t, err, new(*rpcpool.AmbiguousError))
		}, rpcpool.ResultAmbiguous},
		"a transaction that may have arrived": {func(t *testing.T, pool *rpcpool.Pool) {
			_, err := pool.Chain("1").SendRawTransaction(t.Context(), []byte{1, 2, 3})
			require.ErrorAs(t, err, new(*rpcpool.TxOutcomeUnknownError))
		}, rpcpool.ResultUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				w.Proxy("p1")
				w.List("1", w.Node("r1", rpcpooltest.Hang()))
				pool, r := watched(t, w)
				c.make(t, pool)
				ends := of[rpcpool.CallEnd](r)
				require.Equal(t, c.want, ends[len(ends)-1].Result)
				require.Len(t, ends, len(of[rpcpool.CallStart](r)))
				require.NotEmpty(t, of[rpcpool.AttemptStart](r))
				require.Len(t, of[rpcpool.AttemptEnd](r), len(of[rpcpool.AttemptStart](r)))
			})
		})
	}
}

// Under 64 callers at once each beginning has its end, and the numbers are those of what
// was sent.
func TestHooksUnderManyCallers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.SetKeepAlive(false) // each request has a connection of its own, none is spare
		w.Proxy("p1")
		w.Proxy("p2")
		fails := func(i int) rpcpooltest.Reply {
			var n atomic.Int64
			return rpcpooltest.Handle(func(rpcpooltest.Request) rpcpooltest.Reply {
				if n.Add(1)%int64(3+i) == 0 {
					return rpcpooltest.Status(500)
				}
				return rpcpooltest.Result("0x1")
			})
		}
		w.List("1", w.Node("r1", fails(0)), w.Node("r2", fails(1)), w.Node("r3", fails(2)))
		pool, r := watched(t, w, func(cfg *rpcpool.Config) { cfg.Mode = rpcpool.RoundRobin })
		var callers sync.WaitGroup
		for range 64 {
			callers.Go(func() {
				for range 10 {
					_, _ = pool.Chain("1").Call(t.Context(), "eth_call")
					time.Sleep(20 * time.Second)
				}
			})
		}
		callers.Wait()
		time.Sleep(time.Minute)
		require.Len(t, of[rpcpool.CallEnd](r), 640)
		r.agrees(t, w)
	})
}

// A hook may ask for statistics and make calls on another chain, from all events but
// AttemptStarted, even where the pool lets one request at a time out: no lock and no place
// is held while it is told.
func TestHooksMayUseThePool(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.SetKeepAlive(false)
		w.Proxy("p1", rpcpooltest.ProxyCarry().Times(4), rpcpooltest.ProxyRefuse().Times(1))
		w.Proxy("p2")
		logs := rpcpooltest.LogsUpTo(100, rpcpooltest.Error(-32000, "block range too large")).Method("eth_getLogs")
		w.List("1", w.Node("r1", rpcpooltest.Status(500).Times(1), logs), w.Node("r2", rpcpooltest.RateLimited(time.Second).Times(2), logs))
		w.List("2", w.Node("other"))
		var pool *rpcpool.Pool
		var inside atomic.Bool
		r := &hookLog{each: func(event any) {
			for _, chain := range pool.Chains() {
				_ = chain.Stats()
				_ = chain.HighWater()
			}
			_ = pool.ProxyStats()
			_, starts := event.(rpcpool.AttemptStart)
			if !starts && inside.CompareAndSwap(false, true) { // else it is an event of the hook's own call
				defer inside.Store(false)
				_, err := pool.Chain("2").Call(within(t, time.Hour), "eth_call")
				assert.NoError(t, err)
			}
		}}
		pool = open(t, w, func(cfg *rpcpool.Config) {
			cfg.Hooks, cfg.MaxRequests, cfg.MaxInFlight, cfg.MaxWait = []rpcpool.Hook{r}, 1, 1, time.Minute
		})
		start := time.Now()
		for range 4 {
			_, err := pool.Chain("1").Call(t.Context(), "eth_call")
			require.NoError(t, err)
			time.Sleep(61 * time.Second)
		}
		_, err := pool.Chain("1").GetLogsChunked(t.Context(), rpcpool.LogFilter{FromBlock: 0, ToBlock: 300})
		require.NoError(t, err)
		require.Less(t, time.Since(start), 5*time.Minute, "nobody waited for anybody")
		require.NotZero(t, r.changes()["r1 cooled"])
		require.NotZero(t, r.changes()["r2 rested"])
		require.NotEmpty(t, of[rpcpool.ProxyEvent](r))
		require.NotEmpty(t, of[rpcpool.ListEvent](r))
		require.NotEmpty(t, of[rpcpool.ReportEvent](r))
		require.NotEmpty(t, of[rpcpool.RangeSplitEvent](r))
	})
}

// A hook that panics at everything harms no call, nor the other hooks; it is logged once.
func TestHooksThatPanic(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1", w.Node("r1", rpcpooltest.Status(500).Times(1)), w.Node("r2"))
		broken := &hookLog{each: func(any) { panic("broken by " + w.Pool.Key()) }}
		sound := &hookLog{}
		var logged lockedBuffer
		pool := open(t, w, func(cfg *rpcpool.Config) {
			cfg.Hooks = []rpcpool.Hook{broken, sound}
			cfg.Logger = slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelWarn}))
		})
		for range 3 {
			_, err := pool.Chain("1").Call(t.Context(), "eth_call")
			require.NoError(t, err)
		}
		time.Sleep(time.Second)
		sound.agrees(t, w)
		require.Len(t, broken.lines(), len(sound.lines()), "it is told all the same")
		require.Equal(t, 1, strings.Count(logged.String(), "level=ERROR"), "%s", logged.String())
		require.Contains(t, logged.String(), "Hooks[0] (*rpcpool_test.hookLog)")
		require.Contains(t, logged.String(), "hooks_test.go", "the stack says where")
		require.NotContains(t, logged.String(), w.Pool.Key())
	})
}

// valueHook is a hook by its pointer only.
type valueHook struct{ told int }

func (h *valueHook) RangeSplit(context.Context, rpcpool.RangeSplitEvent) { h.told++ }

// typoHook has a method whose signature isn't the hook's, beside one that is.
type typoHook struct{ hookLog }

func (*typoHook) CallEnded(rpcpool.CallEnd) {}

// What is no hook, or would never be called as one, is refused with what to do about it.
func TestNewRefusesWhatIsNoHook(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		for name, c := range map[string]struct {
			hook rpcpool.Hook
			want []string
		}{
			"nil":           {nil, []string{"nil"}},
			"a nil pointer": {(*hookLog)(nil), []string{"nil *rpcpool_test.hookLog"}},
			"a value whose pointer is one": {valueHook{}, []string{
				"rpcpool_test.valueHook, whose pointer implements RangeSplitHook; give the pointer",
			}},
			"something else": {42, []string{"int, which implements none of CallHook, AttemptHook", "StaleHook"}},
			"a method that is spelled right and typed wrong": {&typoHook{}, []string{
				"CallEnded", "doesn't implement CallHook", "CallEnded(context.Context, rpcpool.CallEnd)",
			}},
		} {
			cfg := w.Config()
			cfg.Hooks = []rpcpool.Hook{&hookLog{}, c.hook}
			pool, err := rpcpool.New(cfg)
			require.Nil(t, pool, name)
			var refused *rpcpool.ConfigError
			require.ErrorAs(t, err, &refused, name)
			require.Equal(t, "Hooks[1]", refused.Field, name)
			for _, part := range c.want {
				require.Contains(t, err.Error(), part, name)
			}
		}
		cfg := w.Config()
		hooks := []rpcpool.Hook{&valueHook{}, &hookLog{}}
		cfg.Hooks = hooks
		pool, err := rpcpool.New(cfg)
		require.NoError(t, err)
		hooks[0] = nil // New keeps its own
		require.NoError(t, pool.Close())
	})
}

// The handles of a pool are listed, each with a name of its own.
func TestPoolListsItsChains(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		pool := open(t, w)
		require.Empty(t, pool.Chains())
		for range 2 {
			pool.Chain("8453")
			pool.Chain("1", rpcpool.WithFreshness(rpcpool.Freshness{MaxLag: 2}))
			pool.Chain("1", rpcpool.WithFreshness(rpcpool.Freshness{MaxLag: 1}))
			pool.Chain("1", rpcpool.WithHedge(rpcpool.Hedge{}), rpcpool.WithArchive(rpcpool.ArchiveFull))
			pool.ChainID(1)
		}
		var names []string
		for _, chain := range pool.Chains() {
			names = append(names, chain.Ref()+" "+chain.Policy())
		}
		require.Equal(t, []string{"1 ", "1 archive_full+hedged", "1 fresh", "1 fresh#2", "8453 "}, names)
		require.Equal(t, "fresh#2", pool.Chain("1", rpcpool.WithFreshness(rpcpool.Freshness{MaxLag: 1})).Policy())
	})
}

// The background sampler begins no call for an RPC that it passes over, and what it asks in
// vain doesn't end well.
func TestHooksTellOfSamples(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		evm := rpcpooltest.NewEVM(1, 1000)
		w.List("1", w.Node("r1", rpcpooltest.Status(500)), w.Node("r2", evm.Serve()))
		pool, r := watched(t, w)
		chain := pool.Chain("1", rpcpool.WithFreshness(rpcpool.Freshness{SampleEvery: time.Second, BlockTime: time.Hour}))
		_, err := chain.Call(t.Context(), "eth_getBalance", someAccount, "latest")
		require.NoError(t, err)
		time.Sleep(70500 * time.Millisecond)
		samples := map[rpcpool.CallResult]int{}
		for _, end := range of[rpcpool.CallEnd](r) {
			if end.Kind == rpcpool.KindInternal {
				require.NotZero(t, end.Attempts, "%+v", end)
				samples[end.Result]++
			}
		}
		require.Equal(t, map[rpcpool.CallResult]int{rpcpool.ResultOK: 70, rpcpool.ResultNoHealthy: 1}, samples, "r1 is asked once more after its cooldown")
		r.agrees(t, w)
	})
}

// A proxy's refusal is told as undone once, however many rounds its call makes.
func TestHooksTellOfAnUndoneRefusalOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1", rpcpooltest.ProxyCode(2).Times(2))
		w.Proxy("p2", rpcpooltest.ProxyCode(2).Times(2))
		w.List("1", w.Node("r1"))
		pool, r := watched(t, w, func(cfg *rpcpool.Config) {
			cfg.MaxRounds, cfg.MaxWait, cfg.ProxyCheckURL = 1, 5*time.Minute, w.Node("c1").URL()
		})
		_, err := pool.Chain("1").Call(t.Context(), "eth_call")
		require.NoError(t, err)
		told := map[string]int{}
		for _, event := range of[rpcpool.ProxyEvent](r) {
			told[host(event.Proxy)+" "+string(event.Change)]++
		}
		for _, proxy := range []string{"p1", "p2"} {
			require.Positive(t, told[proxy+" undone"])
			require.LessOrEqual(t, told[proxy+" undone"], told[proxy+" cooled"], "%v", told)
		}
	})
}
