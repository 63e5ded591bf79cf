package sdk

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The library doesn't import go-ethereum; that its errors are go-ethereum's, and that
// a chain can stand where code asks for these methods of an rpc.Client, is seen here.
var (
	_ rpc.Error     = (*rpcpool.RPCError)(nil)
	_ rpc.DataError = (*rpcpool.RPCError)(nil)

	_ caller = (*rpcpool.Chain)(nil)
	_ caller = (*rpc.Client)(nil)
)

type caller interface {
	CallContext(ctx context.Context, result any, method string, args ...any) error
}

// notToday is the data of a revert with the reason "not today".
const notToday = "0x08c379a00000000000000000000000000000000000000000000000000000000000000020" +
	"00000000000000000000000000000000000000000000000000000000000000096e6f7420746f6461790000000000000000000000000000000000000000000000"

// newRing gives a handle on a ring of two nodes, of which the first is down.
func newRing(t *testing.T, script ...rpcpooltest.Reply) (*rpcpool.Chain, *rpcpooltest.Node) {
	t.Helper()
	world := rpcpooltest.New(t)
	world.Proxy("p1")
	good := world.Node("good", script...)
	world.List("1", world.Node("down", rpcpooltest.Status(http.StatusBadGateway)), good)
	pool, err := rpcpool.New(world.Config())
	require.NoError(t, err)
	t.Cleanup(func() { pool.Close() })
	return pool.Chain("1"), good
}

// A revert is decoded by go-ethereum's own functions, whichever way it came: through
// ethclient on the ring, through the chain itself, or as an element of a batch.
func TestRevertsDecode(t *testing.T) {
	chain, _ := newRing(t, rpcpooltest.ErrorData(3, "execution reverted: not today", notToday))
	to := common.Address{1}
	client := dial(t, "http://ring", chain.HTTPClient())
	_, byClient := client.CallContract(t.Context(), ethereum.CallMsg{To: &to}, nil)
	byChain := chain.CallContext(t.Context(), new(string), "eth_call", map[string]any{"to": to}, "latest")
	ringBatch := []rpc.BatchElem{{Method: "eth_call", Args: []any{map[string]any{"to": to}, "latest"}, Result: new(string)}}
	require.NoError(t, client.Client().BatchCallContext(t.Context(), ringBatch))
	chainBatch := []rpc.BatchElem{{Method: "eth_call", Args: []any{map[string]any{"to": to}, "latest"}, Result: new(string)}}
	require.NoError(t, rpcpool.BatchCall(t.Context(), chain, chainBatch))

	for way, err := range map[string]error{
		"client": byClient, "chain": byChain, "batch of the client": ringBatch[0].Error, "batch of the chain": chainBatch[0].Error,
	} {
		data, ok := ethclient.RevertErrorData(err)
		require.True(t, ok, "%s: %v", way, err)
		reason, err := abi.UnpackRevert(data)
		require.NoError(t, err, way)
		assert.Equal(t, "not today", reason, way)
	}
}

// go-ethereum takes a null error beside a result for an error. Some nodes send one;
// from the ring it doesn't come.
func TestNullErrorsStayBehind(t *testing.T) {
	chain, good := newRing(t, rpcpooltest.Handle(func(r rpcpooltest.Request) rpcpooltest.Reply {
		return rpcpooltest.Body(fmt.Sprintf(`{"result":"0x7","error":null,"id":%s}`, r.ID))
	}))
	_, err := dial(t, good.URL(), good.Client()).BlockNumber(t.Context())
	require.Error(t, err, "go-ethereum has become less strict: this test shows nothing any more")
	number, err := dial(t, "http://ring", chain.HTTPClient()).BlockNumber(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, 7, number)
}

// A refusal by status is go-ethereum's own rpc.HTTPError.
func TestRefusalByStatus(t *testing.T) {
	chain, _ := newRing(t, rpcpooltest.Status(http.StatusRequestEntityTooLarge))
	_, err := dial(t, "http://ring", chain.HTTPClient()).BlockNumber(t.Context())
	refused, ok := errors.AsType[rpc.HTTPError](err)
	require.True(t, ok, "%T: %v", err, err)
	assert.Equal(t, http.StatusRequestEntityTooLarge, refused.StatusCode)
}

// Where no RPC answers, ethclient's error has the library's in it, with the attempts,
// and names no RPC's key.
func TestNoHealthyRPCIsFoundInEthclientsError(t *testing.T) {
	chain, _ := newRing(t, rpcpooltest.Status(http.StatusServiceUnavailable))
	client := dial(t, "http://ring", chain.HTTPClient())
	_, err := client.BlockNumber(t.Context())
	none, ok := errors.AsType[*rpcpool.NoHealthyRPCError](err)
	require.True(t, ok, "%T: %v", err, err)
	assert.Len(t, none.Attempts, 2)
	assert.NotContains(t, err.Error(), "key-")
	err = client.Client().BatchCallContext(t.Context(), []rpc.BatchElem{{Method: "eth_blockNumber", Result: new(string)}})
	_, ok = errors.AsType[*rpcpool.NoHealthyRPCError](err)
	assert.True(t, ok, "of a batch: %T: %v", err, err)
}

// What needs a WebSocket says so, and nothing is sent.
func TestSubscribing(t *testing.T) {
	chain, good := newRing(t)
	client := dial(t, "http://ring", chain.HTTPClient())
	_, err := client.SubscribeNewHead(t.Context(), make(chan *types.Header))
	assert.ErrorIs(t, err, rpc.ErrNotificationsUnsupported)
	err = client.Client().CallContext(t.Context(), new(string), "eth_subscribe", "newHeads")
	assert.ErrorContains(t, err, "WebSocket")
	assert.Empty(t, good.Requests())
}
