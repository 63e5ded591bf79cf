package rpcpool_test

import (
	"context"
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// evmWorld is a world whose RPC serves a chain at block 1000.
func evmWorld(t *testing.T, w *rpcpooltest.World) (*rpcpool.Chain, *rpcpooltest.Node) {
	t.Helper()
	w.Proxy("p1")
	r := w.Node("r1", rpcpooltest.NewEVM(1, 1000).Serve())
	w.List("1", r)
	return open(t, w).Chain("1"), r
}

// Tags mean the block that an RPC names for them, and each is asked for once.
func TestLogBoundsByTag(t *testing.T) {
	for name, c := range map[string]struct {
		from, to any
		want     [2]uint64
		asked    []string
	}{
		"earliest":           {"earliest", 3, [2]uint64{0, 3}, nil},
		"latest":             {990, "latest", [2]uint64{990, 1000}, []string{"eth_blockNumber"}},
		"nil":                {990, nil, [2]uint64{990, 1000}, []string{"eth_blockNumber"}},
		"nil *big.Int":       {990, (*big.Int)(nil), [2]uint64{990, 1000}, []string{"eth_blockNumber"}},
		"both nil":           {nil, nil, [2]uint64{1000, 1000}, []string{"eth_blockNumber"}},
		"pending":            {"latest", "pending", [2]uint64{1000, 1000}, []string{"eth_blockNumber"}},
		"safe":               {960, "safe", [2]uint64{960, 968}, []string{"eth_getBlockByNumber"}},
		"finalized":          {930, "finalized", [2]uint64{930, 936}, []string{"eth_getBlockByNumber"}},
		"finalized to safe":  {"finalized", "safe", [2]uint64{936, 968}, []string{"eth_getBlockByNumber", "eth_getBlockByNumber"}},
		"safe to safe":       {"safe", "safe", [2]uint64{968, 968}, []string{"eth_getBlockByNumber"}},
		"finalized to now":   {"finalized", "latest", [2]uint64{936, 1000}, []string{"eth_getBlockByNumber", "eth_blockNumber"}},
		"hexadecimal digits": {"0x3d4", "980", [2]uint64{980, 980}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				chain, r := evmWorld(t, w)
				var covered [][2]uint64
				for chunk, err := range chain.LogChunks(t.Context(), rpcpool.LogFilter{FromBlock: c.from, ToBlock: c.to}) {
					require.NoError(t, err)
					covered = append(covered, [2]uint64{chunk.From, chunk.To})
					require.Len(t, chunk.Logs, int(chunk.To-chunk.From+1))
				}
				require.Equal(t, [][2]uint64{c.want}, covered)
				var methods []string
				for _, request := range r.Requests() {
					methods = append(methods, request.Method)
				}
				require.Equal(t, append(c.asked, "eth_getLogs"), methods)
			})
		})
	}
}

// A tag that isn't answered by a block is an error, not a block.
func TestLogBoundsThatNobodyKnows(t *testing.T) {
	for name, c := range map[string]struct {
		to    string
		reply rpcpooltest.Reply
	}{
		"no block":              {"safe", rpcpooltest.Result(nil)},
		"no number":             {"finalized", rpcpooltest.Result(map[string]any{"hash": "0x1"})},
		"a number that isn't":   {"finalized", rpcpooltest.Result(map[string]any{"number": 7})},
		"an object of a number": {"safe", rpcpooltest.Result(map[string]any{"number": map[string]any{"blockNumber": "0x1"}})},
		"a head that isn't hex": {"latest", rpcpooltest.Result(7)},
		"a head beyond blocks":  {"latest", rpcpooltest.Result("0xffffffffffffffff")},
		"null for a head":       {"pending", rpcpooltest.Result(nil)},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				w.Proxy("p1")
				w.List("1", w.Node("r1", c.reply))
				logs, err := open(t, w).Chain("1").GetLogsChunked(t.Context(), rpcpool.LogFilter{FromBlock: 1, ToBlock: c.to})
				require.ErrorAs(t, err, new(*rpcpool.MalformedResponseError))
				require.Nil(t, logs)
			})
		})
	}
}

// From after to is an empty list, and nothing is asked for beyond the bounds.
func TestLogBoundsFromAfterTo(t *testing.T) {
	for name, c := range map[string]struct {
		from, to any
		asked    int
	}{
		"numbers":             {10, 9, 0},
		"far apart":           {uint64(math.MaxUint64), 0, 0},
		"from beyond head":    {1001, "latest", 1},
		"latest to the first": {"latest", "earliest", 1},
		"safe after final":    {"safe", "finalized", 2},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				chain, r := evmWorld(t, w)
				filter := rpcpool.LogFilter{FromBlock: c.from, ToBlock: c.to}
				logs, err := chain.GetLogsChunked(t.Context(), filter, rpcpool.Concurrency(4))
				require.NoError(t, err)
				require.NotNil(t, logs, "a list, if an empty one")
				require.Empty(t, logs)
				require.Len(t, r.Requests(), c.asked)
				for chunk, err := range chain.LogChunks(t.Context(), filter) {
					t.Error("a piece of nothing", chunk, err)
				}
			})
		})
	}
}

// The last block numbers that there are don't make the pieces run over: each is
// covered once, and the query ends, whatever RPCs refuse.
func TestLogBoundsUpToTheLastNumber(t *testing.T) {
	const last = uint64(math.MaxUint64)
	for name, c := range map[string]struct {
		from  uint64
		chunk uint64
		limit uint64
	}{
		"one block":              {last, 1000, 0},
		"one piece":              {last - 999, 1000, 0},
		"pieces":                 {last - 2500, 1000, 0},
		"refused":                {last - 2500, 1000, 300},
		"all there are":          {0, last, 0},
		"all but one":            {1, last, 0},
		"all, refused at first":  {0, last, last/3 + 1},
		"all, in huge pieces":    {0, last / 5, 0},
		"a chunk beyond the end": {last - 5, last, 0},
	} {
		t.Run(name, func(t *testing.T) {
			for _, concurrency := range []int{1, 3} {
				inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
					chain, _ := logWorld(t, w, rpcpooltest.LogsUpTo(c.limit, rpcpooltest.Error(-32000, "block range is too wide")))
					for range 2 { // the second time with what was learned
						next, pieces := c.from, 0
						for chunk, err := range chain.LogChunks(t.Context(), rpcpool.LogFilter{FromBlock: c.from, ToBlock: last},
							rpcpool.ChunkSize(c.chunk), rpcpool.Concurrency(concurrency)) {
							require.NoError(t, err)
							require.Equal(t, next, chunk.From)
							require.GreaterOrEqual(t, chunk.To, chunk.From)
							next = chunk.To + 1
							pieces++
							require.Less(t, pieces, 100, "it runs on")
						}
						require.Zero(t, next, "it ended before the last block")
						require.NotZero(t, pieces)
					}
				})
			}
		})
	}
}

// Numbers beyond the head: an RPC that refuses them ends the query with an error
// that names the block, one that answers with nothing is believed unless heads are
// checked, and a caller's end ends a query that would last for ever.
func TestLogBoundsBeyondTheHead(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		chain, _ := evmWorld(t, w) // it says "header not found"
		logs, err := chain.GetLogsChunked(t.Context(), rpcpool.LogFilter{FromBlock: 501, ToBlock: uint64(math.MaxUint64)}, rpcpool.ChunkSize(100))
		requireCount(t, 500, logs)
		var broken *rpcpool.LogsError
		require.ErrorAs(t, err, &broken)
		require.Equal(t, uint64(1001), broken.NextBlock)
	})
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		chain, r := logWorld(t, w, rpcpooltest.Result([]any{}))
		beyond := rpcpool.LogFilter{FromBlock: 5000, ToBlock: 5999}
		logs, err := chain.GetLogsChunked(t.Context(), beyond)
		require.NoError(t, err)
		require.Empty(t, logs)
		_, err = chain.GetLogsChunked(t.Context(), beyond, rpcpool.CheckHeads())
		require.ErrorContains(t, err, "the RPC is at block 1000, and block 5999 is asked for")
		require.Equal(t, 1, asked(r, "eth_getLogs"))
	})
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		chain, _ := logWorld(t, w, rpcpooltest.Result([]any{}).Delay(time.Second))
		_, err := chain.GetLogsChunked(within(t, 10*time.Second), rpcpool.LogFilter{FromBlock: 0, ToBlock: uint64(math.MaxUint64)}, rpcpool.Concurrency(2))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		var broken *rpcpool.LogsError
		require.ErrorAs(t, err, &broken)
		require.InDelta(t, 18_000, broken.NextBlock, 2000)
	})
}

// Numbers that aren't whole, negative ones and such as have no place among blocks
// are refused before anything is sent; so are floats that may have lost digits.
func TestLogBoundsThatAreNone(t *testing.T) {
	for name, bound := range map[string]any{
		"fraction": 0.5, "negative": -1, "negative text": "-1", "negative hex": "-0x1", "float beyond its digits": float64(1 << 53),
		"not a number": math.NaN(), "infinite": math.Inf(1), "negative float": -1.0, "fraction text": "1.5", "exponent": "1e3",
		"2^64": "18446744073709551616", "2^64 hex": "0x10000000000000000", "hex without digits": "0x", "hex with a sign": "0x-1",
		"spaces": " 1", "underscores": "1_000", "capital tag": "Latest", "bool": true, "minimum": int64(math.MinInt64),
	} {
		for _, filter := range []rpcpool.LogFilter{{FromBlock: bound, ToBlock: "latest"}, {FromBlock: "safe", ToBlock: bound}} {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				chain, _ := evmWorld(t, w)
				_, err := chain.GetLogsChunked(t.Context(), filter)
				require.ErrorAs(t, err, new(*rpcpool.RequestError), name)
				require.ErrorContains(t, err, "a block number", name)
				require.Empty(t, w.Requests(), name)
			})
		}
	}
}

// A filter with a block's hash is one query, whatever else is asked for; what it has
// too much of is told without a block's number.
func TestLogsOfABlockByItsHash(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		evm := rpcpooltest.NewEVM(1, 1000)
		r := w.Node("r1", evm.Serve())
		w.List("1", r)
		chain := open(t, w).Chain("1")
		filter := rpcpool.LogFilter{BlockHash: evm.Hash(990)}
		options := []rpcpool.LogsOption{rpcpool.Concurrency(8), rpcpool.CheckHeads()}
		logs, err := chain.GetLogsChunked(t.Context(), filter, options...)
		require.NoError(t, err)
		requireCount(t, 1, logs)
		require.Len(t, r.Requests(), 1)

		r.Script(rpcpooltest.Result([]any{1, 2, 3}))
		_, err = chain.GetLogsChunked(t.Context(), filter, append(options, rpcpool.MaxResults(2))...)
		require.ErrorContains(t, err, "the block has more than MaxResults(2) logs")
		require.NotErrorAs(t, err, new(*rpcpool.LogsError))
	})
}
