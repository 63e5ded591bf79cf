package rpcpoolotel

import (
	"context"
	"errors"
	"slices"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/bomzrpc/rpcpool"
)

// gauges are the instruments that are read from statistics when metrics are collected.
type gauges struct {
	rpcStates   metric.Int64ObservableUpDownCounter
	heads       metric.Int64ObservableGauge
	lags        metric.Int64ObservableGauge
	inFlight    metric.Int64ObservableUpDownCounter
	highWater   metric.Int64ObservableGauge
	proxyStates metric.Int64ObservableUpDownCounter
	err         error // why there are none
}

func newGauges(meter metric.Meter) (g gauges) {
	sum := func(name, unit, description string) metric.Int64ObservableUpDownCounter {
		c, err := meter.Int64ObservableUpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(description))
		g.err = errors.Join(g.err, err)
		return c
	}
	gauge := func(name, unit, description string) metric.Int64ObservableGauge {
		c, err := meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(description))
		g.err = errors.Join(g.err, err)
		return c
	}
	g.rpcStates = sum("rpcpool.rpc.state", "{rpc}", "RPCs in each state.")
	g.heads = gauge("rpcpool.rpc.head", "{block}", "The highest block that an RPC is known to have; the lowest of those of one host.")
	g.lags = gauge("rpcpool.rpc.lag", "{block}", "Blocks that an RPC's head is under the highest of all; the most of those of one host.")
	g.inFlight = sum("rpcpool.rpc.in_flight", "{attempt}", "Requests to RPCs that are under way.")
	g.highWater = gauge("rpcpool.chain.high_water", "{block}", "The highest head that is believed.")
	g.proxyStates = sum("rpcpool.proxy.state", "{proxy}", "Proxies in each state.")
	if g.err != nil {
		otel.Handle(g.err)
	}
	return g
}

// Observe has the states, heads and lags of a pool's RPCs and the states of its proxies read
// from [rpcpool.Chain.Stats] and [rpcpool.Pool.ProxyStats] whenever metrics are collected,
// for all handles that the pool has then. Nothing is sent for it. It ends with Unregister of
// what it returns; do that before the pool is closed, or the last values stay. Two pools
// that are observed at once must not have the same chains or proxies: their values would
// take turns. The error says that the MeterProvider refuses.
func (h *Hook) Observe(pool *rpcpool.Pool) (metric.Registration, error) {
	if h.err != nil {
		return nil, h.err
	}
	return h.meter.RegisterCallback(func(_ context.Context, to metric.Observer) error {
		for _, chain := range pool.Chains() {
			h.observeChain(to, chain)
		}
		h.observeProxies(to, pool.ProxyStats())
		return nil
	}, h.rpcStates, h.heads, h.lags, h.inFlight, h.highWater, h.proxyStates)
}

var rpcStates = []rpcpool.RPCState{
	rpcpool.StateReady, rpcpool.StateCooling, rpcpool.StateTrial, rpcpool.StateResting, rpcpool.StateWrongChain,
}

// rpcs is what is observed of all RPCs of one label: only one value may be told for a set of
// attributes.
type rpcs struct {
	states    map[rpcpool.RPCState]int64
	head, lag uint64 // the lowest head that is known, the highest lag
	inFlight  int64
}

func (h *Hook) observeChain(to metric.Observer, chain *rpcpool.Chain) {
	labels := withLabels(nil, rpcpool.ChainLabels{Chain: chain.Ref(), Policy: chain.Policy()})
	if mark := chain.HighWater(); mark > 0 {
		to.ObserveInt64(h.highWater, signed(mark), metric.WithAttributes(labels...))
	}
	byServer := map[attribute.Distinct]*rpcs{}
	servers := map[attribute.Distinct]attribute.Set{}
	for _, stats := range chain.Stats() {
		set := attribute.NewSet(withServer(slices.Clip(labels), stats.RPC)...)
		all := byServer[set.Equivalent()]
		if all == nil {
			all = &rpcs{states: map[rpcpool.RPCState]int64{}}
			byServer[set.Equivalent()], servers[set.Equivalent()] = all, set
		}
		all.add(&stats)
	}
	for key, all := range byServer {
		set := servers[key]
		for _, state := range rpcStates {
			attrs := append(set.ToSlice(), keyRPCState.String(string(state)))
			to.ObserveInt64(h.rpcStates, all.states[state], metric.WithAttributes(attrs...))
		}
		to.ObserveInt64(h.inFlight, all.inFlight, metric.WithAttributeSet(set))
		if all.head > 0 {
			to.ObserveInt64(h.heads, signed(all.head), metric.WithAttributeSet(set))
			to.ObserveInt64(h.lags, signed(all.lag), metric.WithAttributeSet(set))
		}
	}
}

func (r *rpcs) add(stats *rpcpool.RPCStats) {
	r.states[stats.State]++
	r.inFlight += int64(stats.InFlight)
	r.lag = max(r.lag, stats.Lag)
	if stats.Head > 0 && (r.head == 0 || stats.Head < r.head) {
		r.head = stats.Head
	}
}

func (h *Hook) observeProxies(to metric.Observer, all []rpcpool.ProxyStats) {
	type proxyState struct {
		proxy string
		state rpcpool.ProxyState
	}
	counts := map[proxyState]int64{}
	for i := range all {
		for _, state := range []rpcpool.ProxyState{rpcpool.ProxyReady, rpcpool.ProxyCooling, rpcpool.ProxyTrial} {
			key := proxyState{all[i].Proxy, state}
			counts[key] += 0 // a state that it isn't in any more is told, too
			if all[i].State == state {
				counts[key]++
			}
		}
	}
	for key, n := range counts {
		to.ObserveInt64(h.proxyStates, n, metric.WithAttributes(keyProxy.String(key.proxy), keyProxyState.String(string(key.state))))
	}
}
