package rpcpool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// elems makes a batch of so many calls, each with a param of its own.
func elems(n int) []rpcpool.BatchElem {
	batch := make([]rpcpool.BatchElem, n)
	for i := range batch {
		batch[i] = rpcpool.BatchElem{Method: "echo", Args: []any{i}, Result: new(int)}
	}
	return batch
}

// requireEchoed checks that each element has the answer to it, and not to another one.
func requireEchoed(t *testing.T, batch []rpcpool.BatchElem) {
	t.Helper()
	for i := range batch {
		require.NoError(t, batch[i].Error)
		require.Equal(t, batch[i].Args[0], *batch[i].Result.(*int))
	}
}

// giveBack gives a request its first param back.
func giveBack(q rpcpooltest.Request) rpcpooltest.Reply {
	var param json.RawMessage
	if err := q.Param(0, &param); err != nil {
		return rpcpooltest.Error(-32602, err.Error())
	}
	return rpcpooltest.Result(param)
}

// inBatch tells whether a request came in a batch.
func inBatch(q rpcpooltest.Request) bool { return q.Body[0] == '[' }

// batchIDs gives the ids of a batch's requests, in order.
func batchIDs(q rpcpooltest.Request) (ids []string) {
	var requests []struct{ ID json.RawMessage }
	if err := json.Unmarshal(q.Body, &requests); err != nil {
		panic(err)
	}
	for _, r := range requests {
		ids = append(ids, string(r.ID))
	}
	return ids
}

// answerOf is an answer with the result n.
func answerOf(id string, n int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%d}`, id, n)
}

// whole answers a batch by this body.
func whole(parts ...string) rpcpooltest.Reply {
	return rpcpooltest.Body("[" + strings.Join(parts, ",") + "]")
}

// Calls that go to the same RPC travel as one batch, each gets its own answer whatever
// the order of the answers, and an error of one is that one's alone (rule E2).
func TestBatchTravelsAsOneAndAnswersEach(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		r := w.Node("r1", rpcpooltest.Handle(func(q rpcpooltest.Request) rpcpooltest.Reply {
			ids := batchIDs(q)
			return whole(answerOf(ids[3], 3),
				fmt.Sprintf(`{"id":%s,"error":{"code":3,"message":"execution reverted","data":"0x08c379a0"}}`, ids[1]),
				answerOf(`"`+ids[2]+`"`, 2), // the number as a text is as good
				answerOf(ids[0], 0))
		}))
		w.List("1", r)
		batch := elems(4)
		batch[3].Result = nil
		start := time.Now()
		require.NoError(t, open(t, w).Chain("1").BatchCallContext(t.Context(), batch))
		require.Zero(t, time.Since(start), "nobody waits for nobody")
		require.Equal(t, []string{"r1 p1 batch"}, arrived(w))
		require.Equal(t, 0, *batch[0].Result.(*int))
		require.Equal(t, 2, *batch[2].Result.(*int))
		for _, i := range []int{0, 2, 3} {
			require.NoError(t, batch[i].Error)
		}
		var reverted *rpcpool.RPCError
		require.ErrorAs(t, batch[1].Error, &reverted)
		require.Equal(t, rpcpool.RPCError{Code: 3, Message: "execution reverted", Data: json.RawMessage(`"0x08c379a0"`)}, *reverted)
	})
}

// What is wrong with one element (params that aren't JSON, a result that doesn't fit,
// no method) is that element's error; the others are sent.
func TestBatchElementsOwnFaults(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1", w.Node("r1", rpcpooltest.Handle(giveBack)))
		batch := elems(5)
		batch[0].Args = []any{math.Inf(1)}
		batch[1].Method = ""
		batch[2].Args = []any{"text"}
		batch[3].Error = errors.New("left over from before")
		require.NoError(t, open(t, w).Chain("1").BatchCallContext(t.Context(), batch))
		var unsendable *rpcpool.RequestError
		require.ErrorAs(t, batch[0].Error, &unsendable)
		require.ErrorAs(t, batch[1].Error, &unsendable)
		var malformed *rpcpool.MalformedResponseError
		require.ErrorAs(t, batch[2].Error, &malformed)
		require.Equal(t, "echo", malformed.Method)
		require.NoError(t, batch[3].Error)
		require.Equal(t, 4, *batch[4].Result.(*int))
	})
}

// No elements are nothing to do; one is an ordinary call.
func TestBatchOfNoneAndOfOne(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1", w.Node("r1", rpcpooltest.Handle(giveBack)))
		chain := open(t, w).Chain("1")
		require.NoError(t, chain.BatchCallContext(t.Context(), nil))
		require.Empty(t, arrived(w))
		batch := elems(1)
		require.NoError(t, chain.BatchCallContext(t.Context(), batch))
		requireEchoed(t, batch)
		require.Equal(t, []string{"r1 p1 echo"}, arrived(w))
	})
}

// gethElem has the fields of go-ethereum's rpc.BatchElem.
type gethElem struct {
	Method string
	Args   []any
	Result any
	Error  error
}

// Elements of another package's type with the same fields do as well.
func TestBatchCallTakesGoEthereumsElements(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1", w.Node("r1", rpcpooltest.Handle(giveBack)))
		var number int
		batch := []gethElem{{Method: "echo", Args: []any{7}, Result: &number}, {Method: "echo"}}
		require.NoError(t, rpcpool.BatchCall(t.Context(), open(t, w).Chain("1"), batch))
		require.Equal(t, 7, number)
		require.NoError(t, batch[0].Error)
		var refused *rpcpool.RPCError
		require.ErrorAs(t, batch[1].Error, &refused)
	})
}

// An RPC that takes no batches, in whatever way it says so, is asked one by one at
// once and isn't blamed; for 600 s nobody tries again (rule E2).
func TestBatchRefusedByAnRPCThatTakesNone(t *testing.T) {
	tooLarge := func(q rpcpooltest.Request) rpcpooltest.Reply { // as geth says it
		return whole(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32600,"message":"batch too large"}}`, batchIDs(q)[0]))
	}
	eachRefused := func(q rpcpooltest.Request) rpcpooltest.Reply {
		var parts []string
		for _, id := range batchIDs(q) {
			parts = append(parts, fmt.Sprintf(`{"id":%s,"error":{"code":-32000,"message":"Batch requests aren't supported"}}`, id))
		}
		return whole(parts...)
	}
	reply := func(r rpcpooltest.Reply) func(rpcpooltest.Request) rpcpooltest.Reply {
		return func(rpcpooltest.Request) rpcpooltest.Reply { return r }
	}
	for name, refuse := range map[string]func(rpcpooltest.Request) rpcpooltest.Reply{
		"one error":       reply(rpcpooltest.Body(`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid Request"}}`)),
		"one error, busy": reply(rpcpooltest.Body(`{"jsonrpc":"2.0","id":null,"error":{"code":-32005,"message":"limit exceeded"}}`)),
		"Besu's":          reply(rpcpooltest.Body(`{"jsonrpc":"2.0","id":null,"error":{"code":-32005,"message":"Number of requests exceeds max batch size"}}`)),
		"dRPC's": reply(rpcpooltest.Body(`{"id":null,"error":{"code":31,"message":"Batch of more than 3 requests are not allowed on free tier"}}`).
			WithStatus(500)),
		"one result":           func(q rpcpooltest.Request) rpcpooltest.Reply { return rpcpooltest.Body(answerOf(batchIDs(q)[0], 0)) },
		"400":                  reply(rpcpooltest.Status(400)),
		"404":                  reply(rpcpooltest.Status(404)),
		"413":                  reply(rpcpooltest.Status(413)),
		"415":                  reply(rpcpooltest.Status(415)),
		"500":                  reply(rpcpooltest.Status(500).Text("json: cannot unmarshal array into Go value")),
		"501":                  reply(rpcpooltest.Status(501)),
		"a page":               reply(rpcpooltest.Garbage()),
		"nothing":              reply(rpcpooltest.Body("")),
		"an empty array":       reply(rpcpooltest.Body("[]")),
		"an array of numbers":  reply(rpcpooltest.Body("[1,2,3]")),
		"none for anybody":     reply(whole(answerOf("7777777", 0))),
		"geth's for too many":  tooLarge,
		"an error for each":    eachRefused,
		"larger than anything": reply(rpcpooltest.Body(strings.Repeat(" ", 5000))),
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				w.Proxy("p1")
				r1 := w.Node("r1", rpcpooltest.Handle(func(q rpcpooltest.Request) rpcpooltest.Reply {
					if inBatch(q) {
						return refuse(q)
					}
					return giveBack(q)
				}))
				r2 := w.Node("r2", rpcpooltest.Handle(giveBack))
				w.List("1", r1, r2)
				pool := open(t, w, func(c *rpcpool.Config) { c.MaxResponseBytes = 4000 })
				chain := pool.Chain("1")
				batch := elems(40)
				require.NoError(t, chain.BatchCallContext(t.Context(), batch))
				requireEchoed(t, batch)
				require.Equal(t, 1, count(arrived(w), "r1 p1 batch"))
				require.Equal(t, 40, count(arrived(w), "r1 p1 echo"))

				batch = elems(40)
				require.NoError(t, chain.BatchCallContext(t.Context(), batch))
				requireEchoed(t, batch)
				require.Equal(t, 1, count(arrived(w), "r1 p1 batch"), "what was learned is remembered")

				time.Sleep(601 * time.Second)
				batch = elems(40)
				require.NoError(t, chain.BatchCallContext(t.Context(), batch))
				requireEchoed(t, batch)
				require.Equal(t, 2, count(arrived(w), "r1 p1 batch"), "and forgotten")
				require.Zero(t, count(arrived(w), "r2"), "nobody is blamed")
				require.NoError(t, pool.Close())
				require.Empty(t, w.Pool.Reports())
			})
		})
	}
}

// arrived gives the requests that came to a node, without connections that were begun
// and not needed.
func arrived(w *rpcpooltest.World) []string {
	return slices.DeleteFunc(w.Requests(), func(line string) bool { return strings.HasSuffix(line, " -") })
}

// Elements for which a batch's answer had no room left travel alone, at once and
// without blame; the RPC takes batches all the same.
func TestBatchAnswerWithoutRoom(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1", w.Node("r1", rpcpooltest.Handle(func(q rpcpooltest.Request) rpcpooltest.Reply {
			if !inBatch(q) {
				return giveBack(q)
			}
			ids := batchIDs(q)
			parts := []string{answerOf(ids[0], 0), answerOf(ids[1], 1)}
			for _, id := range ids[2:] { // as geth says it
				parts = append(parts, fmt.Sprintf(`{"id":%s,"error":{"code":-32003,"message":"response too large"}}`, id))
			}
			return whole(parts...)
		})), w.Node("r2"))
		chain := open(t, w).Chain("1")
		for range 2 {
			batch := elems(4)
			require.NoError(t, chain.BatchCallContext(t.Context(), batch))
			requireEchoed(t, batch)
		}
		require.Equal(t, 2, count(arrived(w), "r1 p1 batch"))
		require.Equal(t, 4, count(arrived(w), "r1 p1 echo"))
		require.Zero(t, chain.Stats()[0].FailuresInRow)
	})
}

func count(lines []string, part string) (n int) {
	for _, line := range lines {
		if strings.Contains(line, part) {
			n++
		}
	}
	return n
}

// A batch that fails as a whole goes on to the next RPC as a batch. However many
// elements it has, the RPC failed once: one failure in a row, one report.
func TestBatchFailureCountsOnce(t *testing.T) {
	for name, c := range map[string]struct {
		fault  rpcpooltest.Reply
		alone  int // requests that found out whether it was the batch
		report string
	}{
		"reset":              {rpcpooltest.Reset(), 0, "conn"},
		"hang":               {rpcpooltest.Hang(), 0, "timeout"},
		"truncated":          {rpcpooltest.Truncated(), 0, "conn"},
		"502":                {rpcpooltest.Status(502), 0, "rpc_error"},
		"429":                {rpcpooltest.Status(429), 0, "http_429"},
		"500 for everything": {rpcpooltest.Status(500), 1, "rpc_error"},
		"404 for everything": {rpcpooltest.Status(404), 1, "rpc_error"},
		"a page":             {rpcpooltest.Garbage(), 1, "rpc_error"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				w.Proxy("p1")
				r1, r2 := w.Node("r1", c.fault), w.Node("r2", rpcpooltest.Handle(giveBack))
				w.List("1", r1, r2)
				pool := open(t, w)
				chain := pool.Chain("1")
				batch := elems(50)
				require.NoError(t, chain.BatchCallContext(t.Context(), batch))
				requireEchoed(t, batch)
				want := []string{"r1 p1 batch", "r2 p1 batch"}
				if c.alone > 0 {
					want = slices.Insert(want, 1, "r1 p1 echo")
				}
				require.Equal(t, want, arrived(w))
				require.Equal(t, 1, chain.Stats()[0].FailuresInRow)
				require.True(t, chain.Stats()[1].Current)

				time.Sleep(61 * time.Second)
				require.False(t, chain.Stats()[0].Cooling)
				require.NoError(t, pool.Close())
				reports := w.Pool.Reports()
				require.Len(t, reports, 1)
				require.Equal(t, c.report, reports[0].Error)
			})
		})
	}
}

// A proxy that fails under a batch failed once, too; the batch goes through the next.
func TestBatchThroughADeadProxy(t *testing.T) {
	for name, fault := range map[string]rpcpooltest.ProxyReply{
		"refuses":              rpcpooltest.ProxyRefuse(),
		"hangs":                rpcpooltest.ProxyHang(),
		"refuses every target": rpcpooltest.ProxyCode(1),
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				w.Proxy("p1", fault)
				w.Proxy("p2")
				w.List("1", w.Node("r1", rpcpooltest.Handle(giveBack)))
				pool := open(t, w)
				batch := elems(50)
				require.NoError(t, pool.Chain("1").BatchCallContext(t.Context(), batch))
				requireEchoed(t, batch)
				require.Equal(t, 1, count(arrived(w), "batch"))
				stats := pool.ProxyStats()
				require.Equal(t, 1, stats[0].FailuresInRow)
				require.True(t, stats[1].Current)
				require.Zero(t, pool.Chain("1").Stats()[0].FailuresInRow)
			})
		})
	}
}

// One proxy whose connections to every RPC break: it is found dead, and what it cost
// the RPCs is taken back, for every element (rule A7).
func TestBatchUndoesWhatADeadProxyCost(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1", rpcpooltest.ProxyBlackHole())
		w.Proxy("p2")
		w.List("1", w.Node("r1", rpcpooltest.Handle(giveBack)), w.Node("r2", rpcpooltest.Handle(giveBack)))
		w.List("eip155:1", w.Node("check"))
		pool := open(t, w)
		batch := elems(30)
		require.NoError(t, pool.Chain("1").BatchCallContext(t.Context(), batch))
		requireEchoed(t, batch)
		for _, s := range pool.Chain("1").Stats() {
			require.Zero(t, s.FailuresInRow)
		}
		require.NoError(t, pool.Close())
		require.Empty(t, w.Pool.Reports())
	})
}

// Elements whose answer is missing, doubled, or an error of the node's go to the next
// RPC, together; the others have their answers. The RPC is at fault, once.
func TestBatchWithFaultyElements(t *testing.T) {
	for name, fault := range map[string]func(id string) string{
		"missing":    func(string) string { return "" },
		"doubled":    func(id string) string { return answerOf(id, 1) + "," + answerOf(id, 1) },
		"foreign":    func(id string) string { return answerOf("99"+id, 1) },
		"no id":      func(string) string { return `{"jsonrpc":"2.0","result":1}` },
		"node fault": func(id string) string { return `{"id":` + id + `,"error":{"code":-32603,"message":"internal error"}}` },
		"neither":    func(id string) string { return `{"id":` + id + `}` },
		"no error":   func(id string) string { return `{"id":` + id + `,"error":7}` },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				w.Proxy("p1")
				r1 := w.Node("r1", rpcpooltest.Handle(func(q rpcpooltest.Request) rpcpooltest.Reply {
					var parts []string
					for i, id := range batchIDs(q) {
						part := answerOf(id, i)
						if i == 1 || i == 5 {
							part = fault(id)
						}
						if part != "" {
							parts = append(parts, part)
						}
					}
					return whole(parts...)
				}))
				r2 := w.Node("r2", rpcpooltest.Handle(giveBack))
				w.List("1", r1, r2)
				pool := open(t, w)
				batch := elems(8)
				require.NoError(t, pool.Chain("1").BatchCallContext(t.Context(), batch))
				requireEchoed(t, batch)
				require.Equal(t, []string{"r1 p1 batch", "r2 p1 batch"}, arrived(w))
				require.Len(t, r2.Requests(), 2)
				require.Equal(t, 1, pool.Chain("1").Stats()[0].FailuresInRow)
				require.NoError(t, pool.Close())
				require.Len(t, w.Pool.Reports(), 1)
			})
		})
	}
}

// An element that an RPC doesn't serve goes elsewhere without blame, and later ones of
// its kind go there at once; one that needs what the best RPC hasn't never goes to it.
func TestBatchElementsChooseTheirRPCs(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		r1 := w.Node("r1", rpcpooltest.Error(-32601, "method not found").Method("trace_block"), rpcpooltest.Result(1))
		r2 := w.Node("r2", rpcpooltest.Result(2))
		caps := rpcpooltest.AllCaps()
		no := false
		caps.SendTx = &no
		w.Pool.Lists("1", rpcpooltest.PoolList("eip155:1",
			rpcpooltest.Listed{URL: r1.URL(), Caps: caps}, rpcpooltest.Listed{URL: r2.URL(), Caps: rpcpooltest.AllCaps()}))
		chain := open(t, w).Chain("1")
		for range 2 {
			batch := make([]rpcpool.BatchElem, 6)
			for i, method := range []string{"a", "trace_block", "b", "eth_sendRawTransaction", "trace_block", "c"} {
				batch[i] = rpcpool.BatchElem{Method: method, Args: []any{"0x616263"}, Result: new(int)}
			}
			require.NoError(t, chain.BatchCallContext(t.Context(), batch))
			for i, want := range []int{1, 2, 1, 2, 2, 1} {
				require.NoError(t, batch[i].Error)
				require.Equal(t, want, *batch[i].Result.(*int), "%d", i)
			}
		}
		require.Equal(t, 1, count(arrived(w), "r2 p1 eth_sendRawTransaction"), "alone in the first batch")
		require.Equal(t, 2, count(arrived(w), "r1 p1 batch"))
		require.Equal(t, 2, count(arrived(w), "r2 p1 batch"))
	})
}

// What must not be sent twice travels alone, for a batch may be repeated.
func TestBatchLeavesOutWhatMustNotBeRepeated(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1", w.Node("r1"))
		batch := []rpcpool.BatchElem{{Method: "a"}, {Method: "eth_sendTransaction"}, {Method: "b"}, {Method: "evm_mine"}}
		require.NoError(t, open(t, w).Chain("1").BatchCallContext(t.Context(), batch))
		require.ElementsMatch(t, []string{"r1 p1 batch", "r1 p1 eth_sendTransaction", "r1 p1 evm_mine"}, arrived(w))
	})
}

// Ten thousand elements travel in batches of a hundred, four at once.
func TestBatchOfTenThousand(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1", w.Node("r1", rpcpooltest.Handle(giveBack)))
		batch := elems(10_000)
		require.NoError(t, open(t, w).Chain("1").BatchCallContext(t.Context(), batch))
		requireEchoed(t, batch)
		require.Len(t, arrived(w), 100)
	})
}

// No more than so many requests are under way at once: batches, and single ones where
// the RPC takes none. An RPC isn't blamed for the time that a request waited its turn.
func TestBatchBoundsWhatIsUnderWay(t *testing.T) {
	for name, c := range map[string]struct {
		size, most, slots int
	}{
		"batches": {1000, 4, 10},
		"singles": {1000, 16, 1000},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				w.Proxy("p1")
				gate := rpcpooltest.NewGate()
				refuse := rpcpooltest.Handle(func(q rpcpooltest.Request) rpcpooltest.Reply {
					if c.most == 16 && inBatch(q) {
						return rpcpooltest.Status(400)
					}
					if inBatch(q) && string(q.ID) != batchIDs(q)[0] {
						return giveBack(q) // a batch is held by its first request
					}
					return giveBack(q).Hold(gate)
				})
				w.List("1", w.Node("r1", refuse))
				pool := open(t, w)
				batch := elems(c.size)
				done := make(chan error, 1)
				go func() { done <- pool.Chain("1").BatchCallContext(t.Context(), batch) }()
				most := 0
				for ended := false; !ended; {
					select {
					case err := <-done:
						require.NoError(t, err)
						ended = true
					case <-time.After(5 * time.Second): // a slow RPC
						most = max(most, gate.Waiting())
						for range gate.Waiting() {
							held, err := gate.Next(t.Context())
							require.NoError(t, err)
							held.Release()
						}
					}
				}
				requireEchoed(t, batch)
				require.LessOrEqual(t, most, c.most)
				require.NoError(t, pool.Close())
				require.Empty(t, w.Pool.Reports())
			})
		})
	}
}

// Large params go in several batches.
func TestBatchOfLargeParams(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		r := w.Node("r1")
		w.List("1", r)
		batch := make([]rpcpool.BatchElem, 10)
		for i := range batch {
			batch[i] = rpcpool.BatchElem{Method: "eth_call", Args: []any{strings.Repeat("x", 300_000)}}
		}
		require.NoError(t, open(t, w).Chain("1").BatchCallContext(t.Context(), batch))
		for _, q := range r.Requests() {
			require.Less(t, len(q.Body), 1<<20+1000)
		}
		require.Len(t, arrived(w), 4)
	})
}

// The whole's error is its caller's end, or what nobody got past; each element has an
// error in both cases, and keeps an answer that it had.
func TestBatchErrorOfTheWhole(t *testing.T) {
	t.Run("the context ends", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			p := w.Proxy("p1")
			w.List("1", w.Node("r1", rpcpooltest.Hang().Method("slow"), rpcpooltest.Result(1)))
			pool := open(t, w)
			batch := []rpcpool.BatchElem{{Method: "slow"}, {Method: "slow"}, {Method: "eth_sendTransaction"}}
			err := pool.Chain("1").BatchCallContext(within(t, 5*time.Second), batch)
			var ended *rpcpool.InterruptedError
			require.ErrorAs(t, err, &ended)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorIs(t, batch[0].Error, context.DeadlineExceeded)
			require.ErrorIs(t, batch[1].Error, context.DeadlineExceeded)
			require.NoError(t, batch[2].Error)
			require.NoError(t, pool.Close())
			require.Empty(t, w.Pool.Reports(), "nobody's fault")
			nothingLeft(t, w, p)
		})
	})
	t.Run("nobody answers", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			w.Proxy("p1")
			w.List("1", w.Node("r1", rpcpooltest.Status(503)))
			batch := elems(3)
			err := open(t, w).Chain("1").BatchCallContext(t.Context(), batch)
			var unhealthy *rpcpool.NoHealthyRPCError
			require.ErrorAs(t, err, &unhealthy)
			for _, e := range batch {
				require.ErrorAs(t, e.Error, &unhealthy)
			}
		})
	})
	t.Run("one is answered", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			w.Proxy("p1")
			w.List("1", w.Node("r1", rpcpooltest.Error(-32603, "internal error").Method("bad"), rpcpooltest.Error(3, "execution reverted")))
			batch := []rpcpool.BatchElem{{Method: "bad"}, {Method: "good"}}
			require.NoError(t, open(t, w).Chain("1").BatchCallContext(t.Context(), batch))
			var unhealthy *rpcpool.NoHealthyRPCError
			require.ErrorAs(t, batch[0].Error, &unhealthy)
			var reverted *rpcpool.RPCError
			require.ErrorAs(t, batch[1].Error, &reverted)
		})
	})
	t.Run("the pool is closed", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			w.Proxy("p1")
			w.List("1", w.Node("r1", rpcpooltest.Hang()))
			pool := open(t, w)
			batch := elems(3)
			done := make(chan error, 1)
			go func() { done <- pool.Chain("1").BatchCallContext(t.Context(), batch) }()
			time.Sleep(time.Second)
			require.NoError(t, pool.Close())
			require.ErrorIs(t, <-done, rpcpool.ErrClosed)
			require.ErrorIs(t, pool.Chain("1").BatchCallContext(t.Context(), batch), rpcpool.ErrClosed)
		})
	})
}

// An element that is held up on its way, here by the pool while it waits for a new
// list, doesn't hold up those that could travel.
func TestBatchDoesNotWaitForStragglers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		r1 := w.Node("r1", rpcpooltest.Handle(func(q rpcpooltest.Request) rpcpooltest.Reply {
			var parts []string
			for i, id := range batchIDs(q) {
				code := -32603
				if i == 0 {
					code = -32601
				}
				parts = append(parts, fmt.Sprintf(`{"id":%s,"error":{"code":%d,"message":""}}`, id, code))
			}
			return whole(parts...).Delay(6 * time.Second)
		}))
		r2 := w.Node("r2", rpcpooltest.Handle(giveBack))
		caps, no := rpcpooltest.AllCaps(), false
		caps.SendTx = &no
		list := rpcpooltest.PoolList("eip155:1", rpcpooltest.Listed{URL: r1.URL(), Caps: rpcpooltest.AllCaps()}, rpcpooltest.Listed{URL: r2.URL(), Caps: caps})
		w.Pool.Lists("1", list.Times(1), rpcpooltest.PoolHang())
		batch := elems(3)
		batch[0].Method = "eth_sendRawTransaction" // which only r1 takes
		start := time.Now()
		require.NoError(t, open(t, w).Chain("1").BatchCallContext(t.Context(), batch))
		var unhealthy *rpcpool.NoHealthyRPCError
		require.ErrorAs(t, batch[0].Error, &unhealthy)
		requireEchoed(t, batch[1:])
		require.Less(t, r2.Requests()[0].Time.Sub(start), 6*time.Second+100*time.Millisecond)
		require.Greater(t, time.Since(start), 10*time.Second, "the straggler was held up")
	})
}

// However long the elements of a failed batch take to end, the RPC's failure counts
// once all the while.
func TestBatchFailureCountsOnceUntilTheLastEnds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		r2 := w.Node("r2", rpcpooltest.Error(-32601, "method not found").Method("slow"), rpcpooltest.Result(1))
		w.List("1", w.Node("r1", rpcpooltest.Status(502)), r2, w.Node("r3", rpcpooltest.Result(1).Delay(4*time.Second)))
		chain := open(t, w).Chain("1")
		batch := []rpcpool.BatchElem{{Method: "a"}, {Method: "b"}, {Method: "slow"}, {Method: "slow"}}
		done := make(chan error, 1)
		go func() { done <- chain.BatchCallContext(t.Context(), batch) }()
		time.Sleep(time.Second)
		require.Equal(t, 1, chain.Stats()[0].FailuresInRow)
		require.NoError(t, <-done)
		require.Equal(t, 1, chain.Stats()[0].FailuresInRow)
		for _, e := range batch {
			require.NoError(t, e.Error)
		}
	})
}

// Where the RPC takes no batches, elements wait for their turn before they begin, not
// while an RPC's clock runs: what statistics say of it stays true.
func TestBatchElementsWaitBeforeTheyBegin(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1", w.Node("r1", rpcpooltest.Handle(func(q rpcpooltest.Request) rpcpooltest.Reply {
			if inBatch(q) {
				return rpcpooltest.Status(400)
			}
			return giveBack(q).Delay(time.Second)
		})))
		chain := open(t, w).Chain("1")
		require.NoError(t, chain.BatchCallContext(t.Context(), elems(2)))
		for range 2 {
			batch := elems(480)
			done := make(chan error, 1)
			go func() { done <- chain.BatchCallContext(t.Context(), batch) }()
			for range 30 {
				time.Sleep(time.Second / 2)
				require.LessOrEqual(t, chain.Stats()[0].InFlight, 16)
			}
			require.NoError(t, <-done)
			requireEchoed(t, batch)
		}
		require.Less(t, chain.Stats()[0].P99, 2*time.Second)
	})
}
