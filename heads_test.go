package rpcpool_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// Rule B2: the only RPC that can be asked isn't believed where it jumps away from what two
// others agreed on before, or it said itself, although nobody is left to contradict it; nor
// later, when there has been time for as many blocks as it boasted of.
func TestLiarIsTheOnlyOneLeft(t *testing.T) {
	for name, c := range map[string]struct {
		before func(*rpcpooltest.EVM) rpcpooltest.Reply
		atMost uint64 // that it is believed to be ahead
	}{
		"it never spoke before":    {func(*rpcpooltest.EVM) rpcpooltest.Reply { return rpcpooltest.Status(503).ToStep(0) }, 1},
		"it was honest until then": {func(evm *rpcpooltest.EVM) rpcpooltest.Reply { return evm.Serve().ToStep(1) }, 3},
	} {
		for _, boast := range []uint64{3, 5, 100_000} {
			t.Run(fmt.Sprint(name, " ", boast), func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
					w.Proxy("p1")
					evm := chainOf12s()
					w.List("1",
						w.Node("liar", c.before(evm), evm.Serve(rpcpooltest.Boasting(boast))),
						w.Node("r2", evm.Serve().ToStep(0), rpcpooltest.Status(503)),
						w.Node("r3", evm.Serve().ToStep(0), rpcpooltest.Status(503)))
					chain := freshOn(t, w, rpcpool.Freshness{MaxLag: 2}, roundRobin)
					warmUp(t, evm, chain, 1005)
					for step := range 2 {
						w.Network.SetStep(1 + step)
						for range 300 {
							_, _ = chain.Call(t.Context(), "eth_blockNumber")
							drift := (evm.Head() - 1005) / 20 // of a chain that is quicker than it was
							require.LessOrEqual(t, chain.HighWater(), evm.Head()+c.atMost+drift)
							time.Sleep(time.Second)
						}
					}
					require.NotZero(t, requestsOf(w, "liar", "eth_blockNumber"))
				})
			})
		}
	}
}

// Rule B3: an RPC that stood still must be good for as long as it did before it is trusted
// again: other answers may come from the same cache.
func TestProbationIsAsLongAsItStoodStill(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		evm := chainOf12s()
		w.List("1", w.Node("r1", evm.Serve(rpcpooltest.StuckAt(1000)).ToStep(0), evm.Serve()), w.Node("r2", evm.Serve()))
		chain := freshOn(t, w, rpcpool.Freshness{EjectLag: 1000, BlockTime: testBlockTime})
		read := func(times int) (ofR1 int) {
			before := requestsOf(w, "r1", "eth_getBalance")
			for range times {
				latestBalance(t, chain)
				time.Sleep(testBlockTime + time.Second)
			}
			return requestsOf(w, "r1", "eth_getBalance") - before
		}
		read(30) // 390 s
		w.Network.SetStep(1)
		require.Zero(t, read(10))
		require.NotZero(t, read(40))
	})
}

// Rule B11: an RPC that replaces a block's hash by another one is told once, not at every
// look at the block after that.
func TestReorgIsToldOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		evm := rpcpooltest.NewEVM(1, 1000)
		w.List("1", w.Node("r1", evm.Serve()))
		log := new(lockedBuffer)
		chain := freshOn(t, w, rpcpool.Freshness{}, func(cfg *rpcpool.Config) { cfg.Logger = slog.New(slog.NewTextHandler(log, nil)) })
		for i := range 6 {
			if i == 2 {
				evm.Reorg(20)
			}
			_, err := chain.Call(t.Context(), "eth_getBlockByNumber", "0x3e0", false)
			require.NoError(t, err)
		}
		require.Equal(t, 1, strings.Count(log.String(), "another hash for a block than before"), log.String())
	})
}

// With the policy, Lag is how far an RPC is under the high-water mark, not under the highest
// that any of them says.
func TestLagIsUnderTheMark(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		_, chain := freshWorld(t, w, rpcpool.Freshness{EjectLag: 100, SampleEvery: time.Second},
			[][]rpcpooltest.EVMFault{nil, {rpcpooltest.Lagging(5)}, {rpcpooltest.Boasting(1000)}, nil})
		latestBalance(t, chain)
		time.Sleep(3500 * time.Millisecond)
		var lags, heads []uint64
		for _, s := range chain.Stats() {
			lags, heads = append(lags, s.Lag), append(heads, s.Head)
		}
		require.Equal(t, []uint64{1000, 995, 2000, 1000}, heads)
		require.Equal(t, []uint64{0, 5, 0, 0}, lags)
	})
}

// Rule B2: how long the RPCs have said that the chain went back is counted from when they last
// began to: a fall from which they came back doesn't count for the next one.
func TestFallThatIsOverDoesNotCount(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		evm := chainOf12s()
		behind := evm.Serve(rpcpooltest.Lagging(100))
		node := func(name string) *rpcpooltest.Node {
			return w.Node(name, evm.Serve().ToStep(0), behind.ToStep(1), evm.Serve().ToStep(2), behind)
		}
		w.List("1", node("r1"), node("r2"))
		chain := freshOn(t, w, rpcpool.Freshness{})
		warmUp(t, evm, chain, 1005)
		w.Network.SetStep(1)
		time.Sleep(testBlockTime + time.Second)
		_, err := balance(t, chain)
		var stale *rpcpool.StaleError
		require.ErrorAs(t, err, &stale)
		w.Network.SetStep(2)
		everySecond(t, evm, chain, 900)
		require.Equal(t, evm.Head(), latestBalance(t, chain))
		w.Network.SetStep(3)
		time.Sleep(testBlockTime + time.Second)
		began := time.Now()
		for err = error(stale); err != nil && time.Since(began) < 5*time.Minute; time.Sleep(time.Second) {
			_, err = balance(t, chain)
		}
		require.NoError(t, err)
		require.InDelta(t, 60, time.Since(began).Seconds(), 3)
	})
}
