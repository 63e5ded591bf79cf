package main

import (
	"context"
	"crypto/sha3"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

const demoChain = "aptos:local"

// runDemo runs the bot in a world of one proxy and three RPCs. Two of them fail as
// Aptos' do: one has had too many requests, one is behind a gateway that is down.
func runDemo(ctx context.Context, out io.Writer) error {
	world := rpcpooltest.NewWorld(rpcpooltest.NewMemoryNetwork())
	defer world.Close()
	world.Proxy("proxy")
	nodes := []*rpcpooltest.Node{
		world.Node("limited", rpcpooltest.Status(http.StatusTooManyRequests).Text(`{"message":"Too many requests","error_code":"web_framework_error"}`)),
		world.Node("down", rpcpooltest.Status(http.StatusBadGateway).Text("<html>502 Bad Gateway</html>")),
		world.Node("good", rpcpooltest.Handle(newFullnode().answer)),
	}
	for _, node := range nodes {
		node.AllowREST()
	}
	world.List(demoChain, nodes...)
	pool, err := rpcpool.New(world.Config())
	if err != nil {
		return err
	}
	defer pool.Close()
	ring := pool.Chain(demoChain)
	err = runBot(ctx, ring, []byte("a signed transaction"), out)
	for _, rpc := range ring.Stats() {
		fmt.Fprintf(out, "%s: asked %d times, answered %d times\n", rpc.RPC, rpc.Attempts, rpc.Served)
	}
	return err
}

// fullnode answers as a full node of Aptos does, as far as the bot asks. Each request
// brings the chain one version further; a transaction is committed by the second one
// after its own.
type fullnode struct {
	mu        sync.Mutex // protects what follows
	version   int
	sent      map[string]int // hash → version
	submitted int            // how often a transaction arrived
}

func newFullnode() *fullnode { return &fullnode{version: 1000, sent: map[string]int{}} }

func (f *fullnode) answer(request rpcpooltest.Request) rpcpooltest.Reply {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.version++
	method, path, _ := strings.Cut(request.Method, " ")
	_, path, _ = strings.Cut(path, "/v1")
	switch {
	case method == http.MethodGet && path == "":
		return f.json(http.StatusOK, `{"chain_id":4,"epoch":"2","ledger_version":"%d","oldest_ledger_version":"0","block_height":"%d"}`, f.version, f.version/3)
	case method == http.MethodGet && path == "/accounts/0x1":
		return f.json(http.StatusOK, `{"sequence_number":"7","authentication_key":"0x%064x"}`, 1)
	case method == http.MethodPost && path == "/transactions":
		return f.submit(request)
	case method == http.MethodGet && strings.HasPrefix(path, "/transactions/by_hash/"):
		return f.byHash(strings.TrimPrefix(path, "/transactions/by_hash/"))
	}
	return f.json(http.StatusNotFound, `{"message":"not found","error_code":"web_framework_error","vm_error_code":null}`)
}

func (f *fullnode) json(status int, format string, args ...any) rpcpooltest.Reply {
	return rpcpooltest.Body(fmt.Sprintf(format, args...)).WithStatus(status).
		Header("Content-Type", "application/json").Header("X-Aptos-Chain-Id", "4").
		Header("X-Aptos-Ledger-Version", fmt.Sprint(f.version))
}

func (f *fullnode) submit(request rpcpooltest.Request) rpcpooltest.Reply {
	if request.Header.Get("Content-Type") != "application/x.aptos.signed_transaction+bcs" {
		return f.json(http.StatusUnsupportedMediaType, `{"message":"the content type isn't supported","error_code":"web_framework_error"}`)
	}
	sum := sha3.Sum256(request.Body)
	hash := "0x" + hex.EncodeToString(sum[:])
	f.submitted++
	if _, known := f.sent[hash]; !known {
		f.sent[hash] = f.version + 2
	}
	return f.json(http.StatusAccepted, `{"type":"pending_transaction","hash":%q}`, hash)
}

func (f *fullnode) byHash(hash string) rpcpooltest.Reply {
	version, known := f.sent[hash]
	if !known || f.version < version {
		return f.json(http.StatusNotFound,
			`{"message":"Transaction not found by Transaction hash(%s)","error_code":"transaction_not_found","vm_error_code":null}`, hash)
	}
	return f.json(http.StatusOK, `{"type":"user_transaction","hash":%q,"version":"%d","success":true}`, hash, version)
}
