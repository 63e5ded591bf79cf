package rpcpool_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// Stats count what happened to each RPC, by class (rules B1, B12), and say where the
// cursor stands and what cools until when.
func TestStatsTellWhatHappened(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.ProxyAt("p1", "socks5://user-p1:word-p1@p1.test:1080", rpcpooltest.ProxyRefuse().Times(1))
		w.Proxy("p2")
		w.Proxy("p3")
		r1 := w.Node("r1", rpcpooltest.Error(-32601, "method not found").Method("debug_x").Times(1), rpcpooltest.Status(500).Times(1))
		r2 := w.Node("r2", rpcpooltest.Reset().Times(1))
		r3 := w.Node("r3", rpcpooltest.Status(429).Times(1))
		w.List("1", r1, r2, r3)
		pool := open(t, w)
		chain := pool.Chain("1")
		require.Empty(t, chain.Stats(), "nothing is known before the first call")
		_, err := chain.Call(t.Context(), "debug_x")
		require.NoError(t, err)
		_, err = chain.Call(t.Context(), "eth_blockNumber")
		require.NoError(t, err)

		stats := chain.Stats()
		require.Len(t, stats, 3)
		require.Equal(t, "http://r1.test/***", stats[0].RPC)
		require.Equal(t, []string{"debug_x"}, stats[0].Unsupported)
		require.Equal(t, uint64(2), stats[0].Protocol)
		require.Equal(t, uint64(1), stats[0].ProxyFailures)
		require.True(t, stats[0].Cooling)
		require.WithinDuration(t, time.Now().Add(60*time.Second), stats[0].Until, time.Second)
		require.Equal(t, uint64(1), stats[1].Transport)
		require.Equal(t, 1, stats[1].FailuresInRow)
		require.Equal(t, uint64(1), stats[2].RateLimited)
		require.Equal(t, uint64(0), stats[2].Ejections, "the other proxy's address wasn't blocked")
		require.True(t, stats[1].Current, "one on from the RPC that failed at the cursor")
		require.Equal(t, uint64(2), stats[2].Served)
		require.Equal(t, uint64(3), stats[2].Attempts)
		require.Equal(t, uint64(1000), stats[2].Head)

		proxies := pool.ProxyStats()
		require.Equal(t, "socks5://***@p1.test:1080", proxies[0].Proxy)
		require.Equal(t, uint64(1), proxies[0].Deaths)
		require.Equal(t, uint64(1), proxies[0].Failures)
		synctest.Wait()
		require.Zero(t, proxies[1].InFlight)
	})
}

// The quantiles of latency are right within their bucket, and an attempt that is
// under way is counted as such.
func TestStatsLatencyAndInFlight(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		r := w.Node("r1", rpcpooltest.Result("0x1").Delay(10*time.Millisecond).Times(90),
			rpcpooltest.Result("0x1").Delay(time.Second).Times(10), rpcpooltest.Hang())
		w.List("1", r)
		chain := open(t, w).Chain("1")
		for range 100 {
			_, err := chain.Call(t.Context(), "eth_blockNumber")
			require.NoError(t, err)
		}
		go func() { _, _ = chain.Call(within(t, 5*time.Second), "eth_blockNumber") }()
		synctest.Wait()
		s := chain.Stats()[0]
		require.InEpsilon(t, 10*time.Millisecond, s.P50, 0.13)
		require.InEpsilon(t, time.Second, s.P95, 0.13)
		require.InEpsilon(t, time.Second, s.P99, 0.13)
		require.Equal(t, 109*time.Millisecond, s.Mean)
		require.Equal(t, 1, s.InFlight)
		require.Equal(t, uint64(100), s.Served)
		require.Equal(t, uint64(500), s.Bytes)
		time.Sleep(6 * time.Second)
		require.Zero(t, chain.Stats()[0].InFlight)
	})
}
