package rpcpool_test

import (
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// A reorganization between the last two looks, for the confirmations and at the receipt once
// more, is seen: the confirmations are counted anew from the block that the transaction is
// in then.
func TestReceiptIsOfTheBlockThatStays(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		hash := hashOf([]byte{2, 5})
		var moved atomic.Bool
		reorganizing := func(evm *rpcpooltest.EVM) rpcpooltest.Reply {
			return rpcpooltest.Handle(func(q rpcpooltest.Request) rpcpooltest.Reply {
				switch {
				case q.Method == "eth_blockNumber" && evm.Head() == 1004:
					defer func() {
						if !moved.Swap(true) {
							evm.Reorg(5)
						}
					}()
				case q.Method == "eth_getTransactionReceipt" && moved.Load():
					return rpcpooltest.Result(map[string]string{"transactionHash": hash, "blockNumber": "0x3eb", "blockHash": evm.Hash(1003)})
				}
				return evm.Answer(q)
			})
		}
		evm, chain := receiptWorld(t, w, []serving{reorganizing})
		_, err := chain.SendRawTransaction(t.Context(), []byte{2, 5})
		require.NoError(t, err)
		raw, err := chain.WaitReceipt(within(t, 10*time.Minute), hash, rpcpool.Confirmations(4), rpcpool.PollEvery(time.Second))
		require.NoError(t, err)
		require.True(t, moved.Load(), "there was no reorganization")
		var receipt struct{ BlockHash string }
		require.NoError(t, json.Unmarshal(raw, &receipt))
		require.Equal(t, evm.Hash(1003), receipt.BlockHash)
		require.Equal(t, uint64(1006), evm.Head(), "four blocks, its own included")
	})
}

// Of a transaction that no node has shown it is the nodes' word for a used nonce that says
// that it was replaced. It is sent for that in every fourth look without it; once one has
// said so, in each, until three in a row have.
func TestReplacedTransactionThatNobodyHasShown(t *testing.T) {
	for _, words := range []string{
		"nonce too low: next nonce 8, tx nonce 7", "Nonce too low", "OldNonce", "old nonce",
		"Transaction nonce is too low. Try incrementing the nonce.", "nonce has already been used",
	} {
		t.Run(words, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				var sends atomic.Int32
				node := func(evm *rpcpooltest.EVM) rpcpooltest.Reply {
					return rpcpooltest.Handle(func(q rpcpooltest.Request) rpcpooltest.Reply {
						switch q.Method {
						case "eth_sendRawTransaction":
							if sends.Add(1) == 1 { // taken, and dropped
								return rpcpooltest.NewEVM(1, 1).Answer(q)
							}
							return rpcpooltest.Error(-32000, words)
						case "eth_getTransactionByHash", "eth_getTransactionReceipt":
							return rpcpooltest.Result(nil)
						}
						return evm.Answer(q)
					})
				}
				_, chain := receiptWorld(t, w, []serving{node})
				raw := []byte{2, 0xc2, 1, 7} // [1, 7]: of chain 1, with nonce 7
				hash, err := chain.SendRawTransaction(t.Context(), raw)
				require.NoError(t, err)
				start := time.Now()
				_, err = chain.WaitReceipt(within(t, 10*time.Minute), hash, rpcpool.PollEvery(time.Second))
				var replaced *rpcpool.TxReplacedError
				require.ErrorAs(t, err, &replaced)
				require.Equal(t, rpcpool.TxReplacedError{Hash: hash, Nonce: 7}, *replaced)
				require.Equal(t, 5*time.Second, time.Since(start), "looks 4, 5 and 6")
				require.Equal(t, int32(4), sends.Load())
			})
		})
	}
}

// A transaction counts as replaced only when that was seen in three looks in a row: nodes
// that say now this, now that, replace nothing.
func TestNowReplacedNowNot(t *testing.T) {
	hash := "0x" + strings.Repeat("aa", 32)
	pending := map[string]any{"hash": hash, "from": someAccount, "nonce": "0x7", "blockHash": nil}
	mined := map[string]any{"transactionHash": hash, "blockNumber": "0x3e8", "blockHash": "0x" + strings.Repeat("bb", 32)}
	for name, c := range map[string]struct{ tx, receipt, unused int32 }{ // each is seen in every so manieth look, 0: in none
		"the nonce is free":   {unused: 2},
		"it waits":            {tx: 3},
		"it is in a block":    {receipt: 3},
		"two used, one mined": {receipt: 3, unused: 5},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				var looks, used atomic.Int32
				seenEvery := func(n int32) bool { return n > 0 && looks.Load()%n == 0 }
				node := func(evm *rpcpooltest.EVM) rpcpooltest.Reply {
					return rpcpooltest.Handle(func(q rpcpooltest.Request) rpcpooltest.Reply {
						switch q.Method {
						case "eth_getTransactionReceipt":
							looks.Add(1)
							if seenEvery(c.receipt) {
								return rpcpooltest.Result(mined)
							}
							return rpcpooltest.Result(nil)
						case "eth_getTransactionByHash":
							if looks.Load() == 1 || seenEvery(c.tx) {
								return rpcpooltest.Result(pending)
							}
							return rpcpooltest.Result(nil)
						case "eth_getTransactionCount":
							if seenEvery(c.unused) {
								return rpcpooltest.Result("0x7")
							}
							used.Add(1)
							return rpcpooltest.Result("0x8")
						}
						return evm.Answer(q)
					})
				}
				_, chain := receiptWorld(t, w, []serving{node})
				_, err := chain.WaitReceipt(within(t, 2*time.Minute), hash, rpcpool.PollEvery(time.Second), rpcpool.Confirmations(1000))
				var open *rpcpool.TxOutcomeUnknownError
				require.ErrorAs(t, err, &open)
				var replaced *rpcpool.TxReplacedError
				require.NotErrorAs(t, err, &replaced)
				require.Greater(t, used.Load(), int32(50))
			})
		})
	}
}

// A transaction is sent again when nobody had it in four looks in a row: one that shows up
// in between, waiting or mined, isn't.
func TestSeenTransactionIsNotSentAgain(t *testing.T) {
	raw := []byte{2, 0xc2, 1, 7}
	hash := hashOf(raw)
	pending := map[string]any{"hash": hash, "from": someAccount, "nonce": "0x7", "blockHash": nil}
	mined := map[string]any{"transactionHash": hash, "blockNumber": "0x3e8", "blockHash": "0x" + strings.Repeat("bb", 32)}
	for name, c := range map[string]struct{ tx, receipt, sends int32 }{
		"it waits": {tx: 3, sends: 1}, "it is in a block": {receipt: 3, sends: 1}, "never": {sends: 1 + 2},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				var looks, sends atomic.Int32
				seenEvery := func(n int32) bool { return n > 0 && looks.Load()%n == 0 }
				node := func(evm *rpcpooltest.EVM) rpcpooltest.Reply {
					return rpcpooltest.Handle(func(q rpcpooltest.Request) rpcpooltest.Reply {
						switch q.Method {
						case "eth_sendRawTransaction":
							sends.Add(1)
							return rpcpooltest.Result(hash)
						case "eth_getTransactionReceipt":
							looks.Add(1)
							if seenEvery(c.receipt) {
								return rpcpooltest.Result(mined)
							}
							return rpcpooltest.Result(nil)
						case "eth_getTransactionByHash":
							if seenEvery(c.tx) {
								return rpcpooltest.Result(pending)
							}
							return rpcpooltest.Result(nil)
						case "eth_getTransactionCount":
							return rpcpooltest.Result("0x7")
						}
						return evm.Answer(q)
					})
				}
				_, chain := receiptWorld(t, w, []serving{node})
				_, err := chain.SendRawTransaction(t.Context(), raw)
				require.NoError(t, err)
				_, err = chain.WaitReceipt(within(t, 10500*time.Millisecond), hash, rpcpool.PollEvery(time.Second), rpcpool.Confirmations(1000))
				var open *rpcpool.TxOutcomeUnknownError
				require.ErrorAs(t, err, &open)
				require.Equal(t, int32(11), looks.Load())
				require.Equal(t, c.sends, sends.Load())
			})
		})
	}
}
