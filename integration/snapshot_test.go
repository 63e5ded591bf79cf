package integration

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/bomzrpc/rpcpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// statefulReads are reads that tell blocks apart, of a contract that gets a wei and
// emits a log in every block.
func statefulReads(contract string) []statefulRead {
	// balance(contract), then the block's number, each a word of the result.
	both := "0x73" + strings.TrimPrefix(contract, "0x") + "31600052" + "43602052" + "60406000f3"
	call := map[string]any{"data": both}
	return []statefulRead{
		{"eth_getBalance", []any{contract}},
		{"eth_getCode", []any{contract}},
		{"eth_getTransactionCount", []any{contract}},
		{"eth_getStorageAt", []any{contract, "0x0"}},
		{"eth_call", []any{call}},
		{"eth_getLogs", []any{map[string]any{"address": contract}}},
		{"eth_getBlockByNumber", nil},
	}
}

type statefulRead struct {
	method string
	params []any // without the block
}

// at gives the params that name the block by its number, or by a tag.
func (r *statefulRead) at(block string) []any {
	switch r.method {
	case "eth_getLogs":
		filter := map[string]any{"fromBlock": block, "toBlock": block}
		maps.Copy(filter, r.params[0].(map[string]any))
		return []any{filter}
	case "eth_getBlockByNumber":
		return []any{block, true}
	}
	return slices.Concat(r.params, []any{block})
}

// Rule D2: while the chain goes on, every read of a snapshot gives what the node itself
// says of the block by its number, and so does a client that is bound to the snapshot,
// singly and in batches.
func TestSnapshotIsOfItsBlock(t *testing.T) {
	for _, node := range nodes {
		t.Run(node.name, func(t *testing.T) {
			t.Parallel()
			need(t, "danted", node.name)
			node.needBlocksByHash(t)
			b := newBed(t, []string{kind("danted").url()}, map[string][]string{node.ref(): {node.url()}})
			contract := node.deployEmitter(t)
			node.emit(t, contract)

			snap, err := b.ChainID(node.chainID).Snapshot(bounded(t), "latest")
			require.NoError(t, err)
			block := fmt.Sprintf("0x%x", snap.Number())
			client := snap.HTTPClient()
			for _, read := range statefulReads(contract) {
				node.emit(t, contract)
				want := string(node.direct(t, read.method, read.at(block)...))
				got, err := snap.Call(bounded(t), read.method, read.at("latest")...)
				require.NoError(t, err, read.method)
				assert.JSONEq(t, want, string(got), read.method)

				request, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": read.method, "params": read.at("latest")})
				require.NoError(t, err)
				assert.JSONEq(t, `{"jsonrpc":"2.0","id":1,"result":`+want+`}`, post(t, client, string(request)), read.method)
				assert.JSONEq(t, `[{"jsonrpc":"2.0","id":"n","result":"`+block+`"},{"jsonrpc":"2.0","id":1,"result":`+want+`}]`,
					post(t, client, `[{"jsonrpc":"2.0","id":"n","method":"eth_blockNumber"},`+string(request)+`]`), read.method)
			}
			// The chain has really gone on, and the reads show it.
			for _, method := range []string{"eth_getBalance", "eth_call", "eth_getLogs", "eth_getBlockByNumber"} {
				assertChanged(t, node, contract, method, block)
			}
			for _, name := range []string{snap.Hash(), block} {
				again, err := b.ChainID(node.chainID).Snapshot(bounded(t), name)
				require.NoError(t, err)
				assert.Equal(t, snap.Hash(), again.Hash())
				assert.Equal(t, snap.Number(), again.Number())
			}
			_, err = b.ChainID(node.chainID).Snapshot(bounded(t), "0x"+strings.Repeat("1", 64))
			var none *rpcpool.SnapshotError
			assert.ErrorAs(t, err, &none)
			assert.Empty(t, b.complaints())
		})
	}
}

// needBlocksByHash skips a node that doesn't take a block by its hash (EIP-1898), and
// says so in the node's words.
func (n node) needBlocksByHash(t *testing.T) {
	t.Helper()
	var block struct{ Hash string }
	require.NoError(t, json.Unmarshal(n.direct(t, "eth_getBlockByNumber", "latest", false), &block))
	reference := map[string]any{"blockHash": block.Hash, "requireCanonical": true}
	if answer := n.ask(t, "eth_getBalance", fundedAccount, reference); len(answer.Error) > 0 {
		skips.add(n.name+" with blocks by their hash", t.Name())
		t.Skipf("%s doesn't take a block by its hash: %s", n.name, answer.Error)
	}
}

func assertChanged(t *testing.T, n node, contract, method, block string) {
	t.Helper()
	for _, read := range statefulReads(contract) {
		if read.method == method {
			assert.NotEqual(t, string(n.direct(t, method, read.at(block)...)), string(n.direct(t, method, read.at("latest")...)), method)
		}
	}
}

// lastAccount is an account whose nonces no test counts on.
func (n node) lastAccount(t *testing.T) string {
	t.Helper()
	var accounts []string
	require.NoError(t, json.Unmarshal(n.direct(t, "eth_accounts"), &accounts))
	require.NotEmpty(t, accounts)
	return accounts[len(accounts)-1]
}

func (n node) deployEmitter(t *testing.T) (contract string) {
	t.Helper()
	deployed := n.sendFrom(t, map[string]any{"from": n.lastAccount(t), "data": emitter, "gas": "0x30000"})
	require.NotEmpty(t, deployed.ContractAddress)
	return deployed.ContractAddress
}

// emit has the node mine a block in which the contract gets a wei and emits a log.
func (n node) emit(t *testing.T, contract string) {
	t.Helper()
	n.sendFrom(t, map[string]any{"from": n.lastAccount(t), "to": contract, "gas": "0x30000", "value": "0x1"})
}

// twinReads are reads of a twin's block that give something of every block.
var twinReads = []statefulRead{
	{"eth_getBalance", []any{fundedAccount}},
	{"eth_getTransactionCount", []any{fundedAccount}},
	{"eth_call", []any{map[string]any{"data": "0x4360005260206000f3"}}}, // the block's number
	{"eth_getProof", []any{fundedAccount, []any{}}},
	{"eth_getLogs", []any{map[string]any{}}},
	{"eth_getBlockByNumber", nil},
}

// Rule D2: when the node that a snapshot was taken from is lost, its twin goes on with
// the same block, though its chain is longer by now; one that doesn't have the block yet
// is passed over, isn't at fault, and nothing is read from another block instead.
func TestSnapshotIsReadFromATwin(t *testing.T) {
	t.Parallel()
	twins := startTwins(t, 3)
	first, laggard, second := twins[0], twins[1], twins[2]
	for _, w := range []*twin{first, second} {
		w.mine(t, 1)
		w.emit(t)
	}
	laggard.mine(t, 1)
	b := newBed(t, []string{kind("danted").url()}, map[string][]string{"31337": urlsOf(twins)})
	chain := b.ChainID(31337)
	snap, err := chain.Snapshot(bounded(t), "latest")
	require.NoError(t, err)
	require.Equal(t, uint64(2), snap.Number())
	second.mine(t, 2)
	first.kill()

	for _, read := range append([]statefulRead{{"eth_getBlockReceipts", nil}}, twinReads...) {
		got, err := snap.Call(bounded(t), read.method, read.at("latest")...)
		require.NoError(t, err, read.method)
		assert.JSONEq(t, string(second.direct(t, read.method, read.at("0x2")...)), string(got), read.method)
	}
	agreed, err := snap.Quorum(2).Call(bounded(t), "eth_getBalance", fundedAccount)
	var split *rpcpool.QuorumError
	assert.ErrorAs(t, err, &split, "%s, though one operator alone has the block", agreed)

	laggard.emit(t)
	agreed, err = snap.Quorum(2).Call(bounded(t), "eth_getBalance", fundedAccount)
	require.NoError(t, err)
	assert.JSONEq(t, string(second.direct(t, "eth_getBalance", fundedAccount, "0x2")), string(agreed))
	for _, complaint := range b.complaints() {
		assert.Equal(t, first.url()+" conn", complaint)
	}
}

// Rule D2: when a block is replaced in a reorganization, the reads of its snapshot end in
// an error, and never in what another block says. Anvil says of such a block what it says
// of one that it never had ("Resource not found", "unknown block"), so this doesn't look
// at SnapshotError.Replaced.
func TestSnapshotOfAReplacedBlock(t *testing.T) {
	for name, replace := range map[string]func(t *testing.T, w *twin, depth int){
		"anvil_reorg": func(t *testing.T, w *twin, depth int) { w.direct(t, "anvil_reorg", depth, []any{}) },
		"evm_revert": func(t *testing.T, w *twin, depth int) {
			w.direct(t, "evm_revert", w.checkpoint)
			w.time += twinBlockTime // another block than before
			w.mine(t, depth)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			twins := startTwins(t, 2)
			for _, w := range twins {
				w.mine(t, 1)
				require.NoError(t, json.Unmarshal(w.direct(t, "evm_snapshot"), &w.checkpoint))
				w.emit(t)
				w.mine(t, 1)
			}
			b := newBed(t, []string{kind("danted").url()}, map[string][]string{"31337": urlsOf(twins)})
			snap, err := b.ChainID(31337).Snapshot(bounded(t), "0x2")
			require.NoError(t, err)
			before := map[string]json.RawMessage{}
			for _, read := range twinReads {
				before[read.method], err = snap.Call(bounded(t), read.method, read.at("latest")...)
				require.NoError(t, err, read.method)
				assert.JSONEq(t, string(twins[0].direct(t, read.method, read.at("0x2")...)), string(before[read.method]), read.method)
			}

			// The first one has replaced it: the second one still has it.
			replace(t, twins[0], 2)
			assert.NotEqual(t, snap.Hash(), twins[0].hash(t, "0x2"))
			for _, read := range twinReads {
				got, err := snap.Call(bounded(t), read.method, read.at("latest")...)
				require.NoError(t, err, read.method)
				assert.JSONEq(t, string(before[read.method]), string(got), read.method)
			}

			replace(t, twins[1], 2)
			for _, read := range twinReads {
				got, err := snap.Call(bounded(t), read.method, read.at("latest")...)
				var gone *rpcpool.SnapshotError
				require.ErrorAs(t, err, &gone, "%s: %s", read.method, got)
				assert.Contains(t, gone.Block, snap.Hash())
				assert.Len(t, gone.Attempts, 2)
			}
			again, err := b.ChainID(31337).Snapshot(bounded(t), "0x2")
			require.NoError(t, err)
			assert.Contains(t, []string{twins[0].hash(t, "0x2"), twins[1].hash(t, "0x2")}, again.Hash())
			assert.Empty(t, b.complaints(), "who has no such block isn't at fault")
		})
	}
}
