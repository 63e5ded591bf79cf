package rpcpool_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
)

// Streaming far more logs than fit holds at most Concurrency pieces: the heap stays
// under four times the largest piece times Concurrency, over where it was before.
// It streams 2 GB; on a machine that is too slow or too busy for that, what comes in
// 15 s, but at least 512 MB, which is four times the bound.
func TestLogChunksHoldsFewPieces(t *testing.T) {
	if testing.Short() || underRace {
		t.Skip("it streams gigabytes")
	}
	const (
		concurrency = 4
		all, enough = 2 << 30, 512 << 20
		longest     = 15 * time.Second
	)
	chain := streamingChain(t)
	heap := watchHeap(t)
	began, total := time.Now(), 0
	for chunk, err := range chain.LogChunks(t.Context(), rpcpool.LogFilter{FromBlock: 0, ToBlock: uint64(1) << 60},
		rpcpool.Concurrency(concurrency)) {
		require.NoError(t, err)
		for _, log := range chunk.Logs {
			total += len(log)
		}
		if total >= all || total >= enough && time.Since(began) > longest {
			break
		}
	}
	took, most := time.Since(began), heap.stop()
	t.Logf("%d MB of logs in %v; the heap grew by %d MB at most, %.1f pieces for each at once",
		total>>20, took.Round(time.Millisecond), most>>20, float64(most)/logPieceBytes/concurrency)
	require.Less(t, most, 4*logPieceBytes*concurrency)
}

// MaxResults ends a collection that would not fit, and nothing grows until then.
func TestGetLogsChunkedMaxResultsBoundsTheHeap(t *testing.T) {
	if underRace {
		t.Skip("what it measures isn't the library's alone")
	}
	chain := streamingChain(t)
	heap := watchHeap(t)
	logs, err := chain.GetLogsChunked(t.Context(), rpcpool.LogFilter{FromBlock: 0, ToBlock: uint64(1) << 60},
		rpcpool.MaxResults(2*logsInPiece), rpcpool.Concurrency(2))
	require.ErrorContains(t, err, fmt.Sprintf("more than MaxResults(%d) logs by block 2999", 2*logsInPiece))
	var ended *rpcpool.LogsError
	require.ErrorAs(t, err, &ended)
	require.Equal(t, uint64(2000), ended.NextBlock)
	require.Len(t, logs, 2*logsInPiece)
	require.Less(t, heap.stop(), 4*logPieceBytes*(2+2), "two pieces collected, two under way")
}

const (
	logPieceBytes = 8 << 20
	logsInPiece   = logPieceBytes / 512
)

// streamingChain is a chain with one RPC that gives logPieceBytes of logs for every
// range. Its server, an HTTP proxy in front of it at the same time, sends the same
// few bytes again and again, so that it holds nothing of what it sends.
func streamingChain(t *testing.T) *rpcpool.Chain {
	server := httptest.NewServer(http.HandlerFunc(streamLogs))
	t.Cleanup(server.Close)
	pool, err := rpcpool.New(rpcpool.Config{
		Proxies:   []string{server.URL},
		Directory: logsDirectory{},
		CacheDir:  t.TempDir(),
		Timeout:   time.Minute,
		Logger:    slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = pool.Close() })
	chain := pool.Chain("1")
	_, err = chain.Call(t.Context(), "eth_blockNumber") // the list and a connection are there
	require.NoError(t, err)
	return chain
}

type logsDirectory struct{}

func (logsDirectory) RPCs(context.Context, string) (*rpcpool.List, error) {
	return &rpcpool.List{Key: "eip155:1", RPCs: []rpcpool.RPC{
		{URL: "http://logs.test/key", Caps: rpcpool.Caps{Logs: new(uint64(10_000))}},
	}}, nil
}

func (logsDirectory) Report(context.Context, rpcpool.Report) error { return nil }

var oneLog, logBatch = func() (one, batch string) {
	one = fmt.Sprintf(`{"address":"0x%040x","topics":["0x%064x"],"blockNumber":"0x1","data":"0x`, 1, 2)
	one += strings.Repeat("a", 512-len(one)-len(`"},`)) + `"}`
	return one, strings.Repeat(one+",", 64)
}()

func streamLogs(w http.ResponseWriter, r *http.Request) {
	var request struct {
		ID     json.RawMessage
		Method string
	}
	if json.NewDecoder(r.Body).Decode(&request) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	head := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":`, request.ID)
	if request.Method != "eth_getLogs" {
		_, _ = io.WriteString(w, head+`"0x1"}`)
		return
	}
	head += "["
	const tail = "]}"
	batches := logsInPiece/64 - 1
	length := len(head) + batches*len(logBatch) + 64*(len(oneLog)+1) - 1 + len(tail)
	w.Header().Set("Content-Length", strconv.Itoa(length))
	_, _ = io.WriteString(w, head)
	for range batches {
		_, _ = io.WriteString(w, logBatch)
	}
	_, _ = io.WriteString(w, strings.TrimSuffix(logBatch, ",")+tail)
}

// heapWatch samples the heap.
type heapWatch struct {
	done    chan struct{}
	watcher sync.WaitGroup
	before  uint64
	most    uint64
}

// watchHeap begins to sample what objects take in the heap, dead ones that weren't
// collected yet included. So that these are few, the collector is made eager: what
// is measured is what has to be held, not what the collector may leave lying.
func watchHeap(t *testing.T) *heapWatch {
	eager := debug.SetGCPercent(10)
	t.Cleanup(func() { debug.SetGCPercent(eager) })
	runtime.GC()
	h := &heapWatch{done: make(chan struct{}), before: heapObjects()}
	h.watcher.Go(func() {
		ticks := time.NewTicker(2 * time.Millisecond)
		defer ticks.Stop()
		for {
			select {
			case <-ticks.C:
				h.most = max(h.most, heapObjects())
			case <-h.done:
				return
			}
		}
	})
	return h
}

// stop gives by how much the heap grew at most.
func (h *heapWatch) stop() int {
	close(h.done)
	h.watcher.Wait()
	return int(max(h.most, h.before) - h.before)
}

func heapObjects() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
