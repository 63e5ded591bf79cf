package rpcpool_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
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

// Rule C6: ten workers over three RPCs that can't serve them, and another three that the
// list has when they begin their second round, are sixty requests. Under a budget they are
// as many as it says, whether it ends in the first round or in the second, and the error
// says what ran out.
func TestBudgetOfAttempts(t *testing.T) {
	const workers = 10
	for attempts, spared := range map[int]int{0: workers, 60: workers, 45: 0, 20: 0} {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			w.Proxy("p1")
			three := func(name string) rpcpooltest.PoolReply {
				var nodes []any
				for i := range 3 {
					// It takes so long that the list is old enough in the end to be fetched again.
					nodes = append(nodes, w.Node(fmt.Sprint(name, i), rpcpooltest.Error(-32601, "the method m does not exist").Delay(2*time.Second)))
				}
				return rpcpooltest.PoolList("eip155:1", nodes...)
			}
			w.Pool.Lists("1", three("first").Times(1), three("second"))
			chain := open(t, w, func(cfg *rpcpool.Config) { cfg.Mode = rpcpool.RoundRobin }).Chain("1")
			ctx := t.Context()
			if attempts > 0 {
				ctx = rpcpool.WithBudget(ctx, rpcpool.Budget{Attempts: attempts})
			}
			var wg sync.WaitGroup
			var exhausted atomic.Int64
			for i := range workers {
				wg.Go(func() {
					_, err := chain.Call(ctx, fmt.Sprint("m", i)) // a method each, so that no mark spares a request
					if spent, ok := errors.AsType[*rpcpool.BudgetError](err); ok {
						assert.Equal(t, "attempts", spent.Ran)
						assert.Equal(t, fmt.Sprint(attempts), spent.Limit)
						return
					}
					exhausted.Add(1)
					var none *rpcpool.NoHealthyRPCError
					if assert.ErrorAs(t, err, &none) {
						assert.Len(t, none.Attempts, 6, "two rounds")
					}
				})
			}
			wg.Wait()
			requests := attempts
			if attempts == 0 {
				requests = 60
			}
			require.Len(t, w.Requests(), requests, "under a budget of %d", attempts)
			require.Equal(t, int64(spared), exhausted.Load(), "under a budget of %d", attempts)
			if attempts == 0 {
				return
			}
			_, err := chain.Call(ctx, "one more")
			var spent *rpcpool.BudgetError
			require.ErrorAs(t, err, &spent)
			require.Len(t, w.Requests(), requests)
		})
	}
}

// Rule C6: requests in flight and time are shared as well, and budgets within budgets both
// hold.
func TestBudgetOfPlacesAndTime(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1", w.Node("r1", rpcpooltest.Result("0x1").Delay(time.Second)))
		chain := open(t, w).Chain("1")
		outer := rpcpool.WithBudget(t.Context(), rpcpool.Budget{InFlight: 2})
		ctx := rpcpool.WithBudget(outer, rpcpool.Budget{Time: 3500 * time.Millisecond, Attempts: 100})
		start := time.Now()
		var wg sync.WaitGroup
		var mu sync.Mutex
		ok := 0
		for range 10 {
			wg.Go(func() {
				_, err := chain.Call(ctx, "eth_blockNumber")
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					ok++
					return
				}
				var spent *rpcpool.BudgetError
				if assert.ErrorAs(t, err, &spent) {
					assert.Equal(t, "time", spent.Ran)
					assert.ErrorIs(t, err, context.DeadlineExceeded)
				}
			})
		}
		wg.Wait()
		require.Equal(t, 6, ok, "two at a time, three seconds")
		require.Equal(t, 3500*time.Millisecond, time.Since(start))
		require.False(t, chain.Stats()[0].Cooling)
	})
}

// Rule C6: Config.MaxRequests bounds the requests of a whole pool.
func TestMaxRequests(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1", w.Node("r1", rpcpooltest.Result("0x1").Delay(time.Second)))
		w.List("2", w.Node("r2", rpcpooltest.Result("0x1").Delay(time.Second)))
		pool := open(t, w, func(cfg *rpcpool.Config) { cfg.MaxRequests = 3 })
		start := time.Now()
		var wg sync.WaitGroup
		for i := range 12 {
			wg.Go(func() {
				_, err := pool.Chain([]string{"1", "2"}[i%2]).Call(t.Context(), "eth_blockNumber")
				assert.NoError(t, err)
			})
		}
		wg.Wait()
		require.Equal(t, 4*time.Second, time.Since(start))
	})
}

// Rule C6: what waits for its share of a budget keeps no place that all are waiting for.
func TestBudgetComesBeforeThePool(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1", w.Node("r1", rpcpooltest.Result("0x1").Delay(10*time.Second)))
		chain := open(t, w, func(cfg *rpcpool.Config) { cfg.MaxRequests = 4 }).Chain("1")
		ctx := rpcpool.WithBudget(t.Context(), rpcpool.Budget{InFlight: 1})
		var queued sync.WaitGroup
		for range 5 {
			queued.Go(func() {
				_, err := chain.Call(ctx, "eth_slow")
				assert.NoError(t, err)
			})
		}
		time.Sleep(time.Second)
		start := time.Now()
		_, err := chain.Call(t.Context(), "eth_blockNumber")
		require.NoError(t, err)
		require.Equal(t, 10*time.Second, time.Since(start), "it had a place at once")
		queued.Wait()
	})
}

// Rule C6: only requests that are made are counted: not those that an outer budget has no
// share for, or whose caller left while it waited for a place.
func TestBudgetCountsWhatIsMade(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1", w.Node("r1", rpcpooltest.Result("0x1").Delay(time.Second)))
		chain := open(t, w, func(cfg *rpcpool.Config) { cfg.MaxRequests = 1 }).Chain("1")
		outer := rpcpool.WithBudget(t.Context(), rpcpool.Budget{Attempts: 3})
		inner := rpcpool.WithBudget(outer, rpcpool.Budget{Attempts: 1})
		var other sync.WaitGroup
		other.Go(func() {
			_, err := chain.Call(t.Context(), "eth_slow")
			assert.NoError(t, err)
		})
		synctest.Wait()
		left, leave := context.WithTimeout(inner, time.Second/2)
		defer leave()
		_, err := chain.Call(left, "eth_blockNumber")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		other.Wait()
		for _, c := range []struct {
			ctx context.Context
			ok  bool
		}{{inner, true}, {inner, false}, {outer, true}, {outer, true}, {outer, false}} {
			_, err := chain.Call(c.ctx, "eth_blockNumber")
			var spent *rpcpool.BudgetError
			require.Equal(t, !c.ok, errors.As(err, &spent), "%v", err)
		}
		require.Len(t, w.Requests(), 4, "one of them the other caller's")
	})
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1", w.Node("r1"))
		chain := open(t, w).Chain("1")
		outer := rpcpool.WithBudget(t.Context(), rpcpool.Budget{Attempts: 1})
		inner := rpcpool.WithBudget(outer, rpcpool.Budget{Attempts: 2})
		_, err := chain.Call(outer, "eth_blockNumber")
		require.NoError(t, err)
		for range 5 {
			_, err = chain.Call(inner, "eth_blockNumber")
			var spent *rpcpool.BudgetError
			require.ErrorAs(t, err, &spent)
			require.Equal(t, "1", spent.Limit, "it is the outer one that has run out")
		}
	})
}

// Rule C6: a call that the outer budget has no request left for keeps no place of the inner
// one: the next one is told so at once, too.
func TestRefusedCallKeepsNoPlace(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1", w.Node("r1"))
		chain := open(t, w).Chain("1")
		outer := rpcpool.WithBudget(within(t, time.Minute), rpcpool.Budget{Attempts: 1})
		inner := rpcpool.WithBudget(outer, rpcpool.Budget{InFlight: 1})
		start := time.Now()
		_, err := chain.Call(inner, "eth_blockNumber")
		require.NoError(t, err)
		for range 2 {
			_, err = chain.Call(inner, "eth_blockNumber")
			var spent *rpcpool.BudgetError
			require.ErrorAs(t, err, &spent)
			require.Equal(t, "attempts", spent.Ran)
			require.Zero(t, time.Since(start))
		}
	})
}

// Rule C6: nor does one that the inner budget has none left for keep the outer one's, or one
// whose caller leaves while it waits for the pool's.
func TestRefusedCallKeepsNoOtherPlace(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1", w.Node("r1", rpcpooltest.Result("0x1").Delay(time.Second)))
		chain := open(t, w, func(cfg *rpcpool.Config) { cfg.MaxRequests = 1 }).Chain("1")
		outer := rpcpool.WithBudget(within(t, time.Minute), rpcpool.Budget{InFlight: 1})
		inner := rpcpool.WithBudget(outer, rpcpool.Budget{Attempts: 1})
		_, err := chain.Call(inner, "eth_blockNumber")
		require.NoError(t, err)
		_, err = chain.Call(inner, "eth_blockNumber")
		var spent *rpcpool.BudgetError
		require.ErrorAs(t, err, &spent)
		require.NotErrorIs(t, err, context.DeadlineExceeded, "it isn't time that ran out")
		_, err = chain.Call(outer, "eth_blockNumber")
		require.NoError(t, err)

		var other sync.WaitGroup
		other.Go(func() {
			_, err := chain.Call(t.Context(), "eth_slow")
			assert.NoError(t, err)
		})
		synctest.Wait()
		left, leave := context.WithTimeout(outer, time.Second/2)
		defer leave()
		_, err = chain.Call(left, "eth_blockNumber")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		other.Wait()
		_, err = chain.Call(outer, "eth_blockNumber")
		require.NoError(t, err)
	})
}

// Rule C6: of two budgets' times, and the caller's own, the one that is over first ends the
// call and is told.
func TestWhoseTimeIsOver(t *testing.T) {
	for _, c := range []struct{ outer, inner, own time.Duration }{
		{time.Second, 9 * time.Second, 5 * time.Second},
		{9 * time.Second, time.Second, 5 * time.Second},
		{time.Second, 0, 5 * time.Second},
		{9 * time.Second, 5 * time.Second, time.Second},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				w.Proxy("p1")
				w.List("1", w.Node("r1", rpcpooltest.Hang()))
				ctx := rpcpool.WithBudget(within(t, c.own), rpcpool.Budget{Time: c.outer})
				ctx = rpcpool.WithBudget(ctx, rpcpool.Budget{Time: c.inner})
				start := time.Now()
				_, err := open(t, w).Chain("1").Call(ctx, "eth_blockNumber")
				require.Equal(t, time.Second, time.Since(start))
				require.ErrorIs(t, err, context.DeadlineExceeded)
				var spent *rpcpool.BudgetError
				require.Equal(t, c.own > time.Second, errors.As(err, &spent), "%v", err)
				if spent != nil {
					require.Equal(t, "time", spent.Ran)
					require.Equal(t, "1s", spent.Limit)
				}
			})
		})
	}
}

// Rule C6: the error of a spent budget tells of the attempts that the call made before.
func TestSpentBudgetTellsOfTheAttempts(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1", w.Node("r1", rpcpooltest.Status(500)), w.Node("r2"))
		_, err := open(t, w).Chain("1").Call(rpcpool.WithBudget(t.Context(), rpcpool.Budget{Attempts: 1}), "eth_blockNumber")
		var spent *rpcpool.BudgetError
		require.ErrorAs(t, err, &spent)
		require.Len(t, spent.Attempts, 1)
		require.ErrorContains(t, err, "http://r1.test/***")
	})
}

// Rules A7.1, C6: where the budget has no request left for the check of a proxy, none is made.
func TestCheckThatNobodyPaysFor(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1", w.Node("r1", rpcpooltest.Reset()), w.Node("r2", rpcpooltest.Reset()), w.Node("r3", rpcpooltest.Reset()))
		check := w.Node("c1")
		chain := open(t, w, func(cfg *rpcpool.Config) { cfg.MaxRounds, cfg.ProxyCheckURL = 1, check.URL() }).Chain("1")
		_, err := chain.Call(rpcpool.WithBudget(t.Context(), rpcpool.Budget{Attempts: 3}), "eth_blockNumber")
		var own rpcpool.Error
		require.ErrorAs(t, err, &own)
		time.Sleep(time.Second)
		require.Empty(t, check.Requests())
		require.Len(t, w.Requests(), 3)
	})
}

// Rules A5.3, C6: a kept connection that died is nobody's fault, also where the budget has
// no request left to repeat it by.
func TestSpentBudgetBlamesNobody(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1", w.Node("r1", rpcpooltest.Result("0x1").Times(1), rpcpooltest.Close().Times(1), rpcpooltest.Result("0x1")), w.Node("r2"))
		chain := open(t, w).Chain("1")
		ctx := rpcpool.WithBudget(t.Context(), rpcpool.Budget{Attempts: 2})
		_, err := chain.Call(ctx, "eth_blockNumber")
		require.NoError(t, err)
		_, err = chain.Call(ctx, "eth_blockNumber")
		var spent *rpcpool.BudgetError
		require.ErrorAs(t, err, &spent)
		require.Len(t, w.Requests(), 2)
		require.False(t, chain.Stats()[0].Cooling)
		require.Zero(t, chain.Stats()[0].Ejections)
		_, err = chain.Call(t.Context(), "eth_blockNumber")
		require.NoError(t, err)
	})
}

// Rule C6: the check of a proxy that several calls wait for is one request, which the budget
// pays for once.
func TestSharedCheckIsPaidOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		reset := rpcpooltest.Reset().Delay(time.Second)
		w.List("1", w.Node("r1", reset), w.Node("r2", reset), w.Node("r3", reset))
		w.List("2", w.Node("good"))
		check := w.Node("c1", rpcpooltest.Result("0x1").Delay(time.Second))
		pool := open(t, w, func(cfg *rpcpool.Config) { cfg.MaxRounds, cfg.Mode, cfg.ProxyCheckURL = 1, rpcpool.Sticky, check.URL() })
		ctx := rpcpool.WithBudget(t.Context(), rpcpool.Budget{Attempts: 3 + 3 + 1 + 1})
		var callers sync.WaitGroup
		for range 2 {
			callers.Go(func() {
				_, err := pool.Chain("1").Call(ctx, "eth_blockNumber")
				var none *rpcpool.NoHealthyRPCError
				assert.ErrorAs(t, err, &none)
			})
		}
		callers.Wait()
		require.Len(t, check.Requests(), 1)
		require.Len(t, w.Requests(), 3+3+1)
		_, err := pool.Chain("2").Call(ctx, "eth_blockNumber")
		require.NoError(t, err, "there is one request left")
		_, err = pool.Chain("2").Call(ctx, "eth_blockNumber")
		var spent *rpcpool.BudgetError
		require.ErrorAs(t, err, &spent, "and no other")
	})
}

// Rule C6: every request of a function given to Run counts.
func TestBudgetOfAFunction(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1", w.Node("r1"), w.Node("r2"))
		chain, made := open(t, w).Chain("1"), 0
		ctx := rpcpool.WithBudget(t.Context(), rpcpool.Budget{Attempts: 3})
		err := chain.Run(ctx, func(ctx context.Context, url string, client *http.Client) error {
			for range 5 {
				if err := postOnce(ctx, url, client); err != nil {
					return err
				}
				made++
			}
			return nil
		})
		var spent *rpcpool.BudgetError
		require.ErrorAs(t, err, &spent)
		require.Equal(t, 3, made)
		require.Len(t, w.Requests(), 3)
		require.False(t, chain.Stats()[0].Cooling)
	})
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) { // within another, of which it takes what it makes
		w.Proxy("p1")
		w.List("1", w.Node("r1"))
		chain := open(t, w).Chain("1")
		outer := rpcpool.WithBudget(t.Context(), rpcpool.Budget{Attempts: 3})
		err := chain.Run(rpcpool.WithBudget(outer, rpcpool.Budget{Attempts: 1}), func(ctx context.Context, url string, client *http.Client) error {
			return errors.Join(postOnce(ctx, url, client), postOnce(ctx, url, client), postOnce(ctx, url, client))
		})
		var spent *rpcpool.BudgetError
		require.ErrorAs(t, err, &spent)
		for _, ok := range []bool{true, true, false} {
			_, err = chain.Call(outer, "eth_blockNumber")
			require.Equal(t, ok, err == nil, "%v", err)
		}
	})
}

// Rule C6: a batch whose elements have to wait for places comes to its end, and they wait
// for nothing else: not for each other's lanes, nor to travel with those that wait.
func TestBoundedBatches(t *testing.T) {
	for name, bound := range map[string]struct{ pool, budget int }{"the pool's": {pool: 4}, "a budget's": {budget: 4}} {
		for _, batches := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, an RPC that takes batches: %v", name, batches), func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
					w.Proxy("p1")
					w.List("1", w.Node("r1", rpcpooltest.Handle(func(q rpcpooltest.Request) rpcpooltest.Reply {
						if !batches && inBatch(q) {
							return rpcpooltest.Status(400).Text("no batches")
						}
						return giveBack(q).Delay(10 * time.Millisecond)
					})))
					ctx := rpcpool.WithBudget(within(t, time.Hour), rpcpool.Budget{InFlight: bound.budget})
					pool := open(t, w, func(cfg *rpcpool.Config) { cfg.MaxRequests = bound.pool })
					batch := elems(600)
					start := time.Now()
					require.NoError(t, pool.Chain("1").BatchCallContext(ctx, batch))
					requireEchoed(t, batch)
					// Four at a time, 10 ms each, and a few that scout for the others. Of four whose
					// places come free one after another not all travel together.
					// But waiting for company every time would take six times as long.
					longest := 600/4*10*time.Millisecond + 100*time.Millisecond
					if batches {
						longest *= 3
					}
					require.LessOrEqual(t, time.Since(start), longest)
				})
			})
		}
	}
}
