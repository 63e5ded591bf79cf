package rpcpoolprom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/bomzrpc/rpcpool"
)

// gauges are the metrics that are looked up in the pools when they are asked for.
type gauges struct {
	rpcs, highWater                       *prometheus.Desc
	rpcState, rpcInFlight, rpcHead        *prometheus.Desc
	rpcLag                                *prometheus.Desc
	proxyState, proxyInUse, proxyInFlight *prometheus.Desc
}

func newGauges() gauges {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return gauges{
		rpcs:        desc("rpcpool_rpcs", "RPCs in a chain's list, by state.", "chain", "policy", "state"),
		highWater:   desc("rpcpool_high_water_block", "The highest head of a chain that is believed; only of handles with freshness.", "chain", "policy"),
		rpcState:    desc("rpcpool_rpc_state", "How many RPCs of a label are in a state; states without any are left out.", "chain", "policy", "rpc", "state"),
		rpcInFlight: desc("rpcpool_rpc_in_flight", "Requests under way, by RPC.", "chain", "policy", "rpc"),
		rpcHead:     desc("rpcpool_rpc_head_block", "The highest block that an RPC is known to have; the lowest of those with one label.", "chain", "policy", "rpc"),
		rpcLag: desc("rpcpool_rpc_lag_blocks",
			"The blocks that an RPC's head is under the highest, or the high-water mark; the highest of those with one label.", "chain", "policy", "rpc"),
		proxyState:    desc("rpcpool_proxy_state", "How many proxies of a label are in a state.", "proxy", "state"),
		proxyInUse:    desc("rpcpool_proxy_in_use", "Whether a proxy is the one in use: in how many pools.", "proxy"),
		proxyInFlight: desc("rpcpool_proxy_in_flight", "Requests under way, by proxy.", "proxy"),
	}
}

func (g *gauges) describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		g.rpcs, g.highWater, g.rpcState, g.rpcInFlight, g.rpcHead, g.rpcLag, g.proxyState, g.proxyInUse, g.proxyInFlight,
	} {
		ch <- d
	}
}

var (
	rpcStates = []rpcpool.RPCState{
		rpcpool.StateReady, rpcpool.StateCooling, rpcpool.StateTrial, rpcpool.StateResting, rpcpool.StateWrongChain,
	}
	proxyStates = []rpcpool.ProxyState{rpcpool.ProxyReady, rpcpool.ProxyCooling, rpcpool.ProxyTrial}
)

// view is the state of all pools at a moment, by labels.
type view struct {
	chains  map[chainKey]*chainView
	proxies map[string]*proxyView
	listed  map[rpcKey]bool   // RPCs that have series of their own and are in a list
	looked  map[chainKey]bool // handles whose list was seen
}

type chainView struct {
	states    map[rpcpool.RPCState]int
	rpcs      map[string]*rpcView
	highWater uint64
}

type rpcView struct {
	states    map[rpcpool.RPCState]int
	inFlight  int
	head, lag uint64
}

type proxyView struct {
	states          map[rpcpool.ProxyState]int
	inUse, inFlight int
}

// at gives what stands under a key, made where there is nothing.
func at[K comparable, V any](values map[K]*V, key K) *V {
	v := values[key]
	if v == nil {
		v = new(V)
		values[key] = v
	}
	return v
}

// look asks the pools for their state.
func (m *Metrics) look(pools []*rpcpool.Pool) *view {
	v := &view{
		chains: map[chainKey]*chainView{}, proxies: map[string]*proxyView{},
		listed: map[rpcKey]bool{}, looked: map[chainKey]bool{},
	}
	for _, pool := range pools {
		for _, chain := range pool.Chains() {
			series := m.chain(rpcpool.ChainLabels{Chain: chain.Ref(), Policy: chain.Policy()})
			m.lookAtChain(v, series, chain)
		}
		for _, proxy := range pool.ProxyStats() {
			m.lookAtProxy(v, &proxy)
		}
	}
	return v
}

func (m *Metrics) lookAtChain(v *view, series *chainSeries, chain *rpcpool.Chain) {
	stats := chain.Stats()
	if len(stats) == 0 {
		return // there is no list yet
	}
	c := v.chains[series.chainKey]
	if c == nil {
		c = &chainView{states: map[rpcpool.RPCState]int{}, rpcs: map[string]*rpcView{}}
		v.chains[series.chainKey] = c
	}
	if !series.shared {
		v.looked[series.chainKey] = true
		c.highWater = max(c.highWater, chain.HighWater())
	}
	for i := range stats {
		rpc := &stats[i]
		c.states[rpc.State]++
		key := rpcKey{series.chainKey, other}
		if !series.shared && m.rpcs.has(rpcKey{series.chainKey, rpc.RPC}) {
			key.rpc = rpc.RPC
			v.listed[key] = true
		}
		at(c.rpcs, key.rpc).add(rpc)
	}
}

// add counts an RPC to those of its label.
func (r *rpcView) add(rpc *rpcpool.RPCStats) {
	if r.states == nil {
		r.states = map[rpcpool.RPCState]int{}
	}
	r.states[rpc.State]++
	r.inFlight += rpc.InFlight
	r.lag = max(r.lag, rpc.Lag)
	if rpc.Head > 0 && (r.head == 0 || rpc.Head < r.head) {
		r.head = rpc.Head
	}
}

func (m *Metrics) lookAtProxy(v *view, proxy *rpcpool.ProxyStats) {
	p := v.proxies[proxy.Proxy]
	if p == nil {
		p = &proxyView{states: map[rpcpool.ProxyState]int{}}
		v.proxies[proxy.Proxy] = p
		for _, change := range proxyEvents { // they begin at 0
			m.proxyChanges.WithLabelValues(proxy.Proxy, string(change))
		}
	}
	p.states[proxy.State]++
	p.inFlight += proxy.InFlight
	if proxy.Current {
		p.inUse++
	}
}

// forget drops the series of RPCs that aren't in their lists any more.
func (m *Metrics) forget(v *view) {
	m.rpcs.remove(func(k rpcKey) bool { return v.looked[k.chainKey] && !v.listed[k] }, m.dropRPC)
}

func (g *gauges) collect(ch chan<- prometheus.Metric, v *view) {
	send := func(d *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	for k, c := range v.chains {
		for _, state := range rpcStates {
			send(g.rpcs, float64(c.states[state]), k.chain, k.policy, string(state))
		}
		if c.highWater > 0 {
			send(g.highWater, float64(c.highWater), k.chain, k.policy)
		}
		for label, rpc := range c.rpcs {
			for state, n := range rpc.states {
				send(g.rpcState, float64(n), k.chain, k.policy, label, string(state))
			}
			send(g.rpcInFlight, float64(rpc.inFlight), k.chain, k.policy, label)
			if label == other { // the heads of many say nothing
				continue
			}
			if rpc.head > 0 {
				send(g.rpcHead, float64(rpc.head), k.chain, k.policy, label)
				send(g.rpcLag, float64(rpc.lag), k.chain, k.policy, label)
			}
		}
	}
	for label, p := range v.proxies {
		for _, state := range proxyStates {
			send(g.proxyState, float64(p.states[state]), label, string(state))
		}
		send(g.proxyInUse, float64(p.inUse), label)
		send(g.proxyInFlight, float64(p.inFlight), label)
	}
}
