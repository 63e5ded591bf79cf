package rpcpool_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// snapshotWorld is a chain at block 1000 with nodes r1, r2 … of which each has its faults.
func snapshotWorld(t *testing.T, w *rpcpooltest.World, faults ...[]rpcpooltest.EVMFault) (*rpcpooltest.EVM, *rpcpool.Chain) {
	t.Helper()
	w.Proxy("p1")
	evm := rpcpooltest.NewEVM(1, 1000)
	var nodes []*rpcpooltest.Node
	for i, each := range faults {
		nodes = append(nodes, w.Node(fmt.Sprintf("r%d", i+1), evm.Serve(each...)))
	}
	w.List("1", nodes...)
	return evm, open(t, w, func(cfg *rpcpool.Config) { cfg.Mode = rpcpool.RoundRobin }).Chain("1")
}

// Rule D2: every read of a snapshot names the block's hash, in the form that the method
// has for it, and the caller's other params are left as they are.
func TestSnapshotNamesTheHash(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		evm, chain := snapshotWorld(t, w, nil)
		snap, err := chain.Snapshot(t.Context(), "latest")
		require.NoError(t, err)
		require.Equal(t, uint64(1000), snap.Number())
		require.Equal(t, evm.Hash(1000), snap.Hash())
		require.Contains(t, string(snap.Header()), `"timestamp"`)
		hash := `"` + snap.Hash() + `"`
		reference := `{"blockHash":` + hash + `,"requireCanonical":true}`
		for _, c := range []struct {
			method, params, sent, want string
		}{
			{"eth_getBalance", `["0xaa"]`, "eth_getBalance", `["0xaa",` + reference + `]`},
			{"eth_getBalance", `["0xaa","latest"]`, "eth_getBalance", `["0xaa",` + reference + `]`},
			{"eth_getBalance", `["0xaa","0x3e8"]`, "eth_getBalance", `["0xaa",` + reference + `]`},
			{"eth_getBalance", `["0xaa",{"blockHash":` + hash + `}]`, "eth_getBalance", `["0xaa",` + reference + `]`},
			{"eth_call", `[{"to":"0xbb","data":"0x01"},null]`, "eth_call", `[{"to":"0xbb","data":"0x01"},` + reference + `]`},
			{"eth_call", `[{"to":"0xbb"},"latest",{"0xbb":{"balance":"0x1"}}]`, "eth_call", `[{"to":"0xbb"},` + reference + `,{"0xbb":{"balance":"0x1"}}]`},
			{"eth_getStorageAt", `["0xaa","0x0"]`, "eth_getStorageAt", `["0xaa","0x0",` + reference + `]`},
			{"eth_getBlockByNumber", `["latest",true]`, "eth_getBlockByHash", `[` + hash + `,true]`},
			{"eth_getBlockByHash", `[` + hash + `,false]`, "eth_getBlockByHash", `[` + hash + `,false]`},
			{"eth_getLogs", `[{"address":"0xcc"}]`, "eth_getLogs", `[{"address":"0xcc","blockHash":` + hash + `}]`},
			{"eth_getLogs", `[{"fromBlock":"0x3e8","toBlock":"latest"}]`, "eth_getLogs", `[{"blockHash":` + hash + `}]`},
			{"eth_chainId", `[]`, "eth_chainId", `[]`},
		} {
			var params []any
			require.NoError(t, json.Unmarshal([]byte(c.params), &params))
			_, err := snap.Call(t.Context(), c.method, params...)
			require.NoError(t, err, c.method)
			done := w.Network.Exchanges()
			last := done[len(done)-1]
			require.Equal(t, c.sent, last.Method)
			require.JSONEq(t, c.want, string(last.Params))
		}
		before := len(w.Requests())
		raw, err := snap.Call(t.Context(), "eth_blockNumber")
		require.NoError(t, err)
		require.JSONEq(t, `"0x3e8"`, string(raw))
		for method, params := range map[string][]any{
			"eth_getBalance":         {"0xaa", "0x3e7"},
			"eth_call":               {map[string]string{}, "pending"},
			"eth_getCode":            {"0xaa", "finalized"},
			"eth_getStorageAt":       {"0xaa"},
			"eth_getLogs":            {map[string]string{"fromBlock": "0x0"}},
			"eth_sendRawTransaction": {"0x02"},
			"eth_gasPrice":           nil,
			"eth_getBlockByHash":     {evm.Hash(5), false},
		} {
			_, err := snap.Call(t.Context(), method, params...)
			var refused *rpcpool.RequestError
			require.ErrorAs(t, err, &refused, method)
			require.Contains(t, err.Error(), "snapshot", method)
		}
		require.Len(t, w.Requests(), before, "what can't be of the block isn't sent")
	})
}

// Rule D2: after a failover the next RPC must know the hash; one that lags, is on a fork
// or has dropped the state is passed over without a cooldown, and nothing is ever read
// from another block.
func TestSnapshotFailsOverToTheSameState(t *testing.T) {
	for name, fault := range map[string]rpcpooltest.EVMFault{
		"lags":               rpcpooltest.Lagging(5),
		"forked":             rpcpooltest.ForkedFrom(900),
		"pruned":             rpcpooltest.PrunedBelow(2000),
		"vague":              rpcpooltest.Vague(),
		"without the state":  rpcpooltest.Unexecuted(3),
		"on another chain":   rpcpooltest.OnChain(5),
		"stuck at the block": rpcpooltest.StuckAt(999),
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				bad := []rpcpooltest.EVMFault{fault}
				if name == "vague" {
					bad = append(bad, rpcpooltest.Lagging(5))
				}
				evm, chain := snapshotWorld(t, w, nil, bad, nil)
				snap, err := chain.Snapshot(t.Context(), "0x3e8")
				require.NoError(t, err)
				for range 12 {
					for _, method := range []string{"eth_call", "eth_getBalance", "eth_getLogs", "eth_getBlockByNumber"} {
						raw, err := snap.Call(t.Context(), method, map[string][]any{
							"eth_call": {map[string]string{"to": "0xaa"}}, "eth_getBalance": {"0xaa"}, "eth_getLogs": {map[string]string{}},
							"eth_getBlockByNumber": {"latest", false},
						}[method]...)
						require.NoError(t, err, method)
						switch method {
						case "eth_getBalance":
							require.Equal(t, uint64(1000), number(t, raw))
						default:
							require.Contains(t, string(raw), evm.Hash(1000))
						}
					}
					evm.Mine(1)
				}
				require.False(t, chain.Stats()[1].Cooling)
			})
		})
	}
}

// Rule D2: when nobody has the block's state, or the chain went on without the block, a
// SnapshotError says which.
func TestSnapshotError(t *testing.T) {
	read := func(t *testing.T, snap *rpcpool.Snapshot) *rpcpool.SnapshotError {
		t.Helper()
		_, err := snap.Call(t.Context(), "eth_getBalance", "0xaa")
		var gone *rpcpool.SnapshotError
		require.ErrorAs(t, err, &gone)
		require.NotContains(t, err.Error(), "key-")
		return gone
	}
	t.Run("replaced", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			evm, chain := snapshotWorld(t, w, nil, nil)
			snap, err := chain.Snapshot(t.Context(), "latest")
			require.NoError(t, err)
			evm.Reorg(3)
			gone := read(t, snap)
			require.True(t, gone.Replaced)
			require.Contains(t, gone.Error(), "reorganization")
			require.Contains(t, gone.Block, snap.Hash())
			for _, s := range chain.Stats() {
				require.False(t, s.Cooling)
			}
		})
	})
	t.Run("no state", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			_, chain := snapshotWorld(t, w, []rpcpooltest.EVMFault{rpcpooltest.PrunedBelow(900)}, []rpcpooltest.EVMFault{rpcpooltest.PrunedBelow(900)})
			snap, err := chain.Snapshot(t.Context(), "0x10")
			require.NoError(t, err)
			require.False(t, read(t, snap).Replaced)
		})
	})
	t.Run("no block", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			_, chain := snapshotWorld(t, w, nil, nil)
			_, err := chain.Snapshot(t.Context(), "0x3e9")
			var none *rpcpool.SnapshotError
			require.ErrorAs(t, err, &none)
			require.Len(t, none.Attempts, 2)
			for _, bad := range []string{"", "newest", "10", "0x", "pending"} {
				_, err = chain.Snapshot(t.Context(), bad)
				var refused *rpcpool.RequestError
				require.ErrorAs(t, err, &refused, bad)
			}
		})
	})
}

// Rule D2: an empty answer counts when a second operator gives it as well, or when the
// RPC has shown before that it has the state; where there is nobody else, at once.
func TestSnapshotEmptyAnswers(t *testing.T) {
	empty := func(evm *rpcpooltest.EVM, faults ...rpcpooltest.EVMFault) rpcpooltest.Reply {
		return rpcpooltest.Handle(func(q rpcpooltest.Request) rpcpooltest.Reply {
			if q.Method == "eth_getCode" {
				return rpcpooltest.Result("0x")
			}
			return evm.Answer(q)
		})
	}
	for _, operators := range []int{1, 2, 3} {
		t.Run(fmt.Sprint(operators), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				w.Proxy("p1")
				evm := rpcpooltest.NewEVM(1, 1000)
				nodes := []*rpcpooltest.Node{w.NodeAt("a1", "http://a1.one.test/", empty(evm)), w.NodeAt("a2", "http://a2.one.test/", empty(evm))}
				for i := 1; i < operators; i++ {
					nodes = append(nodes, w.Node(fmt.Sprint("b", i), empty(evm)))
				}
				w.List("1", nodes...)
				chain := open(t, w).Chain("1")
				snap, err := chain.Snapshot(t.Context(), "latest")
				require.NoError(t, err)
				before := len(w.Requests())
				raw, err := snap.Call(t.Context(), "eth_getCode", "0xaa")
				require.NoError(t, err)
				require.JSONEq(t, `"0x"`, string(raw))
				require.Len(t, w.Requests(), before+map[int]int{1: 1, 2: 3, 3: 3}[operators])
				if operators == 1 {
					return
				}
				_, err = snap.Call(t.Context(), "eth_getBalance", "0xaa") // shows that the first has the state
				require.NoError(t, err)
				before = len(w.Requests())
				_, err = snap.Call(t.Context(), "eth_getCode", "0xaa")
				require.NoError(t, err)
				require.Len(t, w.Requests(), before+1)
			})
		})
	}
	t.Run("nobody confirms", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			w.Proxy("p1")
			evm := rpcpooltest.NewEVM(1, 1000)
			w.List("1", w.Node("r1", empty(evm)), w.Node("r2", rpcpooltest.Status(500)))
			snap, err := open(t, w).Chain("1").Snapshot(t.Context(), "latest")
			require.NoError(t, err)
			_, err = snap.Call(t.Context(), "eth_getCode", "0xaa")
			var unsure *rpcpool.SnapshotError
			require.ErrorAs(t, err, &unsure)
			require.True(t, unsure.Unconfirmed)
		})
	})
}

// An answer of null is none where the block has what was asked for, and a count of zero is
// one; what a block may have fewer of is believed when two say so.
func TestSnapshotNullsAndZeros(t *testing.T) {
	for method, c := range map[string]struct {
		lacking, answer any
		sent            string
	}{
		"eth_getBlockReceipts":                    {nil, []any{map[string]string{"status": "0x1"}}, "eth_getBlockReceipts"},
		"eth_getBlockByNumber":                    {nil, map[string]string{"number": "0x3e8"}, "eth_getBlockByHash"},
		"eth_getBlockTransactionCountByNumber":    {nil, "0x0", "eth_getBlockTransactionCountByHash"},
		"eth_getUncleCountByBlockNumber":          {nil, "0x0", "eth_getUncleCountByBlockHash"},
		"eth_getTransactionByBlockNumberAndIndex": {nil, map[string]string{"hash": "0x1"}, "eth_getTransactionByBlockHashAndIndex"},
	} {
		t.Run(method, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				w.Proxy("p1")
				evm := rpcpooltest.NewEVM(1, 1000)
				w.List("1", w.Node("lacks", rpcpooltest.Result(c.lacking).Method(c.sent).FromStep(1), evm.Serve()),
					w.Node("has", rpcpooltest.Result(c.answer).Method(c.sent).FromStep(1), evm.Serve()))
				snap, err := open(t, w).Chain("1").Snapshot(t.Context(), "0x3e8")
				require.NoError(t, err)
				w.Network.SetStep(1)
				params := []any{"latest"}
				if strings.HasSuffix(method, "AndIndex") {
					params = append(params, "0x0")
				}
				raw, err := snap.Call(t.Context(), method, params...)
				require.NoError(t, err)
				want, err := json.Marshal(c.answer)
				require.NoError(t, err)
				require.JSONEq(t, string(want), string(raw))
			})
		})
	}
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		evm := rpcpooltest.NewEVM(1, 1000)
		past := rpcpooltest.Result(nil).Method("eth_getTransactionByBlockHashAndIndex")
		w.List("1", w.Node("r1", past, evm.Serve()), w.Node("r2", past, evm.Serve()))
		snap, err := open(t, w).Chain("1").Snapshot(t.Context(), "0x3e8")
		require.NoError(t, err)
		raw, err := snap.Call(t.Context(), "eth_getTransactionByBlockNumberAndIndex", "latest", "0x9")
		require.NoError(t, err)
		require.Equal(t, "null", string(raw), "two say that there are fewer")

		_, err = snap.Call(t.Context(), "eth_getProof", someAccount, []string{})
		var unsupported *rpcpool.NoHealthyRPCError
		require.ErrorAs(t, err, &unsupported, "that nobody serves the method is no matter of the block")
		_, err = snap.Call(t.Context(), "trace_block", "latest")
		var refused *rpcpool.RequestError
		require.ErrorAs(t, err, &refused)
	})
}

// Nodes have their own words for a hash that they don't know.
func TestSnapshotUnknownHashes(t *testing.T) {
	for _, words := range []string{
		"header for hash not found", "Received invalid block tag 0xaa. Latest block number is 5", "unknown block",
		"hash aa is not currently canonical", "Block not found", "missing trie node aa",
	} {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			w.Proxy("p1")
			evm := rpcpooltest.NewEVM(1, 1000)
			w.List("1", w.Node("r1", rpcpooltest.Error(-32000, words).Method("eth_call"), evm.Serve()), w.Node("r2", evm.Serve()))
			chain := open(t, w).Chain("1")
			snap, err := chain.Snapshot(t.Context(), "0x3e8")
			require.NoError(t, err)
			raw, err := snap.Call(t.Context(), "eth_call", map[string]string{})
			require.NoError(t, err, words)
			require.Contains(t, string(raw), snap.Hash())
			require.False(t, chain.Stats()[0].Cooling)
		})
	}
}

// What the caller got wrong is told as what it is, when all RPCs say so.
func TestSnapshotBadParams(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		evm := rpcpooltest.NewEVM(1, 1000)
		bad := rpcpooltest.Error(-32602, "invalid argument 0: hex string has odd length").Method("eth_call")
		w.List("1", w.Node("r1", bad, evm.Serve()), w.Node("r2", bad, evm.Serve()))
		snap, err := open(t, w).Chain("1").Snapshot(t.Context(), "latest")
		require.NoError(t, err)
		_, err = snap.Call(t.Context(), "eth_call", map[string]string{"to": "0xa"})
		var refused *rpcpool.RPCError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, -32602, refused.Code)
	})
}

// Rule D2 under an SDK: a client bound to a snapshot reads nothing but that block, singly
// and in batches.
func TestSnapshotHTTPClient(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		evm, chain := snapshotWorld(t, w, nil, []rpcpooltest.EVMFault{rpcpooltest.Lagging(5)}, nil)
		snap, err := chain.Snapshot(t.Context(), "0x3e8")
		require.NoError(t, err)
		client := snap.HTTPClient()
		post := func(body string) string {
			res, err := client.Post("http://chain", "application/json", bytes.NewReader([]byte(body)))
			require.NoError(t, err)
			defer res.Body.Close()
			require.Equal(t, http.StatusOK, res.StatusCode)
			answer, err := io.ReadAll(res.Body)
			require.NoError(t, err)
			return string(answer)
		}
		for range 6 {
			evm.Mine(1)
			require.JSONEq(t, `{"jsonrpc":"2.0","id":"x","result":"0x3e8"}`,
				post(`{"jsonrpc":"2.0","id":"x","method":"eth_getBalance","params":["0xaa","latest"]}`))
			answer := post(`[{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"},
				{"jsonrpc":"2.0","id":2,"method":"eth_call","params":[{"to":"0xaa"}]},
				{"jsonrpc":"2.0","id":3,"method":"eth_gasPrice"}]`)
			require.Contains(t, answer, `{"jsonrpc":"2.0","id":1,"result":"0x3e8"}`)
			require.Contains(t, answer, evm.Hash(1000))
			require.Contains(t, answer, "tied to a block")
		}
	})
}

// The fault of mixed states: without a snapshot, reads of one decision come from
// different blocks while RPCs fail over; with one they never do.
func TestSnapshotNeverMixes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		evm, chain := snapshotWorld(t, w, nil, []rpcpooltest.EVMFault{rpcpooltest.Lagging(3)}, []rpcpooltest.EVMFault{rpcpooltest.ForkedFrom(950)}, nil)
		mixed := map[bool]int{}
		for round := range 50 {
			evm.Mine(1)
			snap, err := chain.Snapshot(t.Context(), "latest")
			require.NoError(t, err)
			plain, pinned := map[string]bool{}, map[string]bool{}
			for range 4 {
				raw, err := chain.Call(t.Context(), "eth_call", map[string]string{"to": "0xaa"}, "latest")
				require.NoError(t, err)
				plain[string(raw)] = true
				raw, err = snap.Call(t.Context(), "eth_call", map[string]string{"to": "0xaa"})
				require.NoError(t, err, "round %d", round)
				pinned[string(raw)] = true
				require.Equal(t, snap.Hash(), strings.Trim(string(raw), `"`))
			}
			mixed[false] += len(plain) - 1
			mixed[true] += len(pinned) - 1
			time.Sleep(time.Second)
		}
		require.NotZero(t, mixed[false], "the world doesn't mix at all")
		require.Zero(t, mixed[true])
	})
}

// Rule D4, quorum reads: n operators must say the same; several URLs of one are one; the order of
// members doesn't matter; who said what is told.
func TestQuorum(t *testing.T) {
	type world struct {
		name    string
		answers map[string]rpcpooltest.Reply // host → answer
		n       int
		want    string // empty: no agreement
		said    int    // answers in the error
	}
	ok, other := rpcpooltest.Result("0x1"), rpcpooltest.Result("0x2")
	revert := rpcpooltest.ErrorData(3, "execution reverted", "0xdead")
	for _, c := range []world{
		{"all agree", map[string]rpcpooltest.Reply{"a.test": ok, "b.test": ok, "c.test": ok}, 3, `"0x1"`, 0},
		{"one disagrees", map[string]rpcpooltest.Reply{"a.test": ok, "b.test": other, "c.test": ok}, 3, "", 3},
		{"two are one operator", map[string]rpcpooltest.Reply{"x.a.test": ok, "y.a.test": ok, "b.test": other}, 2, "", 2},
		{"too few operators", map[string]rpcpooltest.Reply{"x.a.test": ok, "y.a.test": ok}, 2, "", 1},
		{"one fails over", map[string]rpcpooltest.Reply{"a.test": rpcpooltest.Status(500), "b.test": ok, "c.test": ok}, 2, `"0x1"`, 0},
		{"order of members", map[string]rpcpooltest.Reply{
			"a.test": rpcpooltest.Result(json.RawMessage(`{"a":1,"b":[1,2]}`)), "b.test": rpcpooltest.Result(json.RawMessage(`{ "b":[1,2], "a":1}`))}, 2, `{"a":1,"b":[1,2]}`, 0},
		{"order of a list", map[string]rpcpooltest.Reply{
			"a.test": rpcpooltest.Result([]int{1, 2}), "b.test": rpcpooltest.Result([]int{2, 1})}, 2, "", 2},
		{"all revert", map[string]rpcpooltest.Reply{"a.test": revert, "b.test": revert}, 2, "revert", 0},
		{"one reverts", map[string]rpcpooltest.Reply{"a.test": revert, "b.test": ok}, 2, "", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				w.Proxy("p1")
				var nodes []*rpcpooltest.Node
				for _, host := range []string{"a.test", "x.a.test", "y.a.test", "b.test", "c.test"} {
					if answer, there := c.answers[host]; there {
						nodes = append(nodes, w.NodeAt(host, "http://"+host+"/key-"+host, answer))
					}
				}
				w.List("1", nodes...)
				raw, err := open(t, w).Chain("1").Quorum(c.n).Call(t.Context(), "eth_call", map[string]string{}, "0x10")
				switch c.want {
				case "revert":
					var reverted *rpcpool.RPCError
					require.ErrorAs(t, err, &reverted)
					require.Equal(t, 3, reverted.Code)
				case "":
					var split *rpcpool.QuorumError
					require.ErrorAs(t, err, &split)
					said := map[string]bool{}
					for _, a := range split.Answers {
						if a.RPC != "" {
							said[a.Operator] = true
						}
					}
					require.Len(t, said, c.said, "%v", err)
					require.NotContains(t, err.Error(), "key-")
				default:
					require.NoError(t, err)
					require.JSONEq(t, c.want, string(raw))
				}
			})
		})
	}
	// Which of the two requests gets the answer is chance, so several times.
	for _, order := range [][]rpcpooltest.Reply{{rpcpooltest.Status(500), ok}, {ok, rpcpooltest.Status(500)}} {
		t.Run("one doesn't answer", func(t *testing.T) {
			for range 8 {
				inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
					w.Proxy("p1")
					w.List("1", w.Node("a", order[0]), w.Node("b", order[1]))
					_, err := open(t, w).Chain("1").Quorum(2).Call(t.Context(), "eth_call", map[string]string{}, "0x10")
					var split *rpcpool.QuorumError
					require.ErrorAs(t, err, &split)
					require.Len(t, split.Answers, 2)
					said := 0
					for _, a := range split.Answers {
						if a.RPC != "" {
							said++
							require.JSONEq(t, `"0x1"`, string(a.Result))
						}
					}
					require.Equal(t, 1, said)
				})
			}
		})
	}
	t.Run("nobody answers", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			w.Proxy("p1")
			_, err := open(t, w).Chain("1").Quorum(2).Call(t.Context(), "eth_call", map[string]string{}, "0x10")
			var split *rpcpool.QuorumError
			require.ErrorAs(t, err, &split, "that all failed alike is no agreement")
		})
	})
	t.Run("not for what has effects", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			w.Proxy("p1")
			w.List("1", w.Node("r1"), w.Node("r2"))
			chain := open(t, w).Chain("1")
			for _, method := range []string{"eth_sendRawTransaction", "eth_sendTransaction", ""} {
				_, err := chain.Quorum(2).Call(t.Context(), method, "0x02")
				var refused *rpcpool.RequestError
				require.ErrorAs(t, err, &refused)
			}
			_, err := chain.Quorum(1).Call(t.Context(), "eth_chainId")
			var refused *rpcpool.RequestError
			require.ErrorAs(t, err, &refused)
			require.Empty(t, w.Requests())
		})
	})
	t.Run("of a snapshot", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			_, chain := snapshotWorld(t, w, nil, []rpcpooltest.EVMFault{rpcpooltest.Lagging(2)}, nil)
			snap, err := chain.Snapshot(t.Context(), "0x3e8")
			require.NoError(t, err)
			raw, err := snap.Quorum(2).Call(t.Context(), "eth_getBalance", "0xaa")
			require.NoError(t, err)
			require.Equal(t, uint64(1000), number(t, raw))
		})
	})
}
