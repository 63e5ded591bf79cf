package rpcpoolprom

import (
	"cmp"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/bomzrpc/rpcpool"
)

// gauges are the metrics that are looked up in the pools when they are asked for.
type gauges struct {
	rpcs, highWater                       *prometheus.Desc
	rpcState, rpcInFlight, rpcHead        *prometheus.Desc
	rpcLag                                *prometheus.Desc
	proxyState, proxyInUse, proxyInFlight *prometheus.Desc
}

// newGauges has labels in the order of their names, as [gauge] needs them.
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

// The states in the order of their names, which that of the series is.
var (
	rpcStates = [...]rpcpool.RPCState{
		rpcpool.StateCooling, rpcpool.StateReady, rpcpool.StateResting, rpcpool.StateTrial, rpcpool.StateWrongChain,
	}
	proxyStates = [...]rpcpool.ProxyState{rpcpool.ProxyCooling, rpcpool.ProxyReady, rpcpool.ProxyTrial}
)

// view is the state of all pools at a moment, by labels.
type view struct {
	chains  map[chainKey]*chainView
	proxies map[string]*proxyView
}

type chainView struct {
	chainKey
	states    [len(rpcStates)]int // of all RPCs
	own       map[string]*rpcView // RPCs that have series of their own, by label
	others    rpcView
	looked    bool // a list was seen
	highWater uint64
}

type rpcView struct {
	states    [len(rpcStates)]int
	count     int // RPCs of the label
	inFlight  int
	head, lag uint64
}

type proxyView struct {
	states          [len(proxyStates)]int
	inUse, inFlight int
}

func (v *view) chain(key chainKey) *chainView {
	c := v.chains[key]
	if c == nil {
		c = &chainView{chainKey: key, own: map[string]*rpcView{}}
		v.chains[key] = c
	}
	return c
}

// look asks the pools for their state.
func (m *Metrics) look(pools []*rpcpool.Pool) *view {
	v := &view{chains: map[chainKey]*chainView{}, proxies: map[string]*proxyView{}}
	for key := range m.rpcs.all() {
		v.chain(key.chainKey).own[key.rpc] = &rpcView{}
	}
	for _, pool := range pools {
		for _, chain := range pool.Chains() {
			series := m.chain(rpcpool.ChainLabels{Chain: chain.Ref(), Policy: chain.Policy()})
			v.chain(series.chainKey).add(chain, series.shared)
		}
		for _, proxy := range pool.ProxyStats() {
			m.lookAtProxy(v, &proxy)
		}
	}
	return v
}

// add counts the RPCs of a handle, which may share its series with others.
func (c *chainView) add(chain *rpcpool.Chain, shared bool) {
	stats := chain.Stats()
	if len(stats) == 0 {
		return // there is no list yet
	}
	c.looked = true
	if !shared {
		c.highWater = max(c.highWater, chain.HighWater())
	}
	for i := range stats {
		rpc := c.own[stats[i].RPC]
		if rpc == nil {
			rpc = &c.others
		}
		if state := slices.Index(rpcStates[:], stats[i].State); state >= 0 {
			c.states[state]++
			rpc.states[state]++
		}
		rpc.add(&stats[i])
	}
}

// add counts an RPC to those of its label.
func (r *rpcView) add(rpc *rpcpool.RPCStats) {
	r.count++
	r.inFlight += rpc.InFlight
	r.lag = max(r.lag, rpc.Lag)
	if rpc.Head > 0 && (r.head == 0 || rpc.Head < r.head) {
		r.head = rpc.Head
	}
}

func (m *Metrics) lookAtProxy(v *view, proxy *rpcpool.ProxyStats) {
	p := v.proxies[proxy.Proxy]
	if p == nil {
		p = &proxyView{}
		v.proxies[proxy.Proxy] = p
		for _, change := range proxyEvents { // they begin at 0
			m.proxyChanges.WithLabelValues(proxy.Proxy, string(change))
		}
	}
	if state := slices.Index(proxyStates[:], proxy.State); state >= 0 {
		p.states[state]++
	}
	p.inFlight += proxy.InFlight
	if proxy.Current {
		p.inUse++
	}
}

// forget drops the series of RPCs that aren't in their lists any more. Those that came since
// the look are left for the next.
func (m *Metrics) forget(v *view) {
	m.rpcs.remove(func(k rpcKey) bool {
		c := v.chains[k.chainKey]
		return c != nil && c.looked && c.own[k.rpc] != nil && c.own[k.rpc].count == 0
	}, m.dropRPC)
}

func (g *gauges) collect(ch chan<- prometheus.Metric, v *view) {
	byLabels := func(a, b *chainView) int {
		return cmp.Or(cmp.Compare(a.chain, b.chain), cmp.Compare(a.policy, b.policy))
	}
	for _, c := range slices.SortedFunc(maps.Values(v.chains), byLabels) {
		if c.looked {
			g.collectChain(ch, c)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v.proxies)) {
		p, labels := v.proxies[name], []*dto.LabelPair{pair("proxy", name)}
		for i := range proxyStates {
			send(ch, g.proxyState, p.states[i], with(labels, proxyStateLabels[i]))
		}
		send(ch, g.proxyInUse, p.inUse, labels)
		send(ch, g.proxyInFlight, p.inFlight, labels)
	}
}

func (g *gauges) collectChain(ch chan<- prometheus.Metric, c *chainView) {
	labels := []*dto.LabelPair{pair("chain", c.chain), pair("policy", c.policy)}
	for i := range rpcStates {
		send(ch, g.rpcs, c.states[i], with(labels, rpcStateLabels[i]))
	}
	if c.highWater > 0 {
		send(ch, g.highWater, c.highWater, labels)
	}
	c.own[other] = &c.others
	for _, name := range slices.Sorted(maps.Keys(c.own)) {
		rpc := c.own[name]
		if rpc.count == 0 {
			continue
		}
		labels := with(labels, pair("rpc", name))
		for i, n := range rpc.states {
			if n > 0 {
				send(ch, g.rpcState, n, with(labels, rpcStateLabels[i]))
			}
		}
		send(ch, g.rpcInFlight, rpc.inFlight, labels)
		if rpc.head > 0 && name != other { // the heads of many say nothing
			send(ch, g.rpcHead, rpc.head, labels)
			send(ch, g.rpcLag, rpc.lag, labels)
		}
	}
}
