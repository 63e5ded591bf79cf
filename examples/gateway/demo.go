package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// demo is a world inside the program: a pool API, proxies and RPCs on loopback,
// which fail in turn, and a program that calls them through the gateway.
type demo struct {
	world   *rpcpooltest.World
	proxies []*rpcpooltest.Proxy
	chains  []*demoChain
	turn    int // of the misfortunes
}

// demoChain is one chain of the demo.
type demoChain struct {
	ref   string
	evm   *rpcpooltest.EVM
	nodes []*demoNode
	every int // ticks between two requests
}

type demoNode struct {
	*rpcpooltest.Node
	lag   uint64
	label string // as the page shows it
}

// The rhythm of the demo.
const (
	demoTimeout = 2 * time.Second // for one attempt, so that a hung RPC is seen soon
	demoTick    = 250 * time.Millisecond
	misfortune  = 28 // ticks between two misfortunes
	recovery    = 20 // ticks after which what was struck is well again
	fewestReady = 3  // RPCs of a chain; with fewer, it is spared
	demoRefresh = 4  // seconds for which a list is fresh
)

func newDemo() *demo {
	network := rpcpooltest.NewLoopbackNetwork()
	network.SetRecording(false)
	w := rpcpooltest.NewWorld(network)
	d := &demo{world: w}
	d.proxies = []*rpcpooltest.Proxy{
		w.ProxyAt("paris", "socks5://user-paris:word-paris@paris.test:1080"),
		w.ProxyAt("tokyo", "http://user-tokyo:word-tokyo@tokyo.test:3128"),
		w.ProxyAt("quito", "socks5://user-quito:word-quito@quito.test:1080"),
	}
	d.add("8453", rpcpooltest.NewEVM(8453, 31_204_877), 1, "alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf")
	d.add("1", rpcpooltest.NewEVM(1, 23_912_406), 4, "lima", "mike", "november", "oscar", "papa")
	d.list()
	return d
}

func (d *demo) add(ref string, evm *rpcpooltest.EVM, every int, names ...string) {
	evm.SetBlockTime(2 * time.Second)
	c := &demoChain{ref: ref, evm: evm, every: every}
	for i, name := range names {
		n := &demoNode{
			Node:  d.world.NodeAt(name, "https://"+name+".test/v2/key-of-"+name),
			label: "https://" + name + ".test/***",
		}
		if i%3 == 2 { // some are a little behind, and don't serve everything
			n.lag = uint64(i)
		}
		c.nodes = append(c.nodes, n)
		n.recover(evm)
	}
	d.chains = append(d.chains, c)
}

// recover has a node serve as it does when it is well.
func (n *demoNode) recover(evm *rpcpooltest.EVM) {
	n.Revive()
	n.Script(n.usual(evm)...)
}

func (n *demoNode) usual(evm *rpcpooltest.EVM) []rpcpooltest.Reply {
	replies := []rpcpooltest.Reply{
		rpcpooltest.ErrorData(3, "execution reverted: ERC20: transfer amount exceeds balance", "0x08c379a0").
			Method("eth_estimateGas").Delay(9 * time.Millisecond),
		rpcpooltest.Result([]string{}).Method("eth_getLogs").Delay(31 * time.Millisecond),
	}
	if n.lag == 0 {
		replies = append(replies, rpcpooltest.Result(map[string]any{"gas": 21000, "failed": false}).
			Method("debug_traceTransaction").Delay(44*time.Millisecond))
	}
	return append(replies, evm.Serve(rpcpooltest.Lagging(n.lag)).Delay(time.Duration(4+3*n.lag)*time.Millisecond))
}

// list has the pool list the chains with their heads of this moment.
func (d *demo) list() {
	for _, c := range d.chains {
		var entries []any
		for _, n := range c.nodes {
			entry := rpcpooltest.List(n.Node)
			entry.Height = c.evm.Head() - n.lag
			entries = append(entries, entry)
		}
		for _, ref := range []string{c.ref, "eip155:" + c.ref} {
			d.world.Pool.Lists(ref, rpcpooltest.PoolList("eip155:"+c.ref, entries...))
		}
	}
}

// config is the configuration for a pool in this world; the mode and the timeout
// are the user's where given.
func (d *demo) config(given rpcpool.Config) rpcpool.Config {
	config := d.world.Config()
	config.Mode, config.Timeout = given.Mode, given.Timeout
	if config.Timeout == 0 {
		config.Timeout = demoTimeout
	}
	config.RefreshInterval = demoRefresh * time.Second
	return config
}

// start plays the demo until the function that it gives is called.
func (d *demo) start(pool *rpcpool.Pool, gatewayURL string) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	client := &http.Client{Transport: &http.Transport{}}
	var work sync.WaitGroup
	work.Go(func() { d.play(ctx, pool) })
	for _, c := range d.chains {
		work.Go(func() { c.callOften(ctx, client, gatewayURL) })
	}
	return func() {
		cancel()
		work.Wait()
		client.CloseIdleConnections()
	}
}

func (d *demo) close() { _ = d.world.Close() }

// callOften is the program that uses the gateway.
func (c *demoChain) callOften(ctx context.Context, client *http.Client, gatewayURL string) {
	const one, many = `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, `[{"jsonrpc":"2.0","id":1,"method":"eth_gasPrice"},{"jsonrpc":"2.0","id":2,"method":"eth_chainId"}]`
	calls := []struct{ method, params string }{
		{"eth_blockNumber", `[]`},
		{"eth_getBalance", `["0x4200000000000000000000000000000000000006","latest"]`},
		{"eth_call", `[{"to":"0x4200000000000000000000000000000000000006","data":"0x18160ddd"},"latest"]`},
		{"eth_getBlockByNumber", `["latest",false]`},
		{"eth_estimateGas", `[{"to":"0x4200000000000000000000000000000000000006"}]`},
		{"eth_blockNumber", `[]`},
		{"eth_getLogs", `[{"fromBlock":"latest","toBlock":"latest"}]`},
		{"debug_traceTransaction", `["0x6a6f7572"]`},
	}
	ticker := time.NewTicker(time.Duration(c.every) * demoTick)
	defer ticker.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		body := many
		if call := calls[i%len(calls)]; i%10 != 9 {
			body = fmt.Sprintf(one, i, call.method, call.params)
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, gatewayURL+"/"+c.ref, bytes.NewBufferString(body))
		if err != nil {
			return
		}
		req.Header.Set("Content-Type", "application/json")
		if res, err := client.Do(req); err == nil {
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}
	}
}

// play has something fail from time to time, and recover.
func (d *demo) play(ctx context.Context, pool *rpcpool.Pool) {
	ticker := time.NewTicker(demoTick)
	defer ticker.Stop()
	heal := func() {}
	for tick := 1; ; tick++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if tick%4 == 0 {
			d.list()
		}
		switch tick % misfortune {
		case 0:
			heal = d.strike(pool)
		case recovery:
			heal()
		}
	}
}

// strike has the next misfortune happen, and gives what ends it.
func (d *demo) strike(pool *rpcpool.Pool) (heal func()) {
	d.turn++
	if d.turn%5 == 0 {
		if p := d.currentProxy(pool); p != nil {
			p.Kill()
			return p.Revive
		}
		return func() {}
	}
	c := d.chains[0]
	if d.turn%3 == 0 {
		c = d.chains[1]
	}
	n := c.current(pool)
	if n == nil {
		return func() {}
	}
	switch d.turn % 6 {
	case 0, 1:
		n.Kill()
	case 2:
		n.Script(rpcpooltest.RateLimited(0))
	case 3:
		n.Script(rpcpooltest.Status(http.StatusServiceUnavailable))
	case 4:
		n.Script(rpcpooltest.Hang())
	case 5:
		n.Script(rpcpooltest.Garbage())
	}
	return func() { n.recover(c.evm) }
}

// current is the node at the cursor; nil where the chain has had enough, so that
// it goes on answering.
func (c *demoChain) current(pool *rpcpool.Pool) (at *demoNode) {
	ready := 0
	for _, rpc := range pool.Chain(c.ref).Stats() {
		if !rpc.Cooling {
			ready++
		}
		if !rpc.Current {
			continue
		}
		for _, n := range c.nodes {
			if n.label == rpc.RPC {
				at = n
			}
		}
	}
	if ready < fewestReady {
		return nil
	}
	return at
}

// currentProxy is the one in use; nil where it is the last that is fit.
func (d *demo) currentProxy(pool *rpcpool.Pool) (at *rpcpooltest.Proxy) {
	ready := 0
	for i, proxy := range pool.ProxyStats() {
		if !proxy.Cooling {
			ready++
		}
		if proxy.Current {
			at = d.proxies[i]
		}
	}
	if ready < 2 {
		return nil
	}
	return at
}
