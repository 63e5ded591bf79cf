package main

import (
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// demoHead is the newest block of the demo's chain. There is a log in each block.
const demoHead = 30_000

// startDemo replaces the world outside by one of its own, with real connections on
// loopback: a chain, a proxy, and RPCs that take different ranges, fail now and then,
// or lag and don't say so.
func startDemo(opts *options) *rpcpooltest.World {
	chain := rpcpooltest.NewEVM(8453, demoHead)
	world := rpcpooltest.NewWorld(rpcpooltest.NewLoopbackNetwork())
	world.Network.SetRecording(false)
	world.Proxy("demo")
	node := func(name string, serves func(rpcpooltest.Request) rpcpooltest.Reply) *rpcpooltest.Node {
		return world.Node(name, rpcpooltest.Handle(func(q rpcpooltest.Request) rpcpooltest.Reply {
			return serves(q).Delay(60 * time.Millisecond)
		}))
	}
	world.List("8453",
		node("narrow", limited(chain, 100)),
		node("moody", moody(limited(chain, 300))),
		node("lags", lagging(chain, 500)),
		node("wide", limited(chain, 400)),
	)
	opts.config = world.Config()
	opts.query.Chain, opts.query.From = "8453", 0
	return world
}

// limited refuses what has more blocks.
func limited(chain *rpcpooltest.EVM, blocks uint64) func(rpcpooltest.Request) rpcpooltest.Reply {
	return func(q rpcpooltest.Request) rpcpooltest.Reply {
		if from, to, ok := rpcpooltest.LogRange(q.Params); ok && to-from >= blocks {
			return rpcpooltest.Error(-32000, fmt.Sprintf("exceed maximum block range: %d", blocks))
		}
		return chain.Answer(q)
	}
}

// moody fails every seventh request.
func moody(serves func(rpcpooltest.Request) rpcpooltest.Reply) func(rpcpooltest.Request) rpcpooltest.Reply {
	var asked atomic.Int64
	return func(q rpcpooltest.Request) rpcpooltest.Reply {
		if asked.Add(1)%7 == 0 {
			return rpcpooltest.Status(503)
		}
		return serves(q)
	}
}

// lagging lacks the newest blocks, and answers for them with nothing.
func lagging(chain *rpcpooltest.EVM, blocks uint64) func(rpcpooltest.Request) rpcpooltest.Reply {
	head := uint64(demoHead) - blocks
	serves := limited(chain, 200)
	return func(q rpcpooltest.Request) rpcpooltest.Reply {
		if q.Method == "eth_blockNumber" {
			return rpcpooltest.Result(fmt.Sprintf("0x%x", head))
		}
		if from, to, ok := rpcpooltest.LogRange(q.Params); ok && to > head {
			if from > head {
				return rpcpooltest.Result([]any{})
			}
			q.Params = json.RawMessage(fmt.Sprintf(`[{"fromBlock":"0x%x","toBlock":"0x%x"}]`, from, head))
		}
		return serves(q)
	}
}
