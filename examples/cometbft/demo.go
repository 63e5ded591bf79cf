package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
	"github.com/cometbft/cometbft/abci/example/kvstore"
	"github.com/cometbft/cometbft/node"
	rpctest "github.com/cometbft/cometbft/rpc/test"
)

const demoChain = "cosmos:demo"

// runDemo runs the bot on a CometBFT node in this process, whose application keeps
// keys and values, behind one proxy and three RPCs, of which two are broken.
func runDemo(ctx context.Context, out io.Writer) error {
	chain, err := startNode(ctx)
	if err != nil {
		return err
	}
	defer rpctest.StopCometBFT(chain)

	world := rpcpooltest.NewWorld(rpcpooltest.NewMemoryNetwork())
	defer world.Close()
	world.Proxy("proxy")
	world.List(demoChain,
		world.Node("down", rpcpooltest.Status(http.StatusServiceUnavailable)),
		world.Node("parked", rpcpooltest.Garbage()),
		world.Node("good", rpcpooltest.Handle(handOnTo(chain))),
	)
	pool, err := rpcpool.New(world.Config())
	if err != nil {
		return err
	}
	defer pool.Close()
	ring := pool.Chain(demoChain)
	err = runBot(ctx, ring, []byte("name=satoshi"), out)
	for _, rpc := range ring.Stats() {
		fmt.Fprintf(out, "%s: asked %d times, answered %d times\n", rpc.RPC, rpc.Attempts, rpc.Served)
	}
	return err
}

// startNode starts a node and waits for its first block.
func startNode(ctx context.Context) (*node.Node, error) {
	chain := rpctest.StartCometBFT(kvstore.NewInMemoryApplication(), rpctest.SuppressStdout, rpctest.RecreateConfig)
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for chain.BlockStore().Height() == 0 {
		select {
		case <-ctx.Done():
			rpctest.StopCometBFT(chain)
			return nil, ctx.Err()
		case <-ticker.C:
		}
	}
	return chain, nil
}

// handOnTo makes an RPC hand its requests on to the node, and give the node's answers
// byte for byte.
func handOnTo(chain *node.Node) func(rpcpooltest.Request) rpcpooltest.Reply {
	url := strings.Replace(chain.Config().RPC.ListenAddress, "tcp://", "http://", 1)
	direct := &http.Client{Transport: &http.Transport{}}
	return func(request rpcpooltest.Request) rpcpooltest.Reply {
		status, body, err := post(request.Context(), direct, url, request.Body)
		if err != nil {
			return rpcpooltest.Status(http.StatusBadGateway)
		}
		return rpcpooltest.Body(string(body)).Header("Content-Type", "application/json").WithStatus(status)
	}
}

func post(ctx context.Context, client *http.Client, url string, body []byte) (status int, answer []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	answer, err = io.ReadAll(res.Body)
	return res.StatusCode, answer, err
}
