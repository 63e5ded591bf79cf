package rpcpoolotel_test

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/bomzrpc/rpcpool"
	rpcpoolotel "github.com/bomzrpc/rpcpool/plugins/otel"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// measure puts a hook that only measures in the place of what there was.
func (w *watched) measure(opts ...rpcpoolotel.Option) {
	w.reader = metric.NewManualReader()
	meters := rpcpoolotel.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(w.reader)))
	w.hook = rpcpoolotel.New(append(opts, meters)...)
}

// Handles beyond WithMaxChains are measured together, in every metric, without the names of
// their RPCs; so is one whose reference is no text. Nothing is lost by it.
func TestChainsAreBounded(t *testing.T) {
	inWorld(t, func(t *testing.T, w *watched) {
		w.measure(rpcpoolotel.WithMaxChains(2))
		w.Proxy("p1")
		for _, ref := range []string{"1", "2", "3", "4"} {
			w.List(ref, w.Node("a"+ref, rpcpooltest.Status(500).Times(1)), w.Node("b"+ref))
		}
		pool := w.open(t)
		_, err := w.hook.Observe(pool)
		require.NoError(t, err)
		for _, ref := range []string{"1", "2", "3", "4", "1"} {
			_, err := pool.Chain(ref).Call(t.Context(), "eth_call")
			require.NoError(t, err)
		}
		_, err = pool.Chain("\xff").Call(t.Context(), "eth_call")
		require.Error(t, err)
		time.Sleep(time.Minute) // reports are sent

		require.Equal(t, map[string]int64{"1": 2, "2": 1, "other other": 3},
			w.counts(t, "rpc.client.call.duration", "rpcpool.chain", "rpcpool.policy"))
		require.Equal(t, map[string]int64{"1 a1.test": 1, "1 b1.test": 2, "2 a2.test": 1, "2 b2.test": 1, "other other": 4},
			w.counts(t, "rpcpool.attempts", "rpcpool.chain", "rpcpool.policy", "server.address"))
		require.Equal(t, map[string]int64{"1 a1.test": 1, "2 a2.test": 1, "other other": 2},
			w.counts(t, "rpcpool.cooldown.changes", "rpcpool.chain", "rpcpool.policy", "server.address"))
		require.Equal(t, map[string]int64{"1 a1.test": 1, "1 b1.test": 1, "2 a2.test": 1, "2 b2.test": 1, "other other": 4},
			w.counts(t, "rpcpool.rpc.state", "rpcpool.chain", "rpcpool.policy", "server.address"))
		require.Equal(t, []string{"1", "2"}, slices.Sorted(maps.Keys(w.counts(t, "rpcpool.rpc.head", "rpcpool.chain"))),
			"heads of different chains say nothing together")
		var chains []string
		for name := range w.collect(t) {
			chains = slices.AppendSeq(chains, maps.Keys(w.counts(t, name, "rpcpool.chain")))
		}
		slices.Sort(chains)
		require.Equal(t, []string{"", "1", "2", "eip155:1", "eip155:2", "other"}, slices.Compact(chains))
	})
}

// With a limit of 0, or less, no handle is measured by itself. Without the option a hundred are.
func TestChainsAreBoundedByDefault(t *testing.T) {
	for limit, want := range map[int]int{-1: 1, 0: 1, 100: 101} {
		w := &watched{}
		if limit == 100 {
			w.measure()
		} else {
			w.measure(rpcpoolotel.WithMaxChains(limit))
		}
		for i := range 150 {
			w.hook.RangeSplit(t.Context(), rpcpool.RangeSplitEvent{ChainLabels: rpcpool.ChainLabels{Chain: fmt.Sprint(i)}})
		}
		require.Len(t, w.counts(t, "rpcpool.range_splits", "rpcpool.chain"), want)
	}
}

// Many callers at once: what goes up for a handle comes down for the same.
func TestChainsAreBoundedUnderManyCallers(t *testing.T) {
	w := &watched{}
	w.measure(rpcpoolotel.WithMaxChains(3))
	var wg sync.WaitGroup
	for c := range 8 {
		wg.Go(func() {
			for i := range 50 {
				start := rpcpool.CallStart{ChainLabels: rpcpool.ChainLabels{Chain: fmt.Sprint((c + i) % 7)}, Kind: rpcpool.KindCall}
				ctx := w.hook.CallStarted(t.Context(), start)
				w.hook.CallEnded(ctx, rpcpool.CallEnd{CallStart: start, Result: rpcpool.ResultOK})
			}
		})
	}
	wg.Wait()
	active := w.counts(t, "rpcpool.call.active", "rpcpool.chain")
	require.Len(t, active, 4)
	total := int64(0)
	for chain, n := range w.counts(t, "rpc.client.call.duration", "rpcpool.chain") {
		total += n
		require.Zero(t, active[chain], chain)
	}
	require.EqualValues(t, 8*50, total)
}
