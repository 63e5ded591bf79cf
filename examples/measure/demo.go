package main

import (
	"sync/atomic"
	"time"

	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// The demo's chain, and how long it is measured.
const (
	demoChain  = 8453
	demoHead   = 31_204_877
	demoEvery  = 400 * time.Millisecond
	demoLength = 8 * time.Second
)

// startDemo replaces the world outside by one of its own, with real connections on
// loopback: a chain, proxies, and RPCs of which each has a fault of its own.
func startDemo(opts *options) *rpcpooltest.World {
	network := rpcpooltest.NewLoopbackNetwork()
	network.SetRecording(false)
	w := rpcpooltest.NewWorld(network)
	chain := rpcpooltest.NewEVM(demoChain, demoHead)
	chain.SetBlockTime(2 * time.Second)
	w.ProxyAt("paris", "socks5://user-paris:word-paris@paris.test:1080")
	w.ProxyAt("tokyo", "http://user-tokyo:word-tokyo@tokyo.test:3128")
	node := func(name string, script ...rpcpooltest.Reply) *rpcpooltest.Node {
		return w.NodeAt(name, "https://"+name+".test/v2/key-of-"+name, script...)
	}
	good := func(latency time.Duration, faults ...rpcpooltest.EVMFault) rpcpooltest.Reply {
		return chain.Serve(faults...).Delay(latency)
	}
	w.List("8453",
		node("good", good(8*time.Millisecond)),
		node("spare", good(19*time.Millisecond)), // bears good out when a block comes
		node("behind", good(14*time.Millisecond, rpcpooltest.Lagging(1))),
		node("stale", good(11*time.Millisecond, rpcpooltest.Lagging(40))),
		node("moody", lastOf(9, 1, rpcpooltest.Status(500), chain, 21*time.Millisecond)),
		node("busy", lastOf(4, 1, rpcpooltest.RateLimited(time.Second), chain, 17*time.Millisecond)),
		node("broken", lastOf(9, 3, rpcpooltest.Reset(), chain, 33*time.Millisecond)),
		node("elsewhere", good(9*time.Millisecond, rpcpooltest.OnChain(1))),
	)
	timeout := opts.config.Timeout
	opts.chain, opts.config = "8453", w.Config()
	opts.config.Timeout = timeout
	return w
}

// lastOf has the last few of each n requests answered by a fault, and the others by the
// chain. net/http sends a request again whose connection was an old one and broke, so a
// single reset would hardly be seen.
func lastOf(n, few int64, fault rpcpooltest.Reply, chain *rpcpooltest.EVM, latency time.Duration) rpcpooltest.Reply {
	var asked atomic.Int64
	return rpcpooltest.Handle(func(q rpcpooltest.Request) rpcpooltest.Reply {
		if (asked.Add(1)-1)%n >= n-few {
			return fault
		}
		return chain.Answer(q).Delay(latency)
	})
}
