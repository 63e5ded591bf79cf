package rpcpool_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// slowLogs answers every request after so long, and counts those that it has at once.
type slowLogs struct {
	latency   time.Duration
	now, most atomic.Int64
}

func (s *slowLogs) reply() rpcpooltest.Reply {
	return rpcpooltest.Handle(func(q rpcpooltest.Request) rpcpooltest.Reply {
		now := s.now.Add(1)
		defer s.now.Add(-1)
		s.most.Store(max(s.most.Load(), now))
		select {
		case <-time.After(s.latency):
		case <-q.Context().Done():
		}
		return rpcpooltest.Logs()
	})
}

// 100,000 blocks in pieces of 1,000, each answered after 20 ms: one at a time takes
// the sum of the latencies, eight at once take at most a sixth of that.
func TestLogChunksConcurrencyIsWorthIt(t *testing.T) {
	const pieces, latency = 100, 20 * time.Millisecond
	read := func(concurrency int) (took time.Duration) {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			node := &slowLogs{latency: latency}
			chain, r := logWorld(t, w, node.reply())
			_, err := chain.Call(t.Context(), "eth_blockNumber") // the list is there
			require.NoError(t, err)
			began := time.Now()
			logs, err := chain.GetLogsChunked(t.Context(), rpcpool.LogFilter{FromBlock: 1, ToBlock: 1000 * pieces},
				rpcpool.Concurrency(concurrency))
			took = time.Since(began)
			require.NoError(t, err)
			requireCount(t, 2*pieces, logs)
			require.Len(t, r.Requests(), 1+pieces)
			require.Equal(t, int64(concurrency), node.most.Load(), "pieces under way at once")
		})
		return took
	}
	one, eight := read(1), read(8)
	t.Logf("Concurrency(1): %v, Concurrency(8): %v, %.1f times as fast", one, eight, float64(one)/float64(eight))
	require.InEpsilon(t, pieces*latency, one, 0.05)
	require.LessOrEqual(t, 6*eight, one)
}

// Pieces that are asked for at once go to different RPCs where several are fit; one
// at a time, and an RPC that refuses the span, keep to the ring's order.
func TestLogChunksSpreadOverRPCs(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		nodes := make([]*slowLogs, 4)
		var listed []*rpcpooltest.Node
		for i, name := range []string{"r1", "r2", "r3", "r4"} {
			nodes[i] = &slowLogs{latency: 100 * time.Millisecond}
			listed = append(listed, w.Node(name, nodes[i].reply()))
		}
		narrow := w.Node("r5", rpcpooltest.LogsUpTo(100, rpcpooltest.Error(-32000, "exceed maximum block range: 100")))
		w.List("1", append(listed, narrow)...)
		chain := open(t, w).Chain("1")
		read := func(concurrency int) {
			_, err := chain.GetLogsChunked(t.Context(), rpcpool.LogFilter{FromBlock: 0, ToBlock: 39_999}, rpcpool.Concurrency(concurrency))
			require.NoError(t, err)
		}
		read(1)
		require.Len(t, listed[0].Requests(), 40)
		read(8)
		for i, node := range listed {
			// Two are its share; one that the narrow one refused may come on top.
			require.LessOrEqual(t, nodes[i].most.Load(), int64(3), "%s has more at once than its share", node.Name())
			require.GreaterOrEqual(t, len(node.Requests()), 8, "%s was hardly asked", node.Name())
		}
		require.LessOrEqual(t, len(narrow.Requests()), 2, "the narrow one was asked again for what it refuses")
	})
}

// A slow consumer holds the query back: beside the piece that it has, fewer than
// Concurrency have been asked for, also where pieces were refused and cut on the way.
func TestLogChunksWaitsForItsConsumer(t *testing.T) {
	for name, limit := range map[string]uint64{"taken": 1000, "refused and cut": 130} {
		t.Run(name, func(t *testing.T) {
			for _, concurrency := range []int{1, 2, 5, 16} {
				inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
					var answered atomic.Int64
					chain, _ := logWorld(t, w, rpcpooltest.Handle(func(q rpcpooltest.Request) rpcpooltest.Reply {
						from, to, _ := rpcpooltest.LogRange(q.Params)
						// From block 5000 on an RPC takes less.
						if span := to - from + 1; span > 1000 || to >= 5000 && span > limit {
							return rpcpooltest.Error(-32000, "block range is too wide")
						}
						answered.Add(1)
						return rpcpooltest.Logs()
					}))
					handedOut := int64(0)
					for _, err := range chain.LogChunks(t.Context(), rpcpool.LogFilter{FromBlock: 0, ToBlock: 29_999},
						rpcpool.Concurrency(concurrency)) {
						require.NoError(t, err)
						handedOut++
						time.Sleep(time.Second)
						synctest.Wait()
						ahead := answered.Load() - handedOut
						require.Less(t, ahead, int64(concurrency), "pieces that wait, after %d", handedOut)
					}
					require.Equal(t, handedOut, answered.Load(), "answers that were thrown away")
				})
			}
		})
	}
}

// An early break ends what is under way at once, after refusals as well, and nothing
// is asked for any more.
func TestLogChunksBreakAfterRefusals(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.SetKeepAlive(false)
		p := w.Proxy("p1")
		r := w.Node("r1", rpcpooltest.Handle(func(q rpcpooltest.Request) rpcpooltest.Reply {
			from, to, _ := rpcpooltest.LogRange(q.Params)
			switch {
			case to-from >= 100:
				return rpcpooltest.Error(-32000, "block range is too wide")
			case from > 200:
				return rpcpooltest.Hang()
			}
			return rpcpooltest.Logs()
		}))
		w.List("1", r)
		began, asked := time.Now(), 0
		for chunk, err := range open(t, w).Chain("1").LogChunks(t.Context(), rpcpool.LogFilter{FromBlock: 0, ToBlock: 99_999},
			rpcpool.ChunkSize(800), rpcpool.Concurrency(8)) {
			require.NoError(t, err)
			if chunk.To > 100 {
				synctest.Wait()
				asked = len(r.Requests())
				break
			}
		}
		require.Zero(t, time.Since(began))
		nothingLeft(t, w, p)
		require.Len(t, r.Requests(), asked)
	})
}

// OnProgress is told of each piece that was handed out, on the query's goroutine.
func TestLogsOnProgress(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		chain, _ := logWorld(t, w, rpcpooltest.Logs())
		var told []rpcpool.LogProgress
		_, err := chain.GetLogsChunked(t.Context(), rpcpool.LogFilter{FromBlock: 5, ToBlock: 2500},
			rpcpool.Concurrency(3), rpcpool.OnProgress(func(p rpcpool.LogProgress) { told = append(told, p) }))
		require.NoError(t, err)
		require.Equal(t, []rpcpool.LogProgress{
			{From: 5, To: 2500, Covered: 1004, Logs: 2}, {From: 5, To: 2500, Covered: 2004, Logs: 4}, {From: 5, To: 2500, Covered: 2500, Logs: 6},
		}, told)
	})
}
