package rpcpool_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/sha3"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// hashOf is the hash of a transaction without blobs.
func hashOf(raw []byte) string {
	keccak := sha3.NewLegacyKeccak256()
	_, _ = keccak.Write(raw)
	return "0x" + hex.EncodeToString(keccak.Sum(nil))
}

// network is a chain whose nodes take transactions in all the ways that nodes go wrong.
type network struct {
	evm *rpcpooltest.EVM
}

// takes answers a raw send as a node does: taken, known already or, once it is mined, with
// a nonce that is too low.
func (n *network) takes(q rpcpooltest.Request) rpcpooltest.Reply {
	if q.Method == "eth_sendRawTransaction" {
		var raw string
		if q.Param(0, &raw) == nil && n.isMined(raw) {
			return rpcpooltest.Error(-32000, "nonce too low: next nonce 8, tx nonce 7")
		}
	}
	return n.evm.Answer(q)
}

func (n *network) hashOf(raw string) string {
	for hash, known := range n.evm.Transactions() {
		if known == raw {
			return hash
		}
	}
	return ""
}

func (n *network) isMined(raw string) bool {
	hash := n.hashOf(raw)
	if hash == "" {
		return false
	}
	_, mined := n.evm.MinedIn(hash)
	return mined
}

// Rule C4: ten thousand sends over nodes that refuse, take and lose the answer, hang, and
// say that the nonce is too low once it is mined: the hash is always the same, success is
// said only of what was taken, and failure never of what was.
func TestSendsTellTheTruth(t *testing.T) {
	t.Parallel() // it takes a core for long
	const groups = 20
	sends := 500
	if underRace || testing.Short() {
		sends = 20
	}
	var taken, unknown, failed int
	for group := range groups {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			random := newDice(uint64(group), 4)
			n := &network{rpcpooltest.NewEVM(1, 1000)}
			w.Network.SetRecording(false)
			w.Proxy("p1")
			w.Proxy("p2")
			var nodes []*rpcpooltest.Node
			for i := range 4 {
				nodes = append(nodes, w.Node(fmt.Sprint("r", i), rpcpooltest.Handle(func(q rpcpooltest.Request) rpcpooltest.Reply {
					if q.Method != "eth_sendRawTransaction" {
						if random.IntN(4) == 0 {
							return rpcpooltest.Status(500)
						}
						return n.evm.Answer(q)
					}
					switch random.IntN(8) {
					case 0:
						return rpcpooltest.Status(503)
					case 1:
						return rpcpooltest.Error(-32000, "insufficient funds for gas * price + value")
					case 2, 3: // taken, and the answer is lost
						n.takes(q)
						if random.IntN(2) == 0 {
							n.evm.Mine(1)
						}
						return []rpcpooltest.Reply{rpcpooltest.Close(), rpcpooltest.Hang(), rpcpooltest.Truncated(), rpcpooltest.Status(502)}[random.IntN(4)]
					case 4:
						return rpcpooltest.Reset()
					case 5:
						return rpcpooltest.RateLimited(0)
					}
					return n.takes(q)
				})))
			}
			w.List("1", nodes...)
			chain := open(t, w, func(cfg *rpcpool.Config) {
				cfg.ProxyCheckURL = w.Node("c1").URL()
				cfg.RefreshInterval = 24 * time.Hour // writing lists to the disk would take most of the time
			}).Chain("1")
			for i := range sends {
				raw := []byte{2, 0xc0, byte(group), byte(i >> 8), byte(i)}
				text := "0x" + hex.EncodeToString(raw)
				var hash string
				var err error
				if i%3 == 0 {
					hash, err = chain.Broadcast(t.Context(), raw, 3)
				} else {
					hash, err = chain.SendRawTransaction(t.Context(), raw)
				}
				time.Sleep(time.Minute) // what is on its way arrives
				was := n.hashOf(text)
				open, isOpen := errors.AsType[*rpcpool.TxOutcomeUnknownError](err)
				switch {
				case err == nil:
					taken++
					require.Equal(t, was, hash, "it was said to be taken")
				case isOpen:
					unknown++
					require.Len(t, open.Hash, 66)
					require.True(t, was == "" || was == open.Hash)
				default:
					failed++
					require.Empty(t, was, "it was said to have failed: %v", err)
				}
				time.Sleep(901 * time.Second)
			}
		})
	}
	t.Logf("%d sends: %d taken, %d unknown, %d failed", groups*sends, taken, unknown, failed)
	require.NotZero(t, taken)
	require.NotZero(t, unknown)
	require.NotZero(t, failed)
}

// Rule C4: a refusal after an attempt that may have arrived isn't believed before the
// transaction was looked for, at every RPC: the one that has it decides.
func TestRefusalAfterALostAnswer(t *testing.T) {
	for _, way := range []string{"send", "call"} {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			w.Proxy("p1")
			evm := rpcpooltest.NewEVM(1, 1000)
			loses := rpcpooltest.Handle(func(q rpcpooltest.Request) rpcpooltest.Reply {
				evm.Answer(q)
				evm.Mine(1)
				return rpcpooltest.Close()
			}).Method("eth_sendRawTransaction")
			tooLow := rpcpooltest.Error(-32000, "nonce too low").Method("eth_sendRawTransaction")
			w.List("1", w.Node("loses", loses, rpcpooltest.Status(500)),
				w.Node("lags", tooLow, rpcpooltest.Result(nil)), w.Node("has", tooLow, evm.Serve()))
			chain := open(t, w, func(cfg *rpcpool.Config) { cfg.ProxyCheckURL = w.Node("c1").URL() }).Chain("1")
			var err error
			var hash string
			if way == "send" {
				hash, err = chain.SendRawTransaction(t.Context(), []byte{2, 7})
			} else {
				hash, err = rpcpool.CallAs[string](t.Context(), chain, "eth_sendRawTransaction", "0x0207")
			}
			require.NoError(t, err)
			require.Contains(t, evm.Transactions(), hash)
		})
	}
}

// Rule C4: a question to an RPC that failed is no request that may have arrived: the
// refusal after it says that nothing was sent.
func TestFailedQuestionIsNoSend(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1",
			w.Node("asked", rpcpooltest.Status(500).Method("eth_chainId"), rpcpooltest.Result("0x1")),
			w.Node("refuses", rpcpooltest.Result("0x1").Method("eth_chainId"), rpcpooltest.Result(nil).Method("eth_getTransactionByHash"),
				rpcpooltest.Error(-32000, "insufficient funds for gas * price + value")))
		chain := open(t, w, func(cfg *rpcpool.Config) { cfg.VerifyChainID = true }).Chain("1")
		_, err := chain.SendRawTransaction(t.Context(), []byte{0xc1, 0x80})
		var refusal *rpcpool.RPCError
		require.ErrorAs(t, err, &refusal)
		var unknown *rpcpool.TxOutcomeUnknownError
		require.NotErrorAs(t, err, &unknown)
	})
}

// Rule C4: the hash is that of the bytes, of blob transactions without their blobs, and a
// node that says another one for a known type of transaction isn't believed.
func TestTransactionHashes(t *testing.T) {
	// A transaction with blobs: 03 ‖ [[1, 7], blobs, commitments, proofs], hashed as 03 ‖ [1, 7].
	withBlobs, _ := hex.DecodeString("03c6c20107" + "01" + "02" + "03")
	bare, _ := hex.DecodeString("03c20107")
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		known := rpcpooltest.Error(-32000, "already known")
		w.List("1", w.Node("r1", known))
		chain := open(t, w).Chain("1")
		one, err := chain.SendRawTransaction(t.Context(), withBlobs)
		require.NoError(t, err)
		other, err := chain.SendRawTransaction(t.Context(), bare)
		require.NoError(t, err)
		require.Equal(t, other, one)
		for _, odd := range []string{"03", "03c0", "03ff", "03c6c2", "c0", "00", "ffffffffffffffffffff", "03f8ff", "03bf"} {
			raw, _ := hex.DecodeString(odd)
			hash, err := chain.SendRawTransaction(t.Context(), raw)
			require.NoError(t, err, odd)
			require.Len(t, hash, 66)
		}
		_, err = chain.SendRawTransaction(t.Context(), nil)
		var refused *rpcpool.RequestError
		require.ErrorAs(t, err, &refused)
	})
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		evm := rpcpooltest.NewEVM(1, 1000)
		lie := "0x" + strings.Repeat("ab", 32)
		w.List("1", w.Node("liar", rpcpooltest.Result(lie)), w.Node("honest", evm.Serve()))
		chain := open(t, w).Chain("1")
		hash, err := chain.SendRawTransaction(t.Context(), []byte{2, 1, 2, 3})
		require.NoError(t, err)
		require.NotEqual(t, lie, hash)
		require.True(t, chain.Stats()[0].Cooling)
		// A type of a chain's own may be hashed in another way.
		w.Pool.Lists("2", rpcpooltest.PoolList("eip155:2", rpcpooltest.List(w.Node("own", rpcpooltest.Result(lie)))))
		other := open(t, w).Chain("2")
		for _, kind := range []byte{0, 5, 0x7e, 0xbf} {
			hash, err = other.SendRawTransaction(t.Context(), []byte{kind, 1, 2, 3})
			require.NoError(t, err, kind)
			require.Equal(t, lie, hash, kind)
		}
		for _, kind := range []byte{1, 2, 3, 4, 0xc3} {
			raw := []byte{kind, 1, 2, 3}
			hash, err = open(t, w).Chain("2").SendRawTransaction(t.Context(), raw)
			var unknown *rpcpool.TxOutcomeUnknownError
			require.ErrorAs(t, err, &unknown, "it may have taken the transaction all the same: %d", kind)
			require.Equal(t, hashOf(raw), unknown.Hash, kind)
			require.Len(t, unknown.Attempts, 1, kind)
			require.Empty(t, hash, kind)
		}
	})
}

// Rule C4: Broadcast succeeds with the first node that takes it, whatever the others say,
// and goes to different operators.
func TestBroadcast(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		evm := rpcpooltest.NewEVM(1, 1000)
		w.List("1",
			w.NodeAt("a1", "http://a1.one.test/", rpcpooltest.Error(-32000, "insufficient funds")),
			w.NodeAt("a2", "http://a2.one.test/", rpcpooltest.Error(-32000, "insufficient funds")),
			w.Node("slow", evm.Serve().Delay(5*time.Second)),
			w.Node("quick", evm.Serve().Delay(time.Second)))
		chain := open(t, w).Chain("1")
		start := time.Now()
		hash, err := chain.Broadcast(t.Context(), []byte{2, 9}, 3)
		require.NoError(t, err)
		require.Equal(t, time.Second, time.Since(start))
		require.Contains(t, evm.Transactions(), hash)
		require.Equal(t, 1, requestsOf(w, "a1")+requestsOf(w, "a2"))
		time.Sleep(10 * time.Second)
		require.Equal(t, 1, requestsOf(w, "slow"), "the others are left to finish")

		_, err = chain.Broadcast(t.Context(), []byte{2}, 0)
		var refused *rpcpool.RequestError
		require.ErrorAs(t, err, &refused)
	})
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1", w.Node("r1", rpcpooltest.Error(-32000, "insufficient funds")), w.Node("r2", rpcpooltest.Error(-32000, "insufficient funds")))
		_, err := open(t, w).Chain("1").Broadcast(t.Context(), []byte{2, 9}, 5)
		var refused *rpcpool.RPCError
		require.ErrorAs(t, err, &refused)
	})
}

// Rule C4: a node that knows a transaction already has it: a Broadcast is a success by that
// alone, however many others refuse it, and whether they say so before or after.
func TestBroadcastThatOneKnows(t *testing.T) {
	for _, c := range []struct{ known, refused time.Duration }{{2 * time.Second, time.Second}, {time.Second, 2 * time.Second}} {
		for at := range 3 {
			for _, refusal := range []string{"insufficient funds for gas * price + value", "nonce too low", "transaction underpriced"} {
				inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
					w.Proxy("p1")
					var nodes []*rpcpooltest.Node
					for i := range 3 {
						says := rpcpooltest.Error(-32000, refusal).Delay(c.refused)
						if i == at {
							says = rpcpooltest.Error(-32000, "already known").Delay(c.known)
						}
						nodes = append(nodes, w.Node(fmt.Sprint("r", i), says))
					}
					w.List("1", nodes...)
					raw := []byte{2, 0xc1, byte(at)}
					start := time.Now()
					hash, err := open(t, w).Chain("1").Broadcast(t.Context(), raw, 3)
					require.NoError(t, err, "%d knows it, others say %s", at, refusal)
					require.Equal(t, hashOf(raw), hash)
					require.Equal(t, c.known, time.Since(start))
					require.Equal(t, 3, requestsOf(w, "eth_sendRawTransaction"))
				})
			}
		}
	}
}

// serving makes what a node does of the chain that it serves.
type serving func(*rpcpooltest.EVM) rpcpooltest.Reply

// receiptWorld is a chain of testBlockTime with nodes that serve it, and a handle.
func receiptWorld(t *testing.T, w *rpcpooltest.World, replies []serving) (*rpcpooltest.EVM, *rpcpool.Chain) {
	t.Helper()
	w.Proxy("p1")
	evm := rpcpooltest.NewEVM(1, 1000)
	evm.SetBlockTime(testBlockTime)
	var nodes []*rpcpooltest.Node
	for i, reply := range replies {
		nodes = append(nodes, w.Node(fmt.Sprint("r", i+1), reply(evm)))
	}
	w.List("1", nodes...)
	return evm, open(t, w).Chain("1")
}

func serve(evm *rpcpooltest.EVM) rpcpooltest.Reply { return evm.Serve() }

// behindBy serves a node that lags.
func behindBy(blocks uint64) serving {
	return func(evm *rpcpooltest.EVM) rpcpooltest.Reply { return evm.Serve(rpcpooltest.Lagging(blocks)) }
}

// WaitReceipt polls the ring until one RPC has the receipt: null from one that lags is no
// verdict; confirmations are waited for.
func TestWaitReceipt(t *testing.T) {
	for _, confirmations := range []uint64{0, 1, 3} {
		t.Run(fmt.Sprint(confirmations), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				evm, chain := receiptWorld(t, w, []serving{behindBy(100), serve})
				hash, err := chain.SendRawTransaction(t.Context(), []byte{2, 5})
				require.NoError(t, err)
				start := time.Now()
				raw, err := chain.WaitReceipt(t.Context(), hash, rpcpool.Confirmations(confirmations))
				require.NoError(t, err)
				var receipt struct{ TransactionHash, BlockHash string }
				require.NoError(t, json.Unmarshal(raw, &receipt))
				require.Equal(t, hash, receipt.TransactionHash)
				require.Equal(t, evm.Hash(1001), receipt.BlockHash)
				blocks := float64(max(confirmations, 1))
				require.InDelta(t, blocks*testBlockTime.Seconds(), time.Since(start).Seconds(), 2.1)
				require.False(t, chain.Stats()[0].Cooling, "that it lags isn't held against it")
			})
		})
	}
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		_, chain := receiptWorld(t, w, []serving{serve})
		_, err := chain.WaitReceipt(t.Context(), "0x12")
		var refused *rpcpool.RequestError
		require.ErrorAs(t, err, &refused)

		nobody := "0x" + strings.Repeat("11", 32)
		start := time.Now()
		_, err = chain.WaitReceipt(within(t, 30*time.Second), nobody, rpcpool.PollEvery(time.Second))
		var open *rpcpool.TxOutcomeUnknownError
		require.ErrorAs(t, err, &open)
		require.Equal(t, nobody, open.Hash)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 30*time.Second, time.Since(start))
	})
}

// A receipt's block that is reorganized away is waited through: what counts is where the
// transaction is in the end.
func TestWaitReceiptThroughAReorg(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		evm, chain := receiptWorld(t, w, []serving{serve, serve})
		hash, err := chain.SendRawTransaction(t.Context(), []byte{2, 5})
		require.NoError(t, err)
		time.AfterFunc(testBlockTime+5*time.Second, func() { evm.Reorg(5) })
		raw, err := chain.WaitReceipt(t.Context(), hash, rpcpool.Confirmations(4))
		require.NoError(t, err)
		require.Contains(t, string(raw), evm.Hash(1001), "the block after the reorganization")
	})
}

// A transaction that nobody has any more is sent again, as the same bytes.
func TestLostTransactionIsSentAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		forgetful := func(evm *rpcpooltest.EVM) rpcpooltest.Reply {
			sends := 0
			var mu sync.Mutex
			return rpcpooltest.Handle(func(q rpcpooltest.Request) rpcpooltest.Reply {
				mu.Lock()
				defer mu.Unlock()
				if q.Method == "eth_sendRawTransaction" {
					if sends++; sends == 1 { // taken, and dropped at once
						other := rpcpooltest.NewEVM(1, 1)
						return other.Answer(q)
					}
				}
				return evm.Answer(q)
			})
		}
		evm, chain := receiptWorld(t, w, []serving{forgetful})
		raw := []byte{2, 5, 6}
		hash, err := chain.SendRawTransaction(t.Context(), raw)
		require.NoError(t, err)
		require.Empty(t, evm.Transactions())
		_, err = chain.WaitReceipt(within(t, 5*time.Minute), hash)
		require.NoError(t, err)
		require.Equal(t, map[string]string{hash: "0x" + hex.EncodeToString(raw)}, evm.Transactions())
	})
}

// A transaction whose nonce another one has used is told as replaced, by whom as well, but
// not before that was seen several times.
func TestReplacedTransaction(t *testing.T) {
	for _, finds := range []string{"by sender and nonce", "in the blocks", "not at all"} {
		t.Run(finds, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				hash, by := "0x"+strings.Repeat("aa", 32), "0x"+strings.Repeat("bb", 32)
				tx := map[string]any{"hash": hash, "from": someAccount, "nonce": "0x7", "blockHash": nil}
				replacing := map[string]any{"hash": by, "from": strings.ToUpper(someAccount), "nonce": "0x7", "blockHash": by}
				node := func(evm *rpcpooltest.EVM) rpcpooltest.Reply {
					return rpcpooltest.Handle(func(q rpcpooltest.Request) rpcpooltest.Reply {
						pending := evm.Head() < 1003
						switch q.Method {
						case "eth_getTransactionByHash":
							if pending {
								return rpcpooltest.Result(tx)
							}
							return rpcpooltest.Result(nil)
						case "eth_getTransactionReceipt":
							return rpcpooltest.Result(nil)
						case "eth_getTransactionCount":
							return rpcpooltest.Result(map[bool]string{true: "0x7", false: "0x8"}[pending])
						case "eth_getTransactionBySenderAndNonce":
							if finds == "by sender and nonce" {
								return rpcpooltest.Result(replacing)
							}
						case "eth_getBlockByNumber":
							if finds == "in the blocks" {
								return rpcpooltest.Result(map[string]any{"number": "0x1", "hash": by, "transactions": []any{replacing}})
							}
						}
						return evm.Answer(q)
					})
				}
				_, chain := receiptWorld(t, w, []serving{node, node})
				_, err := chain.WaitReceipt(within(t, 10*time.Minute), hash)
				var replaced *rpcpool.TxReplacedError
				require.ErrorAs(t, err, &replaced)
				require.Equal(t, uint64(7), replaced.Nonce)
				require.Equal(t, hash, replaced.Hash)
				if finds == "not at all" {
					by = ""
				}
				require.Equal(t, by, replaced.By)
				counts := 0
				for _, line := range w.Requests() {
					if strings.HasSuffix(line, "eth_getTransactionCount") {
						counts++
					}
				}
				require.GreaterOrEqual(t, counts, 3, "seen once is too little")
			})
		})
	}
}

// Sends of the same transaction at the same time, by many, are one transaction.
func TestConcurrentSends(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		evm, chain := receiptWorld(t, w, []serving{serve, serve, serve})
		var wg sync.WaitGroup
		var hashes [50]string
		for i := range hashes {
			wg.Go(func() {
				hash, err := chain.SendRawTransaction(t.Context(), []byte{2, byte(i % 5)})
				assert.NoError(t, err)
				_, err = chain.WaitReceipt(t.Context(), hash)
				assert.NoError(t, err)
				hashes[i] = hash
			})
		}
		wg.Wait()
		taken := evm.Transactions()
		require.Len(t, taken, 5)
		for i, hash := range hashes {
			require.Equal(t, fmt.Sprintf("0x02%02x", i%5), taken[hash], "the hash that caller %d got", i)
		}
	})
}

// Rules A5.3, C4: a kept connection that dies with a transaction on it is nobody's failure, and
// the transaction is sent once more; but it may have arrived, so "nonce too low" isn't
// believed before it was looked for.
func TestRefusalAfterADeadConnection(t *testing.T) {
	for _, way := range []string{"send", "call", "batch"} {
		t.Run(way, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				w.Proxy("p1")
				evm := rpcpooltest.NewEVM(1, 1000)
				var sends atomic.Int64
				w.List("1", w.Node("r1", rpcpooltest.Handle(func(q rpcpooltest.Request) rpcpooltest.Reply {
					if q.Method != "eth_sendRawTransaction" {
						return evm.Answer(q)
					}
					if sends.Add(1) > 1 {
						return rpcpooltest.Error(-32000, "nonce too low")
					}
					evm.Answer(q)
					evm.Mine(1)
					return rpcpooltest.Close()
				})))
				chain := open(t, w).Chain("1")
				_, err := chain.Call(t.Context(), "eth_chainId")
				require.NoError(t, err)
				var hash string
				switch way {
				case "send":
					hash, err = chain.SendRawTransaction(t.Context(), []byte{2, 7})
				case "call":
					hash, err = rpcpool.CallAs[string](t.Context(), chain, "eth_sendRawTransaction", "0x0207")
				case "batch":
					elems := []rpcpool.BatchElem{{Method: "eth_sendRawTransaction", Args: []any{"0x0207"}, Result: &hash}, {Method: "eth_chainId"}}
					require.NoError(t, chain.BatchCallContext(t.Context(), elems))
					err = elems[0].Error
				}
				require.NoError(t, err)
				require.Equal(t, int64(2), sends.Load())
				require.Contains(t, evm.Transactions(), hash)
			})
		})
	}
}

// Rule C4: a batch that was refused may have been carried out all the same; "nonce too low"
// to what travels alone after it isn't believed either.
func TestRefusalAfterARefusedBatch(t *testing.T) {
	for name, refusal := range map[string]rpcpooltest.Reply{
		"as a whole": rpcpooltest.Status(500), "for want of room": rpcpooltest.Error(-32003, "response too large"),
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				w.Proxy("p1")
				evm := rpcpooltest.NewEVM(1, 1000)
				var sent atomic.Bool
				w.List("1", w.Node("r1", rpcpooltest.Handle(func(q rpcpooltest.Request) rpcpooltest.Reply {
					send := rpcpooltest.Request{Method: "eth_sendRawTransaction", Params: json.RawMessage(`["0x0207"]`)}
					switch isSend := q.Method == send.Method; {
					case !isSend && (!inBatch(q) || name != "as a whole"):
						return evm.Answer(q)
					case !inBatch(q):
						return rpcpooltest.Error(-32000, "nonce too low")
					}
					if !sent.Swap(true) {
						evm.Answer(send)
						evm.Mine(1)
					}
					return refusal
				})))
				var hash string
				elems := []rpcpool.BatchElem{{Method: "eth_chainId"}, {Method: "eth_sendRawTransaction", Args: []any{"0x0207"}, Result: &hash}}
				require.NoError(t, open(t, w).Chain("1").BatchCallContext(t.Context(), elems))
				require.NoError(t, elems[1].Error)
				require.Contains(t, evm.Transactions(), hash)
			})
		})
	}
}
