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
// that are observed at once must not have the same chains or proxies, nor both have chains
// beyond [WithMaxChains]: their values would take turns. The error says that the MeterProvider refuses.
func (h *Hook) Observe(pool *rpcpool.Pool) (metric.Registration, error) {
	if h.err != nil {
		return nil, h.err
	}
	return h.meter.RegisterCallback(func(_ context.Context, to metric.Observer) error {
		others := server{attrs: attribute.NewSet(keyChain.String(otherHandle), keyPolicy.String(otherHandle))}
		for _, chain := range pool.Chains() {
			h.observeChain(to, chain, &others)
		}
		if others.states != nil {
			h.observeServer(to, &others)
		}
		h.observeProxies(to, pool.ProxyStats())
		return nil
	}, h.rpcStates, h.heads, h.lags, h.inFlight, h.highWater, h.proxyStates)
}

var (
	rpcStates = []rpcpool.RPCState{
		rpcpool.StateReady, rpcpool.StateCooling, rpcpool.StateTrial, rpcpool.StateResting, rpcpool.StateWrongChain,
	}
	proxyStates = []rpcpool.ProxyState{rpcpool.ProxyReady, rpcpool.ProxyCooling, rpcpool.ProxyTrial}
)

// observeStates tells how many are in each state: a state that none is in any more is told, too.
func observeStates[S ~string](
	to metric.Observer, instrument metric.Int64Observable, key attribute.Key, states []S, counts map[S]int64, of ...attribute.KeyValue,
) {
	for _, state := range states {
		attrs := append(slices.Clip(of), key.String(string(state)))
		to.ObserveInt64(instrument, counts[state], metric.WithAttributes(attrs...))
	}
}

// server is what is observed of all RPCs of one host and port: only one value may be told for
// a set of attributes.
type server struct {
	attrs     attribute.Set
	states    map[rpcpool.RPCState]int64
	head, lag uint64 // the lowest head that is known, the highest lag
	inFlight  int64
}

// observeChain tells a handle's state, or adds it to that of the others: their states and
// requests add up, and heads of different chains can't be compared.
func (h *Hook) observeChain(to metric.Observer, chain *rpcpool.Chain, others *server) {
	handle := rpcpool.ChainLabels{Chain: chain.Ref(), Policy: chain.Policy()}
	stats := chain.Stats()
	if !h.isOwn(handle) {
		for i := range stats {
			others.add(&stats[i])
		}
		return
	}
	labels := withLabels(nil, handle)
	if mark := chain.HighWater(); mark > 0 {
		to.ObserveInt64(h.highWater, signed(mark), metric.WithAttributes(labels...))
	}
	servers := map[attribute.Distinct]*server{}
	for i := range stats {
		attrs := attribute.NewSet(withServer(slices.Clip(labels), stats[i].RPC)...)
		s := servers[attrs.Equivalent()]
		if s == nil {
			s = &server{attrs: attrs}
			servers[attrs.Equivalent()] = s
		}
		s.add(&stats[i])
	}
	for _, s := range servers {
		h.observeServer(to, s)
		if s.head > 0 {
			attrs := metric.WithAttributeSet(s.attrs)
			to.ObserveInt64(h.heads, signed(s.head), attrs)
			to.ObserveInt64(h.lags, signed(s.lag), attrs)
		}
	}
}

func (h *Hook) observeServer(to metric.Observer, s *server) {
	observeStates(to, h.rpcStates, keyRPCState, rpcStates, s.states, s.attrs.ToSlice()...)
	to.ObserveInt64(h.inFlight, s.inFlight, metric.WithAttributeSet(s.attrs))
}

func (s *server) add(stats *rpcpool.RPCStats) {
	if s.states == nil {
		s.states = map[rpcpool.RPCState]int64{}
	}
	s.states[stats.State]++
	s.inFlight += int64(stats.InFlight)
	s.lag = max(s.lag, stats.Lag)
	if stats.Head > 0 && (s.head == 0 || stats.Head < s.head) {
		s.head = stats.Head
	}
}

func (h *Hook) observeProxies(to metric.Observer, all []rpcpool.ProxyStats) {
	byLabel := map[string]map[rpcpool.ProxyState]int64{}
	for i := range all {
		states := byLabel[all[i].Proxy]
		if states == nil {
			states = map[rpcpool.ProxyState]int64{}
			byLabel[all[i].Proxy] = states
		}
		states[all[i].State]++
	}
	for label, states := range byLabel {
		observeStates(to, h.proxyStates, keyProxyState, proxyStates, states, keyProxy.String(label))
	}
}
