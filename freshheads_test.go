package rpcpool_test

import (
	"errors"
	"fmt"
	"testing"
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

	highest uint64
	refused int // reads that ended in a StaleError
}

// read makes one read in its bubble: what was read before isn't undercut by more than MaxLag.
func (r *headReader) read() uint64 {
	r.t.Helper()
	defer time.Sleep(time.Second)
	raw, err := r.chain.Call(r.t.Context(), "eth_blockNumber")
	if _, stale := errors.AsType[*rpcpool.StaleError](err); stale {
		r.refused++
		return r.highest
	}
	require.NoError(r.t, err)
	head := number(r.t, raw)
	require.GreaterOrEqual(r.t, head+r.maxLag, r.highest, "the view went back")
	r.highest = max(r.highest, head)
	return head
}

// Two operators, of which one stops getting blocks: the one that goes on is believed, in
// every mode and wherever it stands in the list.
func TestOneOfTwoStandsStill(t *testing.T) {
	for _, mode := range modes {
		for _, maxLag := range []uint64{0, 2} {
			for _, first := range []bool{false, true} {
				t.Run(fmt.Sprint(mode, maxLag, first), func(t *testing.T) {
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
						r := &headReader{t: t, maxLag: maxLag, chain: open(t, w, func(cfg *rpcpool.Config) { cfg.Mode = mode }).
							Chain("1", rpcpool.WithFreshness(rpcpool.Freshness{MaxLag: maxLag}))}
						for evm.Head() < 1005 {
							r.read()
						}
						w.Network.SetStep(1)
						for range 300 {
							before := evm.Head()
							require.GreaterOrEqual(t, r.read()+maxLag+1, before)
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
