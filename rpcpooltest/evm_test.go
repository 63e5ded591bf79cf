package rpcpooltest

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// askEVM gives the result, or the error's message, of a view's answer.
func askEVM(t *testing.T, reply Reply, method, params string) any {
	t.Helper()
	q := Request{Method: method, Params: json.RawMessage(params), ID: json.RawMessage("1"), ctx: context.Background()}
	if reply.act == handleIt {
		reply = reply.handle(q)
	}
	var answer struct {
		Result any
		Error  *struct{ Message string }
	}
	require.NoError(t, json.Unmarshal(reply.body(q), &answer))
	if answer.Error != nil {
		return "error: " + answer.Error.Message
	}
	return answer.Result
}

// Answers show which state they were read from, whichever way the block is named.
func TestEVMAnswersShowTheirState(t *testing.T) {
	chain := NewEVM(8453, 1000)
	for param, want := range map[string]uint64{
		`"latest"`: 1000, `"pending"`: 1000, `"safe"`: 968, `"finalized"`: 936, `"earliest"`: 0, `"0x10"`: 16,
		`{"blockNumber":"0x11"}`:                          17,
		`{"blockHash":"` + chain.Hash(990) + `"}`:         990,
		`{"blockHash":"` + chain.Hash(0) + `"}`:           0,
		`{"blockHash":"` + chain.Hash(1000) + `","x":[]}`: 1000,
	} {
		assert.Equal(t, quantity(want), askEVM(t, chain.Serve(), "eth_getBalance", `["0xab",`+param+`]`), param)
		assert.Equal(t, chain.Hash(want), askEVM(t, chain.Serve(), "eth_call", `[{},`+param+`]`), param)
		assert.Equal(t, chain.Hash(want), askEVM(t, chain.Serve(), "eth_getStorageAt", `["0xab","0x0",`+param+`]`), param)
	}
	assert.Equal(t, "0x3e8", askEVM(t, chain.Serve(), "eth_getBalance", `["0xab"]`), "latest is the default")
	assert.Equal(t, "error: header not found", askEVM(t, chain.Serve(), "eth_call", `[{},"0x3e9"]`))
	assert.Equal(t, "error: header for hash not found", askEVM(t, chain.Serve(), "eth_call", `[{},{"blockHash":"0x12"}]`))
	assert.Contains(t, askEVM(t, chain.Serve(), "debug_x", `[]`), "does not exist")
}

// Each fault changes what it says and nothing else.
func TestEVMFaults(t *testing.T) {
	chain := NewEVM(8453, 1000)
	head := func(faults ...EVMFault) any { return askEVM(t, chain.Serve(faults...), "eth_blockNumber", `[]`) }
	assert.Equal(t, "0x3e8", head())
	assert.Equal(t, "0x3b6", head(Lagging(50)))
	assert.Equal(t, "0x64", head(StuckAt(100)))
	assert.Equal(t, "0x7d0", head(Boasting(1000)))
	assert.Equal(t, "0x2105", askEVM(t, chain.Serve(), "eth_chainId", `[]`))
	assert.Equal(t, "0x1", askEVM(t, chain.Serve(OnChain(1)), "eth_chainId", `[]`))
	assert.NotEqual(t, chain.Hash(5), askEVM(t, chain.Serve(OnChain(1)), "eth_call", `[{},"0x5"]`))

	forked := chain.Serve(ForkedFrom(995))
	assert.Equal(t, chain.Hash(994), askEVM(t, forked, "eth_call", `[{},"0x3e2"]`))
	other := askEVM(t, forked, "eth_call", `[{},"0x3e3"]`)
	assert.NotEqual(t, chain.Hash(995), other)
	assert.Equal(t, other, askEVM(t, chain.Serve(ForkedFrom(995)), "eth_call", `[{},"0x3e3"]`), "the same fork")
	assert.Equal(t, "error: header for hash not found", askEVM(t, forked, "eth_call", `[{},{"blockHash":"`+chain.Hash(995)+`"}]`))

	pruned := chain.Serve(PrunedBelow(900))
	assert.Equal(t, "0x384", askEVM(t, pruned, "eth_getBalance", `["0xab","0x384"]`))
	assert.Contains(t, askEVM(t, pruned, "eth_getBalance", `["0xab","0x383"]`), "historical state unavailable")
	assert.Equal(t, chain.Hash(5), askEVM(t, pruned, "eth_getBlockByNumber", `["0x5",false]`).(map[string]any)["hash"])
}

// Blocks hang together, and those that a node hasn't are null.
func TestEVMBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		chain := NewEVM(1, 10)
		chain.SetBlockTime(12 * time.Second)
		block := func(method, param string) any { return askEVM(t, chain.Serve(), method, `[`+param+`,false]`) }
		nine := block("eth_getBlockByNumber", `"0x9"`).(map[string]any)
		ten := block("eth_getBlockByHash", `"`+chain.Hash(10)+`"`).(map[string]any)
		assert.Equal(t, "0xa", ten["number"])
		assert.Equal(t, nine["hash"], ten["parentHash"])
		assert.Equal(t, quantity(uint64(time.Now().Unix())), ten["timestamp"])
		assert.Equal(t, quantity(uint64(time.Now().Unix()-12)), nine["timestamp"])
		assert.Nil(t, block("eth_getBlockByNumber", `"0xb"`))

		time.Sleep(30 * time.Second)
		assert.Equal(t, uint64(12), chain.Head())
		chain.Mine(3)
		assert.Equal(t, uint64(15), chain.Head())
		chain.SetBlockTime(0)
		time.Sleep(time.Hour)
		assert.Equal(t, uint64(15), chain.Head())
	})
}

// Each block of a range has one log, with the block's hash; a hash names one
// block.
func TestEVMLogs(t *testing.T) {
	chain := NewEVM(1, 100)
	logs := askEVM(t, chain.Serve(), "eth_getLogs", `[{"fromBlock":"0x5","toBlock":"0x7"}]`).([]any)
	require.Len(t, logs, 3)
	assert.Equal(t, "0x6", logs[1].(map[string]any)["blockNumber"])
	assert.Equal(t, chain.Hash(6), logs[1].(map[string]any)["blockHash"])
	assert.Len(t, askEVM(t, chain.Serve(), "eth_getLogs", `[{"blockHash":"`+chain.Hash(9)+`"}]`), 1)
	assert.Len(t, askEVM(t, chain.Serve(), "eth_getLogs", `[{}]`), 1)
	assert.Equal(t, "error: header not found", askEVM(t, chain.Serve(Lagging(5)), "eth_getLogs", `[{"toBlock":"0x64"}]`))
}

// A transaction is known by the Keccak-256 of its bytes, once, and mined in the
// next block.
func TestEVMTransactions(t *testing.T) {
	chain := NewEVM(1, 100)
	const hash = "0x4e03657aea45a94fc7d47ba826c8d667c0d1e6e33a64a036ec44f58fa12d6c45" // of "abc"
	assert.Equal(t, hash, askEVM(t, chain.Serve(), "eth_sendRawTransaction", `["0x616263"]`))
	assert.Equal(t, "error: already known", askEVM(t, chain.Serve(), "eth_sendRawTransaction", `["0x616263"]`))
	assert.True(t, strings.HasPrefix(askEVM(t, chain.Serve(), "eth_sendRawTransaction", `["0xzz"]`).(string), "error"))
	receipt := func(faults ...EVMFault) any {
		return askEVM(t, chain.Serve(faults...), "eth_getTransactionReceipt", `["`+hash+`"]`)
	}
	assert.Nil(t, receipt())
	assert.NotNil(t, askEVM(t, chain.Serve(), "eth_getTransactionByHash", `["`+hash+`"]`))
	chain.Mine(1)
	assert.Equal(t, "0x65", receipt().(map[string]any)["blockNumber"])
	assert.Nil(t, receipt(Lagging(1)))
	assert.Equal(t, map[string]string{hash: "0x616263"}, chain.Transactions())
}
