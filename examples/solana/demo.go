package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"sync"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
	"github.com/gagliardetto/solana-go"
)

const demoChain = "solana:localnet"

// runDemo runs the bot in a world of one proxy and three RPCs. Two of them fail as
// Solana's do: one lags and says so, one has had too many requests.
func runDemo(ctx context.Context, out io.Writer) error {
	world := rpcpooltest.NewWorld(rpcpooltest.NewMemoryNetwork())
	defer world.Close()
	world.Proxy("proxy")
	world.List(demoChain,
		world.Node("behind", rpcpooltest.ErrorData(-32005, "Node is behind by 42 slots", map[string]int{"numSlotsBehind": 42})),
		world.Node("limited", rpcpooltest.Error(429, "Too many requests for a specific RPC call").WithStatus(429)),
		world.Node("good", rpcpooltest.Handle(newCluster().answer)),
	)
	pool, err := rpcpool.New(world.Config())
	if err != nil {
		return err
	}
	defer pool.Close()
	key, err := solana.NewRandomPrivateKey()
	if err != nil {
		return err
	}
	ring := pool.Chain(demoChain)
	b := &bot{client: connect(ring), key: key, out: out}
	err = b.run(ctx)
	for _, rpc := range ring.Stats() {
		fmt.Fprintf(out, "%s: asked %d times, answered %d times\n", rpc.RPC, rpc.Attempts, rpc.Served)
	}
	return err
}

// cluster answers as a Solana RPC does, as far as the bot asks. It checks
// signatures, and confirms a transaction in the slot after its own.
type cluster struct {
	mu    sync.Mutex // protects what follows
	slot  uint64
	sent  map[string]uint64 // signature → slot
	times int               // how often a transaction arrived
}

func newCluster() *cluster { return &cluster{slot: 348_000_000, sent: map[string]uint64{}} }

func (c *cluster) answer(request rpcpooltest.Request) rpcpooltest.Reply {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slot++
	switch request.Method {
	case "getSlot":
		return rpcpooltest.Result(c.slot)
	case "getBalance":
		return c.inContext(1_000_000)
	case "getLatestBlockhash":
		return c.inContext(map[string]any{
			"blockhash":            "EkSnNWid2cvwEVnVx9aBqawnmiCNiDgp3gUdkDPTKN1N",
			"lastValidBlockHeight": c.slot + 150,
		})
	case "sendTransaction":
		return c.send(request)
	case "getSignatureStatuses":
		return c.statuses(request)
	}
	return rpcpooltest.Error(-32601, "Method not found")
}

// inContext is a result with the slot at which it holds.
func (c *cluster) inContext(value any) rpcpooltest.Reply {
	return rpcpooltest.Result(map[string]any{
		"context": map[string]any{"apiVersion": "2.1.21", "slot": c.slot},
		"value":   value,
	})
}

func (c *cluster) send(request rpcpooltest.Request) rpcpooltest.Reply {
	var text string
	if err := request.Param(0, &text); err != nil {
		return rpcpooltest.Error(-32602, "invalid params: missing transaction")
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return rpcpooltest.Error(-32602, "invalid base64 encoding")
	}
	tx, err := solana.TransactionFromBytes(raw)
	if err != nil {
		return rpcpooltest.Error(-32602, "failed to deserialize solana_transaction")
	}
	if tx.VerifySignatures() != nil {
		return rpcpooltest.Error(-32003, "Transaction signature verification failure")
	}
	signature := tx.Signatures[0].String()
	c.times++
	if _, known := c.sent[signature]; !known {
		c.sent[signature] = c.slot
	}
	return rpcpooltest.Result(signature)
}

func (c *cluster) statuses(request rpcpooltest.Request) rpcpooltest.Reply {
	var signatures []string
	if err := request.Param(0, &signatures); err != nil {
		return rpcpooltest.Error(-32602, "invalid params")
	}
	statuses := make([]any, len(signatures))
	for i, signature := range signatures {
		if slot, known := c.sent[signature]; known {
			statuses[i] = map[string]any{
				"slot": slot, "confirmations": 1, "err": nil, "status": map[string]any{"Ok": nil},
				"confirmationStatus": "confirmed",
			}
		}
	}
	return c.inContext(statuses)
}
