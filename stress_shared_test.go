package rpcpool_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// A thousand first callers share one fetch of the list. Those who give up while it
// runs get their own end, at once, and nobody else's (rule A2.2).
func TestFirstCallersShareOneFetch(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		const callers, impatient = 1000, 300
		w.Proxy("p1")
		node := w.Node("r1")
		gate := rpcpooltest.NewGate()
		w.Pool.Lists("1", rpcpooltest.PoolList("eip155:1", node).Hold(gate))
		chain := open(t, w).Chain("1")

		ended := make(chan error, callers)
		canceled, cancel := context.WithCancel(t.Context())
		for i := range callers {
			ctx := t.Context()
			if i < impatient {
				ctx = canceled
			}
			go func() {
				_, err := chain.Call(ctx, "eth_blockNumber")
				ended <- err
			}()
		}
		synctest.Wait()
		require.Len(t, w.Pool.Asked(), 1)
		require.Empty(t, ended)

		cancel()
		synctest.Wait()
		require.Len(t, ended, impatient)
		for range impatient {
			var interrupted *rpcpool.InterruptedError
			err := <-ended
			require.ErrorAs(t, err, &interrupted)
			require.ErrorIs(t, err, context.Canceled)
		}

		gate.Open()
		for range callers - impatient {
			require.NoError(t, <-ended)
		}
		require.Len(t, w.Pool.Asked(), 1)
		require.Len(t, node.Requests(), callers-impatient)
	})
}

// A fetch that all callers have left runs to its end, and its list is there for the
// next one (rule A2.2).
func TestFetchOutlivesItsCallers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.Pool.Lists("1", rpcpooltest.PoolList("eip155:1", w.Node("r1")).Delay(5*time.Second))
		chain := open(t, w).Chain("1")
		var callers sync.WaitGroup
		for range 64 {
			callers.Go(func() { _, _ = chain.Call(within(t, time.Second), "eth_blockNumber") })
		}
		callers.Wait()
		time.Sleep(5 * time.Second)
		began := time.Now()
		_, err := chain.Call(t.Context(), "eth_blockNumber")
		require.NoError(t, err)
		require.Zero(t, time.Since(began))
		require.Len(t, w.Pool.Asked(), 1)
	})
}

// Reports never delay a call, a call makes one for each RPC that failed it, and where
// the pool doesn't take them the queue keeps its bound and counts what it drops
// (rules A8, F4).
func TestReportsAreBounded(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		const callers, rpcs = 400, 5
		w.Proxy("p1")
		var nodes []*rpcpooltest.Node
		for i := range rpcs {
			// The delay has all calls begin before the first failure.
			nodes = append(nodes, w.Node(fmt.Sprintf("r%d", i+1), rpcpooltest.Status(500).Delay(time.Second)))
		}
		w.List("1", nodes...)
		gate := rpcpooltest.NewGate()
		w.Pool.ScriptReports(rpcpooltest.PoolTake().Hold(gate))
		pool := open(t, w, func(cfg *rpcpool.Config) { cfg.MaxConns = callers }) // nobody stands in line

		began := time.Now()
		var calls sync.WaitGroup
		var mu sync.Mutex
		due := 0
		for range callers {
			calls.Go(func() {
				_, err := pool.Chain("1").Call(t.Context(), "eth_blockNumber")
				failed := map[string]bool{}
				for _, a := range attemptsIn(err) {
					failed[a.RPC] = true
				}
				mu.Lock()
				defer mu.Unlock()
				due += len(failed)
			})
		}
		calls.Wait()
		require.Equal(t, rpcs*time.Second, time.Since(began), "reports delay nobody")
		require.Equal(t, callers*rpcs, due)

		waiting, lost := pool.QueuedReports()
		require.Equal(t, rpcpool.MaxQueuedReports, waiting)
		require.Len(t, w.Pool.Reports(), 1, "they are sent one by one")
		require.Equal(t, uint64(due-waiting-1), lost)

		gate.Open()
		synctest.Wait()
		waiting, lostAtLast := pool.QueuedReports()
		require.Zero(t, waiting)
		require.Equal(t, lost, lostAtLast)
		require.Len(t, w.Pool.Reports(), due-int(lost))
	})
}

// attemptsIn gives the attempts that an error tells of.
func attemptsIn(err error) []rpcpool.Attempt {
	var (
		none        *rpcpool.NoHealthyRPCError
		interrupted *rpcpool.InterruptedError
		proxies     *rpcpool.ProxyError
		tooLarge    *rpcpool.LogsRangeTooLargeError
	)
	switch {
	case errors.As(err, &none):
		return none.Attempts
	case errors.As(err, &interrupted):
		return interrupted.Attempts
	case errors.As(err, &proxies):
		return proxies.Attempts
	case errors.As(err, &tooLarge):
		return tooLarge.Attempts
	}
	return nil
}

// Close in the middle of everything ends every call with ErrClosed, in no more than
// the time that queued reports have, also when several close at once; and nothing
// is left.
func TestCloseInTheMiddleOfACrowd(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		p1, p2 := w.Proxy("p1"), w.Proxy("p2")
		var nodes []*rpcpooltest.Node
		for i := range 6 {
			node := w.Node(fmt.Sprintf("r%d", i+1))
			node.Script(rpcpooltest.Hang())
			if i < 5 {
				node.Script(rpcpooltest.Status(500).Times(3).Delay(100*time.Millisecond), rpcpooltest.Hang())
			}
			nodes = append(nodes, node)
		}
		w.List("1", nodes...)
		w.Pool.Lists("2", rpcpooltest.PoolHang())
		w.Pool.ScriptReports(rpcpooltest.PoolHang())
		pool := open(t, w)

		ended := make(chan error, 192)
		for i := range cap(ended) {
			go func() {
				_, err := pool.Chain([]string{"1", "1", "2"}[i%3]).Call(t.Context(), "eth_blockNumber")
				ended <- err
			}()
		}
		time.Sleep(time.Second)
		require.Empty(t, ended)
		began := time.Now()
		var closers sync.WaitGroup
		for range 3 {
			closers.Go(func() {
				require.NoError(t, pool.Close())
				require.LessOrEqual(t, time.Since(began), 2*time.Second)
			})
		}
		for range cap(ended) {
			require.ErrorIs(t, <-ended, rpcpool.ErrClosed)
		}
		require.Zero(t, time.Since(began), "calls end at once")
		closers.Wait()
		synctest.Wait()
		require.Empty(t, libraryStacks())
		nothingLeft(t, w, p1, p2)
		require.Zero(t, w.Network.OpenConns())
		require.Zero(t, w.Network.PendingDials())
	})
}

// With nothing to send, Close takes no time, also when several close while calls run.
func TestCloseOfManyAtOnceTakesNoTime(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1", w.Node("r1", rpcpooltest.Hang()))
		pool := open(t, w)
		for range 64 {
			go func() { _, _ = pool.Chain("1").Call(t.Context(), "eth_blockNumber") }()
		}
		synctest.Wait()
		began := time.Now()
		var closers sync.WaitGroup
		for range 5 {
			closers.Go(func() { _ = pool.Close() })
		}
		closers.Wait()
		require.Zero(t, time.Since(began))
	})
}
