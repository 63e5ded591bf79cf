package rpcpool_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

func chainOf12s() *rpcpooltest.EVM {
	evm := rpcpooltest.NewEVM(1, 1000)
	evm.SetBlockTime(testBlockTime)
	return evm
}

func freshOn(t *testing.T, w *rpcpooltest.World, f rpcpool.Freshness, change ...func(*rpcpool.Config)) *rpcpool.Chain {
	return open(t, w, change...).Chain("1", rpcpool.WithFreshness(f))
}

func roundRobin(cfg *rpcpool.Config) { cfg.Mode = rpcpool.RoundRobin }

func listedAt(n *rpcpooltest.Node, height uint64) rpcpooltest.Listed {
	e := rpcpooltest.List(n)
	e.Height = height
	return e
}

func balance(t *testing.T, chain *rpcpool.Chain) (json.RawMessage, error) {
	return chain.Call(t.Context(), "eth_getBalance", someAccount, "latest")
}

// everySecond, in its bubble, reads the latest balance n times and tells how many reads were refused and how many were more than two blocks old.
func everySecond(t *testing.T, evm *rpcpooltest.EVM, chain *rpcpool.Chain, n int) (refused, stale int, worst uint64) {
	for range n {
		if raw, err := balance(t, chain); err != nil {
			refused++
		} else if got, head := number(t, raw), evm.Head(); got+2 < head {
			stale, worst = stale+1, max(worst, head-got)
		}
		time.Sleep(time.Second)
	}
	return refused, stale, worst
}

// warmUp, in its bubble, reads until the head is at a block.
func warmUp(t *testing.T, evm *rpcpooltest.EVM, chain *rpcpool.Chain, head uint64) {
	for evm.Head() < head {
		latestBalance(t, chain)
		time.Sleep(testBlockTime / 4)
	}
	latestBalance(t, chain)
}

// As a last resort an RPC that cools is waited for and tried, where another call was at it.
func TestLastResortTakesItsTurn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1",
			w.Node("r1", rpcpooltest.Error(3, "execution reverted").Delay(time.Second).Method("eth_a"), rpcpooltest.Status(500)),
			w.Node("r2", rpcpooltest.Status(500).Delay(2*time.Second)))
		chain := open(t, w, func(cfg *rpcpool.Config) { cfg.MaxInFlight, cfg.LastResort, cfg.MaxRounds = 1, true, 1 }).Chain("1")
		_, err := chain.Call(t.Context(), "eth_b")
		require.Error(t, err)
		time.Sleep(time.Second)
		go func() { _, _ = chain.Call(t.Context(), "eth_a") }()
		time.Sleep(10 * time.Millisecond)
		_, err = chain.Call(within(t, time.Hour), "eth_b")
		var nobody *rpcpool.NoHealthyRPCError
		require.ErrorAs(t, err, &nobody)
		require.Len(t, nobody.Attempts, 2, "%v", err)
	})
}

// Nobody waits for a turn at an RPC that is free and left alone: there is nobody at it who
// could pass one on.
func TestNoTurnIsAwaitedInVain(t *testing.T) {
	for _, resort := range []bool{false, true} {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			w.Proxy("p1")
			w.List("1",
				w.Node("r1", rpcpooltest.Status(500).Delay(10*time.Second)),
				w.Node("r2", rpcpooltest.Status(500).Delay(12*time.Second)),
				w.Node("r3", rpcpooltest.Result("0x1").Method("eth_a"), rpcpooltest.Status(500)))
			chain := open(t, w, func(cfg *rpcpool.Config) { cfg.MaxInFlight, cfg.MaxRounds, cfg.LastResort = 1, 1, resort }).Chain("1")
			var first sync.WaitGroup
			first.Go(func() { _, _ = chain.Call(t.Context(), "eth_a") })
			time.Sleep(10 * time.Millisecond)
			began := time.Now()
			_, err := chain.Call(t.Context(), "eth_b")
			var nobody *rpcpool.NoHealthyRPCError
			require.ErrorAs(t, err, &nobody)
			require.Less(t, time.Since(began), time.Minute)
			first.Wait()
		})
	}
}

// Rule B10: a call that was woken for its turn and finds nothing to enter passes the turn on.
func TestNoTurnIsLost(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1", w.Node("r1", rpcpooltest.Status(503).Delay(time.Second)))
		chain := open(t, w, func(cfg *rpcpool.Config) { cfg.MaxInFlight = 1 }).Chain("1")
		ctx, cancel := context.WithCancel(context.Background())
		var ended atomic.Int64
		var callers sync.WaitGroup
		for range 5 {
			callers.Go(func() { _, _ = chain.Call(ctx, "eth_blockNumber"); ended.Add(1) })
		}
		time.Sleep(time.Hour)
		assert.Equal(t, int64(5), ended.Load(), "calls that ended within an hour")
		cancel()
		callers.Wait()
	})
}

// Rule B10: who waits for a turn at one RPC doesn't walk round and round because of another that was passed over.
func TestWaitingForATurnCostsNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) { // where a call that spins hangs for good
		w.Proxy("p1")
		evm := rpcpooltest.NewEVM(1, 1000)
		slow := rpcpooltest.Handle(func(q rpcpooltest.Request) rpcpooltest.Reply {
			if q.Method == "eth_getBalance" {
				return evm.Answer(q).Delay(time.Second)
			}
			return evm.Answer(q)
		})
		w.List("1", w.Node("behind", evm.Serve(rpcpooltest.Lagging(2))), w.Node("fresh", slow))
		chain := freshOn(t, w, rpcpool.Freshness{BlockTime: testBlockTime}, func(cfg *rpcpool.Config) { cfg.MaxInFlight = 1 })
		latestBalance(t, chain)
		var callers sync.WaitGroup
		for range 2 {
			callers.Go(func() { _, err := balance(t, chain); assert.NoError(t, err) })
		}
		callers.Wait()
	})
}

// A large batch over an RPC without batches, with MaxInFlight: turns and lanes aren't waited for in a circle.
func TestBatchWithTurnsEnds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		r1 := w.Node("r1", rpcpooltest.Handle(func(q rpcpooltest.Request) rpcpooltest.Reply {
			if strings.HasPrefix(strings.TrimSpace(string(q.Body)), "[") {
				return rpcpooltest.Status(400) // it takes no batches
			}
			return rpcpooltest.Result("0x1").Delay(10 * time.Millisecond)
		}))
		// A list that is fetched makes the interleaving certain: an element that has its
		// lane waits for it, while others, without one, get the turns.
		w.Pool.Lists("1", rpcpooltest.PoolList("eip155:1", r1).Delay(20*time.Millisecond))
		chain := open(t, w, func(cfg *rpcpool.Config) { cfg.MaxInFlight, cfg.RefreshInterval = 2, time.Millisecond }).Chain("1")
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		elems := make([]rpcpool.BatchElem, 900)
		for i := range elems {
			elems[i].Method = "eth_blockNumber"
		}
		began := time.Now()
		assert.NoError(t, chain.BatchCallContext(ctx, elems), "after %s", time.Since(began))
	})
}

// Rule B3: a log query from a number up to the latest block is a latest read.
func TestLogsUpToTheLatestAreGated(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		evm := chainOf12s()
		w.List("1", w.Node("r1", evm.Serve(rpcpooltest.StuckAt(1005))), w.Node("r2", evm.Serve()), w.Node("r3", evm.Serve()))
		chain := freshOn(t, w, rpcpool.Freshness{})
		warmUp(t, evm, chain, 1005)
		time.Sleep(10 * time.Minute)
		for _, filter := range []map[string]string{{"fromBlock": "0x3d0", "toBlock": "latest"}, {"fromBlock": "0x3d0"}} {
			raw, err := chain.Call(t.Context(), "eth_getLogs", filter)
			require.NoError(t, err)
			var logs []struct{ BlockNumber json.RawMessage }
			require.NoError(t, json.Unmarshal(raw, &logs))
			assert.Equal(t, evm.Head(), number(t, logs[len(logs)-1].BlockNumber), "%v", filter)
		}
	})
}

// Rules B3, B7: a question that got no answer isn't taken for one, whatever it failed by.
func TestQuestionThatFailedIsAskedAgain(t *testing.T) {
	for _, how := range []string{"dead proxy", "403 through p1"} {
		t.Run(how, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				p1 := w.Proxy("p1")
				w.Proxy("p2")
				evm := chainOf12s()
				script := []rpcpooltest.Reply{evm.Serve().ToStep(0)}
				if how != "dead proxy" {
					script = append(script, rpcpooltest.Status(403).Via("p1"))
				}
				w.List("1", w.Node("r1", append(script, evm.Serve(rpcpooltest.StuckAt(1004)))...), w.Node("r2", evm.Serve()), w.Node("r3", evm.Serve()))
				chain := freshOn(t, w, rpcpool.Freshness{})
				warmUp(t, evm, chain, 1004)
				w.Network.SetStep(1)
				time.Sleep(10 * testBlockTime)
				if how == "dead proxy" {
					p1.Kill()
				}
				assert.Equal(t, evm.Head(), latestBalance(t, chain))
			})
		})
	}
	t.Run("trial", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			p1 := w.Proxy("p1")
			w.Proxy("p2")
			evm := chainOf12s()
			w.List("1", w.Node("r1", evm.Serve().ToStep(0), rpcpooltest.Status(503).ToStep(1), evm.Serve(rpcpooltest.Lagging(100))))
			chain := freshOn(t, w, rpcpool.Freshness{})
			warmUp(t, evm, chain, 1004)
			w.Network.SetStep(1)
			_, err := balance(t, chain)
			var none *rpcpool.NoHealthyRPCError
			require.ErrorAs(t, err, &none)
			w.Network.SetStep(2)
			time.Sleep(61 * time.Second)
			p1.Kill()
			_, err = balance(t, chain)
			var stale *rpcpool.StaleError
			assert.ErrorAs(t, err, &stale, "a node 100 blocks behind was admitted, its trial counted as passed")
		})
	})
}

// Rule B2: that witnesses answered some time ago, or are busy, doesn't make a liar the only one.
func TestContradictedLiarIsNotBelieved(t *testing.T) {
	t.Run("a witness hangs", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			w.Proxy("p1")
			evm := chainOf12s()
			w.List("1", w.Node("liar", evm.Serve(rpcpooltest.Boasting(1<<40))), w.Node("h1", evm.Serve()), w.Node("h2", evm.Serve()), w.Node("hung", rpcpooltest.Hang()))
			chain := freshOn(t, w, rpcpool.Freshness{})
			raw, err := chain.Call(t.Context(), "eth_blockNumber")
			require.NoError(t, err)
			assert.InDelta(t, evm.Head(), number(t, raw), 2, "%v", w.Requests())
		})
	})
	t.Run("the witnesses are busy", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			w.Proxy("p1")
			evm := chainOf12s()
			send := rpcpooltest.Error(-32000, "nonce too low").Method("eth_sendRawTransaction").Delay(5 * time.Second)
			cannot := rpcpooltest.List(w.Node("liar", evm.Serve(rpcpooltest.Boasting(1<<40))))
			cannot.Caps.SendTx = new(bool)
			w.Pool.Lists("1", rpcpooltest.PoolList("eip155:1", cannot, w.Node("r2", send, evm.Serve()), w.Node("r3", send, evm.Serve())))
			chain := freshOn(t, w, rpcpool.Freshness{}, func(cfg *rpcpool.Config) { cfg.MaxInFlight = 1 })
			var senders sync.WaitGroup
			for i := range 2 {
				senders.Go(func() { _, _ = chain.Call(t.Context(), "eth_sendRawTransaction", fmt.Sprintf("0x02aa0%d", i)) })
			}
			time.Sleep(time.Second)
			_, _ = chain.Call(t.Context(), "eth_blockNumber")
			assert.Less(t, chain.HighWater(), evm.Head()+3)
			senders.Wait()
		})
	})
}

// Rule B2: those that stand still don't outvote the one that goes on.
func TestOneGoesOnWhileOthersStand(t *testing.T) {
	for frozen := 1; frozen <= 3; frozen++ {
		t.Run(fmt.Sprint(frozen), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				faults := [][]rpcpooltest.EVMFault{nil}
				for range frozen {
					faults = append(faults, []rpcpooltest.EVMFault{rpcpooltest.StuckAt(1005)})
				}
				evm, chain := freshWorld(t, w, rpcpool.Freshness{}, faults, roundRobin)
				refused, stale, worst := everySecond(t, evm, chain, 1800)
				assert.Zero(t, stale, "of 1800, up to %d blocks; %d refused", worst, refused)
			})
		})
	}
}

// Rule B2: two that stand still don't confirm each other for good.
func TestTwoAtTheTopStandStill(t *testing.T) {
	for frozen := 1; frozen <= 2; frozen++ {
		t.Run(fmt.Sprint(frozen), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				faults := healthyNodes(6)
				for i := range frozen {
					faults[i] = []rpcpooltest.EVMFault{rpcpooltest.StuckAt(1005)}
				}
				evm, chain := freshWorld(t, w, rpcpool.Freshness{}, faults) // Sticky
				_, stale, worst := everySecond(t, evm, chain, 900)
				assert.Zero(t, stale, "of 900, up to %d blocks", worst)
			})
		})
	}
}

// Rule B2: the only RPC left is believed, as far as it goes on from what was known.
func TestTheOnlyOneLeft(t *testing.T) {
	for _, late := range []uint64{0, 5, 50} {
		t.Run(fmt.Sprint("heights late by ", late), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				w.Proxy("p1")
				evm := chainOf12s()
				w.Pool.Lists("1", rpcpooltest.PoolList("eip155:1", listedAt(w.Node("r1", evm.Serve()), 1000-late),
					listedAt(w.Node("r2", rpcpooltest.Status(503)), 1000-late), listedAt(w.Node("r3", rpcpooltest.Status(503)), 1000-late)))
				refused, _, _ := everySecond(t, evm, freshOn(t, w, rpcpool.Freshness{MaxLag: 2}), 2000)
				assert.Zero(t, refused, "of 2000")
			})
		})
	}
	t.Run("a chain that is 2.5 percent quicker than before", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			w.Proxy("p1")
			evm := rpcpooltest.NewEVM(1, 1000)
			evm.SetBlockTime(2 * time.Second)
			w.List("1", w.Node("r1", evm.Serve()), w.Node("r2", evm.Serve().ToStep(0), rpcpooltest.Status(503)), w.Node("r3", evm.Serve().ToStep(0), rpcpooltest.Status(503)))
			chain := freshOn(t, w, rpcpool.Freshness{MaxLag: 2})
			everySecond(t, evm, chain, 300)
			w.Network.SetStep(1)
			evm.SetBlockTime(1950 * time.Millisecond)
			refused, _, _ := everySecond(t, evm, chain, 3600)
			assert.Zero(t, refused, "of 3600")
		})
	})
}

// Rule B4: heights of a list say nothing of the block time.
func TestLateHeightsMakeNoPace(t *testing.T) {
	for _, late := range []uint64{0, 50} {
		t.Run(fmt.Sprint(late), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				w.Proxy("p1")
				evm := chainOf12s()
				var entries []any
				for i := range 5 {
					var faults []rpcpooltest.EVMFault
					if i == 3 {
						faults = append(faults, rpcpooltest.Boasting(10))
					}
					entries = append(entries, listedAt(w.Node(fmt.Sprint("r", i), evm.Serve(faults...)), 1000-late))
				}
				w.Pool.Lists("1", rpcpooltest.PoolList("eip155:1", entries...))
				chain := freshOn(t, w, rpcpool.Freshness{}, roundRobin)
				refused, over := 0, uint64(0)
				for range 300 {
					if _, err := balance(t, chain); err != nil {
						refused++
					}
					over = max(over, max(chain.HighWater(), evm.Head())-evm.Head())
					time.Sleep(time.Second)
				}
				assert.LessOrEqual(t, over, uint64(1), "blocks that the mark was over the truth")
				assert.Zero(t, refused, "of 300")
				for i, s := range chain.Stats() {
					assert.True(t, i == 3 || s.Ejections == 0, "%s ejected", s.RPC)
				}
			})
		})
	}
}

// Rule B4: a timestamp of the future doesn't set the block time.
func TestTimestampFromTheFuture(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		evm := chainOf12s()
		lies := rpcpooltest.Handle(func(q rpcpooltest.Request) rpcpooltest.Reply {
			if !strings.Contains(string(q.Params), "latest") {
				return evm.Answer(q)
			}
			return rpcpooltest.Result(map[string]string{"number": fmt.Sprintf("0x%x", evm.Head()), "hash": evm.Hash(evm.Head()),
				"timestamp": fmt.Sprintf("0x%x", time.Now().AddDate(1, 0, 0).Unix())})
		}).Method("eth_getBlockByNumber")
		w.List("1", w.Node("r1", lies, evm.Serve(rpcpooltest.StuckAt(1010))), w.Node("r2", evm.Serve()), w.Node("r3", evm.Serve()), w.Node("r4", evm.Serve()))
		chain := freshOn(t, w, rpcpool.Freshness{})
		warmUp(t, evm, chain, 1010)
		_, stale, worst := everySecond(t, evm, chain, 600)
		assert.Zero(t, stale, "of 600, up to %d blocks", worst)
	})
}

// Rule B9: what was seen of a chain that went back, or what a receipt lied, is no floor.
func TestFloorIsNotForGood(t *testing.T) {
	t.Run("rollback", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			evm, chain := freshWorld(t, w, rpcpool.Freshness{ReadYourWrites: true}, healthyNodes(4))
			warmUp(t, evm, chain, 1004)
			_, err := chain.Call(t.Context(), "eth_sendRawTransaction", "0x02aa")
			require.NoError(t, err)
			evm.Rewind(500)
			refused, _, _ := everySecond(t, evm, chain, 1800)
			assert.Less(t, refused, 90, "of 1800")
		})
	})
	t.Run("a receipt that lies", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			w.Proxy("p1")
			evm := chainOf12s()
			lies := rpcpooltest.Handle(func(q rpcpooltest.Request) rpcpooltest.Reply {
				var hash string
				_ = q.Param(0, &hash)
				return rpcpooltest.Result(map[string]string{"transactionHash": hash, "blockNumber": "0xffffffffff"})
			}).Method("eth_getTransactionReceipt").Times(1)
			w.List("1", w.Node("r1", lies, evm.Serve()), w.Node("r2", evm.Serve()), w.Node("r3", evm.Serve()), w.Node("r4", evm.Serve()))
			chain := freshOn(t, w, rpcpool.Freshness{ReadYourWrites: true})
			warmUp(t, evm, chain, 1004)
			hash, err := rpcpool.CallAs[string](t.Context(), chain, "eth_sendRawTransaction", "0x02aa")
			require.NoError(t, err)
			_, err = chain.Call(t.Context(), "eth_getTransactionReceipt", hash)
			require.NoError(t, err)
			refused, _, _ := everySecond(t, evm, chain, 1800)
			assert.Less(t, refused, 15, "of 1800")
		})
	})
}

// Rule B2: one RPC that stands still at the old head doesn't keep the chain from having gone back.
func TestRollbackThatOneDoesNotFollow(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		evm, old := chainOf12s(), chainOf12s()
		nodes := []*rpcpooltest.Node{w.Node("stuck", old.Serve(rpcpooltest.StuckAt(1010)))}
		for i := range 4 {
			nodes = append(nodes, w.Node(fmt.Sprint("r", i), evm.Serve()))
		}
		w.List("1", nodes...)
		chain := freshOn(t, w, rpcpool.Freshness{})
		warmUp(t, evm, chain, 1010)
		evm.Rewind(500)
		time.Sleep(testBlockTime)
		good := 0
		for range 3000 {
			if raw, err := balance(t, chain); err == nil && number(t, raw) <= evm.Head() {
				good++
			}
			time.Sleep(time.Second)
		}
		assert.Greater(t, good, 2800, "reads of 3000 that four of five operators agree on")
	})
}

// Rule B3: RPCs that go back together, or alone in their ring, aren't shut out for it.
func TestChainsDipTogether(t *testing.T) {
	t.Run("rollback by two", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			evm, chain := freshWorld(t, w, rpcpool.Freshness{}, healthyNodes(4), roundRobin)
			warmUp(t, evm, chain, 1005)
			time.Sleep(time.Second)
			for range 4 {
				latestBalance(t, chain)
			}
			evm.Rewind(evm.Head() - 2)
			refused, _, _ := everySecond(t, evm, chain, 700)
			assert.Less(t, refused, 90, "of 700")
		})
	})
	t.Run("the only RPC was a block back once", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			w.Proxy("p1")
			evm := chainOf12s()
			w.List("1", w.Node("r1", evm.Serve().ToStep(0), evm.Serve(rpcpooltest.Lagging(1)).ToStep(1), evm.Serve()))
			chain := freshOn(t, w, rpcpool.Freshness{BlockTime: time.Second})
			everySecond(t, evm, chain, 20)
			w.Network.SetStep(1)
			everySecond(t, evm, chain, 2)
			w.Network.SetStep(2)
			time.Sleep(testBlockTime)
			refused, _, _ := everySecond(t, evm, chain, 600)
			assert.Less(t, refused, 30, "of 600")
		})
	})
}

// Rule B3: nodes answer "pending" with the block to come, or with the latest.
func TestPendingIsTheLatestOnManyNodes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		evm, chain := freshWorld(t, w, rpcpool.Freshness{}, healthyNodes(3), roundRobin)
		warmUp(t, evm, chain, 1003)
		for range 3 {
			latestBalance(t, chain)
		}
		for range 3 {
			_, err := chain.Call(t.Context(), "eth_getBlockByNumber", "pending", false)
			assert.NoError(t, err)
		}
		refused, _, _ := everySecond(t, evm, chain, 300)
		assert.Zero(t, refused, "of 300 afterwards")
	})
}

// Rule B5: before a read is refused, those that were behind a moment ago are asked again; MaxWait looks soon.
func TestBehindIsNotRememberedForLong(t *testing.T) {
	t.Run("false StaleError", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			w.Proxy("p1")
			evm := rpcpooltest.NewEVM(1, 1000)
			w.List("1", w.Node("r1", evm.Serve().ToStep(0), rpcpooltest.Status(503)), w.Node("r2", evm.Serve()))
			chain := freshOn(t, w, rpcpool.Freshness{BlockTime: testBlockTime}, roundRobin)
			latestBalance(t, chain) // r1
			time.Sleep(6 * time.Second)
			latestBalance(t, chain) // r2
			time.Sleep(6 * time.Second)
			evm.Mine(1)
			time.Sleep(time.Second / 2)
			latestBalance(t, chain) // r1 has the block
			w.Network.SetStep(1)
			_, err := balance(t, chain)
			assert.NoError(t, err, "r2 has it, too, and wasn't asked")
		})
	})
	t.Run("MaxWait under a block time", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			w.Proxy("p1")
			ahead, late := rpcpooltest.NewEVM(1, 1000), rpcpooltest.NewEVM(1, 1000)
			w.List("1", w.Node("r1", ahead.Serve().ToStep(0), rpcpooltest.Status(503)), w.Node("r2", late.Serve()))
			chain := freshOn(t, w, rpcpool.Freshness{BlockTime: testBlockTime}, func(cfg *rpcpool.Config) { cfg.MaxWait = 10 * time.Second })
			latestBalance(t, chain)
			time.Sleep(testBlockTime + time.Second)
			ahead.Mine(1)
			time.AfterFunc(2*time.Second, func() { late.Mine(1) })
			latestBalance(t, chain)
			w.Network.SetStep(1)
			began := time.Now()
			_, err := balance(t, chain)
			assert.NoError(t, err, "after %s; r2 has the block in 2 s, MaxWait is 10 s", time.Since(began))
		})
	})
}

// Rule B7: an RPC that is a little behind isn't asked again and again, and reads that need no head keep to one trial, too.
func TestTrialsAreFew(t *testing.T) {
	t.Run("a little behind", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			w.Proxy("p1")
			evm := chainOf12s()
			w.List("1", w.Node("back", evm.Serve().ToStep(0), rpcpooltest.Status(503).ToStep(1), evm.Serve(rpcpooltest.Lagging(2))), w.Node("r2", evm.Serve()), w.Node("r3", evm.Serve()))
			chain := freshOn(t, w, rpcpool.Freshness{}, func(cfg *rpcpool.Config) { cfg.Mode = rpcpool.LeastOutstanding })
			warmUp(t, evm, chain, 1004)
			w.Network.SetStep(1)
			latestBalance(t, chain)
			w.Network.SetStep(2)
			time.Sleep(61 * time.Second)
			before := requestsOf(w, "back")
			for range 20 {
				latestBalance(t, chain)
			}
			assert.LessOrEqual(t, requestsOf(w, "back")-before, 2, "trials for 20 reads at one moment")
		})
	})
	t.Run("reads of a snapshot", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			w.Proxy("p1")
			evm := chainOf12s()
			w.List("1", w.Node("back", evm.Serve().ToStep(0), rpcpooltest.Status(503)), w.Node("r2", evm.Serve()))
			chain := freshOn(t, w, rpcpool.Freshness{}, func(cfg *rpcpool.Config) { cfg.Mode = rpcpool.LeastOutstanding })
			snap, err := chain.Snapshot(t.Context(), "latest")
			require.NoError(t, err)
			w.Network.SetStep(1)
			latestBalance(t, chain)
			time.Sleep(61 * time.Second)
			before := requestsOf(w, "back")
			var callers sync.WaitGroup
			for range 50 {
				callers.Go(func() { _, _ = snap.Call(t.Context(), "eth_getBalance", someAccount) })
			}
			callers.Wait()
			assert.LessOrEqual(t, requestsOf(w, "back")-before, 1, "requests to an RPC on trial")
		})
	})
}

// A batch of stale answers is one failure.
func TestStaleBatchEjectsOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		evm := chainOf12s()
		w.List("1", w.Node("r1", evm.Serve().ToStep(0), evm.Serve(rpcpooltest.Lagging(50))), w.Node("r2", evm.Serve()), w.Node("r3", evm.Serve()))
		chain := freshOn(t, w, rpcpool.Freshness{})
		warmUp(t, evm, chain, 1004)
		w.Network.SetStep(1)
		time.Sleep(testBlockTime)
		elems := make([]rpcpool.BatchElem, 10)
		for i := range elems {
			elems[i].Method = "eth_blockNumber"
		}
		require.NoError(t, chain.BatchCallContext(t.Context(), elems))
		assert.Equal(t, 1, chain.Stats()[0].FailuresInRow)
	})
}

// This host's own limits are nobody's fault, of questions as of requests.
func TestHostErrorOfAQuestion(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		evm := rpcpooltest.NewEVM(1, 1000)
		w.List("1", w.Node("r1", evm.Serve()), w.Node("r2", evm.Serve()))
		chain := open(t, w, func(cfg *rpcpool.Config) {
			dial := cfg.DialContext
			cfg.VerifyChainID = true
			cfg.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
				if strings.HasPrefix(addr, "p1.test") {
					return nil, &net.OpError{Op: "dial", Err: syscall.EMFILE}
				}
				return dial(ctx, network, addr)
			}
		}).Chain("1")
		_, err := balance(t, chain)
		var host *rpcpool.HostError
		assert.ErrorAs(t, err, &host)
		for _, s := range chain.Stats() {
			assert.False(t, s.Cooling, s.RPC)
		}
	})
}

// Rule B8: a success sent before a rate limit doesn't end the rest, and many at once count once.
func TestRestsAreCountedOnce(t *testing.T) {
	t.Run("ended by a success of before", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			w.Proxy("p1")
			w.List("1", w.Node("r1", rpcpooltest.Result("0x1").Delay(time.Second).Times(1), rpcpooltest.RateLimited(30*time.Second)), w.Node("r2"))
			chain := open(t, w, func(cfg *rpcpool.Config) { cfg.MaxWait = time.Minute }).Chain("1")
			go func() { _, _ = chain.Call(t.Context(), "eth_gasPrice") }()
			time.Sleep(100 * time.Millisecond)
			_, err := chain.Call(t.Context(), "eth_gasPrice")
			require.NoError(t, err)
			require.Equal(t, rpcpool.StateResting, chain.Stats()[0].State)
			time.Sleep(2 * time.Second)
			assert.Equal(t, rpcpool.StateResting, chain.Stats()[0].State, "it asked for 30 s")
		})
	})
	t.Run("ten at once", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			w.Proxy("p1")
			w.List("1", w.Node("r1", rpcpooltest.RateLimited(0).Delay(time.Millisecond)), w.Node("r2"))
			chain := open(t, w, func(cfg *rpcpool.Config) { cfg.MaxWait = time.Minute }).Chain("1")
			var callers sync.WaitGroup
			for range 10 {
				callers.Go(func() { _, _ = chain.Call(t.Context(), "eth_gasPrice") })
			}
			callers.Wait()
			assert.InDelta(t, 1, time.Until(chain.Stats()[0].Until).Seconds(), 0.5)
		})
	})
}

// Rule B3: null for the latest block is no answer, and methods that aren't known but name "latest" mean it.
func TestNothingLatestIsUngated(t *testing.T) {
	t.Run("null for the latest block", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			w.Proxy("p1")
			evm := rpcpooltest.NewEVM(1, 1000)
			w.List("1", w.Node("r1", rpcpooltest.Result(nil).Method("eth_getBlockByNumber"), evm.Serve(rpcpooltest.Lagging(50))), w.Node("r2", evm.Serve()), w.Node("r3", evm.Serve()))
			raw, err := freshOn(t, w, rpcpool.Freshness{}).Call(t.Context(), "eth_getBlockByNumber", "latest", false)
			require.NoError(t, err)
			assert.NotEqual(t, "null", string(raw))
		})
	})
	for _, method := range []string{"eth_getHeaderByNumber", "debug_getRawHeader", "debug_getRawReceipts", "eth_getRawTransactionByBlockNumberAndIndex"} {
		t.Run(method, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				w.Proxy("p1")
				evm := rpcpooltest.NewEVM(1, 1000)
				node := func(name string, faults ...rpcpooltest.EVMFault) *rpcpooltest.Node {
					return w.Node(name, rpcpooltest.Result(name).Method(method), evm.Serve(faults...))
				}
				w.List("1", node("behind", rpcpooltest.Lagging(3)), node("r2"), node("r3"))
				chain := freshOn(t, w, rpcpool.Freshness{})
				latestBalance(t, chain)
				raw, err := chain.Call(t.Context(), method, "latest", "0x0")
				require.NoError(t, err)
				assert.NotEqual(t, `"behind"`, string(raw))
			})
		})
	}
}

// Rule B2: a few heights of a list that are far too high, or one URL of the only operator that boasts, are no mark.
func TestHeightsOfAListAreNoMark(t *testing.T) {
	t.Run("two heights of five far too high", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			w.Proxy("p1")
			evm := chainOf12s()
			var entries []any
			for i := range 5 {
				height := uint64(1000)
				if i < 2 {
					height = 1 << 40
				}
				entries = append(entries, listedAt(w.Node(fmt.Sprint("r", i), evm.Serve()), height))
			}
			w.Pool.Lists("1", rpcpooltest.PoolList("eip155:1", entries...))
			refused, _, _ := everySecond(t, evm, freshOn(t, w, rpcpool.Freshness{}), 600)
			assert.Less(t, refused, 5, "of 600, with five healthy RPCs")
		})
	})
	t.Run("one operator, of whose four URLs one boasts once", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			w.Proxy("p1")
			evm := chainOf12s()
			var nodes []*rpcpooltest.Node
			for i := range 4 {
				script := []rpcpooltest.Reply{evm.Serve()}
				if i == 3 {
					script = []rpcpooltest.Reply{rpcpooltest.Result("0xffffffffff").Method("eth_blockNumber").Times(1), evm.Serve()}
				}
				nodes = append(nodes, w.NodeAt(fmt.Sprint("r", i), fmt.Sprintf("http://r%d.one.test/key-%d", i, i), script...))
			}
			w.List("1", nodes...)
			refused, _, _ := everySecond(t, evm, freshOn(t, w, rpcpool.Freshness{}, roundRobin), 300)
			assert.Less(t, refused, 5, "of 300")
		})
	})
}

// Rule D2: null is no filter.
func TestSnapshotNullFilter(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		_, chain := snapshotWorld(t, w, nil)
		snap, err := chain.Snapshot(t.Context(), "latest")
		require.NoError(t, err)
		assert.NotPanics(t, func() { _, _ = snap.Call(t.Context(), "eth_getLogs", nil) })
	})
}

// Rule D2: an answer that names another block isn't the snapshot's.
func TestSnapshotTakesNoOtherBlock(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		evm := rpcpooltest.NewEVM(1, 1000)
		ignorant := rpcpooltest.Handle(func(q rpcpooltest.Request) rpcpooltest.Reply { // it doesn't know blockHash
			switch q.Method {
			case "eth_getLogs":
				q.Params = json.RawMessage(`[{}]`)
			case "eth_getBlockByHash":
				q.Method, q.Params = "eth_getBlockByNumber", json.RawMessage(`["latest",false]`)
			}
			return evm.Answer(q)
		})
		w.List("1", w.Node("r1", ignorant), w.Node("r2", evm.Serve()), w.Node("r3", evm.Serve()))
		chain := open(t, w).Chain("1")
		snap, err := chain.Snapshot(t.Context(), "latest")
		require.NoError(t, err)
		evm.Mine(5)
		raw, err := snap.Call(t.Context(), "eth_getLogs", map[string]any{})
		require.NoError(t, err)
		assert.Contains(t, string(raw), snap.Hash(), "logs of another block")
		raw, err = snap.Call(t.Context(), "eth_getBlockByNumber", "latest", false)
		require.NoError(t, err)
		assert.Contains(t, string(raw), snap.Hash(), "another block")
		snap, err = chain.Snapshot(t.Context(), evm.Hash(900))
		require.NoError(t, err)
		assert.Equal(t, evm.Hash(900), snap.Hash(), "a snapshot of another block than was asked for")
	})
}

// Rule D2: a count of zero is an answer.
func TestSnapshotOfWhatIsTrulyEmpty(t *testing.T) {
	for method, says := range map[string]any{
		"eth_getBlockTransactionCountByNumber": "0x0", "eth_getUncleCountByBlockNumber": "0x0",
		"eth_getUncleByBlockNumberAndIndex": nil, "eth_getTransactionByBlockNumberAndIndex": nil,
	} {
		t.Run(method, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				w.Proxy("p1")
				evm := rpcpooltest.NewEVM(1, 1000)
				node := func(name string) *rpcpooltest.Node {
					return w.Node(name, rpcpooltest.Handle(func(q rpcpooltest.Request) rpcpooltest.Reply {
						if strings.Contains(q.Method, "Count") || strings.HasSuffix(q.Method, "AndIndex") {
							return rpcpooltest.Result(says)
						}
						return evm.Answer(q)
					}))
				}
				w.List("1", node("r1"), node("r2"), node("r3"))
				snap, err := open(t, w).Chain("1").Snapshot(t.Context(), "latest")
				require.NoError(t, err)
				_, err = snap.Call(t.Context(), method, "latest", "0x0")
				assert.NoError(t, err, "three operators agree")
			})
		})
	}
}

// Rule D2: any two operators that give the same empty answer confirm it, and a revert is a revert whatever its words.
func TestSnapshotVerdicts(t *testing.T) {
	read := func(t *testing.T, w *rpcpooltest.World, method string, replies ...rpcpooltest.Reply) error {
		w.Proxy("p1")
		evm := rpcpooltest.NewEVM(1, 1000)
		var nodes []*rpcpooltest.Node
		for i, reply := range replies {
			nodes = append(nodes, w.Node(fmt.Sprint("r", i), reply.Method(method), evm.Serve()))
		}
		w.List("1", nodes...)
		snap, err := open(t, w).Chain("1").Snapshot(t.Context(), "latest")
		require.NoError(t, err)
		_, err = snap.Call(t.Context(), method, someAccount, "0x0")
		return err
	}
	t.Run("the second and third confirm each other", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			zero := rpcpooltest.Result("0x" + strings.Repeat("0", 64))
			assert.NoError(t, read(t, w, "eth_getStorageAt", rpcpooltest.Result("0x0"), zero, zero))
		})
	})
	t.Run("a revert in words like a node's", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			w.Proxy("p1")
			evm := rpcpooltest.NewEVM(1, 1000)
			reverts := rpcpooltest.ErrorData(3, "execution reverted: unknown block", "0x08c379a0").Method("eth_call")
			w.List("1", w.Node("r1", reverts, evm.Serve()), w.Node("r2", reverts, evm.Serve()))
			snap, err := open(t, w).Chain("1").Snapshot(t.Context(), "latest")
			require.NoError(t, err)
			_, err = snap.Call(t.Context(), "eth_call", map[string]string{"to": "0xa"})
			var reverted *rpcpool.RPCError
			assert.ErrorAs(t, err, &reverted)
		})
	})
}

// An element that waits for its turn doesn't keep the others of its batch waiting.
func TestBatchWithTurnsIsQuick(t *testing.T) {
	took := map[int]time.Duration{}
	for _, limit := range []int{0, 1} {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			w.Proxy("p1")
			w.List("1", w.Node("r1", rpcpooltest.Result("0x1").Delay(10*time.Millisecond)))
			chain := open(t, w, func(cfg *rpcpool.Config) { cfg.MaxInFlight = limit }).Chain("1")
			elems := make([]rpcpool.BatchElem, 100)
			for i := range elems {
				elems[i].Method = "eth_blockNumber"
			}
			began := time.Now()
			require.NoError(t, chain.BatchCallContext(t.Context(), elems))
			took[limit] = time.Since(began)
		})
	}
	assert.Less(t, took[1], took[0]+time.Second/2, "one at a time is as long as all together where the node takes 10 ms each: %v", took)
}

// What is said in passing about fresh reads holds, too.
func TestSmallThings(t *testing.T) {
	t.Run("an RPC that has no eth_chainId is asked for it no more than twice", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			w.Proxy("p1")
			evm := rpcpooltest.NewEVM(1, 1000)
			w.List("1", w.Node("r1", rpcpooltest.Error(-32601, "the method eth_chainId does not exist/is not available").Method("eth_chainId"), evm.Serve()), w.Node("r2", evm.Serve()))
			chain := open(t, w, func(cfg *rpcpool.Config) { cfg.VerifyChainID = true }).Chain("1")
			for range 20 {
				_, err := chain.Call(t.Context(), "eth_gasPrice")
				require.NoError(t, err)
			}
			assert.LessOrEqual(t, requestsOf(w, "r1", "eth_chainId"), 2)
		})
	})
	t.Run("a token alone costs a numbered read no question", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			w.Proxy("p1")
			evm := rpcpooltest.NewEVM(1, 2000)
			w.List("1", w.Node("r1", evm.Serve()), w.Node("r2", evm.Serve()))
			ctx := rpcpool.WithReadToken(t.Context(), rpcpool.ReadToken{Block: 5})
			_, err := open(t, w).Chain("1").Call(ctx, "eth_getBalance", someAccount, "0x7d0")
			require.NoError(t, err)
			assert.Equal(t, []string{"r1 p1 eth_getBalance"}, w.Requests())
		})
	})
	t.Run("both RPCs of a fork show it in the statistics (rule B11)", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			w.Proxy("p1")
			evm := rpcpooltest.NewEVM(1, 1000)
			w.List("1", w.Node("r1", evm.Serve()), w.Node("forked", evm.Serve(rpcpooltest.ForkedFrom(990))))
			chain := freshOn(t, w, rpcpool.Freshness{}, roundRobin)
			for range 4 {
				_, err := chain.Call(t.Context(), "eth_getBlockByNumber", "0x3e0", false)
				require.NoError(t, err)
			}
			assert.NotZero(t, chain.Stats()[0].Forks*chain.Stats()[1].Forks)
		})
	})
	t.Run("HighWater never goes down, also where one of two stands still", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			evm, chain := freshWorld(t, w, rpcpool.Freshness{}, [][]rpcpooltest.EVMFault{nil, {rpcpooltest.StuckAt(1005)}}, roundRobin)
			high, down := uint64(0), 0
			for range 900 {
				_, _ = balance(t, chain)
				if mark := chain.HighWater(); mark < high {
					down++
				}
				high = chain.HighWater()
				time.Sleep(time.Second)
			}
			assert.Zero(t, down, "the chain went on to %d", evm.Head())
		})
	})
}
