package rpcpoolprom_test

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
	rpcpoolprom "github.com/bomzrpc/rpcpool/plugins/prometheus"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// inWorld runs a test in a bubble, with a world of its own in memory.
func inWorld(t *testing.T, test func(t *testing.T, w *rpcpooltest.World)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, rpcpooltest.New(t)) })
}

// open makes a pool of the world's configuration that tells the metrics, and has them watch it.
func open(t *testing.T, w *rpcpooltest.World, m *rpcpoolprom.Metrics, change ...func(*rpcpool.Config)) *rpcpool.Pool {
	t.Helper()
	cfg := w.Config()
	cfg.Logger = slog.New(slog.DiscardHandler)
	cfg.Hooks = []rpcpool.Hook{m}
	for _, each := range change {
		each(&cfg)
	}
	pool, err := rpcpool.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = pool.Close() })
	m.Watch(pool)
	return pool
}

// gather gives what a scrape would, by a registry that checks it (no series twice, labels as
// described).
func gather(t testing.TB, m *rpcpoolprom.Metrics) []*dto.MetricFamily {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(m))
	families, err := registry.Gather()
	require.NoError(t, err)
	return families
}

// sum adds up the series of a metric that have the labels, given as "name=value", and counts
// them. Of a histogram it adds up the observations.
func sum(t testing.TB, m *rpcpoolprom.Metrics, name string, labels ...string) (total, series int) {
	t.Helper()
	for _, family := range gather(t, m) {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.GetMetric() {
			var has []string
			for _, label := range metric.GetLabel() {
				has = append(has, label.GetName()+"="+label.GetValue())
			}
			if slices.ContainsFunc(labels, func(l string) bool { return !slices.Contains(has, l) }) {
				continue
			}
			series++
			total += int(metric.GetCounter().GetValue()+metric.GetGauge().GetValue()) + int(metric.GetHistogram().GetSampleCount())
		}
	}
	return total, series
}

// wantSum checks a sum of series, of which there must be some.
func wantSum(t testing.TB, m *rpcpoolprom.Metrics, want int, name string, labels ...string) {
	t.Helper()
	got, series := sum(t, m, name, labels...)
	assert.Equal(t, want, got, "%s%v", name, labels)
	assert.Positive(t, series, "there is no %s%v", name, labels)
}

// Each fault of a script is counted as often as the script caused it: the four classes of
// failures, cooldowns, rests, failures taken back, dead proxies, cut log queries, lists and
// reports.
func TestMetricsCountWhatTheScriptCaused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		m := rpcpoolprom.New()
		w.Proxy("p1", rpcpooltest.ProxyCode(5)) // it carries nothing
		w.Proxy("p2")
		// In each list the faulty ones stand first, so that one call meets all of them.
		faults := map[string]struct {
			class  string
			faulty int
			fault  rpcpooltest.Reply
			cooled int
		}{
			"1": {"transport", 2, rpcpooltest.Reset(), 2},
			"2": {"protocol", 3, rpcpooltest.Status(500), 3},
			"3": {"semantic", 1, rpcpooltest.Error(-32000, "required historical state unavailable"), 0},
			"4": {"rate_limit", 4, rpcpooltest.RateLimited(5 * time.Second), 0},
		}
		for ref, f := range faults {
			var nodes []*rpcpooltest.Node
			for i := range f.faulty {
				nodes = append(nodes, w.Node(fmt.Sprintf("faulty%s-%d", ref, i), f.fault))
			}
			w.List(ref, append(nodes, w.Node("good"+ref))...)
		}
		// Halved from 1000 to 250, in two steps.
		w.List("5", w.Node("small", rpcpooltest.LogsUpTo(250, rpcpooltest.Error(-32000, "block range too large"))))
		w.List("6", w.Node("n1"), w.Node("n2"), w.Node("n3"), w.Node("n4"))
		w.List("7", w.Node("busy", rpcpooltest.RateLimited(5*time.Second).Times(2)))
		check := w.Node("check")
		pool := open(t, w, m, func(cfg *rpcpool.Config) { cfg.ProxyCheckURL, cfg.MaxWait = check.URL(), 20*time.Second })

		for _, ref := range []string{"6", "1", "2", "3", "4", "7"} {
			_, err := pool.Chain(ref).Call(t.Context(), "eth_call", map[string]any{}, "0x1")
			require.NoError(t, err)
		}
		_, err := pool.Chain("5").GetLogsChunked(t.Context(), rpcpool.LogFilter{FromBlock: 1, ToBlock: 1000})
		require.NoError(t, err)

		for ref, f := range faults {
			chain, n := "chain="+ref, f.faulty
			wantSum(t, m, n, "rpcpool_failures_total", chain)
			wantSum(t, m, n, "rpcpool_failures_total", chain, "class="+f.class)
			for i := range f.faulty {
				wantSum(t, m, 1, "rpcpool_rpc_failures_total", chain, fmt.Sprintf("rpc=http://faulty%s-%d.test/***", ref, i), "class="+f.class)
			}
			wantSum(t, m, n+1, "rpcpool_rpc_attempts_total", chain)
			wantSum(t, m, 1, "rpcpool_calls_total", chain, "kind=call", "result=ok")
			wantSum(t, m, 1, "rpcpool_call_duration_seconds", chain, "kind=call")
			wantSum(t, m, 1, "rpcpool_attempts_total", chain, "verdict=ok")
			wantSum(t, m, n+1, "rpcpool_attempt_duration_seconds", chain)
			wantSum(t, m, 0, "rpcpool_calls_in_flight", chain)
			wantSum(t, m, f.cooled, "rpcpool_rpc_changes_total", chain, "change=cooled")
		}
		wantSum(t, m, 4, "rpcpool_rpc_changes_total", "chain=4", "change=rested")
		wantSum(t, m, 2, "rpcpool_rpc_changes_total", "chain=7", "change=rested")
		wantSum(t, m, 1, "rpcpool_rpc_changes_total", "chain=7", "change=back")
		wantSum(t, m, 2, "rpcpool_range_splits_total", "chain=5", "cause=halved")
		wantSum(t, m, 0, "rpcpool_range_splits_total", "chain=5", "cause=named")
		wantSum(t, m, 3, "rpcpool_rpc_changes_total", "chain=6", "change=cooled")
		wantSum(t, m, 3, "rpcpool_rpc_changes_total", "chain=6", "change=undone")
		const p1Label = "proxy=socks5://***@p1.test:1080"
		wantSum(t, m, 1, "rpcpool_proxy_changes_total", "change=dead")
		wantSum(t, m, 1, "rpcpool_proxy_changes_total", p1Label, "change=dead")
		wantSum(t, m, 1, "rpcpool_proxy_state", p1Label, "state=cooling")
		wantSum(t, m, 0, "rpcpool_proxy_in_use", p1Label)
		wantSum(t, m, len(w.Pool.Asked()), "rpcpool_list_fetches_total", "source=pool", "result=ok")
		reported := map[string]int{}
		for _, report := range w.Pool.Reports() {
			reported[report.Error]++
		}
		require.NotEmpty(t, reported)
		for kind, n := range reported {
			wantSum(t, m, n, "rpcpool_reports_total", "kind="+kind, "change=sent")
		}
		wantSum(t, m, len(w.Pool.Reports()), "rpcpool_reports_total", "change=queued")
		var bytes uint64
		for _, chain := range pool.Chains() {
			for _, rpc := range chain.Stats() {
				bytes += rpc.Bytes
			}
		}
		wantSum(t, m, int(bytes), "rpcpool_response_bytes_total")
	})
}

// Lists that don't come are told from those that do, by where the one in use is from.
func TestMetricsCountLists(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		r1 := w.Node("r1")
		w.Pool.Lists("1", rpcpooltest.PoolList("eip155:1", r1).Times(1), rpcpooltest.PoolStatus(503).Times(1), rpcpooltest.PoolReset())
		w.Pool.Lists("2", rpcpooltest.PoolStatus(404))
		m := rpcpoolprom.New()
		pool := open(t, w, m)
		for range 3 {
			_, err := pool.Chain("1").Call(t.Context(), "eth_call")
			require.NoError(t, err)
			time.Sleep(11 * time.Minute)
		}
		_, err := pool.Chain("2").Call(t.Context(), "eth_call")
		require.Error(t, err)
		wantSum(t, m, 1, "rpcpool_list_fetches_total", "chain=1", "source=pool", "result=ok")
		wantSum(t, m, 1, "rpcpool_list_fetches_total", "chain=1", "source=memory", "result=refused")
		wantSum(t, m, 1, "rpcpool_list_fetches_total", "chain=1", "source=memory", "result=failed")
		wantSum(t, m, 1, "rpcpool_list_fetches_total", "chain=2", "source=none", "result=refused")
		wantSum(t, m, 4, "rpcpool_list_fetches_total")
		wantSum(t, m, 1, "rpcpool_calls_total", "chain=2", "result=pool_api")
	})
}

// RPCs that lag, reads that nobody is fresh enough for, and forks are counted; gauges show
// heads and lags.
func TestMetricsCountStaleReadsAndForks(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		evm := rpcpooltest.NewEVM(1, 1000)
		evm.SetBlockTime(12 * time.Second)
		w.List("1", w.Node("lags", evm.Serve(rpcpooltest.Lagging(10))), w.Node("r2", evm.Serve()), w.Node("r3", evm.Serve(rpcpooltest.ForkedFrom(990))))
		m := rpcpoolprom.New()
		pool := open(t, w, m, func(cfg *rpcpool.Config) { cfg.Mode = rpcpool.RoundRobin })
		chain := pool.Chain("1", rpcpool.WithFreshness(rpcpool.Freshness{}))
		for range 6 {
			_, err := chain.Call(t.Context(), "eth_getBlockByNumber", "latest", false)
			require.NoError(t, err)
		}
		fresh := []string{"chain=1", "policy=fresh"}
		wantSum(t, m, 1, "rpcpool_stale_skips_total", append(fresh, "ejected=true")...)
		forks, _ := sum(t, m, "rpcpool_forks_total", append(fresh, "kind=fork")...)
		require.Positive(t, forks)
		require.Equal(t, int(chain.Stats()[1].Forks), forks)
		wantSum(t, m, 10, "rpcpool_rpc_lag_blocks", append(fresh, "rpc=http://lags.test/***")...)
		wantSum(t, m, int(evm.Head()-10), "rpcpool_rpc_head_block", append(fresh, "rpc=http://lags.test/***")...)
		wantSum(t, m, int(evm.Head()), "rpcpool_high_water_block", fresh...)
	})
}

// Gauges show each RPC that was asked by its state, and those that never were as one; what is
// under way is in flight.
func TestMetricsShowStates(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		gate := rpcpooltest.NewGate()
		w.List("1", w.Node("r1", rpcpooltest.Status(500)), w.Node("r2", rpcpooltest.Result("0x1").Hold(gate)), w.Node("r3"), w.Node("r4"))
		m := rpcpoolprom.New()
		pool := open(t, w, m)
		_, series := sum(t, m, "rpcpool_rpcs")
		require.Zero(t, series, "there is no list yet")
		done := make(chan error)
		go func() {
			_, err := pool.Chain("1").Call(t.Context(), "eth_call")
			done <- err
		}()
		held, err := gate.Next(t.Context())
		require.NoError(t, err)
		wantSum(t, m, 1, "rpcpool_rpc_state", "rpc=http://r1.test/***", "state=cooling")
		wantSum(t, m, 1, "rpcpool_rpc_state", "rpc=http://r1.test/***")
		wantSum(t, m, 3, "rpcpool_rpc_state", "rpc=other", "state=ready")
		wantSum(t, m, 1, "rpcpool_rpc_in_flight", "rpc=other")
		_, series = sum(t, m, "rpcpool_rpc_head_block", "rpc=other")
		require.Zero(t, series, "the heads of many say nothing")
		wantSum(t, m, 1, "rpcpool_rpcs", "state=cooling")
		wantSum(t, m, 3, "rpcpool_rpcs", "state=ready")
		wantSum(t, m, 0, "rpcpool_rpcs", "state=resting")
		wantSum(t, m, 1, "rpcpool_calls_in_flight", "chain=1")
		wantSum(t, m, 1, "rpcpool_proxy_in_flight")
		wantSum(t, m, 1, "rpcpool_proxy_in_use")
		held.Release()
		require.NoError(t, <-done)
		wantSum(t, m, 1, "rpcpool_rpc_state", "rpc=http://r2.test/***", "state=ready")
		wantSum(t, m, 2, "rpcpool_rpc_state", "rpc=other", "state=ready")
		wantSum(t, m, 0, "rpcpool_rpc_in_flight", "rpc=http://r2.test/***")
		wantSum(t, m, 0, "rpcpool_calls_in_flight", "chain=1")
	})
}

// Two RPCs of one host have one label, and their series are one: nothing is lost, and the
// registry finds no series twice.
func TestMetricsAddUpRPCsOfOneHost(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		node := w.Node("shared")
		w.Pool.Lists("1", rpcpooltest.PoolList("eip155:1",
			rpcpooltest.Listed{URL: node.URL(), Score: 2, Height: 1000, Caps: rpcpooltest.AllCaps()},
			rpcpooltest.Listed{URL: node.URL() + "-other", Score: 1, Height: 900, Caps: rpcpooltest.AllCaps()}))
		m := rpcpoolprom.New()
		pool := open(t, w, m)
		_, err := pool.Chain("1").Call(t.Context(), "eth_call")
		require.NoError(t, err)
		const shared = "rpc=http://shared.test/***"
		wantSum(t, m, 2, "rpcpool_rpc_state", shared, "state=ready")
		wantSum(t, m, 0, "rpcpool_rpc_in_flight", shared)
		wantSum(t, m, 1, "rpcpool_rpc_attempts_total", shared)
		wantSum(t, m, 900, "rpcpool_rpc_head_block", shared)
		wantSum(t, m, 100, "rpcpool_rpc_lag_blocks", shared)

		node.Script(rpcpooltest.Status(500))
		ctx := rpcpool.WithBudget(t.Context(), rpcpool.Budget{Attempts: 1}) // the other one has no server
		_, err = pool.Chain("1").Call(ctx, "eth_call")
		require.Error(t, err)
		wantSum(t, m, 1, "rpcpool_rpc_state", shared, "state=ready")
		wantSum(t, m, 1, "rpcpool_rpc_state", shared, "state=cooling")
		wantSum(t, m, 2, "rpcpool_rpc_attempts_total", shared)
		wantSum(t, m, 1, "rpcpool_rpc_failures_total", shared, "class=protocol")
	})
}

// Metrics of two pools with the same chains and proxies add up, and Unwatch ends that.
func TestMetricsOfTwoPools(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1", w.Node("r1"))
		m := rpcpoolprom.New()
		first, second := open(t, w, m), open(t, w, m)
		m.Watch(first, nil) // again, and none
		for _, pool := range []*rpcpool.Pool{first, second} {
			_, err := pool.Chain("1").Call(t.Context(), "eth_call")
			require.NoError(t, err)
		}
		wantSum(t, m, 2, "rpcpool_calls_total", "chain=1")
		wantSum(t, m, 2, "rpcpool_rpcs", "state=ready")
		wantSum(t, m, 2, "rpcpool_proxy_state", "state=ready")
		m.Unwatch(second)
		wantSum(t, m, 1, "rpcpool_rpcs", "state=ready")
		wantSum(t, m, 2, "rpcpool_calls_total", "chain=1")
	})
}

// Methods label nothing, unless there is a list of those that may.
func TestMetricsLabelMethods(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1", w.Node("r1"))
		plain, named := rpcpoolprom.New(), rpcpoolprom.New(rpcpoolprom.WithMethods("eth_call", "eth_getBalance"))
		pool := open(t, w, plain, func(cfg *rpcpool.Config) { cfg.Hooks = append(cfg.Hooks, named) })
		for _, method := range []string{"eth_call", "eth_call", "eth_gasPrice", "net_version"} {
			_, err := pool.Chain("1").Call(t.Context(), method)
			require.NoError(t, err)
		}
		wantSum(t, named, 2, "rpcpool_calls_total", "method=eth_call")
		wantSum(t, named, 2, "rpcpool_calls_total", "method=other")
		wantSum(t, named, 2, "rpcpool_call_duration_seconds", "method=other")
		for _, family := range gather(t, plain) {
			for _, metric := range family.GetMetric() {
				for _, label := range metric.GetLabel() {
					require.NotEqual(t, "method", label.GetName())
				}
			}
		}
	})
}

// Native histograms have one series each, and as many observations as classic ones.
func TestMetricsHaveNativeHistograms(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1", w.Node("r1"))
		m := rpcpoolprom.New(rpcpoolprom.WithNativeHistograms())
		_, err := open(t, w, m).Chain("1").Call(t.Context(), "eth_call")
		require.NoError(t, err)
		wantSum(t, m, 1, "rpcpool_call_duration_seconds")
		for _, family := range gather(t, m) {
			if strings.HasSuffix(family.GetName(), "_seconds") {
				require.Empty(t, family.GetMetric()[0].GetHistogram().GetBucket())
				require.NotZero(t, family.GetMetric()[0].GetHistogram().GetZeroThreshold(), "it is native")
			}
		}
	})
}

// The bounds of buckets are those that are asked for; where none are, and an option that is
// nil asks for nothing, those that are there anyhow.
func TestMetricsTakeBuckets(t *testing.T) {
	for name, c := range map[string]struct {
		opts []rpcpoolprom.Option
		want []float64
	}{
		"given":          {[]rpcpoolprom.Option{rpcpoolprom.WithBuckets(1, 2)}, []float64{1, 2}},
		"without any":    {[]rpcpoolprom.Option{rpcpoolprom.WithBuckets()}, defaultBuckets},
		"not asked for":  {nil, defaultBuckets},
		"a nil option":   {[]rpcpoolprom.Option{nil, rpcpoolprom.WithBuckets(3), nil}, []float64{3}},
		"the later wins": {[]rpcpoolprom.Option{rpcpoolprom.WithNativeHistograms(), rpcpoolprom.WithBuckets()}, defaultBuckets},
	} {
		t.Run(name, func(t *testing.T) {
			m := rpcpoolprom.New(c.opts...)
			m.CallEnded(t.Context(), rpcpool.CallEnd{Duration: 1500 * time.Millisecond})
			i := slices.IndexFunc(gather(t, m), func(f *dto.MetricFamily) bool { return f.GetName() == "rpcpool_call_duration_seconds" })
			var bounds []float64
			for _, bucket := range gather(t, m)[i].GetMetric()[0].GetHistogram().GetBucket() {
				bounds = append(bounds, bucket.GetUpperBound())
				inIt := uint64(0)
				if bucket.GetUpperBound() >= 1.5 {
					inIt = 1
				}
				require.Equal(t, inIt, bucket.GetCumulativeCount())
			}
			require.Equal(t, c.want, bounds)
		})
	}
}

// defaultBuckets are what docs/OBSERVABILITY.md calls eleven from 0.01 to 30 seconds.
var defaultBuckets = []float64{0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30}

// Names, units and help are as Prometheus has them.
func TestMetricsFollowTheConventions(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1", w.Node("r1"))
		m := rpcpoolprom.New()
		_, err := open(t, w, m).Chain("1").Call(t.Context(), "eth_call")
		require.NoError(t, err)
		problems, err := testutil.CollectAndLint(m)
		require.NoError(t, err)
		require.Empty(t, problems)
		for _, family := range gather(t, m) {
			require.True(t, strings.HasPrefix(family.GetName(), "rpcpool_"), family.GetName())
			require.Equal(t, family.GetType() == dto.MetricType_COUNTER, strings.HasSuffix(family.GetName(), "_total"), family.GetName())
		}
	})
}
