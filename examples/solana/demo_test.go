package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"
	"github.com/gagliardetto/solana-go/rpc/jsonrpc"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Everything that the bot does works behind RPCs that fail, and each of those is
// asked once.
func TestDemo(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(t.Context(), options{demo: true}, &out))
	t.Log("\n" + out.String())
	for _, line := range []string{
		"the chain is at slot 348000001",
		"balance: 1000000 lamports\nbalance: 1000000 lamports\n",
		"sent a transfer, confirmed in slot ",
		"http://behind.test/***: asked 1 times, answered 0 times",
		"http://good.test/***: asked ",
	} {
		assert.Contains(t, out.String(), line)
	}
}

// Without a world or a chain the program says what it lacks.
func TestUsage(t *testing.T) {
	assert.ErrorContains(t, run(t.Context(), options{}, nil), "-chain")
	assert.ErrorContains(t, run(t.Context(), options{chain: "solana:mainnet", key: "no such file"}, nil), "-key")
}

// With proxies and a list of the user's own the program reads, and sends nothing.
func TestReadingWithAListOfOnesOwn(t *testing.T) {
	world := rpcpooltest.NewWorld(rpcpooltest.NewLoopbackNetwork())
	t.Cleanup(func() { world.Close() })
	proxy := world.ProxyAt("proxy", "socks5://user:word@proxy.test:1080")
	node := world.Node("good", rpcpooltest.Handle(newCluster().answer))
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv(envProxies, "socks5://user:word@"+world.Network.RealAddr(proxy.Addr()))
	file := filepath.Join(t.TempDir(), "rpcpool.json")
	list := fmt.Sprintf(`{"chain": {"key": %q}, "rpcs": [{"url": %q}]}`, demoChain, node.URL())
	require.NoError(t, os.WriteFile(file, []byte(list), 0o600))

	var out strings.Builder
	require.NoError(t, run(t.Context(), options{chain: demoChain, file: file}, &out))
	assert.Equal(t, "the chain is at slot 348000001\n", out.String())
}

// newRing gives a pool's handle on a ring of nodes, behind two proxies.
func newRing(t *testing.T, nodes func(*rpcpooltest.World) []*rpcpooltest.Node) *rpcpool.Chain {
	t.Helper()
	world := rpcpooltest.New(t)
	world.Proxy("p1")
	world.Proxy("p2")
	world.List(demoChain, nodes(world)...)
	pool, err := rpcpool.New(world.Config())
	require.NoError(t, err)
	t.Cleanup(func() { pool.Close() })
	return pool.Chain(demoChain)
}

// A node that lost the answer to a transaction had it all the same: the next gets the
// same bytes, and the caller the signature.
func TestSendWhoseAnswerIsLost(t *testing.T) {
	c := newCluster()
	ring := newRing(t, func(w *rpcpooltest.World) []*rpcpooltest.Node {
		return []*rpcpooltest.Node{
			w.Node("cut", rpcpooltest.Handle(func(r rpcpooltest.Request) rpcpooltest.Reply { return c.answer(r).Cut() }).Method("sendTransaction"),
				rpcpooltest.Handle(c.answer)),
			w.Node("good", rpcpooltest.Handle(c.answer)),
		}
	})
	key, err := solana.NewRandomPrivateKey()
	require.NoError(t, err)
	var out strings.Builder
	b := &bot{client: connect(ring), key: key, out: &out}
	require.NoError(t, b.run(t.Context()))
	assert.Contains(t, out.String(), "sent a transfer")
	assert.Equal(t, 2, c.times, "copies that arrived")
	assert.Len(t, c.sent, 1, "transactions")
}

// A preflight failure is the caller's: no other node is asked, and code, message and
// data come through as the node sent them.
func TestPreflightFailureComesThrough(t *testing.T) {
	var good *rpcpooltest.Node
	ring := newRing(t, func(w *rpcpooltest.World) []*rpcpooltest.Node {
		refusing := w.Node("refusing", rpcpooltest.ErrorData(-32002,
			"Transaction simulation failed: Error processing Instruction 0: custom program error: 0x1",
			map[string]any{"err": map[string]any{"InstructionError": []any{0, map[string]any{"Custom": 1}}}, "unitsConsumed": 150}))
		good = w.Node("good")
		return []*rpcpooltest.Node{refusing, good}
	})
	_, err := connect(ring).SendRawTransaction(t.Context(), []byte{1})
	refusal, ok := errors.AsType[*jsonrpc.RPCError](err)
	require.True(t, ok, "%T", err)
	assert.Equal(t, -32002, refusal.Code)
	assert.Contains(t, refusal.Message, "custom program error: 0x1")
	data, err := json.Marshal(refusal.Data)
	require.NoError(t, err)
	assert.JSONEq(t, `{"err":{"InstructionError":[0,{"Custom":1}]},"unitsConsumed":150}`, string(data))
	assert.Empty(t, good.Requests())
}

// solana-go refuses an answer with a member that it doesn't know. Some providers add
// such ones; from the ring they don't come.
func TestUnknownMembersStayBehind(t *testing.T) {
	var chatty *rpcpooltest.Node
	ring := newRing(t, func(w *rpcpooltest.World) []*rpcpooltest.Node {
		chatty = w.Node("chatty", rpcpooltest.Handle(func(r rpcpooltest.Request) rpcpooltest.Reply {
			return rpcpooltest.Body(fmt.Sprintf(`{"jsonrpc":"2.0","result":7,"id":%s,"usage":{"credits":3}}`, r.ID))
		}))
		return []*rpcpooltest.Node{chatty}
	})
	direct := rpc.NewWithCustomRPCClient(jsonrpc.NewClientWithOpts(chatty.URL(), &jsonrpc.RPCClientOpts{HTTPClient: chatty.Client()}))
	_, err := direct.GetSlot(t.Context(), "")
	require.ErrorContains(t, err, "unknown field")

	slot, err := connect(ring).GetSlot(t.Context(), "")
	require.NoError(t, err)
	assert.EqualValues(t, 7, slot)
}

// Ids come back as they were sent: solana-go's own UUIDs, and numbers that no float
// holds. A batch's answers are found by them.
func TestIDsComeBack(t *testing.T) {
	ring := newRing(t, func(w *rpcpooltest.World) []*rpcpooltest.Node {
		return []*rpcpooltest.Node{w.Node("down", rpcpooltest.Status(http.StatusBadGateway)), w.Node("good", rpcpooltest.Result(7))}
	})
	client := jsonrpc.NewClientWithOpts("http://ring", &jsonrpc.RPCClientOpts{HTTPClient: ring.HTTPClient()})
	for _, id := range []any{"4f1e3c5a-8b1c-4f6e-9f0e-2d8a7b6c5d4e", json.Number("18446744073709551616"), json.Number("0")} {
		answer, err := client.CallRaw(t.Context(), &jsonrpc.RPCRequest{Method: "getSlot", ID: id, JSONRPC: "2.0"})
		require.NoError(t, err)
		assert.Equal(t, fmt.Sprint(id), fmt.Sprint(answer.ID))
	}
	answers, err := client.CallBatch(t.Context(), jsonrpc.RPCRequests{
		jsonrpc.NewRequest("getSlot"), jsonrpc.NewRequest("getBlockHeight"),
	})
	require.NoError(t, err)
	require.Len(t, answers, 2)
	for i, answer := range answers {
		assert.Equal(t, fmt.Sprint(i), fmt.Sprint(answer.ID))
		assert.JSONEq(t, "7", string(answer.Result))
	}
}
