package rpcpool_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

var modes = []rpcpool.Mode{rpcpool.Sticky, rpcpool.RoundRobin, rpcpool.LeastOutstanding}

// headReader reads the head once a second and keeps what it saw.
type headReader struct {
	t      *testing.T
	chain  *rpcpool.Chain
	maxLag uint64
	state  bool // it reads from the state, which doesn't show its head, instead

	highest uint64
	refused int // reads that ended in a StaleError
}

// read makes one read in its bubble: what was read before isn't undercut by more than MaxLag.
func (r *headReader) read() uint64 {
	r.t.Helper()
	defer time.Sleep(time.Second)
	method, params := "eth_blockNumber", []any(nil)
	if r.state {
		method, params = "eth_getBalance", []any{someAccount, "latest"}
	}
	raw, err := r.chain.Call(r.t.Context(), method, params...)
	if _, stale := errors.AsType[*rpcpool.StaleError](err); stale {
		r.refused++
		return r.highest
	}
	require.NoError(r.t, err)
	head := number(r.t, raw)
	allowed := r.maxLag
	if r.state { // the state may be a block further than the head that the RPC said before
		allowed++
	}
	require.GreaterOrEqual(r.t, head+allowed, r.highest, "the view went back")
	r.highest = max(r.highest, head)
	return head
}

// Two operators, of which one stops getting blocks: the one that goes on is believed, in
// every mode and wherever it stands in the list.
func TestOneOfTwoStandsStill(t *testing.T) {
	for _, mode := range modes {
		for _, maxLag := range []uint64{0, 2} {
			for i := range 4 {
				first, state := i%2 == 0, i/2 == 0
				t.Run(fmt.Sprint(mode, maxLag, first, state), func(t *testing.T) {
					inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
						w.Proxy("p1")
						evm := rpcpooltest.NewEVM(1, 1000)
						evm.SetBlockTime(testBlockTime)
						good := w.Node("good", evm.Serve())
						stuck := w.Node("stuck", evm.Serve().ToStep(0), evm.Serve(rpcpooltest.StuckAt(1005)))
						if first {
							w.List("1", stuck, good)
						} else {
							w.List("1", good, stuck)
						}
						r := &headReader{t: t, maxLag: maxLag, state: state, chain: open(t, w, func(cfg *rpcpool.Config) { cfg.Mode = mode }).
							Chain("1", rpcpool.WithFreshness(rpcpool.Freshness{MaxLag: maxLag}))}
						for evm.Head() < 1005 {
							r.read()
						}
						w.Network.SetStep(1)
						for range 300 {
							oldest := evm.Head() - maxLag - 1
							if state {
								oldest--
							}
							require.GreaterOrEqual(t, r.read(), oldest)
						}
						require.Zero(t, r.refused)
					})
				})
			}
		}
	}
}

// One RPC is ahead of all others by a few blocks: whoever is believed, what a caller has
// read isn't taken back.
func TestTheViewNeverGoesBack(t *testing.T) {
	for _, mode := range modes {
		for _, n := range []int{2, 3, 5} {
			for _, lag := range []uint64{1, 2, 3, 30} {
				t.Run(fmt.Sprint(mode, n, lag), func(t *testing.T) {
					inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
						faults := [][]rpcpooltest.EVMFault{nil}
						for range n - 1 {
							faults = append(faults, []rpcpooltest.EVMFault{rpcpooltest.Lagging(lag)})
						}
						_, chain := freshWorld(t, w, rpcpool.Freshness{}, faults, func(c *rpcpool.Config) { c.Mode = mode })
						r := &headReader{t: t, chain: chain}
						for range 300 {
							r.read()
						}
						require.Less(t, r.refused, 60)
					})
				})
			}
		}
	}
}

// The heights of a list are as old as lists are: they say nothing of the chain's pace, and
// a liar gains nothing by them.
func TestOldHeightsInTheList(t *testing.T) {
	for _, behind := range []uint64{0, 3, 30, 100} {
		for _, boast := range []uint64{0, 15} {
			t.Run(fmt.Sprint(behind, boast), func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
					w.Proxy("p1")
					evm := rpcpooltest.NewEVM(1, 1000+behind)
					evm.SetBlockTime(testBlockTime)
					w.List("1", w.Node("r1", evm.Serve()), w.Node("r2", evm.Serve()), w.Node("r3", evm.Serve(rpcpooltest.Boasting(boast))))
					chain := open(t, w, func(c *rpcpool.Config) { c.Mode = rpcpool.RoundRobin }).
						Chain("1", rpcpool.WithFreshness(rpcpool.Freshness{MaxLag: 1}))
					r := &headReader{t: t, chain: chain, maxLag: 1}
					before := 0
					for i := range 120 {
						if i == 5 {
							before = len(w.Requests())
						}
						require.LessOrEqual(t, r.read(), evm.Head())
						latestBalance(t, chain)
					}
					require.Zero(t, r.refused)
					require.Less(t, len(w.Requests())-before, 230*5/4)
				})
			})
		}
	}
}

// Heads are known where the list has no heights at all.
func TestHeadsWithoutHeights(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		evm := rpcpooltest.NewEVM(1, 1000)
		evm.SetBlockTime(testBlockTime)
		var listed []any
		for i, fault := range []rpcpooltest.EVMFault{rpcpooltest.Boasting(1000), rpcpooltest.Lagging(0), rpcpooltest.Lagging(20), rpcpooltest.Lagging(0)} {
			entry := rpcpooltest.List(w.Node(fmt.Sprint("r", i), evm.Serve(fault)))
			entry.Height = 0
			listed = append(listed, entry)
		}
		w.Pool.Lists("1", rpcpooltest.PoolList("eip155:1", listed...))
		chain := open(t, w).Chain("1", rpcpool.WithFreshness(rpcpool.Freshness{}))
		for range 30 {
			require.Equal(t, evm.Head(), latestBalance(t, chain))
			time.Sleep(3 * time.Second)
		}
	})
}

// Blocks that come quicker than the average, as on chains without slots, make nobody stale.
func TestBurstsOfBlocks(t *testing.T) {
	for _, n := range []int{2, 3, 5} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				w.Proxy("p1")
				evm := rpcpooltest.NewEVM(1, 1000)
				var nodes []*rpcpooltest.Node
				for i := range n {
					nodes = append(nodes, w.Node(fmt.Sprint("r", i), evm.Serve()))
				}
				w.List("1", nodes...)
				r := &headReader{t: t, chain: open(t, w).Chain("1", rpcpool.WithFreshness(rpcpool.Freshness{BlockTime: testBlockTime}))}
				for i := range 120 {
					if i%24 < 4 { // four blocks in four seconds, then none for twenty
						evm.Mine(1)
					}
					require.Equal(t, evm.Head(), r.read())
				}
				require.Zero(t, r.refused)
			})
		})
	}
}

// Rule B3: it is the mark that counts: an RPC that is a single block under what another
// one has said isn't asked for the latest state where MaxLag is 0.
func TestGateByTheMark(t *testing.T) {
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				_, chain := freshWorld(t, w, rpcpool.Freshness{SampleEvery: 3 * time.Second},
					[][]rpcpooltest.EVMFault{{rpcpooltest.Lagging(1)}, nil, {rpcpooltest.Lagging(1)}, nil}, func(c *rpcpool.Config) { c.Mode = mode })
				latestBalance(t, chain)
				time.Sleep(10 * time.Second)
				for range 60 {
					mark := chain.HighWater()
					require.GreaterOrEqual(t, latestBalance(t, chain), mark)
					time.Sleep(time.Second)
				}
			})
		})
	}
}

// Rule B3: an RPC that lagged by more than a block isn't trusted upon one good answer.
func TestOneGoodAnswerIsTooLittle(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		evm := rpcpooltest.NewEVM(1, 1000)
		evm.SetBlockTime(testBlockTime)
		w.List("1", w.Node("r1", evm.Serve(rpcpooltest.Lagging(8)).ToStep(0), evm.Serve()), w.Node("r2", evm.Serve()))
		chain := open(t, w).Chain("1", rpcpool.WithFreshness(rpcpool.Freshness{EjectLag: 100, BlockTime: testBlockTime}))
		latestBalance(t, chain)
		w.Network.SetStep(1)
		time.Sleep(testBlockTime + time.Second)
		latestBalance(t, chain)
		require.Zero(t, requestsOf(w, "r1", "eth_getBalance"))
		for range 3 {
			time.Sleep(testBlockTime + time.Second)
			latestBalance(t, chain)
		}
		require.NotZero(t, requestsOf(w, "r1", "eth_getBalance"))
	})
}

// Rule B3: an RPC whose head went back between two answers has two nodes behind it; what
// doesn't show its head isn't asked of it for a while, however good its last answer was.
func TestTwoNodesBehindOneURL(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		evm := rpcpooltest.NewEVM(1, 1000)
		evm.SetBlockTime(testBlockTime)
		w.List("1", w.Node("two", evm.Serve().ToStep(0), evm.Serve(rpcpooltest.Alternating(5))), w.Node("one", evm.Serve()))
		chain := open(t, w, func(c *rpcpool.Config) { c.Mode = rpcpool.RoundRobin }).
			Chain("1", rpcpool.WithFreshness(rpcpool.Freshness{EjectLag: 100, MaxLag: 1}))
		for range 4 {
			latestBalance(t, chain)
		}
		require.NotZero(t, requestsOf(w, "two", "eth_getBalance"))
		w.Network.SetStep(1)
		time.Sleep(testBlockTime)
		for range 4 { // which shows both nodes
			_, err := chain.Call(t.Context(), "eth_blockNumber")
			require.NoError(t, err)
		}
		before := requestsOf(w, "two", "eth_getBalance")
		for range 100 {
			require.GreaterOrEqual(t, latestBalance(t, chain)+2, evm.Head())
			time.Sleep(3 * time.Second)
		}
		require.Equal(t, before, requestsOf(w, "two", "eth_getBalance"))
	})
}

// Rule B3: an RPC that comes back from a cooldown is asked twice, as on the first day: it may
// have two nodes behind it by now.
func TestComebackIsAskedTwice(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		evm := rpcpooltest.NewEVM(1, 1000)
		evm.SetBlockTime(testBlockTime)
		w.List("1", w.Node("two", evm.Serve().ToStep(0), rpcpooltest.Status(500).ToStep(1), evm.Serve(rpcpooltest.Alternating(5))), w.Node("one", evm.Serve()))
		chain := open(t, w, func(c *rpcpool.Config) { c.Mode = rpcpool.RoundRobin }).
			Chain("1", rpcpool.WithFreshness(rpcpool.Freshness{EjectLag: 100, MaxLag: 1}))
		for range 4 {
			latestBalance(t, chain)
		}
		synctest.Wait()
		w.Network.SetStep(1)
		for range 2 {
			latestBalance(t, chain)
		}
		require.True(t, chain.Stats()[0].Cooling)
		w.Network.SetStep(2)
		time.Sleep(61 * time.Second)
		for range 40 {
			require.GreaterOrEqual(t, latestBalance(t, chain)+2, evm.Head())
			time.Sleep(3 * time.Second)
		}
	})
}
