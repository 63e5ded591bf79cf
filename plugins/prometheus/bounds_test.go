package rpcpoolprom_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
	rpcpoolprom "github.com/bomzrpc/rpcpool/plugins/prometheus"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// maxSeries is what doc.go and docs/OBSERVABILITY.md promise for 50 chains of 200 RPCs.
const maxSeries = 12_000

// bigPool is a watched pool of many chains, each with its list.
func bigPool(t testing.TB, m *rpcpoolprom.Metrics, chains, rpcs int) *rpcpool.Pool {
	t.Helper()
	var lists []rpcpool.List
	for c := range chains {
		list := rpcpool.List{Key: fmt.Sprintf("eip155:%d", c+1)}
		for i := range rpcs {
			list.RPCs = append(list.RPCs, rpcpool.RPC{URL: fmt.Sprintf("https://rpc-%d.chain-%d.example.org/key", i, c+1), Height: uint64(1000 - i)})
		}
		lists = append(lists, list)
	}
	directory, err := rpcpool.NewStaticDirectory(lists...)
	require.NoError(t, err)
	cfg := rpcpool.Config{
		Proxies:   []string{"socks5://user:secret@p1.example.org:1080", "socks5://user:secret@p2.example.org:1080"},
		Directory: directory, CacheDir: t.TempDir(), Logger: slog.New(slog.DiscardHandler), Hooks: []rpcpool.Hook{m},
		DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no network") },
	}
	pool, err := rpcpool.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = pool.Close() })
	m.Watch(pool)
	for c := range chains {
		_, err := pool.ChainID(uint64(c+1)).Call(context.Background(), "eth_call")
		require.Error(t, err) // but now there is a list
	}
	return pool
}

// useAll tells the metrics what they would be told if every RPC of the pool were asked and
// failed in every way, by three kinds of calls that end in three ways.
func useAll(t testing.TB, m *rpcpoolprom.Metrics, pool *rpcpool.Pool) {
	t.Helper()
	ctx := context.Background()
	verdicts := map[rpcpool.Verdict]rpcpool.FailureClass{
		rpcpool.VerdictOK: rpcpool.NoFailure, rpcpool.VerdictConnFail: rpcpool.TransportFailure,
		rpcpool.VerdictRPCFail: rpcpool.ProtocolFailure, rpcpool.VerdictNoState: rpcpool.SemanticFailure,
		rpcpool.VerdictIPBlocked: rpcpool.RateLimitFailure, rpcpool.VerdictProxyFail: rpcpool.NoFailure,
	}
	proxies := pool.ProxyStats()
	for _, chain := range pool.Chains() {
		labels := rpcpool.ChainLabels{Chain: chain.Ref(), Policy: chain.Policy()}
		for _, kind := range []rpcpool.CallKind{rpcpool.KindCall, rpcpool.KindLogs, rpcpool.KindInternal} {
			for _, result := range []rpcpool.CallResult{rpcpool.ResultOK, rpcpool.ResultNoHealthy, rpcpool.ResultDeadline} {
				start := rpcpool.CallStart{ChainLabels: labels, Kind: kind, Method: "eth_call"}
				m.CallEnded(m.CallStarted(ctx, start), rpcpool.CallEnd{CallStart: start, Result: result})
			}
		}
		for i, rpc := range chain.Stats() {
			for verdict, class := range verdicts {
				start := rpcpool.AttemptStart{ChainLabels: labels, RPC: rpc.RPC, Proxy: proxies[i%len(proxies)].Proxy}
				m.AttemptEnded(ctx, rpcpool.AttemptEnd{AttemptStart: start, Verdict: verdict, Class: class})
			}
		}
	}
}

// However much is asked of 50 chains with 200 RPCs each, the series stay under the number
// that is promised. The sums are those of all RPCs all the same.
func TestMetricsHaveABoundedNumberOfSeries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := rpcpoolprom.New()
		pool := bigPool(t, m, 50, 200)
		before, _ := sum(t, m, "rpcpool_rpc_attempts_total")
		useAll(t, m, pool)
		n := testutil.CollectAndCount(m)
		t.Logf("%d metrics of 50 chains × 200 RPCs", n)
		lines := 0
		for _, family := range gather(t, m) {
			for _, metric := range family.GetMetric() {
				lines++
				if h := metric.GetHistogram(); h != nil {
					lines += len(h.GetBucket()) + 2 // +Inf, _sum and _count, one of which is counted
				}
			}
			t.Log(family.GetName(), len(family.GetMetric()))
		}
		t.Logf("%d series", lines)
		require.Less(t, lines, maxSeries)
		require.Greater(t, lines, maxSeries/2, "else the promise says nothing")
		wantSum(t, m, before+50*200*6, "rpcpool_rpc_attempts_total")
		for _, class := range []string{"transport", "protocol", "semantic", "rate_limit"} {
			wantSum(t, m, 50*200, "rpcpool_rpc_failures_total", "class="+class)
			wantSum(t, m, 50*200, "rpcpool_failures_total", "class="+class)
		}
		wantSum(t, m, 50*200, "rpcpool_rpc_state")
		wantSum(t, m, 50*200, "rpcpool_rpcs")
	})
}

// RPCs and chains beyond the limits share their series; with limits of 0 none has its own.
func TestMetricsLimitRPCsAndChains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := rpcpoolprom.New(rpcpoolprom.WithMaxRPCs(3), rpcpoolprom.WithMaxChains(2))
		pool := bigPool(t, m, 4, 5)
		useAll(t, m, pool)
		_, own := sum(t, m, "rpcpool_rpc_attempts_total")
		_, shared := sum(t, m, "rpcpool_rpc_attempts_total", "rpc=other")
		require.Equal(t, 3, own-shared)
		wantSum(t, m, 2*5*6, "rpcpool_rpc_attempts_total", "chain=other", "policy=other", "rpc=other")
		wantSum(t, m, 2*9+2, "rpcpool_calls_total", "chain=other")
		wantSum(t, m, 2*5, "rpcpool_rpcs", "chain=other")

		none := rpcpoolprom.New(rpcpoolprom.WithMaxRPCs(0), rpcpoolprom.WithMaxChains(-1))
		none.Watch(pool)
		useAll(t, none, pool)
		_, series := sum(t, none, "rpcpool_rpc_attempts_total")
		require.Equal(t, 1, series)
		wantSum(t, none, 4*5, "rpcpool_rpc_state", "chain=other", "rpc=other")
	})
}

// A reference that can't be a label, as it isn't UTF-8, is one of the others, and ends no scrape.
func TestMetricsOfAReferenceThatIsNoLabel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := rpcpoolprom.New()
		pool := bigPool(t, m, 1, 2)
		_, err := pool.Chain("\xff").Call(t.Context(), "eth_call")
		require.Error(t, err)
		wantSum(t, m, 1, "rpcpool_calls_total", "chain=other")
		wantSum(t, m, 2, "rpcpool_rpcs", "chain=1")
	})
}

// An RPC that has left its list has no series any more, and others may have its place.
func TestMetricsForgetRPCsThatLeft(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		r1, r2 := w.Node("r1", rpcpooltest.Result("0x1").Times(1), rpcpooltest.Status(500)), w.Node("r2")
		w.Pool.Lists("1", rpcpooltest.PoolList("eip155:1", r1).Times(1), rpcpooltest.PoolList("eip155:1", r2))
		m := rpcpoolprom.New(rpcpoolprom.WithMaxRPCs(1))
		pool := open(t, w, m)
		call := func() {
			_, err := pool.Chain("1").Call(t.Context(), "eth_call")
			require.NoError(t, err)
		}
		call()
		wantSum(t, m, 1, "rpcpool_rpc_attempts_total", "rpc=http://r1.test/***")
		time.Sleep(11 * time.Minute)
		call() // by the list from before, while the new one is fetched
		time.Sleep(time.Second)
		_, series := sum(t, m, "rpcpool_rpc_attempts_total", "rpc=http://r1.test/***")
		require.Zero(t, series)
		call()
		call()
		_, series = sum(t, m, "rpcpool_rpc_attempts_total", "rpc=http://r2.test/***")
		require.Equal(t, 1, series)
		_, series = sum(t, m, "rpcpool_rpc_failures_total", "rpc=http://r1.test/***")
		require.Zero(t, series)
	})
}

// Many calls and scrapes at once disturb each other in nothing: what was counted is there.
func TestMetricsUnderManyCallers(t *testing.T) {
	m := rpcpoolprom.New(rpcpoolprom.WithMaxRPCs(5), rpcpoolprom.WithMaxChains(3))
	const callers, each = 8, 300
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for i := range each {
				labels := rpcpool.ChainLabels{Chain: fmt.Sprint(i % 5)}
				start := rpcpool.CallStart{ChainLabels: labels, Kind: rpcpool.KindCall}
				ctx := m.CallStarted(t.Context(), start)
				m.AttemptEnded(ctx, rpcpool.AttemptEnd{
					AttemptStart: rpcpool.AttemptStart{ChainLabels: labels, RPC: fmt.Sprint("https://r", (c+i)%7), Proxy: "p"},
					Verdict:      rpcpool.VerdictRPCFail, Class: rpcpool.ProtocolFailure,
				})
				m.CallEnded(ctx, rpcpool.CallEnd{CallStart: start, Result: rpcpool.ResultOK})
				if i%100 == 0 {
					testutil.CollectAndCount(m)
				}
			}
		})
	}
	wg.Wait()
	for _, name := range []string{"rpcpool_calls_total", "rpcpool_attempts_total", "rpcpool_failures_total", "rpcpool_rpc_attempts_total", "rpcpool_rpc_failures_total", "rpcpool_proxy_attempts_total"} {
		wantSum(t, m, callers*each, name)
	}
	wantSum(t, m, 0, "rpcpool_calls_in_flight")
}
