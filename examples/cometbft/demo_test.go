package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
	"github.com/cometbft/cometbft/rpc/jsonrpc/types"
	rpctest "github.com/cometbft/cometbft/rpc/test"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Everything that the bot does works on a real node behind RPCs that fail, and each
// of those is asked once.
func TestDemo(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(t.Context(), options{demo: true}, &out))
	t.Log("\n" + out.String())
	for _, line := range []string{
		" is at height ",
		" has 1 validators",
		"sent a transaction: it is in block ",
		"http://down.test/***: asked 1 times, answered 0 times",
		"http://parked.test/***: asked 1 times, answered 0 times",
	} {
		assert.Contains(t, out.String(), line)
	}
}

// Without a world or a chain the program says what it lacks.
func TestUsage(t *testing.T) {
	assert.ErrorContains(t, run(t.Context(), options{}, nil), "-chain")
	assert.ErrorContains(t, run(t.Context(), options{chain: "cosmos:cosmoshub-4", tx: "xyz"}, nil), "-tx")
}

// With proxies and a list of the user's own the program reads, and sends nothing.
func TestReadingWithAListOfOnesOwn(t *testing.T) {
	world := rpcpooltest.NewWorld(rpcpooltest.NewLoopbackNetwork())
	t.Cleanup(func() { world.Close() })
	proxy := world.ProxyAt("proxy", "socks5://user:word@proxy.test:1080")
	chain, err := startNode(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { rpctest.StopCometBFT(chain) })
	node := world.Node("good", rpcpooltest.Handle(handOnTo(chain)))
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv(envProxies, "socks5://user:word@"+world.Network.RealAddr(proxy.Addr()))
	file := filepath.Join(t.TempDir(), "rpcpool.json")
	list := fmt.Sprintf(`{"chain": {"key": %q}, "rpcs": [{"url": %q}]}`, demoChain, node.URL())
	require.NoError(t, os.WriteFile(file, []byte(list), 0o600))

	var out strings.Builder
	require.NoError(t, run(t.Context(), options{chain: demoChain, file: file}, &out))
	assert.Regexp(t, `^test-chain is at height \d+\nblock \d+ has 1 validators\n$`, out.String())
}

// newRing gives a pool's handle on a ring of nodes.
func newRing(t *testing.T, nodes func(*rpcpooltest.World) []*rpcpooltest.Node) *rpcpool.Chain {
	t.Helper()
	world := rpcpooltest.New(t)
	world.Proxy("p1")
	world.List(demoChain, nodes(world)...)
	pool, err := rpcpool.New(world.Config())
	require.NoError(t, err)
	t.Cleanup(func() { pool.Close() })
	return pool.Chain(demoChain)
}

// A batch of one works: the node answers it with a bare object, the client wants a
// list.
func TestBatchOfOneOnARealNode(t *testing.T) {
	chain, err := startNode(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { rpctest.StopCometBFT(chain) })
	ring := newRing(t, func(w *rpcpooltest.World) []*rpcpooltest.Node {
		return []*rpcpooltest.Node{w.Node("good", rpcpooltest.Handle(handOnTo(chain)))}
	})
	client, err := connect(ring)
	require.NoError(t, err)
	batch := client.NewBatch()
	info, err := batch.ABCIInfo(t.Context())
	require.NoError(t, err)
	_, err = batch.Send(t.Context())
	require.NoError(t, err)
	assert.NotEmpty(t, info.Response.Version)
}

// What the node says of a transaction that it knows already is the caller's: code,
// message and data come through, with the status line that the client prints.
func TestNodesErrorsComeThrough(t *testing.T) {
	var other *rpcpooltest.Node
	ring := newRing(t, func(w *rpcpooltest.World) []*rpcpooltest.Node {
		other = w.Node("other")
		knows := w.Node("knows", rpcpooltest.ErrorData(-32603, "Internal error", "tx already exists in cache"))
		return []*rpcpooltest.Node{knows, other}
	})
	client, err := connect(ring)
	require.NoError(t, err)
	_, err = client.BroadcastTxSync(t.Context(), []byte("name=satoshi"))
	refusal, ok := errors.AsType[*types.RPCError](err)
	require.True(t, ok, "%T: %v", err, err)
	assert.Equal(t, types.RPCError{Code: -32603, Message: "Internal error", Data: "tx already exists in cache"}, *refusal)
	assert.ErrorContains(t, err, "Status: 200 OK, Protocol HTTP/1.1")
	assert.Empty(t, other.Requests())
}

// A node that lacks an old height is passed over, and the next one answers.
func TestPrunedNodeIsPassedOver(t *testing.T) {
	ring := newRing(t, func(w *rpcpooltest.World) []*rpcpooltest.Node {
		return []*rpcpooltest.Node{
			w.Node("pruned", rpcpooltest.ErrorData(-32603, "Internal error", "height 5 is not available, lowest height is 4000")),
			w.Node("archive", rpcpooltest.Result(map[string]any{"header": map[string]any{"height": "5"}})),
		}
	})
	client, err := connect(ring)
	require.NoError(t, err)
	height := int64(5)
	header, err := client.Header(t.Context(), &height)
	require.NoError(t, err)
	assert.EqualValues(t, 5, header.Header.Height)
}

// Where no RPC answers, the client's error has the library's in it.
func TestNoHealthyRPCIsFoundInTheClientsError(t *testing.T) {
	ring := newRing(t, func(w *rpcpooltest.World) []*rpcpooltest.Node {
		return []*rpcpooltest.Node{w.Node("down", rpcpooltest.Status(http.StatusBadGateway))}
	})
	client, err := connect(ring)
	require.NoError(t, err)
	_, err = client.Status(t.Context())
	none, ok := errors.AsType[*rpcpool.NoHealthyRPCError](err)
	require.True(t, ok, "%T: %v", err, err)
	assert.NotEmpty(t, none.Attempts)
	assert.NotContains(t, err.Error(), "key-down")
}

// The client takes a batch's answers by their order, and its ids begin with 0. A node
// that answers in another order changes nothing.
func TestBatchAnswersComeInOrder(t *testing.T) {
	ring := newRing(t, func(w *rpcpooltest.World) []*rpcpooltest.Node {
		return []*rpcpooltest.Node{w.Node("reversing", rpcpooltest.Handle(reversed))}
	})
	client, err := connect(ring)
	require.NoError(t, err)
	batch := client.NewBatch()
	one, two := int64(1), int64(2)
	first, err := batch.Header(t.Context(), &one)
	require.NoError(t, err)
	second, err := batch.Header(t.Context(), &two)
	require.NoError(t, err)
	_, err = batch.Send(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, 1, first.Header.Height)
	assert.EqualValues(t, 2, second.Header.Height)
}

// reversed answers a batch from its end, each header request by the height asked for.
func reversed(request rpcpooltest.Request) rpcpooltest.Reply {
	var requests []struct {
		ID     json.RawMessage
		Params struct{ Height string }
	}
	body := request.Body
	if body[0] != '[' {
		body = slices.Concat([]byte("["), body, []byte("]"))
	}
	if json.Unmarshal(body, &requests) != nil {
		return rpcpooltest.Status(http.StatusBadRequest)
	}
	slices.Reverse(requests)
	answers := make([]string, len(requests))
	for i, r := range requests {
		answers[i] = fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"header":{"height":%q}}}`, r.ID, r.Params.Height)
	}
	if request.Body[0] != '[' {
		return rpcpooltest.Body(answers[0])
	}
	return rpcpooltest.Body("[" + strings.Join(answers, ",") + "]")
}
