package rpcpoolotel_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// A call that fails over is a span under the program's own, with a child for each attempt in
// their order, and the cooldown as an event; times, kinds, status and all attributes are
// those of what happened.
func TestSpansOfACallThatFailsOver(t *testing.T) {
	inWorld(t, func(t *testing.T, w *watched) {
		w.Proxy("p1")
		w.List("8453", w.Node("r1", rpcpooltest.Status(500)), w.Node("r2", rpcpooltest.Result("0x2a").Delay(time.Second)))
		pool := w.open(t)
		ctx, parent := w.tracer.Start(t.Context(), "arbitrage")
		_, err := pool.Chain("8453").Call(ctx, "eth_call")
		require.NoError(t, err)
		parent.End()
		require.Equal(t, []string{
			"arbitrage",
			"  eth_call ok",
			"    * rpcpool.cooldown r1.test cooled",
			"    attempt eth_call r1.test rpc_fail rpc_fail Error",
			"    attempt eth_call r2.test ok",
		}, w.tree())
		spans := w.spans.GetSpans()
		first, second, call := spans[0], spans[1], spans[2]
		for _, span := range spans[:3] {
			require.Equal(t, parent.SpanContext().TraceID(), span.SpanContext.TraceID())
			require.Equal(t, trace.SpanKindClient, span.SpanKind)
			require.Equal(t, "github.com/bomzrpc/rpcpool/plugins/otel", span.InstrumentationScope.Name)
			require.Equal(t, "https://opentelemetry.io/schemas/1.43.0", span.InstrumentationScope.SchemaURL)
		}
		require.Equal(t, map[string]string{
			"rpc.system.name": "jsonrpc", "rpc.method": "eth_call", "jsonrpc.protocol.version": "2.0",
			"rpcpool.chain": "8453", "rpcpool.call.kind": "call", "rpcpool.call.result": "ok", "rpcpool.call.attempts": "2",
		}, attributesOf(call.Attributes))
		require.Equal(t, map[string]string{
			"rpc.system.name": "jsonrpc", "rpc.method": "eth_call", "jsonrpc.protocol.version": "2.0", "rpcpool.chain": "8453",
			"server.address": "r1.test", "server.port": "80", "rpcpool.rpc": "http://r1.test/***",
			"rpcpool.proxy": "socks5://***@p1.test:1080", "rpcpool.attempt.number": "1",
			"rpcpool.verdict": "rpc_fail", "rpcpool.failure.class": "protocol", "error.type": "rpc_fail",
		}, attributesOf(first.Attributes))
		require.Contains(t, first.Status.Description, "HTTP status 500")
		require.Equal(t, map[string]string{
			"rpc.system.name": "jsonrpc", "rpc.method": "eth_call", "jsonrpc.protocol.version": "2.0", "rpcpool.chain": "8453",
			"server.address": "r2.test", "server.port": "80", "rpcpool.rpc": "http://r2.test/***",
			"rpcpool.proxy": "socks5://***@p1.test:1080", "rpcpool.attempt.number": "2",
			"rpcpool.verdict": "ok", "rpcpool.attempt.bytes": fmt.Sprint(len(`"0x2a"`)),
		}, attributesOf(second.Attributes))
		require.Equal(t, map[string]string{
			"server.address": "r1.test", "server.port": "80", "rpcpool.rpc": "http://r1.test/***",
			"rpcpool.cooldown.change": "cooled", "rpcpool.failures_in_row": "1", "rpcpool.verdict": "rpc_fail",
			"rpcpool.failure.class": "protocol", "rpcpool.cooldown.until": call.StartTime.Add(time.Minute).UTC().Format(time.RFC3339Nano),
		}, attributesOf(call.Events[0].Attributes))
		require.Equal(t, time.Second, second.EndTime.Sub(second.StartTime))
		require.Equal(t, time.Second, call.EndTime.Sub(call.StartTime))
	})
}

// The status follows the conventions for what is known of a request: what the caller asked
// wrongly, and a revert, is an answer; that nobody answered is an error.
func TestSpansStatus(t *testing.T) {
	for name, c := range map[string]struct {
		script rpcpooltest.Reply
		want   []string
	}{
		"a revert": {
			rpcpooltest.Error(3, "execution reverted"),
			[]string{"eth_call rpc_error", "  attempt eth_call r1.test caller"},
		},
		"nobody answers": {
			rpcpooltest.Reset(),
			[]string{
				"eth_call no_healthy_rpc no_healthy_rpc Error", "  * rpcpool.cooldown r1.test cooled",
				"  attempt eth_call r1.test conn_fail conn_fail Error",
			},
		},
		"the caller leaves": {
			rpcpooltest.Hang(),
			[]string{"eth_call deadline deadline Error", "  attempt eth_call r1.test"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *watched) {
				w.Proxy("p1")
				w.List("1", w.Node("r1", c.script))
				pool := w.open(t)
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				_, err := pool.Chain("1").Call(ctx, "eth_call")
				require.Error(t, err)
				require.Equal(t, c.want, w.tree())
			})
		})
	}
}

// A batch has a span over its elements, each of which has its own attempts, also those that
// travel together.
func TestSpansOfABatch(t *testing.T) {
	inWorld(t, func(t *testing.T, w *watched) {
		w.Proxy("p1")
		w.List("1",
			w.Node("r1", rpcpooltest.Error(-32603, "internal error").Method("eth_gasPrice"), rpcpooltest.Result("0x1")),
			w.Node("r2"))
		pool := w.open(t)
		ctx, parent := w.tracer.Start(t.Context(), "bot")
		elems := []rpcpool.BatchElem{{Method: "eth_chainId"}, {Method: "eth_gasPrice"}}
		require.NoError(t, pool.Chain("1").BatchCallContext(ctx, elems))
		require.NoError(t, errors.Join(elems[0].Error, elems[1].Error))
		parent.End()
		require.ElementsMatch(t, []string{
			"bot",
			"  batch ok",
			"    eth_chainId ok",
			"      attempt eth_chainId r1.test ok",
			"    eth_gasPrice ok",
			"      * rpcpool.cooldown r1.test cooled",
			"      attempt eth_gasPrice r1.test rpc_fail rpc_fail Error",
			"      attempt eth_gasPrice r2.test ok",
		}, w.tree())
		whole := w.one(t, "batch")
		require.Equal(t, trace.SpanKindInternal, whole.SpanKind)
		require.Equal(t, map[string]string{
			"rpc.system.name": "jsonrpc", "rpcpool.chain": "1", "rpcpool.call.kind": "batch",
			"rpcpool.batch.size": "2", "rpcpool.call.result": "ok",
		}, attributesOf(whole.Attributes))
		require.Equal(t, map[string]int64{"eth_chainId": 1, "eth_gasPrice": 1}, w.counts(t, "rpc.client.call.duration", "rpc.method"),
			"the whole isn't a call beside its elements")
	})
}

// In a function given to Run the span of the attempt is current, so that its spans are the
// attempt's children.
func TestSpansOfRun(t *testing.T) {
	inWorld(t, func(t *testing.T, w *watched) {
		w.Proxy("p1")
		w.List("1", w.Node("r1"), w.Node("r2"))
		pool := w.open(t)
		tries := 0
		err := pool.Chain("1").Run(t.Context(), func(ctx context.Context, _ string, _ *http.Client) error {
			_, span := w.tracer.Start(ctx, "mine")
			defer span.End()
			if tries++; tries == 1 {
				return &rpcpool.HTTPError{StatusCode: 500}
			}
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, []string{
			"run ok",
			"  * rpcpool.cooldown r1.test cooled",
			"  attempt run r1.test rpc_fail rpc_fail Error",
			"    mine",
			"  attempt run r2.test ok",
			"    mine",
		}, w.tree())
		require.Equal(t, "run", valueOf(w.one(t, "run").Attributes, "rpc.system.name"))
	})
}

// Pieces of a log query are calls under the caller's span, which has the cuts as events; a
// piece that is cut is no error.
func TestSpansOfLogPieces(t *testing.T) {
	inWorld(t, func(t *testing.T, w *watched) {
		w.Proxy("p1")
		w.List("1", w.Node("r1", rpcpooltest.LogsUpTo(500, rpcpooltest.Error(-32000, "block range too large"))))
		pool := w.open(t)
		ctx, parent := w.tracer.Start(t.Context(), "backfill")
		_, err := pool.Chain("1").GetLogsChunked(ctx, rpcpool.LogFilter{FromBlock: 1, ToBlock: 1000}, rpcpool.Concurrency(1))
		require.NoError(t, err)
		parent.End()
		require.Equal(t, []string{
			"backfill",
			"  * rpcpool.range_split 1000 500 halved",
			"  eth_getLogs range",
			"    attempt eth_getLogs r1.test range range Error",
			"  eth_getLogs ok",
			"    attempt eth_getLogs r1.test ok",
			"  eth_getLogs ok",
			"    attempt eth_getLogs r1.test ok",
		}, w.tree())
		require.Equal(t, map[string]int64{"halved": 1}, w.counts(t, "rpcpool.range_splits", "rpcpool.range.cause"))
	})
}

// Failures that are taken back, because the proxy is at fault, are events of the call's span
// and are counted.
func TestSpansOfUndo(t *testing.T) {
	inWorld(t, func(t *testing.T, w *watched) {
		w.Proxy("p1", rpcpooltest.ProxyCode(5))
		w.Proxy("p2")
		check := w.Node("check")
		w.List("1", w.Node("r1"), w.Node("r2"), w.Node("r3"), w.Node("r4"))
		pool := w.open(t, func(cfg *rpcpool.Config) { cfg.ProxyCheckURL = check.URL() })
		_, err := pool.Chain("1").Call(t.Context(), "eth_call")
		require.NoError(t, err)
		changes := map[string]int64{}
		for _, event := range w.one(t, "eth_call").Events {
			changes[eventInShort(event)]++
		}
		require.Equal(t, map[string]int64{
			"rpcpool.cooldown r1.test cooled": 1, "rpcpool.cooldown r2.test cooled": 1, "rpcpool.cooldown r3.test cooled": 1,
			"rpcpool.cooldown r1.test undone": 1, "rpcpool.cooldown r2.test undone": 1, "rpcpool.cooldown r3.test undone": 1,
		}, changes)
		require.Equal(t, map[string]int64{"cooled transport": 3, "undone transport": 3},
			w.counts(t, "rpcpool.cooldown.changes", "rpcpool.cooldown.change", "rpcpool.failure.class"))
		require.Equal(t, map[string]int64{"socks5://***@p1.test:1080 dead": 1, "socks5://***@p2.test:1080 switched": 1},
			w.counts(t, "rpcpool.proxy.changes", "rpcpool.proxy", "rpcpool.proxy.change"))
	})
}

// A read that is asked of a second RPC has both attempts in its span, the second one marked.
func TestSpansOfAHedgedRead(t *testing.T) {
	inWorld(t, func(t *testing.T, w *watched) {
		w.Proxy("p1")
		w.List("1", w.Node("r1", rpcpooltest.Result("0x1").Delay(10*time.Second)), w.Node("r2", rpcpooltest.Result("0x2")))
		pool := w.open(t)
		_, err := pool.Chain("1", rpcpool.WithHedge(rpcpool.Hedge{Delay: time.Second, MaxExtra: 1})).Call(t.Context(), "eth_call")
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, []string{
			"eth_call ok", "  attempt eth_call r1.test", "  attempt eth_call r2.test ok",
		}, w.tree())
		call := attributesOf(w.one(t, "eth_call").Attributes)
		require.Equal(t, "true", call["rpcpool.call.hedged"])
		require.Equal(t, "2", call["rpcpool.call.attempts"])
		for _, span := range w.spans.GetSpans() {
			attrs := attributesOf(span.Attributes)
			switch attrs["server.address"] {
			case "r1.test":
				require.Empty(t, attrs["rpcpool.attempt.hedged"])
				require.Equal(t, "the call ended", attrs["rpcpool.attempt.detail"])
			case "r2.test":
				require.Equal(t, "true", attrs["rpcpool.attempt.hedged"])
			}
		}
		require.Equal(t, map[string]int64{"": 0}, w.counts(t, "rpcpool.call.active"))
	})
}

// An RPC that lags, and a fork, are events of the call that finds out.
func TestSpansOfStaleRPCs(t *testing.T) {
	inWorld(t, func(t *testing.T, w *watched) {
		w.Proxy("p1")
		chain := rpcpooltest.NewEVM(1, 1000)
		chain.SetBlockTime(2 * time.Second)
		w.List("1", w.Node("r1", chain.Serve(rpcpooltest.Lagging(10))), w.Node("r2", chain.Serve()), w.Node("r3", chain.Serve()))
		pool := w.open(t)
		handle := pool.Chain("1", rpcpool.WithFreshness(rpcpool.Freshness{}))
		for range 3 {
			latest(t, handle)
			time.Sleep(2 * time.Second)
		}
		events := map[string]int{}
		questions := 0
		for _, span := range w.spans.GetSpans() {
			for _, event := range span.Events {
				events[eventInShort(event)]++
			}
			if valueOf(span.Attributes, "rpcpool.attempt.question") == "true" {
				questions++
				require.Equal(t, "attempt eth_blockNumber", span.Name)
				require.Equal(t, "fresh", valueOf(span.Attributes, "rpcpool.policy"))
			}
		}
		require.Equal(t, 1, events["rpcpool.stale r1.test 10 true"], events)
		require.Equal(t, 1, events["rpcpool.cooldown r1.test cooled"], events)
		require.Equal(t, w.asked("eth_blockNumber"), questions)
		require.Equal(t, int64(1), w.counts(t, "rpcpool.stale", "rpcpool.rpc.ejected")["true"])
		require.Equal(t, map[string]int64{"r1.test cooled semantic": 1},
			w.counts(t, "rpcpool.cooldown.changes", "server.address", "rpcpool.cooldown.change", "rpcpool.failure.class"))
	})
}

// Calls at the same time have traces of their own: nothing of one gets into another, and
// nothing is lost.
func TestSpansOfConcurrentCalls(t *testing.T) {
	inWorld(t, func(t *testing.T, w *watched) {
		const calls = 60
		w.Proxy("p1")
		w.List("1", w.Node("r1", rpcpooltest.Status(500).Times(20), rpcpooltest.Result("0x1")), w.Node("r2"), w.Node("r3"))
		pool := w.open(t, func(cfg *rpcpool.Config) { cfg.Mode = rpcpool.RoundRobin })
		var all sync.WaitGroup
		traces := make([]trace.TraceID, calls)
		for i := range calls {
			all.Go(func() {
				ctx, parent := w.tracer.Start(t.Context(), "bot")
				defer parent.End()
				traces[i] = parent.SpanContext().TraceID()
				_, err := pool.Chain("1").Call(ctx, "eth_call")
				assert.NoError(t, err)
			})
		}
		all.Wait()
		type seen struct{ calls, attempts, told int }
		byTrace := map[trace.TraceID]*seen{}
		for _, id := range traces {
			byTrace[id] = &seen{}
		}
		parents := map[trace.SpanID]string{}
		spans := w.spans.GetSpans()
		for i := range spans {
			parents[spans[i].SpanContext.SpanID()] = spans[i].Name
		}
		attempts := 0
		for i := range spans {
			s := byTrace[spans[i].SpanContext.TraceID()]
			require.NotNil(t, s, "a trace that nobody began")
			switch spans[i].Name {
			case "eth_call":
				s.calls++
				_, err := fmt.Sscan(valueOf(spans[i].Attributes, "rpcpool.call.attempts"), &s.told)
				require.NoError(t, err)
				require.Equal(t, "bot", parents[spans[i].Parent.SpanID()])
			case "attempt eth_call":
				s.attempts++
				attempts++
				require.Equal(t, "eth_call", parents[spans[i].Parent.SpanID()])
			}
		}
		for _, s := range byTrace {
			require.Equal(t, 1, s.calls)
			require.Equal(t, s.told, s.attempts)
		}
		require.Equal(t, w.asked("eth_call"), attempts)
		require.Greater(t, attempts, calls, "some fail over")
	})
}
