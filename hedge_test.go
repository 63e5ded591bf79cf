package rpcpool_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

const hedgeDelay = 100 * time.Millisecond

// hedgedCall is one call over two RPCs and two proxies.
func hedgedCall(t *testing.T, w *rpcpooltest.World, first, second rpcpooltest.Reply, method string) (string, time.Duration, error) {
	t.Helper()
	w.Proxy("p1")
	w.Proxy("p2")
	w.List("1", w.Node("r1", first), w.Node("r2", second))
	chain := open(t, w).Chain("1", rpcpool.WithHedge(rpcpool.Hedge{Delay: hedgeDelay, MaxExtra: 1}))
	start := time.Now()
	raw, err := chain.Call(t.Context(), method)
	return string(raw), time.Since(start), err
}

// A slow read is asked of another RPC, through another proxy, after the delay, and the
// first real answer wins; nobody is blamed for the other one.
func TestHedgedRead(t *testing.T) {
	nothing, none := rpcpooltest.Result(nil), rpcpooltest.Result([]int{})
	slow := func(r rpcpooltest.Reply, d time.Duration) rpcpooltest.Reply { return r.Delay(d) }
	value := rpcpooltest.Result("0x2a")
	revert := rpcpooltest.Error(3, "execution reverted")
	for name, c := range map[string]struct {
		first, second rpcpooltest.Reply
		want          string // "error" for the revert, "nothing" for null or []
		took          time.Duration
	}{
		"quick first":                {value, slow(value, time.Second), `"0x2a"`, 0},
		"slow first":                 {slow(value, time.Second), value, `"0x2a"`, hedgeDelay},
		"hung first":                 {rpcpooltest.Hang(), slow(value, 50*time.Millisecond), `"0x2a"`, hedgeDelay + 50*time.Millisecond},
		"null doesn't win":           {slow(value, 150*time.Millisecond), nothing, `"0x2a"`, 150 * time.Millisecond},
		"null waits a delay only":    {slow(value, time.Second), nothing, `null`, 2 * hedgeDelay},
		"[] doesn't win":             {slow(value, 150*time.Millisecond), none, `"0x2a"`, 150 * time.Millisecond},
		"an error doesn't win":       {slow(value, 150*time.Millisecond), revert, `"0x2a"`, 150 * time.Millisecond},
		"an error waits a delay":     {slow(value, time.Second), revert, `error`, 2 * hedgeDelay},
		"no answer waits for one":    {slow(value, time.Second), rpcpooltest.Status(500), `"0x2a"`, time.Second},
		"both say nothing":           {slow(nothing, 120*time.Millisecond), none, `nothing`, 120 * time.Millisecond},
		"the body counts as a whole": {slow(value, 300*time.Millisecond), value.Drip(4, 100*time.Millisecond), `"0x2a"`, 300 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				got, took, err := hedgedCall(t, w, c.first, c.second, "eth_call")
				switch c.want {
				case "error":
					var reverted *rpcpool.RPCError
					require.ErrorAs(t, err, &reverted)
					require.Equal(t, 3, reverted.Code)
				case "nothing": // of two answers that say so, either may have been the first
					require.NoError(t, err)
					require.Contains(t, []string{"null", "[]"}, got)
				default:
					require.NoError(t, err)
					require.Equal(t, c.want, got)
				}
				require.Equal(t, c.took, took)
				requests := w.Requests()
				require.Equal(t, "r1 p1 eth_call", requests[0])
				if c.took > 0 {
					require.Equal(t, "r2 p2 eth_call", requests[1], "another RPC, through another proxy")
				} else {
					require.Len(t, requests, 1)
				}
				time.Sleep(3 * time.Second)
				if name == "slow first" || name == "hung first" {
					require.Empty(t, w.Pool.Reports())
				}
			})
		})
	}
}

// What has effects is never hedged.
func TestEffectsAreNeverHedged(t *testing.T) {
	for _, method := range []string{"eth_sendRawTransaction", "eth_sendTransaction", "sendTransaction", "evm_mine", "personal_sign"} {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			_, _, _ = hedgedCall(t, w, rpcpooltest.Result("0x1").Delay(time.Second), rpcpooltest.Result("0x1"), method)
			require.Len(t, w.Requests(), 1, method)
		})
	}
}

// With one RPC of three slow, the slowest calls take the hedge delay and a normal answer,
// and extra requests stay under the cap.
func TestHedgingCutsTheTail(t *testing.T) {
	const calls, normal = 600, 20 * time.Millisecond
	for _, hedge := range []*rpcpool.Hedge{nil, {Delay: hedgeDelay, MaxExtra: 0.6}, {Delay: hedgeDelay, MaxExtra: 0.1}} {
		t.Run(fmt.Sprint(hedge), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				w.Proxy("p1")
				w.Proxy("p2")
				w.List("1", w.Node("r1", rpcpooltest.Result("0x1").Delay(normal)),
					w.Node("slow", rpcpooltest.Result("0x1").Delay(time.Second)), w.Node("r3", rpcpooltest.Result("0x1").Delay(normal)))
				var opts []rpcpool.ChainOption
				if hedge != nil {
					opts = append(opts, rpcpool.WithHedge(*hedge))
				}
				chain := open(t, w, func(cfg *rpcpool.Config) { cfg.Mode = rpcpool.RoundRobin }).Chain("1", opts...)
				var took []time.Duration
				for range calls {
					start := time.Now()
					_, err := chain.Call(t.Context(), "eth_call")
					require.NoError(t, err)
					took = append(took, time.Since(start))
				}
				slices.Sort(took)
				p99 := took[calls*99/100]
				extra := len(w.Requests()) - calls
				switch {
				case hedge == nil:
					require.Equal(t, time.Second, p99)
				case hedge.MaxExtra == 0.1:
					require.LessOrEqual(t, extra, calls/10+10)
				default:
					require.Equal(t, hedgeDelay+normal, p99)
					require.LessOrEqual(t, extra, calls*6/10+10)
				}
				t.Logf("p99 %v, %d extra requests for %d calls", p99, extra, calls)
			})
		})
	}
}

// The share of calls that needed no second request is kept for ten of them, not for good:
// when all RPCs turn slow, it isn't the load of a thousand calls before that is doubled.
func TestUnusedShareIsKeptForTen(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.Proxy("p2")
		slow := rpcpooltest.Result("0x1").Delay(time.Second).FromStep(1)
		w.List("1", w.Node("r1", slow), w.Node("r2", slow))
		chain := open(t, w).Chain("1", rpcpool.WithHedge(rpcpool.Hedge{Delay: hedgeDelay}))
		call := func(times int) (requests int) {
			before := len(w.Requests())
			for range times {
				_, err := chain.Call(t.Context(), "eth_call")
				require.NoError(t, err)
			}
			return len(w.Requests()) - before
		}
		require.Equal(t, 1000, call(1000))
		w.Network.SetStep(1)
		require.Equal(t, 100+10+4, call(100), "ten kept, and one in twenty; what the first call brings finds no room")
	})
}

// Without a Delay it is what 95 % of answers take that counts: one request in forty that is
// slow is hedged soon after that.
func TestHedgeDelayIsMeasured(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		asked := 0
		var mu sync.Mutex
		w.List("1", w.Node("r1", rpcpooltest.Handle(func(rpcpooltest.Request) rpcpooltest.Reply {
			mu.Lock()
			defer mu.Unlock()
			if asked++; asked%40 == 0 {
				return rpcpooltest.Result("0x1").Delay(10 * time.Second)
			}
			return rpcpooltest.Result("0x1").Delay(20 * time.Millisecond)
		})), w.Node("r2", rpcpooltest.Result("0x1").Delay(20*time.Millisecond)))
		chain := open(t, w).Chain("1", rpcpool.WithHedge(rpcpool.Hedge{}))
		for range 300 {
			start := time.Now()
			_, err := chain.Call(t.Context(), "eth_call")
			require.NoError(t, err)
			require.Less(t, time.Since(start), 50*time.Millisecond)
		}
		require.InDelta(t, 300+300/40, len(w.Requests()), 2)
	})
}

// A hedged call ends with its caller, leaves nothing behind, and a bad Hedge is an error.
func TestHedgeEnds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		p1, p2 := w.Proxy("p1"), w.Proxy("p2")
		w.List("1", w.Node("r1", rpcpooltest.Hang()), w.Node("r2", rpcpooltest.Hang()), w.Node("r3", rpcpooltest.Hang()))
		pool := open(t, w)
		chain := pool.Chain("1", rpcpool.WithHedge(rpcpool.Hedge{Delay: hedgeDelay, MaxExtra: 1}))
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				_, err := chain.Call(within(t, 700*time.Millisecond), "eth_call")
				assert.ErrorIs(t, err, context.DeadlineExceeded)
			})
		}
		wg.Wait()
		for _, s := range chain.Stats() {
			require.False(t, s.Cooling, "%+v", s)
		}
		require.NoError(t, pool.Close())
		nothingLeft(t, w, p1, p2)
	})
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		pool := open(t, w)
		for field, bad := range map[string]rpcpool.Hedge{"Hedge.Delay": {Delay: -1}, "Hedge.MaxExtra": {MaxExtra: 2}} {
			_, err := pool.Chain("1", rpcpool.WithHedge(bad)).Call(t.Context(), "eth_call")
			var unusable *rpcpool.ConfigError
			require.ErrorAs(t, err, &unusable)
			require.Equal(t, field, unusable.Field)
		}
	})
}

// An RPC that hangs costs two hedged calls the delay; then calls begin at the next one, and
// nobody is blamed. One that is slow once keeps its place.
func TestHungRPCIsLeftByHedges(t *testing.T) {
	for name, c := range map[string]struct {
		first []rpcpooltest.Reply
		took  []time.Duration
	}{
		"hangs":     {[]rpcpooltest.Reply{rpcpooltest.Hang()}, []time.Duration{hedgeDelay, hedgeDelay, 0, 0}},
		"slow once": {[]rpcpooltest.Reply{rpcpooltest.Hang().Times(1), rpcpooltest.Result("0x1").Delay(time.Millisecond).Times(1), rpcpooltest.Hang().Times(1), rpcpooltest.Result("0x1").Delay(time.Millisecond)}, []time.Duration{hedgeDelay, time.Millisecond, hedgeDelay, time.Millisecond}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				w.Proxy("p1")
				w.List("1", w.Node("r1", c.first...), w.Node("r2", rpcpooltest.Result("0x1")))
				chain := open(t, w).Chain("1", rpcpool.WithHedge(rpcpool.Hedge{Delay: hedgeDelay, MaxExtra: 1}))
				for i, want := range c.took {
					start := time.Now()
					_, err := chain.Call(t.Context(), "eth_call")
					require.NoError(t, err)
					require.Equal(t, want, time.Since(start), "call %d", i)
				}
				require.False(t, chain.Stats()[0].Cooling)
				time.Sleep(3 * time.Second)
				require.Empty(t, w.Pool.Reports())
			})
		})
	}
}
