package rpcpool_test

import (
	"encoding/json"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// logWorld is a world with one RPC that serves logs and stands at block 1000.
func logWorld(t *testing.T, w *rpcpooltest.World, logs rpcpooltest.Reply) (*rpcpool.Chain, *rpcpooltest.Node) {
	t.Helper()
	w.Proxy("p1")
	r := w.Node("r1", logs.Method("eth_getLogs"), rpcpooltest.Result("0x3e8").Method("eth_blockNumber"))
	w.List("1", r)
	return open(t, w).Chain("1"), r
}

// Every form of a bound that LogFilter names means what it says (rule A9.1).
func TestLogBoundsInEveryForm(t *testing.T) {
	for name, bound := range map[string]any{
		"int": 990, "uint64": uint64(990), "int8": int8(99), "big": big.NewInt(990), "hex": "0x3de", "upper hex": "0x3DE",
		"decimal": "990", "json number": json.Number("990"), "whole float": 990.0,
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				chain, _ := logWorld(t, w, rpcpooltest.Logs())
				var chunks []rpcpool.LogChunk
				for chunk, err := range chain.LogChunks(t.Context(), rpcpool.LogFilter{FromBlock: bound, ToBlock: bound}) {
					require.NoError(t, err)
					chunks = append(chunks, chunk)
				}
				require.Len(t, chunks, 1)
				want := uint64(990)
				if name == "int8" {
					want = 99
				}
				require.Equal(t, want, chunks[0].From)
				require.Equal(t, want, chunks[0].To)
				require.Len(t, chunks[0].Logs, 1)
			})
		})
	}
}

// A filter that can't be is refused before anything is sent.
func TestLogFilterThatCantBeIsRefused(t *testing.T) {
	for name, filter := range map[string]rpcpool.LogFilter{
		"negative":           {FromBlock: -1},
		"negative big":       {FromBlock: big.NewInt(-1)},
		"beyond uint64":      {ToBlock: new(big.Int).Lsh(big.NewInt(1), 64)},
		"fraction":           {ToBlock: 1.5},
		"word":               {ToBlock: "soon"},
		"empty text":         {ToBlock: ""},
		"empty hex":          {ToBlock: "0x"},
		"another type":       {ToBlock: []int{1}},
		"hash and from":      {BlockHash: "0xab", FromBlock: 1},
		"hash and to":        {BlockHash: "0xab", ToBlock: "latest"},
		"unknown tag":        {FromBlock: "soonest"},
		"unmarshallable":     {Address: func() {}, FromBlock: 1, ToBlock: 2},
		"unmarshallable too": {Topics: []any{make(chan int)}, FromBlock: 1, ToBlock: 2},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				chain, _ := logWorld(t, w, rpcpooltest.Logs())
				logs, err := chain.GetLogsChunked(t.Context(), filter)
				var refused *rpcpool.RequestError
				require.ErrorAs(t, err, &refused)
				require.Nil(t, logs)
				require.Empty(t, w.Requests())
			})
		})
	}
}

// Address, topics and the block hash are sent as they are given.
func TestLogFilterIsSentAsGiven(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		chain, r := logWorld(t, w, rpcpooltest.Result([]any{}))
		_, err := chain.GetLogsChunked(t.Context(), rpcpool.LogFilter{
			Address: []string{"0xa", "0xb"}, Topics: []any{nil, "0x1", []string{"0x2", "0x3"}}, FromBlock: 1, ToBlock: 2,
		})
		require.NoError(t, err)
		_, err = chain.GetLogsChunked(t.Context(), rpcpool.LogFilter{BlockHash: "0xab"})
		require.NoError(t, err)
		requests := r.Requests()
		require.JSONEq(t, `[{"address":["0xa","0xb"],"topics":[null,"0x1",["0x2","0x3"]],"fromBlock":"0x1","toBlock":"0x2"}]`, string(requests[0].Params))
		require.JSONEq(t, `[{"blockHash":"0xab"}]`, string(requests[1].Params))
	})
}

// MaxResults ends the query with an error that says so, instead of growing.
func TestGetLogsChunkedMaxResults(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		chain, r := logWorld(t, w, rpcpooltest.Logs())
		filter := rpcpool.LogFilter{FromBlock: 0, ToBlock: 999}
		logs, err := chain.GetLogsChunked(t.Context(), filter, rpcpool.ChunkSize(100), rpcpool.MaxResults(20))
		require.NoError(t, err)
		require.Len(t, logs, 20)
		asked := len(r.Requests())
		_, err = chain.GetLogsChunked(t.Context(), filter, rpcpool.ChunkSize(100), rpcpool.MaxResults(7))
		require.ErrorContains(t, err, "MaxResults(7)")
		require.Equal(t, 4, len(r.Requests())-asked, "it went on asking")
	})
}

// Breaking off an iteration ends what is under way at once.
func TestLogChunksBreakEndsWhatIsUnderWay(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.SetKeepAlive(false)
		p := w.Proxy("p1")
		r := w.Node("r1", rpcpooltest.Handle(func(request rpcpooltest.Request) rpcpooltest.Reply {
			if from, _, _ := rpcpooltest.LogRange(request.Params); from > 0 {
				return rpcpooltest.Hang()
			}
			return rpcpooltest.Logs()
		}))
		w.List("1", r)
		start := time.Now()
		for _, err := range open(t, w).Chain("1").LogChunks(t.Context(), rpcpool.LogFilter{FromBlock: 0, ToBlock: 99},
			rpcpool.ChunkSize(10), rpcpool.Concurrency(4)) {
			require.NoError(t, err)
			break
		}
		require.Zero(t, time.Since(start))
		nothingLeft(t, w, p)
	})
}

// A refused piece is cut while others are under way, and each block is covered once,
// in order, whatever is asked for at once.
func TestLogChunksCoverEachBlockOnce(t *testing.T) {
	for _, concurrency := range []int{1, 2, 3, 8, 16} {
		for _, limit := range []uint64{1, 7, 100, 999, 1000} {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				chain, _ := logWorld(t, w, rpcpooltest.LogsUpTo(limit, rpcpooltest.Error(-32000, "block range is too wide")))
				next := uint64(3)
				for chunk, err := range chain.LogChunks(t.Context(), rpcpool.LogFilter{FromBlock: 3, ToBlock: 3002},
					rpcpool.Concurrency(concurrency)) {
					require.NoError(t, err)
					require.Equal(t, next, chunk.From)
					require.LessOrEqual(t, chunk.To-chunk.From+1, limit)
					next = chunk.To + 1
				}
				require.Equal(t, uint64(3003), next, "concurrency %d, limit %d", concurrency, limit)
			})
		}
	}
}
