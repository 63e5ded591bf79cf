package sdk

import (
	"context"
	"crypto/ecdsa"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/rawdb"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/eth/ethconfig"
	"github.com/ethereum/go-ethereum/ethclient/simulated"
	"github.com/ethereum/go-ethereum/node"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/stretchr/testify/require"
)

// realNode is a node that the test has for itself.
type realNode struct {
	name string
	url  string
	rich *ecdsa.PrivateKey // of an account that has enough for everything

	mu       sync.Mutex // protects the making of a block
	makeNext func()     // makes a block; nil where the node does it by itself, for each transaction
}

// mine makes a block, where the node doesn't do it by itself.
func (n *realNode) mine() {
	if n.makeNext == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.makeNext()
}

// startGeth starts geth --dev. Without the binary it says so, and takes what is the
// same code but for main: go-ethereum's simulated backend, in this process.
func startGeth(t *testing.T) *realNode {
	t.Helper()
	binary := filepath.Join(cacheFolder(t), "bin", "geth")
	if _, err := os.Stat(binary); err != nil {
		remarks.add("!! there is no geth at " + binary + " (scripts/integration/install.sh geth builds it): " +
			t.Name() + " ran on go-ethereum's simulated backend instead")
		return startSimulated(t)
	}
	address := freeAddress(t)
	startProgram(t, address, binary, "--dev", "--datadir", t.TempDir(), "--verbosity", "1",
		"--gcmode", "archive", "--state.scheme", "hash", "--nodiscover", "--maxpeers", "0", "--port", "0", "--ipcdisable",
		"--http", "--http.addr", address.Addr().String(), "--http.port", fmt.Sprint(address.Port()), "--http.api", "eth,net,web3")
	n := &realNode{name: "geth", url: "http://" + address.String(), rich: newKey(t)}
	payFromNode(t, n)
	return n
}

// startAnvil starts anvil, or skips the test.
func startAnvil(t *testing.T) *realNode {
	t.Helper()
	binary := filepath.Join(cacheFolder(t), "npm", "node_modules", "@foundry-rs", "anvil-linux-amd64", "bin", "anvil")
	if _, err := os.Stat(binary); err != nil {
		remarks.add("!! SKIPPED " + t.Name() + ": there is no anvil (scripts/integration/install.sh npm installs it)")
		t.Skip("there is no anvil")
	}
	address := freeAddress(t)
	startProgram(t, address, binary, "--host", address.Addr().String(), "--port", fmt.Sprint(address.Port()), "--quiet")
	n := &realNode{name: "anvil", url: "http://" + address.String(), rich: newKey(t)}
	payFromNode(t, n)
	return n
}

func startSimulated(t *testing.T) *realNode {
	t.Helper()
	address := freeAddress(t)
	n := &realNode{name: "go-ethereum's simulated backend", url: "http://" + address.String(), rich: newKey(t)}
	alloc := types.GenesisAlloc{addressOf(n.rich): {Balance: ether(1000)}}
	backend := simulated.NewBackend(alloc, func(config *node.Config, chain *ethconfig.Config) {
		config.HTTPHost = address.Addr().String()
		config.HTTPPort = int(address.Port())
		config.HTTPModules = []string{"eth", "net", "web3"}
		chain.NoPruning = true // old state is asked for
		chain.StateScheme = rawdb.HashScheme
	})
	t.Cleanup(func() { backend.Close() })
	n.makeNext = func() { backend.Commit() }
	return n
}

// startProgram starts a node and waits until it listens. It ends with the test.
func startProgram(t *testing.T, address netip.AddrPort, binary string, args ...string) {
	t.Helper()
	program := exec.CommandContext(t.Context(), binary, args...)
	program.Stderr = t.Output()
	program.WaitDelay = 10 * time.Second
	require.NoError(t, program.Start())
	t.Cleanup(func() { _ = program.Wait() }) // killed, for t.Context has ended by then
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", address.String())
		if err == nil {
			conn.Close()
		}
		return err == nil
	}, 60*time.Second, 20*time.Millisecond, "%s doesn't come up", binary)
}

// payFromNode has the node's own account make ours rich.
func payFromNode(t *testing.T, n *realNode) {
	t.Helper()
	client, err := rpc.DialContext(t.Context(), n.url)
	require.NoError(t, err)
	defer client.Close()
	var accounts []common.Address
	require.NoError(t, client.CallContext(t.Context(), &accounts, "eth_accounts"))
	require.NotEmpty(t, accounts)
	var hash common.Hash
	require.NoError(t, client.CallContext(t.Context(), &hash, "eth_sendTransaction", map[string]string{
		"from": accounts[0].Hex(), "to": addressOf(n.rich).Hex(), "value": "0x" + ether(1000).Text(16),
	}))
	require.Eventually(t, func() bool {
		var receipt *types.Receipt
		return client.CallContext(t.Context(), &receipt, "eth_getTransactionReceipt", hash) == nil && receipt != nil
	}, 20*time.Second, 50*time.Millisecond, "the account wasn't paid")
}

// cacheFolder is where scripts/integration/install.sh puts nodes.
func cacheFolder(t *testing.T) string {
	t.Helper()
	if folder := os.Getenv("RPCPOOL_CACHE"); folder != "" {
		return folder
	}
	folder, err := os.UserCacheDir()
	require.NoError(t, err)
	return filepath.Join(folder, "rpcpool-integration")
}

// freeAddress finds a port on loopback that nobody listens on.
func freeAddress(t *testing.T) netip.AddrPort {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return netip.MustParseAddrPort(listener.Addr().String())
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := crypto.GenerateKey()
	require.NoError(t, err)
	return key
}

func addressOf(key *ecdsa.PrivateKey) common.Address { return crypto.PubkeyToAddress(key.PublicKey) }

func ether(n int64) *big.Int { return new(big.Int).Mul(big.NewInt(n), big.NewInt(params.Ether)) }

// remarks are what the end of the run has to say, where it is seen.
var remarks remarkList

type remarkList struct {
	mu    sync.Mutex
	lines []string
}

func (r *remarkList) add(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, line)
}

func (r *remarkList) print(to io.Writer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, line := range r.lines {
		fmt.Fprintln(to, line)
	}
}

func TestMain(m *testing.M) {
	code := m.Run()
	remarks.print(os.Stdout)
	os.Exit(code)
}

// patience bounds what must not hang.
func patience(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeoutCause(t.Context(), d, fmt.Errorf("it took longer than %v", d))
	t.Cleanup(cancel)
	return ctx
}
