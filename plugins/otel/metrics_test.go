package rpcpoolotel_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	api "go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/bomzrpc/rpcpool"
	rpcpoolotel "github.com/bomzrpc/rpcpool/plugins/otel"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// Each fault of the script is in the metrics as often as it was caused, by its class, and
// attempts are as many as requests that arrived.
func TestMetricsCountWhatTheScriptCaused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *watched) {
		w.Proxy("p1")
		w.List("1",
			w.Node("r1", rpcpooltest.Status(503).Times(1), rpcpooltest.Status(503)),
			w.Node("r2", rpcpooltest.Reset()),
			w.Node("r3", rpcpooltest.Error(-32000, "required historical state unavailable")),
			w.Node("r4", rpcpooltest.RateLimited(5*time.Second)),
			w.Node("r5", rpcpooltest.Error(3, "execution reverted").Method("eth_estimateGas"), rpcpooltest.Result("0x1")),
		)
		pool := w.open(t)
		call := func(method string) error {
			_, err := pool.Chain("1").Call(t.Context(), method, map[string]any{}, "0x1")
			return err
		}
		require.NoError(t, call("eth_call"))
		require.ErrorAs(t, call("eth_estimateGas"), new(*rpcpool.RPCError))
		time.Sleep(time.Hour) // reports are sent
		require.Equal(t, map[string]int64{
			"r1.test rpc_fail protocol":     1,
			"r2.test conn_fail transport":   1,
			"r3.test no_state semantic":     1,
			"r4.test ip_blocked rate_limit": 1,
			"r5.test ok":                    1,
			"r5.test caller":                1,
		}, w.counts(t, "rpcpool.attempts", "server.address", "rpcpool.verdict", "rpcpool.failure.class"))
		require.Equal(t, map[string]int64{"rpc_fail": 1, "conn_fail": 1, "no_state": 1, "ip_blocked": 1, "": 2},
			w.counts(t, "rpcpool.attempts", "error.type"))
		require.Equal(t, map[string]int64{"r1.test rpc_fail": 1, "r2.test conn_fail": 1, "r3.test no_state": 1, "r4.test ip_blocked": 1, "r5.test": 2},
			w.counts(t, "rpcpool.attempt.duration", "server.address", "error.type"))
		require.Equal(t, 6, w.asked("eth_call")+w.asked("eth_estimateGas"))
		require.Equal(t, map[string]int64{"cooled r1.test protocol": 1, "cooled r2.test transport": 1, "cooled r4.test rate_limit": 1},
			w.counts(t, "rpcpool.cooldown.changes", "rpcpool.cooldown.change", "server.address", "rpcpool.failure.class"))
		require.Equal(t, map[string]int64{"eth_call ok": 1, "eth_estimateGas rpc_error": 1},
			w.counts(t, "rpc.client.call.duration", "rpc.method", "rpcpool.call.result", "error.type"))
		require.Equal(t, map[string]int64{"1 pool": 1}, w.counts(t, "rpcpool.list.fetches", "rpcpool.chain", "rpcpool.list.source", "error.type"))
		sent := w.counts(t, "rpcpool.reports", "rpcpool.report.change")["sent"]
		require.Equal(t, len(w.Pool.Reports()), int(sent))
		require.NotZero(t, sent)
	})
}

// Names, units and attributes of all metrics are those that docs/OBSERVABILITY.md lists, and
// durations are in seconds.
func TestMetricsHaveTheirNamesAndUnits(t *testing.T) {
	inWorld(t, func(t *testing.T, w *watched) {
		w.Proxy("p1")
		w.List("1", w.Node("r1", rpcpooltest.Result("0x1").Delay(3*time.Second)))
		pool := w.open(t)
		_, err := w.hook.Observe(pool)
		require.NoError(t, err)
		_, err = pool.Chain("1").Call(t.Context(), "eth_call")
		require.NoError(t, err)
		units := map[string]string{}
		all := w.collect(t)
		for name, m := range all {
			units[name] = m.Unit
			require.NotEmpty(t, m.Description)
		}
		require.Equal(t, map[string]string{
			"rpc.client.call.duration": "s", "rpcpool.call.active": "{call}",
			"rpcpool.attempts": "{attempt}", "rpcpool.attempt.duration": "s", "rpcpool.list.fetches": "{fetch}",
			"rpcpool.rpc.state": "{rpc}", "rpcpool.rpc.in_flight": "{attempt}", "rpcpool.proxy.state": "{proxy}",
			"rpcpool.rpc.head": "{block}", "rpcpool.rpc.lag": "{block}",
		}, units)
		calls := all["rpc.client.call.duration"].Data.(metricdata.Histogram[float64]).DataPoints[0]
		require.InDelta(t, 3, calls.Sum, 1e-9)
		require.Equal(t, []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}, calls.Bounds)
		require.Equal(t, map[string]string{
			"rpc.system.name": "jsonrpc", "rpc.method": "eth_call", "rpcpool.chain": "1",
			"rpcpool.call.kind": "call", "rpcpool.call.result": "ok",
		}, attributesOf(calls.Attributes.ToSlice()))
		attempts := all["rpcpool.attempt.duration"].Data.(metricdata.Histogram[float64]).DataPoints[0]
		require.InDelta(t, 3, attempts.Sum, 1e-9)
		require.Equal(t, calls.Bounds, attempts.Bounds)
		require.Equal(t, map[string]string{"rpcpool.chain": "1", "server.address": "r1.test", "server.port": "80"},
			attributesOf(attempts.Attributes.ToSlice()))
		counted := all["rpcpool.attempts"].Data.(metricdata.Sum[int64])
		require.True(t, counted.IsMonotonic)
		require.Equal(t, map[string]string{
			"rpcpool.chain": "1", "server.address": "r1.test", "server.port": "80",
			"rpcpool.proxy": "socks5://***@p1.test:1080", "rpcpool.verdict": "ok",
		}, attributesOf(counted.DataPoints[0].Attributes.ToSlice()))
	})
}

// A call counts as active from its beginning to its end, and a request as in flight.
func TestMetricsOfWhatIsUnderWay(t *testing.T) {
	inWorld(t, func(t *testing.T, w *watched) {
		gate := rpcpooltest.NewGate()
		w.Proxy("p1")
		w.List("1", w.Node("r1", rpcpooltest.Result("0x1").Hold(gate)))
		pool := w.open(t)
		_, err := w.hook.Observe(pool)
		require.NoError(t, err)
		ended := make(chan error)
		for range 2 {
			go func() {
				_, err := pool.Chain("1").Call(t.Context(), "eth_call")
				ended <- err
			}()
			_, err := gate.Next(t.Context())
			require.NoError(t, err)
		}
		require.Equal(t, map[string]int64{"1 call": 2}, w.counts(t, "rpcpool.call.active", "rpcpool.chain", "rpcpool.call.kind"))
		require.Equal(t, map[string]int64{"r1.test": 2}, w.counts(t, "rpcpool.rpc.in_flight", "server.address"))
		gate.Open()
		require.NoError(t, errors.Join(<-ended, <-ended))
		require.Equal(t, map[string]int64{"1 call": 0}, w.counts(t, "rpcpool.call.active", "rpcpool.chain", "rpcpool.call.kind"))
		require.Equal(t, map[string]int64{"r1.test": 0}, w.counts(t, "rpcpool.rpc.in_flight", "server.address"))
	})
}

// States, heads and lags are read when metrics are collected: an RPC that cools is in
// another state then, RPCs of one host are counted together, and nothing is told any
// more after Unregister.
func TestObserve(t *testing.T) {
	inWorld(t, func(t *testing.T, w *watched) {
		w.Proxy("p1")
		r1 := rpcpooltest.List(w.Node("r1", rpcpooltest.Status(500).Times(1)))
		a := rpcpooltest.List(w.NodeAt("a", "http://two.test/key-a"))
		b, c := a, a
		b.URL, c.URL = "http://two.test/key-b", "http://two.test/key-c"
		r1.Height, a.Height, b.Height, c.Height = 1000, 995, 990, 0 // of a host the one counts that is furthest behind
		w.Pool.Lists("1", rpcpooltest.PoolList("eip155:1", r1, a, b, c))
		pool := w.open(t)
		registration, err := w.hook.Observe(pool)
		require.NoError(t, err)
		_, err = pool.Chain("1").Call(t.Context(), "eth_call")
		require.NoError(t, err)
		states := func() map[string]int64 {
			states := w.counts(t, "rpcpool.rpc.state", "server.address", "rpcpool.rpc.state")
			for name, n := range states {
				if n == 0 {
					delete(states, name)
				}
			}
			return states
		}
		require.Len(t, w.counts(t, "rpcpool.rpc.state", "server.address", "rpcpool.rpc.state"), 2*5, "a state that is left is told, too")
		require.Equal(t, map[string]int64{"r1.test cooling": 1, "two.test ready": 3}, states())
		require.Equal(t, map[string]int64{"r1.test 80": 1000, "two.test 80": 990}, w.counts(t, "rpcpool.rpc.head", "server.address", "server.port"))
		require.Equal(t, map[string]int64{"r1.test": 0, "two.test": 10}, w.counts(t, "rpcpool.rpc.lag", "server.address"))
		require.Equal(t, map[string]int64{
			"socks5://***@p1.test:1080 ready": 1, "socks5://***@p1.test:1080 cooling": 0, "socks5://***@p1.test:1080 trial": 0,
		}, w.counts(t, "rpcpool.proxy.state", "rpcpool.proxy", "rpcpool.proxy.state"))
		time.Sleep(61 * time.Second)
		require.Equal(t, map[string]int64{"r1.test trial": 1, "two.test ready": 3}, states())
		require.NoError(t, registration.Unregister())
		require.Empty(t, states())
	})
}

// With a policy of fresh reads the mark is told, under the policy's name.
func TestObserveHighWater(t *testing.T) {
	inWorld(t, func(t *testing.T, w *watched) {
		w.Proxy("p1")
		evm := rpcpooltest.NewEVM(1, 1000)
		w.List("1", w.Node("r1", evm.Serve()), w.Node("r2", evm.Serve()), w.Node("r3", evm.Serve(rpcpooltest.Lagging(7))))
		pool := w.open(t)
		_, err := w.hook.Observe(pool)
		require.NoError(t, err)
		chain := pool.Chain("1", rpcpool.WithFreshness(rpcpool.Freshness{}))
		latest(t, chain)
		require.NotZero(t, chain.HighWater())
		require.Equal(t, map[string]int64{"1 fresh": int64(chain.HighWater())},
			w.counts(t, "rpcpool.chain.high_water", "rpcpool.chain", "rpcpool.policy"))
	})
}

// A method that isn't known can't make a time series of its own; WithMethods makes it known.
func TestMethodsAreBounded(t *testing.T) {
	inWorld(t, func(t *testing.T, w *watched) {
		reader := metric.NewManualReader()
		other := rpcpoolotel.New(
			rpcpoolotel.WithMethods("acme_quote"),
			rpcpoolotel.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(reader))),
		)
		w.Proxy("p1")
		w.List("1", w.Node("r1"))
		pool := w.open(t, func(cfg *rpcpool.Config) { cfg.Hooks = append(cfg.Hooks, other) })
		long := "acme_" + string(make([]byte, 300))
		for _, method := range []string{"acme_quote", "acme_buy", long} {
			_, err := pool.Chain("1").Call(t.Context(), method)
			require.NoError(t, err)
		}
		require.Equal(t, map[string]int64{"_OTHER": 3}, w.counts(t, "rpc.client.call.duration", "rpc.method"))
		w.reader = reader
		require.Equal(t, map[string]int64{"acme_quote": 1, "_OTHER": 2}, w.counts(t, "rpc.client.call.duration", "rpc.method"))
		var originals []string
		for _, span := range w.spans.GetSpans() {
			if span.Name == "jsonrpc" {
				require.Equal(t, "_OTHER", valueOf(span.Attributes, "rpc.method"))
				originals = append(originals, valueOf(span.Attributes, "rpc.method_original"))
			}
		}
		require.Equal(t, []string{"acme_quote", "acme_buy", long[:100] + "…"}, originals)
	})
}

// Without options spans and metrics go to the global providers.
func TestNewTakesTheGlobalProviders(t *testing.T) {
	spans, reader := tracetest.NewInMemoryExporter(), metric.NewManualReader()
	tracers, meters := otel.GetTracerProvider(), otel.GetMeterProvider()
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)))
	otel.SetMeterProvider(metric.NewMeterProvider(metric.WithReader(reader)))
	defer func() {
		otel.SetTracerProvider(tracers)
		otel.SetMeterProvider(meters)
	}()
	hook := rpcpoolotel.New(nil, rpcpoolotel.WithTracerProvider(nil), rpcpoolotel.WithMeterProvider(nil))
	start := rpcpool.CallStart{Kind: rpcpool.KindCall, Method: "eth_call"}
	ctx := hook.CallStarted(context.Background(), start)
	hook.CallEnded(ctx, rpcpool.CallEnd{CallStart: start, Result: rpcpool.ResultOK})
	require.Len(t, spans.GetSpans(), 1)
	var all metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(context.Background(), &all))
	require.Len(t, all.ScopeMetrics, 1)
}

// Two hooks in one pool don't take each other's spans.
func TestTwoHooks(t *testing.T) {
	inWorld(t, func(t *testing.T, w *watched) {
		spans := tracetest.NewInMemoryExporter()
		other := rpcpoolotel.New(rpcpoolotel.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))))
		w.Proxy("p1")
		w.List("1", w.Node("r1", rpcpooltest.Status(500)), w.Node("r2"))
		pool := w.open(t, func(cfg *rpcpool.Config) { cfg.Hooks = append(cfg.Hooks, other) })
		_, err := pool.Chain("1").Call(t.Context(), "eth_call")
		require.NoError(t, err)
		want := map[string]int{"eth_call": 1, "attempt eth_call": 2}
		for _, got := range []tracetest.SpanStubs{w.spans.GetSpans(), spans.GetSpans()} {
			names := map[string]int{}
			for _, span := range got {
				names[span.Name]++
				if span.Name == "eth_call" {
					require.Len(t, span.Events, 1)
				}
			}
			require.Equal(t, want, names)
		}
	})
}

// refusing is a provider that makes no instrument.
type refusing struct{ noop.MeterProvider }

type refusingMeter struct{ noop.Meter }

var errRefused = errors.New("refused")

func (refusing) Meter(string, ...api.MeterOption) api.Meter { return refusingMeter{} }

func (refusingMeter) Int64Counter(string, ...api.Int64CounterOption) (api.Int64Counter, error) {
	return nil, errRefused
}

func (refusingMeter) Int64UpDownCounter(string, ...api.Int64UpDownCounterOption) (api.Int64UpDownCounter, error) {
	return nil, errRefused
}

func (refusingMeter) Float64Histogram(string, ...api.Float64HistogramOption) (api.Float64Histogram, error) {
	return nil, errRefused
}

func (refusingMeter) Int64ObservableGauge(string, ...api.Int64ObservableGaugeOption) (api.Int64ObservableGauge, error) {
	return nil, errRefused
}

func (refusingMeter) Int64ObservableUpDownCounter(string, ...api.Int64ObservableUpDownCounterOption) (api.Int64ObservableUpDownCounter, error) {
	return nil, errRefused
}

// A provider that refuses instruments is told to the error handler; calls go on, and Observe
// says why it can't.
func TestInstrumentsThatAreRefused(t *testing.T) {
	told := 0
	before := otel.GetErrorHandler()
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		require.ErrorIs(t, err, errRefused)
		told++
	}))
	defer otel.SetErrorHandler(before)
	refused := rpcpoolotel.New(rpcpoolotel.WithMeterProvider(refusing{}))
	require.Equal(t, 12, told, "each of eleven, and those of Observe as one")
	inWorld(t, func(t *testing.T, w *watched) {
		w.Proxy("p1")
		w.List("1", w.Node("r1", rpcpooltest.Status(500)), w.Node("r2"))
		w.hook = refused
		pool := w.open(t)
		_, err := pool.Chain("1").Call(t.Context(), "eth_call")
		require.NoError(t, err)
		_, err = refused.Observe(pool)
		require.ErrorIs(t, err, errRefused)
	})
}
