package integration

import (
	"encoding/json"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// twinBlockTime is what lies between the timestamps of two blocks of a twin, in
// seconds. It is long, so that a twin that is behind by a block is so for less than
// the chain's block time, however slow the machine.
const twinBlockTime = 60

// twin is an anvil of the test's own. It is listed by its address, since on this
// machine each port is an operator of its own. All twins begin with the same block,
// and those that mine the same have the same blocks, down to the hashes: they are
// two nodes of one chain.
type twin struct {
	*victim
	time       int64  // of its newest block
	checkpoint string // what evm_revert takes
}

func startTwins(t *testing.T, n int) (twins []*twin) {
	t.Helper()
	need(t, "danted", "anvil")
	genesis, err := strconv.ParseInt(os.Getenv("GENESIS_TIME"), 10, 64)
	require.NoError(t, err)
	for range n {
		twins = append(twins, &twin{victim: startVictim(t, "anvil-twin"), time: genesis})
	}
	return twins
}

func (w *twin) url() string { return "http://" + loopback(w.port) + "/" }

func urlsOf(twins []*twin) (urls []string) {
	for _, w := range twins {
		urls = append(urls, w.url())
	}
	return urls
}

// direct asks the twin itself, without library and proxy.
func (w *twin) direct(t *testing.T, method string, params ...any) json.RawMessage {
	t.Helper()
	answer := askAt(t, w.url(), method, params...)
	require.Empty(t, answer.Error, method)
	return answer.Result
}

// mine makes blocks.
func (w *twin) mine(t *testing.T, blocks int) {
	t.Helper()
	for range blocks {
		w.time += twinBlockTime
		w.direct(t, "evm_mine", w.time)
	}
}

// emit makes a block with a transaction in it that emits a log.
func (w *twin) emit(t *testing.T) {
	t.Helper()
	w.time += twinBlockTime
	w.direct(t, "evm_setNextBlockTimestamp", w.time)
	var hash string
	require.NoError(t, json.Unmarshal(w.direct(t, "eth_sendTransaction", map[string]any{
		"from": fundedAccount, "data": "0x60006000a0", "gas": "0x20000", "gasPrice": "0x2540be400", // push1 0 push1 0 log0
	}), &hash))
	waitForReceiptAt(t, w.url(), hash)
}

// hash gives the hash of a block.
func (w *twin) hash(t *testing.T, number string) string {
	t.Helper()
	var block struct{ Hash string }
	require.NoError(t, json.Unmarshal(w.direct(t, "eth_getBlockByNumber", number, false), &block))
	return block.Hash
}
