package integration

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/bomzrpc/rpcpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A contract that emits one log whenever it is called, with the first word of the
// call data as its topic and the block's number as its data:
//
//	push1 0 calldataload            the topic
//	number push1 0 mstore           the data
//	push1 32 push1 0 log1 stop
//
// behind the usual constructor, which returns these 13 bytes.
const emitter = "0x600d80600b6000396000f3" + "6000354360005260206000a100"

const emittedLogs = 25

// deployAndEmit has the node emit logs, in blocks of their own but for what a node
// mines together, and gives the contract's address, the first block and the last.
func (n node) deployAndEmit(t *testing.T) (address, first, last string) {
	t.Helper()
	from := n.lastAccount(t)
	deployed := n.sendFrom(t, map[string]any{"from": from, "data": emitter, "gas": "0x30000"})
	require.NotEmpty(t, deployed.ContractAddress)
	for i := range emittedLogs {
		receipt := n.sendFrom(t, map[string]any{
			"from": from, "to": deployed.ContractAddress, "gas": "0x30000", "data": fmt.Sprintf("0x%064x", i%3),
		})
		last = receipt.BlockNumber
	}
	return deployed.ContractAddress, deployed.BlockNumber, last
}

// Part A9: eth_getLogs in one piece, and GetLogsChunked in pieces of any size and
// in parallel, give exactly the logs of one direct query to the node, in its
// order; the chunks of LogChunks cover the range once, in block order.
func TestChunkedLogsEqualOneDirectQuery(t *testing.T) {
	for _, node := range nodes {
		t.Run(node.name, func(t *testing.T) {
			t.Parallel()
			need(t, "danted", "tinyproxy", node.name)
			address, first, last := node.deployAndEmit(t)
			b := newBed(t, []string{kind("danted").url(), kind("tinyproxy").url()},
				map[string][]string{node.ref(): {node.url()}})
			chain := b.ChainID(node.chainID)

			for name, topics := range map[string][]any{
				"all": nil, "one topic": {fmt.Sprintf("0x%064x", 1)}, "either": {[]any{fmt.Sprintf("0x%064x", 0), fmt.Sprintf("0x%064x", 2)}},
			} {
				query := map[string]any{"address": address, "fromBlock": first, "toBlock": last, "topics": topics}
				if topics == nil {
					delete(query, "topics")
				}
				want := rawList(t, node.direct(t, "eth_getLogs", query))
				if topics == nil {
					require.Len(t, want, emittedLogs)
				}
				whole, err := chain.Call(bounded(t), "eth_getLogs", query)
				require.NoError(t, err, name)
				assertSameLogs(t, want, rawList(t, whole), name+", one query")

				filter := rpcpool.LogFilter{Address: address, Topics: topics, FromBlock: first, ToBlock: last}
				for _, options := range [][]rpcpool.LogsOption{
					nil,
					{rpcpool.ChunkSize(7)},
					{rpcpool.ChunkSize(1), rpcpool.Concurrency(3)},
				} {
					chunked, err := chain.GetLogsChunked(bounded(t), filter, options...)
					require.NoError(t, err, name)
					assertSameLogs(t, want, chunked, name)
				}
			}
			assertChunksCoverOnce(t, chain, address, first, last)
			assert.Empty(t, b.complaints())
		})
	}
}

// To the head, with the number asked for once, the iterator's chunks join up.
func assertChunksCoverOnce(t *testing.T, chain *rpcpool.Chain, address, first, last string) {
	t.Helper()
	next, count := hexNumber(t, first), 0
	filter := rpcpool.LogFilter{Address: address, FromBlock: first, ToBlock: "latest"}
	for chunk, err := range chain.LogChunks(bounded(t), filter, rpcpool.ChunkSize(6)) {
		require.NoError(t, err)
		require.Equal(t, next, chunk.From)
		require.GreaterOrEqual(t, chunk.To, chunk.From)
		require.LessOrEqual(t, chunk.To-chunk.From+1, uint64(6))
		next = chunk.To + 1
		count += len(chunk.Logs)
	}
	assert.Greater(t, next, hexNumber(t, last))
	assert.Equal(t, emittedLogs, count)
}

func rawList(t *testing.T, raw json.RawMessage) (list []json.RawMessage) {
	t.Helper()
	require.NoError(t, json.Unmarshal(raw, &list))
	return list
}

func assertSameLogs(t *testing.T, want, got []json.RawMessage, about string) {
	t.Helper()
	if !assert.Len(t, got, len(want), about) {
		return
	}
	for i := range want {
		assert.JSONEq(t, string(want[i]), string(got[i]), about)
	}
}

func hexNumber(t *testing.T, quantity string) (number uint64) {
	t.Helper()
	_, err := fmt.Sscanf(quantity, "0x%x", &number)
	require.NoError(t, err)
	return number
}
