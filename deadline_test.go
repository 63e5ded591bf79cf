package rpcpool_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// Rule C1: an RPC that hangs gets half of what a nearer deadline leaves; the next one
// answers well within it. The hung one isn't cooled nor reported, and in every mode the
// next call doesn't begin at it again.
func TestHungRPCDoesNotEatTheCall(t *testing.T) {
	for _, mode := range []rpcpool.Mode{rpcpool.Sticky, rpcpool.RoundRobin, rpcpool.LeastOutstanding} {
		for name, hang := range map[string]rpcpooltest.Reply{"no answer": rpcpooltest.Hang(), "half an answer": rpcpooltest.HangInBody()} {
			t.Run(mode.String()+"/"+name, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
					w.Proxy("p1")
					hung := w.Node("hung", hang)
					w.List("1", hung, w.Node("r2"), w.Node("r3"))
					chain := open(t, w, func(cfg *rpcpool.Config) { cfg.Mode = mode }).Chain("1")
					start := time.Now()
					_, err := chain.Call(within(t, 5*time.Second), "eth_blockNumber")
					require.NoError(t, err)
					require.Equal(t, 2500*time.Millisecond, time.Since(start))
					stats := chain.Stats()[0]
					require.False(t, stats.Cooling)
					require.Zero(t, stats.FailuresInRow)
					start = time.Now()
					_, err = chain.Call(within(t, 5*time.Second), "eth_blockNumber")
					require.NoError(t, err)
					require.Zero(t, time.Since(start), "it began at the hung one again")
					require.Len(t, hung.Requests(), 1)
					time.Sleep(5 * time.Second)
					require.Empty(t, w.Pool.Reports())
				})
			})
		}
	}
}

// Rule C1: with a deadline that isn't nearer than Timeout an attempt has all its time, and
// an RPC that hangs is blamed; the only candidate has all the time there is; no attempt has
// less than 250 ms where there are so many.
func TestShareOfAnAttempt(t *testing.T) {
	for _, c := range []struct {
		deadline time.Duration
		hung     int
		want     []time.Duration // of the attempts
		cools    bool
	}{
		{20 * time.Second, 1, []time.Duration{15 * time.Second}, true},
		{15500 * time.Millisecond, 1, []time.Duration{7750 * time.Millisecond}, false}, // a full one would leave too little
		{10 * time.Second, 2, []time.Duration{5 * time.Second, 2500 * time.Millisecond}, false},
		{600 * time.Millisecond, 2, []time.Duration{300 * time.Millisecond, 250 * time.Millisecond}, false},
	} {
		t.Run(c.deadline.String(), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				w.Proxy("p1")
				var nodes []*rpcpooltest.Node
				for i := range c.hung {
					nodes = append(nodes, w.Node(fmt.Sprint("hung", i), rpcpooltest.Hang()))
				}
				w.List("1", append(nodes, w.Node("good"))...)
				chain := open(t, w).Chain("1")
				start := time.Now()
				_, err := chain.Call(within(t, c.deadline), "eth_blockNumber")
				require.NoError(t, err)
				want := time.Duration(0)
				for _, each := range c.want {
					want += each
				}
				require.Equal(t, want, time.Since(start))
				require.Equal(t, c.cools, chain.Stats()[0].Cooling)
			})
		})
	}
	t.Run("the only one", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			w.Proxy("p1")
			w.List("1", w.Node("slow", rpcpooltest.Result("0x1").Delay(4*time.Second)))
			_, err := open(t, w).Chain("1").Call(within(t, 5*time.Second), "eth_blockNumber")
			require.NoError(t, err)
		})
	})
}

// Rule C1: the only RPC has all the time that an attempt may take, and not more: when that is
// over it is blamed, although its caller has a moment left.
func TestShareOfTheOnlyOne(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1", w.Node("hung", rpcpooltest.Hang()))
		chain := open(t, w, func(cfg *rpcpool.Config) { cfg.MaxRounds, cfg.ProxyCheckURL = 1, w.Node("c1").URL() }).Chain("1")
		start := time.Now()
		_, err := chain.Call(within(t, 15500*time.Millisecond), "eth_blockNumber")
		var none *rpcpool.NoHealthyRPCError
		require.ErrorAs(t, err, &none)
		require.Equal(t, 15*time.Second, time.Since(start))
		require.True(t, chain.Stats()[0].Cooling)
	})
}

// Rule C1: it is hurried attempts in a row that take the current proxy's place from it: an
// answer through it in between wipes out those before.
func TestHurriedAttemptsInARow(t *testing.T) {
	for _, answered := range []bool{true, false} {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			w.Proxy("p1")
			w.Proxy("p2")
			hang, ok := rpcpooltest.Hang(), rpcpooltest.Result("0x1")
			w.List("1", w.Node("r1", hang.ToStep(0), ok), w.Node("r2", ok.ToStep(1), hang.ToStep(2), ok), w.Node("r3", ok))
			chain := open(t, w).Chain("1")
			call := func(step int) {
				w.Network.SetStep(step)
				_, err := chain.Call(within(t, 4*time.Second), "eth_blockNumber")
				require.NoError(t, err)
			}
			call(0)
			if answered {
				call(1)
			}
			call(2)
			before := len(w.Requests())
			call(3)
			require.Equal(t, map[bool]string{true: "r3 p1 eth_blockNumber", false: "r3 p2 eth_blockNumber"}[answered], w.Requests()[before])
		})
	}
}

// Rule C1: the elements of a batch that travel together have the time of the one that has the
// least: an RPC that hangs isn't blamed for what one with more time would have blamed it for.
func TestShareOfABatch(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1",
			w.Node("r1", rpcpooltest.Result("0x1").ToStep(0), rpcpooltest.Hang()),
			w.Node("r2", rpcpooltest.Error(-32601, "the method my_x does not exist").Method("my_x")))
		chain := open(t, w, roundRobin).Chain("1")
		for range 4 {
			_, err := chain.Call(t.Context(), "my_x")
			require.NoError(t, err)
		}
		w.Network.SetStep(1)
		for range 2 { // only r1 has my_x, so that its element alone has all the time
			_ = chain.BatchCallContext(within(t, 5*time.Second), []rpcpool.BatchElem{{Method: "my_x"}, {Method: "eth_blockNumber"}, {Method: "eth_gasPrice"}})
		}
		stats := chain.Stats()[0]
		require.False(t, stats.Cooling)
		require.Zero(t, stats.Ejections)
		require.Zero(t, stats.FailuresInRow)
		hung := 0
		for _, each := range w.Network.Exchanges() {
			if each.Node == "r1" && each.Method == "batch" {
				hung++
			}
		}
		require.NotZero(t, hung, "nothing travelled together")
	})
}

// Rule C1: attempts that were cut short are no evidence, so that as long as there is time
// there is another round, whatever MaxRounds says.
func TestRoundsGoOnWhileThereIsTime(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1", w.Node("r1", rpcpooltest.Hang().Times(2), rpcpooltest.Result("0x1")), w.Node("r2", rpcpooltest.Hang()))
		chain := open(t, w, func(cfg *rpcpool.Config) { cfg.MaxRounds = 1 }).Chain("1")
		_, err := chain.Call(within(t, 10*time.Second), "eth_blockNumber")
		require.NoError(t, err)
	})
}

// Rule C1: a pool that hangs and a proxy's check that hangs leave time for the attempts.
func TestWaitsComeOutOfTheDeadline(t *testing.T) {
	t.Run("the list", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			w.Proxy("p1")
			w.List("1", w.Node("r1"))
			chain := open(t, w).Chain("1")
			_, err := chain.Call(t.Context(), "eth_blockNumber")
			require.NoError(t, err)
			w.Pool.Lists("1", rpcpooltest.PoolHang())
			time.Sleep(700 * time.Second)
			start := time.Now()
			_, err = chain.Call(within(t, 4*time.Second), "eth_blockNumber")
			require.NoError(t, err)
			require.Equal(t, 2*time.Second, time.Since(start))
		})
	})
	t.Run("the check of a proxy", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			w.Proxy("p1")
			var nodes []*rpcpooltest.Node
			for i := range 3 {
				nodes = append(nodes, w.Node(fmt.Sprint("r", i), rpcpooltest.Reset()))
			}
			w.List("1", append(nodes, w.Node("good"))...)
			chain := open(t, w, func(cfg *rpcpool.Config) { cfg.ProxyCheckURL = w.Node("c1", rpcpooltest.Hang()).URL() }).Chain("1")
			start := time.Now()
			_, err := chain.Call(within(t, 4*time.Second), "eth_blockNumber")
			require.NoError(t, err)
			require.Equal(t, 2*time.Second, time.Since(start))
		})
	})
	t.Run("a proxy that swallows", func(t *testing.T) { // which can't be told from an RPC that hangs
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			w.Proxy("p1", rpcpooltest.ProxyBlackHole())
			w.Proxy("p2")
			w.List("1", w.Node("r1"), w.Node("r2"), w.Node("r3"))
			pool := open(t, w)
			for _, want := range []time.Duration{2 * time.Second, 2 * time.Second, 0, 0} {
				start := time.Now()
				_, err := pool.Chain("1").Call(within(t, 4*time.Second), "eth_blockNumber")
				require.NoError(t, err)
				require.Equal(t, want, time.Since(start))
			}
		})
	})
	t.Run("a proxy that hangs", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			w.Proxy("p1", rpcpooltest.ProxyHang())
			w.Proxy("p2")
			w.List("1", w.Node("r1"), w.Node("r2"))
			pool := open(t, w)
			start := time.Now()
			_, err := pool.Chain("1").Call(within(t, 4*time.Second), "eth_blockNumber")
			require.NoError(t, err)
			require.Equal(t, 2*time.Second, time.Since(start))
			require.False(t, pool.ProxyStats()[0].Cooling, "it wasn't given its time")
		})
	})
}

// Rule C1: 1,000 callers with deadlines from 50 ms to 20 s over RPCs of which half hang:
// each ends at its deadline at the latest, none fails while there is time, and no RPC that
// answers is cooled.
func TestImpatientCallers(t *testing.T) {
	t.Parallel() // it takes a core for long
	for _, mode := range []rpcpool.Mode{rpcpool.Sticky, rpcpool.RoundRobin, rpcpool.LeastOutstanding} {
		t.Run(mode.String(), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				callers := 1000
				if underRace {
					callers = 200
				}
				w.Network.SetRecording(false)
				w.Proxy("p1")
				w.Proxy("p2")
				var nodes []*rpcpooltest.Node
				for i := range 8 {
					reply := rpcpooltest.Result("0x1").Delay(30 * time.Millisecond)
					if i%2 == 0 {
						reply = rpcpooltest.Hang()
					}
					nodes = append(nodes, w.Node(fmt.Sprint("r", i), reply))
				}
				w.List("1", nodes...)
				chain := open(t, w, func(cfg *rpcpool.Config) {
					cfg.Mode, cfg.ProxyCheckURL = mode, w.Node("c1").URL()
				}).Chain("1")
				random := rand.New(rand.NewPCG(1, 7))
				var wg sync.WaitGroup
				answered, early := 0, 0
				var mu sync.Mutex
				for range callers {
					deadline := 50*time.Millisecond + time.Duration(random.Int64N(int64(19950*time.Millisecond)))
					begin := time.Duration(random.Int64N(int64(10 * time.Second)))
					wg.Go(func() {
						time.Sleep(begin)
						ctx, cancel := context.WithTimeout(t.Context(), deadline)
						defer cancel()
						start := time.Now()
						_, err := chain.Call(ctx, "eth_blockNumber")
						took := time.Since(start)
						assert.LessOrEqual(t, took, deadline)
						if err != nil {
							assert.ErrorIs(t, err, context.DeadlineExceeded, "%v of %v", took, deadline)
							assert.Equal(t, deadline, took, "it gave up early")
						}
						mu.Lock()
						defer mu.Unlock()
						if err == nil {
							answered++
						} else if deadline > 2*time.Second {
							early++
							t.Logf("%v: %v", deadline, err)
						}
					})
				}
				wg.Wait()
				t.Logf("%d of %d answered", answered, callers)
				require.Zero(t, early, "calls with two seconds and more that weren't answered")
				for i, s := range chain.Stats() {
					require.True(t, i%2 == 0 || s.FailuresInRow == 0 && s.Ejections == 0, "%+v", s)
				}
			})
		})
	}
}
