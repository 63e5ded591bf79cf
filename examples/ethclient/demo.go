package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"sync"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/eth/ethconfig"
	"github.com/ethereum/go-ethereum/ethclient/simulated"
	"github.com/ethereum/go-ethereum/node"
	"github.com/ethereum/go-ethereum/params"
)

// runDemo runs the bot on go-ethereum's simulated backend, which is a real node, but
// in this process and alone with its chain.
func runDemo(ctx context.Context, out io.Writer) error {
	key, err := crypto.GenerateKey()
	if err != nil {
		return err
	}
	chain, err := startSimulated(key)
	if err != nil {
		return err
	}
	defer chain.close()
	return runBehindBrokenRPCs(ctx, rpcpooltest.Handle(chain.answer), key, out)
}

// runBehindBrokenRPCs runs the bot in a world of one proxy and three RPCs, of which
// only the last leads to the chain, and says how each fared.
func runBehindBrokenRPCs(ctx context.Context, chain rpcpooltest.Reply, key *ecdsa.PrivateKey, out io.Writer) error {
	world := rpcpooltest.NewWorld(rpcpooltest.NewMemoryNetwork())
	defer world.Close()
	world.Proxy("proxy")
	world.List("1337",
		world.Node("down", rpcpooltest.Status(http.StatusServiceUnavailable)),
		world.Node("parked", rpcpooltest.Garbage()),
		world.Node("good", chain),
	)
	pool, err := rpcpool.New(world.Config())
	if err != nil {
		return err
	}
	defer pool.Close()
	ring := pool.Chain("1337")
	err = runBot(ctx, ring, key, out)
	for _, rpc := range ring.Stats() {
		fmt.Fprintf(out, "%s: asked %d times, answered %d times\n", rpc.RPC, rpc.Attempts, rpc.Served)
	}
	return err
}

// simulatedChain is a simulated backend that is asked over HTTP, on loopback. A block
// is made for each transaction, as geth --dev does.
type simulatedChain struct {
	backend *simulated.Backend
	node    nodeBehind

	mu sync.Mutex // one block at a time
}

// startSimulated starts a chain on which the key's account is rich.
func startSimulated(rich *ecdsa.PrivateKey) (*simulatedChain, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	alloc := types.GenesisAlloc{crypto.PubkeyToAddress(rich.PublicKey): {Balance: big.NewInt(params.Ether)}}
	backend := simulated.NewBackend(alloc, func(config *node.Config, _ *ethconfig.Config) {
		config.HTTPHost = address.Addr().String()
		config.HTTPPort = int(address.Port())
		config.HTTPModules = []string{"eth", "net", "web3"}
	})
	return &simulatedChain{backend: backend, node: nodeBehind("http://" + address.String())}, nil
}

func (c *simulatedChain) close() { _ = c.backend.Close() }

// answer is what an RPC in front of the chain answers.
func (c *simulatedChain) answer(request rpcpooltest.Request) rpcpooltest.Reply {
	reply := c.node.answer(request)
	if request.Method == "eth_sendRawTransaction" {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.backend.Commit()
	}
	return reply
}

// freeAddress finds a port on loopback that nobody listens on.
func freeAddress() (netip.AddrPort, error) {
	var config net.ListenConfig
	listener, err := config.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return netip.AddrPort{}, err
	}
	defer listener.Close()
	return netip.ParseAddrPort(listener.Addr().String())
}

// nodeBehind is the URL of a node that an RPC hands its requests on to.
type nodeBehind string

var direct = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}

// answer hands a request on and gives the node's answer byte for byte.
func (n nodeBehind) answer(request rpcpooltest.Request) rpcpooltest.Reply {
	status, body, err := n.post(request.Context(), request.Body)
	if err != nil {
		return rpcpooltest.Status(http.StatusBadGateway)
	}
	return rpcpooltest.Body(string(body)).Header("Content-Type", "application/json").WithStatus(status)
}

func (n nodeBehind) post(ctx context.Context, body []byte) (status int, answer []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, string(n), bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := direct.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	answer, err = io.ReadAll(res.Body)
	return res.StatusCode, answer, err
}
