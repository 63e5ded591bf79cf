package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An error of the node's own is one of go-ethereum's.
var (
	_ rpc.Error     = (*rpcpool.RPCError)(nil)
	_ rpc.DataError = (*rpcpool.RPCError)(nil)
)

// said is what the bot says in the end, whatever the chain and its blocks.
var said = []string{
	"sent a transaction: it is in block",
	"deployed a contract, in block",
	"counted 3 and 4: the total is 7",
	`the contract refused in words: "not today"`,
	"the contract refused by its own error: TooFar, asked 11, allowed 10",
	"counted 3, total 3",
	"counted 4, total 7",
	"http://down.test/***: asked 1 times, answered 0 times",
	"http://parked.test/***: asked 1 times, answered 0 times",
}

// Everything that the bot does works on the simulated backend behind RPCs that fail.
func TestDemo(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(t.Context(), options{demo: true}, &out))
	assertSaid(t, out.String())
}

// The same on a geth of its own, where the integration tests have put one.
func TestBotOnGeth(t *testing.T) {
	node := startGeth(t)
	key, err := crypto.GenerateKey()
	require.NoError(t, err)
	node.fund(t, crypto.PubkeyToAddress(key.PublicKey).Hex())

	var out strings.Builder
	require.NoError(t, runBehindBrokenRPCs(t.Context(), rpcpooltest.Handle(node.answer), key, &out))
	assertSaid(t, out.String())
}

func assertSaid(t *testing.T, out string) {
	t.Helper()
	t.Log("\n" + out)
	for _, line := range said {
		assert.Contains(t, out, line)
	}
}

// Without a world or a chain, or without the key that pays, the program says what it
// lacks, and doesn't repeat a key.
func TestUsage(t *testing.T) {
	var out strings.Builder
	assert.ErrorContains(t, run(t.Context(), options{}, &out), "-chain")
	t.Setenv(envKey, "0xsecret")
	err := run(t.Context(), options{chain: "8453", send: true}, &out)
	require.ErrorContains(t, err, envKey)
	assert.NotContains(t, err.Error(), "secret")
}

// With proxies and a list of the user's own the program reads, and sends nothing.
func TestReadingWithAListOfOnesOwn(t *testing.T) {
	world := rpcpooltest.NewWorld(rpcpooltest.NewLoopbackNetwork())
	t.Cleanup(func() { world.Close() })
	proxy := world.ProxyAt("proxy", "socks5://user:word@proxy.test:1080")
	key, err := crypto.GenerateKey()
	require.NoError(t, err)
	chain, err := startSimulated(key)
	require.NoError(t, err)
	t.Cleanup(chain.close)
	node := world.Node("good", rpcpooltest.Handle(chain.answer))
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv(envProxies, "socks5://user:word@"+world.Network.RealAddr(proxy.Addr()))
	file := filepath.Join(t.TempDir(), "rpcpool.json")
	list := fmt.Sprintf(`{"chain": {"key": %q}, "rpcs": [{"url": %q}]}`, "eip155:1337", node.URL())
	require.NoError(t, os.WriteFile(file, []byte(list), 0o600))

	var out strings.Builder
	require.NoError(t, run(t.Context(), options{chain: "eip155:1337", file: file}, &out))
	assert.Equal(t, "chain 1337 is at block 0, which has 0 transactions\n", out.String())
}

// startGeth starts the geth that scripts/integration/install.sh built; it is one of
// its own, on a free port, and makes a block for each transaction.
func startGeth(t *testing.T) nodeBehind {
	t.Helper()
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	folder := os.Getenv("RPCPOOL_CACHE")
	if folder == "" {
		folder = filepath.Join(cache, "rpcpool-integration")
	}
	binary := filepath.Join(folder, "bin", "geth")
	if _, err := os.Stat(binary); err != nil {
		t.Skip("there is no geth; scripts/integration/install.sh geth builds it")
	}
	address, err := freeAddress()
	require.NoError(t, err)
	geth := exec.CommandContext(t.Context(), binary, "--dev", "--datadir", t.TempDir(), "--verbosity", "1",
		"--http", "--http.addr", address.Addr().String(), "--http.port", fmt.Sprint(address.Port()),
		"--http.api", "eth,net,web3", "--ipcdisable", "--nodiscover", "--maxpeers", "0", "--port", "0")
	geth.Stderr = t.Output()
	geth.WaitDelay = 10 * time.Second
	require.NoError(t, geth.Start())
	t.Cleanup(func() { _ = geth.Wait() }) // t.Context has ended by then, which kills it
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", address.String())
		if err == nil {
			conn.Close()
		}
		return err == nil
	}, 60*time.Second, 20*time.Millisecond, "geth doesn't come up")
	return nodeBehind("http://" + address.String())
}

// fund has geth's own account pay.
func (n nodeBehind) fund(t *testing.T, to string) {
	t.Helper()
	var accounts []string
	n.call(t, &accounts, "eth_accounts")
	require.NotEmpty(t, accounts)
	var hash string
	n.call(t, &hash, "eth_sendTransaction", map[string]string{"from": accounts[0], "to": to, "value": "0xde0b6b3a7640000"})
	require.Eventually(t, func() bool {
		var receipt map[string]any
		n.call(t, &receipt, "eth_getTransactionReceipt", hash)
		return receipt != nil
	}, 20*time.Second, 50*time.Millisecond, "the account isn't funded")
	// As long as geth indexes its chain it answers for a transaction that it doesn't have
	// with an error, which is the node's fault and would cost it a cooldown.
	require.Eventually(t, func() bool {
		body := []byte(`{"jsonrpc":"2.0","id":1,"method":"eth_getTransactionReceipt","params":["0x` + strings.Repeat("1", 64) + `"]}`)
		_, answer, err := n.post(t.Context(), body)
		return err == nil && !strings.Contains(string(answer), "error")
	}, 20*time.Second, 50*time.Millisecond, "geth doesn't finish indexing")
}

func (n nodeBehind) call(t *testing.T, result any, method string, params ...any) {
	t.Helper()
	if params == nil {
		params = []any{}
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	require.NoError(t, err)
	_, answer, err := n.post(t.Context(), body)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(answer, &struct{ Result any }{result}), "%s: %s", method, answer)
}
