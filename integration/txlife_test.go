package integration

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/bomzrpc/rpcpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// rawBytes gives a signed transaction as bytes, and its hash.
func rawBytes(t *testing.T, name string) (raw []byte, hash string) {
	t.Helper()
	text, hash := signedTx(t, "31337", name)
	raw, err := hex.DecodeString(text[2:])
	require.NoError(t, err)
	return raw, hash
}

// cutter hands requests on to a node and cuts the answer off, so that whoever asked
// can't know that they arrived.
func cutter(t *testing.T, behind string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil && bytes.Contains(body, []byte("eth_sendRawTransaction")) {
			res, err := directClient.Post(behind, "application/json", bytes.NewReader(body))
			if assert.NoError(t, err) {
				res.Body.Close()
			}
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if assert.NoError(t, err) {
			reset(conn)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL + "/"
}

// Rule C4: the reply to a send is cut off after the node has taken the transaction and
// mined it. The next RPC says that the nonce is too low; the transaction is found by its
// hash, and the send is told as the success that it is.
func TestSendWhoseReplyIsCutOffWasSent(t *testing.T) {
	t.Parallel()
	twins := startTwins(t, 1)
	b := newBed(t, []string{kind("danted").url()}, map[string][]string{"31337": {cutter(t, twins[0].url()), twins[0].url()}})
	raw, hash := rawBytes(t, "first")
	sent, err := b.ChainID(31337).SendRawTransaction(bounded(t), raw)
	require.NoError(t, err)
	assert.Equal(t, hash, sent)
	_ = waitForReceiptAt(t, twins[0].url(), hash)
}

// Rule C4: the node that took the transaction is killed; the receipt comes from the other.
func TestReceiptFromTheNodeThatIsLeft(t *testing.T) {
	t.Parallel()
	twins := startTwins(t, 2)
	chain := newBed(t, []string{kind("danted").url()}, map[string][]string{"31337": urlsOf(twins)},
		func(cfg *rpcpool.Config) { cfg.MaxRounds = 2 }).ChainID(31337)
	raw, hash := rawBytes(t, "first")
	sent, err := chain.SendRawTransaction(bounded(t), raw)
	require.NoError(t, err)
	require.Equal(t, hash, sent)
	twins[0].kill()
	type end struct {
		receipt json.RawMessage
		err     error
	}
	outcome := make(chan end, 1)
	ctx := bounded(t)
	go func() {
		receipt, err := chain.WaitReceipt(ctx, hash, rpcpool.PollEvery(200*time.Millisecond))
		outcome <- end{receipt, err}
	}()
	<-time.After(500 * time.Millisecond) // then the network brings it to the other one
	text, _ := signedTx(t, "31337", "first")
	_ = askAt(t, twins[1].url(), "eth_sendRawTransaction", text)
	got := <-outcome
	require.NoError(t, got.err)
	assert.Contains(t, string(got.receipt), hash)
}

// Rule C4: another transaction with the same nonce is mined instead; who waits for the
// first is told, and by which one it was replaced.
func TestReplacedTransactionIsToldAsReplaced(t *testing.T) {
	t.Parallel()
	twins := startTwins(t, 1)
	node := twins[0]
	node.direct(t, "evm_setAutomine", false)
	chain := newBed(t, []string{kind("danted").url()}, map[string][]string{"31337": {node.url()}}).ChainID(31337)
	raw, hash := rawBytes(t, "first")
	_, err := chain.SendRawTransaction(bounded(t), raw)
	require.NoError(t, err)

	outcome := make(chan error, 1)
	ctx := bounded(t)
	go func() {
		_, err := chain.WaitReceipt(ctx, hash, rpcpool.PollEvery(100*time.Millisecond))
		outcome <- err
	}()
	rival, rivalHash := signedTx(t, "31337", "rival")
	<-time.After(time.Second) // it has been seen waiting by then
	node.direct(t, "anvil_dropTransaction", hash)
	node.direct(t, "eth_sendRawTransaction", rival)
	node.direct(t, "evm_mine")
	var replaced *rpcpool.TxReplacedError
	require.ErrorAs(t, <-outcome, &replaced)
	assert.Equal(t, hash, replaced.Hash)
	assert.Equal(t, rivalHash, replaced.By)
	var receipt struct{ Status string }
	require.NoError(t, json.Unmarshal(waitForReceiptAt(t, node.url(), rivalHash), &receipt))
}
