package rpcpool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// Whatever ends a query, the error names the first block that isn't covered, the
// logs before it come with it, and a query from there on gives the rest: each log
// exactly once (rule A9.4).
func TestGetLogsChunkedResumesWhereItEnded(t *testing.T) {
	for seed := range uint64(50) {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			random, chance := rand.New(rand.NewPCG(seed, 5)), rand.New(rand.NewPCG(seed, 6))
			var mu sync.Mutex // protects chance
			w.Proxy("p1")
			r := w.Node("r1", rpcpooltest.Handle(func(q rpcpooltest.Request) rpcpooltest.Reply {
				mu.Lock()
				defer mu.Unlock()
				switch from, to, _ := rpcpooltest.LogRange(q.Params); {
				case to-from >= 150:
					return rpcpooltest.Error(-32000, "block range is too wide")
				case chance.IntN(12) == 0:
					return []rpcpooltest.Reply{
						rpcpooltest.Error(-32000, "something odd"), rpcpooltest.Status(400), rpcpooltest.Status(503), rpcpooltest.Result("no list"),
					}[chance.IntN(4)]
				default:
					return logList(q, everyLog(from, to))
				}
			}))
			w.List("1", r)
			chain := open(t, w).Chain("1")
			const last = uint64(4_999)
			var got []json.RawMessage
			next, ended := uint64(0), 0
			for {
				ctx, cancel := context.WithCancel(t.Context())
				giveUp := random.IntN(20) // after so many pieces the caller himself ends it
				logs, err := chain.GetLogsChunked(ctx, rpcpool.LogFilter{FromBlock: next, ToBlock: last},
					rpcpool.ChunkSize(400), rpcpool.Concurrency(1+random.IntN(8)),
					rpcpool.OnProgress(func(rpcpool.LogProgress) {
						if giveUp--; giveUp == 0 {
							cancel()
						}
					}))
				cancel()
				got = append(got, logs...)
				if err == nil {
					break
				}
				var broken *rpcpool.LogsError
				require.ErrorAs(t, err, &broken)
				require.ErrorContains(t, err, fmt.Sprintf("failed at block %d,", broken.NextBlock))
				requireCount(t, int(broken.NextBlock-next), logs, "the logs before the block that the error names")
				next = broken.NextBlock
				ended++
				time.Sleep(20 * time.Minute)
			}
			require.NotZero(t, ended, "nothing went wrong, so nothing was tested")
			want := everyLog(0, last)
			requireCount(t, len(want), got)
			for i := range want {
				if want[i] != string(got[i]) {
					require.Equal(t, want[i], string(got[i]))
				}
			}
		})
	}
}

// everyLog is one log for each block.
func everyLog(from, to uint64) (logs []string) {
	for block := from; block <= to; block++ {
		logs = append(logs, strconv.FormatUint(block, 10))
	}
	return logs
}

// The causes of an error are found in it, and those of a caller that gave up are
// his own.
func TestLogsErrorHoldsItsCause(t *testing.T) {
	for name, cause := range map[string]struct {
		reply rpcpooltest.Reply
		as    any
	}{
		"the request's":  {rpcpooltest.Error(-32000, "something odd"), new(*rpcpool.RPCError)},
		"HTTP":           {rpcpooltest.Status(400), new(*rpcpool.HTTPError)},
		"nobody answers": {rpcpooltest.Status(500), new(*rpcpool.NoHealthyRPCError)},
		"no list":        {rpcpooltest.Result(map[string]any{}), new(*rpcpool.MalformedResponseError)},
		"null":           {rpcpooltest.Result(nil), new(*rpcpool.MalformedResponseError)},
		"too much":       {rpcpooltest.Error(-32005, "query returned more than 10000 results"), new(*rpcpool.LogsRangeTooLargeError)},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				chain, _ := logWorld(t, w, cause.reply)
				logs, err := chain.GetLogsChunked(t.Context(), rpcpool.LogFilter{FromBlock: 7, ToBlock: 9})
				require.Empty(t, logs)
				require.ErrorAs(t, err, cause.as)
				var broken *rpcpool.LogsError
				require.ErrorAs(t, err, &broken)
				require.Equal(t, uint64(7), broken.NextBlock)
			})
		})
	}
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		chain, _ := logWorld(t, w, rpcpooltest.Hang())
		_, err := chain.GetLogsChunked(within(t, time.Second), rpcpool.LogFilter{FromBlock: 7, ToBlock: 9}, rpcpool.Concurrency(2))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorAs(t, err, new(*rpcpool.LogsError))
	})
}

// A single block with more logs than the RPCs give can't be cut. The error says so,
// and doesn't advise to ask for fewer blocks (rule A9.5).
func TestOneBlockThatIsTooMuch(t *testing.T) {
	for _, concurrency := range []int{1, 4} {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			chain, _ := logWorld(t, w, rpcpooltest.Handle(func(q rpcpooltest.Request) rpcpooltest.Reply {
				from, to, _ := rpcpooltest.LogRange(q.Params)
				if from <= 77 && to >= 77 {
					return rpcpooltest.Error(-32005, "query returned more than 10000 results")
				}
				return logList(q, everyLog(from, to))
			}))
			logs, err := chain.GetLogsChunked(t.Context(), rpcpool.LogFilter{FromBlock: 0, ToBlock: 999}, rpcpool.Concurrency(concurrency))
			requireCount(t, 77, logs)
			require.ErrorAs(t, err, new(*rpcpool.LogsRangeTooLargeError))
			require.ErrorAs(t, errors.Unwrap(err), new(rpcpool.Error))
			require.ErrorContains(t, err, "block 77 alone has more results than the RPCs give")
			require.ErrorContains(t, err, "query returned more than 10000 results")
			require.NotContains(t, err.Error(), "fewer blocks")
		})
	}
}

// headWorld has three RPCs, at block 1000 for all that the list knows of them: one
// that is 60 blocks behind the head of 1100 and answers without the logs that it
// lacks, one that is at the head, and one that doesn't say where it is.
func headWorld(t *testing.T, w *rpcpooltest.World) (chain *rpcpool.Chain, behind, atHead *rpcpooltest.Node) {
	w.Proxy("p1")
	evm := rpcpooltest.NewEVM(1, 1100)
	behind = w.Node("behind", rpcpooltest.Handle(lenient(1040)))
	atHead = w.Node("athead", evm.Serve())
	silent := w.Node("silent",
		rpcpooltest.Error(-32601, "the method eth_blockNumber does not exist").Method("eth_blockNumber"), rpcpooltest.Handle(lenient(1000)))
	w.List("1", behind, atHead, silent)
	return open(t, w).Chain("1"), behind, atHead
}

// lenient answers for blocks beyond its head as if there were no logs in them.
func lenient(head uint64) func(q rpcpooltest.Request) rpcpooltest.Reply {
	return func(q rpcpooltest.Request) rpcpooltest.Reply {
		if q.Method == "eth_blockNumber" {
			return rpcpooltest.Result(fmt.Sprintf("0x%x", head))
		}
		from, to, _ := rpcpooltest.LogRange(q.Params)
		return logList(q, everyLog(from, min(to, head)))
	}
}

// An RPC that lags is passed over for blocks that it lacks, and isn't blamed; without
// the option its answer is taken for the truth. Heads are asked for once.
func TestCheckHeadsPassesOverWhoLags(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		chain, behind, atHead := headWorld(t, w)
		filter := rpcpool.LogFilter{FromBlock: 901, ToBlock: 1100}
		believed, err := chain.GetLogsChunked(t.Context(), filter, rpcpool.ChunkSize(50))
		require.NoError(t, err)
		requireCount(t, 140, believed, "the logs of blocks 1041 to 1100 are lost")

		logs, err := chain.GetLogsChunked(t.Context(), filter, rpcpool.ChunkSize(50), rpcpool.CheckHeads())
		require.NoError(t, err)
		requireCount(t, 200, logs)
		_, err = chain.GetLogsChunked(t.Context(), filter, rpcpool.ChunkSize(50), rpcpool.CheckHeads())
		require.NoError(t, err)
		require.Equal(t, 1, asked(atHead, "eth_blockNumber"), "its head was asked for again")
		require.LessOrEqual(t, asked(behind, "eth_blockNumber"), 2)
		require.Empty(t, w.Pool.Reports())
	})
}

func asked(node *rpcpooltest.Node, method string) (count int) {
	for _, request := range node.Requests() {
		if request.Method == method {
			count++
		}
	}
	return count
}

// Where no RPC has the last block, the query ends before the piece that needs it,
// and what is covered is covered.
func TestCheckHeadsEndsWhereNobodyIs(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		chain, _, _ := headWorld(t, w)
		logs, err := chain.GetLogsChunked(t.Context(), rpcpool.LogFilter{FromBlock: 901, ToBlock: 5000},
			rpcpool.ChunkSize(50), rpcpool.Concurrency(3), rpcpool.CheckHeads())
		requireCount(t, 200, logs)
		var broken *rpcpool.LogsError
		require.ErrorAs(t, err, &broken)
		require.Equal(t, uint64(1101), broken.NextBlock)
		require.ErrorAs(t, err, new(*rpcpool.NoHealthyRPCError))
		require.ErrorContains(t, err, "the RPC is at block 1100, and block 1150 is asked for")
	})
}

// An RPC that comes by the last block between its answer and the question for its
// head must not seem to have answered for it.
func TestCheckHeadsComesBeforeTheLogs(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		var mu sync.Mutex
		head := uint64(1005)
		r := w.Node("r1", rpcpooltest.Handle(func(q rpcpooltest.Request) rpcpooltest.Reply {
			mu.Lock()
			defer mu.Unlock()
			defer func() { head += 5 }() // while the answer is on its way
			return lenient(head)(q)
		}))
		w.List("1", r)
		logs, err := open(t, w).Chain("1").GetLogsChunked(t.Context(), rpcpool.LogFilter{FromBlock: 1001, ToBlock: 1010}, rpcpool.CheckHeads())
		if err == nil {
			requireCount(t, 10, logs, "a short answer was believed")
		}
		require.ErrorAs(t, err, new(*rpcpool.NoHealthyRPCError))
	})
}

// What the caller does with his slices while the query runs changes nothing.
func TestLogFilterIsReadOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		chain, r := logWorld(t, w, rpcpooltest.Logs())
		filter := rpcpool.LogFilter{Address: []string{"0xa"}, Topics: []any{"0x1"}, FromBlock: 0, ToBlock: 99}
		for _, err := range chain.LogChunks(t.Context(), filter, rpcpool.ChunkSize(10)) {
			require.NoError(t, err)
			filter.Address.([]string)[0], filter.Topics[0] = "0xb", "0x2"
		}
		for _, request := range r.Requests() {
			require.Contains(t, string(request.Params), `"address":["0xa"]`)
			require.Contains(t, string(request.Params), `"topics":["0x1"]`)
		}
	})
}
