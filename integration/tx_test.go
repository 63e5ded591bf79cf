package integration

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/bomzrpc/rpcpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/sha3"
)

// fundedAccount is the account of the well-known test key.
const fundedAccount = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"

// signedTx gives a transaction of testdata/transactions.txt and its hash.
func signedTx(t *testing.T, chainRef, name string) (raw, hash string) {
	t.Helper()
	file, err := os.ReadFile("testdata/transactions.txt")
	require.NoError(t, err)
	for line := range strings.Lines(string(file)) {
		fields := strings.Fields(line)
		if len(fields) == 3 && fields[0] == chainRef && fields[1] == name {
			bytes, err := hex.DecodeString(fields[2][2:])
			require.NoError(t, err)
			keccak := sha3.NewLegacyKeccak256()
			keccak.Write(bytes)
			return fields[2], "0x" + hex.EncodeToString(keccak.Sum(nil))
		}
	}
	t.Fatalf("no transaction %s for chain %s", name, chainRef)
	return "", ""
}

// fund makes sure that the well-known key has funds, which geth --dev gives to an
// account of its own only.
func (n node) fund(t *testing.T) {
	t.Helper()
	var accounts []string
	require.NoError(t, json.Unmarshal(n.direct(t, "eth_accounts"), &accounts))
	require.NotEmpty(t, accounts)
	if strings.EqualFold(accounts[0], fundedAccount) {
		return
	}
	n.sendFrom(t, map[string]any{"from": accounts[0], "to": fundedAccount, "value": "0xde0b6b3a7640000"})
}

// sendFrom sends a transaction of one of the node's own accounts and waits for
// its receipt.
func (n node) sendFrom(t *testing.T, tx map[string]any) (receipt struct{ ContractAddress, BlockNumber string }) {
	t.Helper()
	var hash string
	require.NoError(t, json.Unmarshal(n.direct(t, "eth_sendTransaction", tx), &hash))
	require.NoError(t, json.Unmarshal(n.waitForReceipt(t, hash), &receipt))
	return receipt
}

// waitForReceipt asks until the transaction is mined. A node may answer with an
// error for a while: geth indexes its chain when it starts.
func (n node) waitForReceipt(t *testing.T, hash string) json.RawMessage {
	t.Helper()
	return waitForReceiptAt(t, n.directURL(), hash)
}

func waitForReceiptAt(t *testing.T, url, hash string) json.RawMessage {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		answer := askAt(t, url, "eth_getTransactionReceipt", hash)
		if len(answer.Error) == 0 && string(answer.Result) != "null" {
			return answer.Result
		}
		<-time.After(20 * time.Millisecond)
	}
	t.Fatalf("%s doesn't mine", url)
	return nil
}

// withSecond gives a chain with the node as its best RPC and a second one behind
// it, which would answer anything, and which none of these tests may reach.
func (n node) withSecond(t *testing.T) (*bed, *rpcpool.Chain) {
	t.Helper()
	need(t, "microsocks", n.name)
	b := newBed(t, []string{kind("microsocks").url()}, map[string][]string{n.ref(): {n.url(), healthy.url("http")}})
	return b, b.ChainID(n.chainID)
}

// Rule A6.3: the same raw transaction, sent again while the node still holds it
// unmined, is a success with the hash of the bytes, computed here: each node has
// its own words for "already known".
func TestSendRawTransactionTwiceIsSuccess(t *testing.T) {
	// The first two don't mine at all; geth holds back a transaction whose
	// predecessors it hasn't seen.
	for _, c := range []struct {
		node node
		tx   string
	}{
		{node{"anvil-manual", 31337}, "first"},
		{node{"hardhat-manual", 31337}, "first"},
		{nodes[2], "later"},
	} {
		t.Run(c.node.name, func(t *testing.T) {
			t.Parallel()
			b, chain := c.node.withSecond(t)
			c.node.fund(t)
			raw, hash := signedTx(t, c.node.ref(), c.tx)
			for range 2 {
				result, err := rpcpool.CallAs[string](bounded(t), chain, "eth_sendRawTransaction", raw)
				require.NoError(t, err)
				assert.Equal(t, hash, result)
			}
			again := c.node.ask(t, "eth_sendRawTransaction", raw)
			assert.NotEmpty(t, again.Error, "the node takes a repeated transaction without a word, so the test shows nothing")
			if c.tx == "first" {
				// Rule A6.2: another transaction with the same nonce and price is the
				// caller's fault, which no second RPC would heal.
				rival, _ := signedTx(t, c.node.ref(), "rival")
				_ = requireSameError(t, c.node, chain, "eth_sendRawTransaction", rival)
			}
			assert.Empty(t, b.complaints())
		})
	}
}

// Rule A6.2: a transaction that was mined already (nonce too low) and one that its
// account can't pay for are the caller's errors, handed on as the node gave them,
// without a second RPC being asked and without a report.
func TestSendRawTransactionFaultsAreTheCallers(t *testing.T) {
	for _, node := range nodes {
		t.Run(node.name, func(t *testing.T) {
			t.Parallel()
			b, chain := node.withSecond(t)
			node.fund(t)
			poor, _ := signedTx(t, node.ref(), "poor")
			_ = requireSameError(t, node, chain, "eth_sendRawTransaction", poor)

			first, hash := signedTx(t, node.ref(), "first")
			result, err := rpcpool.CallAs[string](bounded(t), chain, "eth_sendRawTransaction", first)
			require.NoError(t, err)
			require.Equal(t, hash, result)
			node.waitForReceipt(t, hash)
			// For a moment after mining it, geth's pool still knows the transaction.
			require.Eventually(t, func() bool {
				return bytes.Contains(bytes.ToLower(node.ask(t, "eth_sendRawTransaction", first).Error), []byte("nonce"))
			}, 10*time.Second, 20*time.Millisecond)
			_ = requireSameError(t, node, chain, "eth_sendRawTransaction", first)
			assert.Empty(t, b.complaints())
		})
	}
}

// Rule A6.2: a revert is the caller's: its code, message and data arrive as the
// node gave them.
func TestRevertKeepsCodeAndData(t *testing.T) {
	// mstore(0, 0xdeadbeef << 224); revert(0, 4)
	const reverting = "0x63deadbeef60e01b60005260046000fd"
	for _, node := range nodes {
		t.Run(node.name, func(t *testing.T) {
			t.Parallel()
			b, chain := node.withSecond(t)
			call := map[string]any{"from": fundedAccount, "data": reverting}
			rpcError := requireSameError(t, node, chain, "eth_call", call, "latest")
			assert.Contains(t, string(rpcError.Data), "0xdeadbeef")
			assert.Empty(t, b.complaints())
		})
	}
}

// requireSameError makes the call through the pool and at the node itself: the
// pool's error must be the node's, and the node the only RPC that was asked.
func requireSameError(t *testing.T, n node, chain *rpcpool.Chain, method string, params ...any) *rpcpool.RPCError {
	t.Helper()
	_, err := chain.Call(bounded(t), method, params...)
	var rpcError *rpcpool.RPCError
	require.ErrorAs(t, err, &rpcError, "%s: %s", n.name, method)

	var own struct {
		Code    int
		Message string
		Data    json.RawMessage
	}
	require.NoError(t, json.Unmarshal(n.ask(t, method, params...).Error, &own))
	assert.Equal(t, own.Code, rpcError.Code)
	assert.Equal(t, own.Message, rpcError.Message)
	if len(own.Data) > 0 {
		assert.JSONEq(t, string(own.Data), string(rpcError.Data))
	} else {
		assert.Empty(t, rpcError.Data)
	}
	return rpcError
}

// Rule A5: a method that no node knows is "unsupported" everywhere, in the words
// of three nodes: NoHealthyRPCError with one such attempt each, no cooldown and no
// report, and other methods go on as if nothing had been. Asked again, the marks
// spare the requests.
func TestUnknownMethodIsUnsupportedEverywhere(t *testing.T) {
	t.Parallel()
	need(t, "squid", "anvil", "hardhat", "geth")
	urls := []string{nodes[0].url(), nodes[1].secureURL(t), nodes[2].url()}
	b := newBed(t, []string{kind("squid").url()}, map[string][]string{"1": urls})
	chain := b.ChainID(1)

	_, err := chain.Call(bounded(t), "foo_bar")
	var noHealthy *rpcpool.NoHealthyRPCError
	require.ErrorAs(t, err, &noHealthy)
	require.Len(t, noHealthy.Attempts, len(urls))
	for i, attempt := range noHealthy.Attempts {
		assert.Equal(t, rpcpool.VerdictUnsupported, attempt.Verdict, "%s", attempt)
		assert.Contains(t, attempt.RPC, nodes[i].name)
	}
	assert.Zero(t, noHealthy.RetryAt, "nothing is cooling")

	_, err = chain.Call(bounded(t), "foo_bar")
	require.ErrorAs(t, err, &noHealthy)
	assert.Empty(t, noHealthy.Attempts)

	b.log.attempts()
	_, err = chain.Call(bounded(t), "eth_chainId")
	require.NoError(t, err)
	assert.Equal(t, []rpcpool.Verdict{rpcpool.VerdictOK}, verdicts(b.log.attempts(), nodes[0].name))
	assert.Empty(t, b.complaints())
}
