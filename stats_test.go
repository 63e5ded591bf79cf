package rpcpool_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
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

// Rule B1: the attempts that an error lists have their class.
func TestAttemptsHaveTheirClass(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1",
			w.Node("r1", rpcpooltest.Reset()), w.Node("r2", rpcpooltest.Status(500)), w.Node("r3", rpcpooltest.Status(403)),
			w.Node("r4", rpcpooltest.Status(429)), w.Node("r5", rpcpooltest.Error(-32000, "required historical state unavailable (reexec=128)")))
		_, err := open(t, w).Chain("1").Call(t.Context(), "eth_getBalance", "0x0000000000000000000000000000000000000001", "0x1")
		var nobody *rpcpool.NoHealthyRPCError
		require.ErrorAs(t, err, &nobody)
		var classes []rpcpool.FailureClass
		for _, a := range nobody.Attempts {
			classes = append(classes, a.Class)
		}
		require.Equal(t, []rpcpool.FailureClass{
			rpcpool.TransportFailure, rpcpool.ProtocolFailure, rpcpool.ProtocolFailure, rpcpool.RateLimitFailure, rpcpool.SemanticFailure,
		}, classes, "%v", err)
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

// The tables have their columns under each other, and are as wide as a terminal, also with
// large numbers and long names; there are no control characters for colours in them.
func TestStatsTables(t *testing.T) {
	until := time.Now().Add(15 * time.Minute)
	long := strings.Repeat("very-long-name.", 5)
	var rpcs, proxies strings.Builder
	require.NoError(t, rpcpool.WriteStats(&rpcs, []rpcpool.RPCStats{
		{RPC: "https://" + long + "example.org/***", Current: true, State: rpcpool.StateCooling, Until: until, Head: 345_678_901, Lag: 12,
			Served: 1_234_567, Transport: 1234, Protocol: 1234, Semantic: 1234, RateLimited: 1234, Mean: 123_456 * time.Microsecond,
			P95: 12_345 * time.Millisecond, Ejections: 1234},
		{RPC: "http://r1.test/***", State: rpcpool.StateReady},
	}))
	require.NoError(t, rpcpool.WriteProxyStats(&proxies, []rpcpool.ProxyStats{
		{Proxy: "socks5://***@" + long + "example.org:1080", Current: true, State: rpcpool.ProxyCooling, Until: until,
			Served: 1_234_567, Failures: 1234, Transport: 1234, Mean: 123_456 * time.Microsecond, P95: 12_345 * time.Millisecond},
		{Proxy: "http://p.test:3128", State: rpcpool.ProxyReady},
	}))
	for _, table := range []string{rpcs.String(), proxies.String()} {
		lines := strings.Split(strings.TrimSuffix(table, "\n"), "\n")
		require.Len(t, lines, 3)
		state := strings.Index(lines[0], "STATE")
		for _, line := range lines {
			require.LessOrEqual(t, utf8.RuneCountInString(line), 120, "%s", table)
			require.NotContains(t, line, "\x1b")
			at := []rune(line)[state-2:]
			require.Equal(t, "  ", string(at[:2]), "%s", table)
			require.NotEqual(t, ' ', at[2], "%s", table)
		}
		require.Contains(t, lines[1], "* cooling 900s")
		require.Contains(t, lines[1], "…")
	}
	require.Regexp(t, `^http://r1\.test/\*\*\* +- +- +0 +0 +0 +0 +0 +- +- +0  ready$`, strings.Split(rpcs.String(), "\n")[2])
}

// A proxy's statistics have what went through it, the failures of RPCs behind it by class,
// and a word for whether it is used.
func TestProxyStatsTellWhatHappened(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1", rpcpooltest.ProxyCarry().Times(3), rpcpooltest.ProxyRefuse().Times(1))
		w.SetKeepAlive(false)
		w.List("1", w.Node("r1", rpcpooltest.Status(500)), w.Node("r2", rpcpooltest.Reset()), w.Node("r3"))
		pool := open(t, w)
		call := func() error { _, err := pool.Chain("1").Call(t.Context(), "eth_call"); return err }
		require.NoError(t, call())
		s := pool.ProxyStats()[0]
		require.Equal(t, rpcpool.ProxyReady, s.State)
		require.Equal(t, []uint64{3, 1, 1, 1, 0, 0, 5},
			[]uint64{s.Attempts, s.Served, s.Transport, s.Protocol, s.Semantic, s.RateLimited, s.Bytes})
		require.ErrorAs(t, call(), new(*rpcpool.ProxyError))
		require.Equal(t, rpcpool.ProxyCooling, pool.ProxyStats()[0].State)
		time.Sleep(61 * time.Second)
		require.Equal(t, rpcpool.ProxyTrial, pool.ProxyStats()[0].State)
		require.NoError(t, call())
		require.Equal(t, rpcpool.ProxyReady, pool.ProxyStats()[0].State)
	})
}
