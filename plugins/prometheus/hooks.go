package rpcpoolprom

import (
	"context"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bomzrpc/rpcpool"
)

// CallStarted implements [rpcpool.CallHook].
func (m *Metrics) CallStarted(ctx context.Context, start rpcpool.CallStart) context.Context {
	m.chain(start.ChainLabels).inFlight.Inc()
	return ctx
}

// CallEnded implements [rpcpool.CallHook].
func (m *Metrics) CallEnded(_ context.Context, end rpcpool.CallEnd) {
	chain := m.chain(end.ChainLabels)
	chain.inFlight.Dec()
	series := m.call(chain, &end)
	series.total.Inc()
	series.seconds.Observe(end.Duration.Seconds())
	if end.Hedged {
		chain.hedged.Inc()
	}
}

// AttemptStarted implements [rpcpool.AttemptHook].
func (m *Metrics) AttemptStarted(ctx context.Context, _ rpcpool.AttemptStart) context.Context {
	return ctx
}

// AttemptEnded implements [rpcpool.AttemptHook].
func (m *Metrics) AttemptEnded(_ context.Context, end rpcpool.AttemptEnd) {
	chain := m.chain(end.ChainLabels)
	m.ends.get(endKey{chain, end.Verdict}, func() prometheus.Counter {
		return m.attempts.WithLabelValues(chain.chain, chain.policy, verdictLabel(end.Verdict))
	}, nil).Inc()
	chain.seconds.Observe(end.Duration.Seconds())
	chain.bytes.Add(float64(max(end.Bytes, 0)))
	if failures := chain.failures[end.Class]; failures != nil {
		failures.Inc()
	}
	m.rpc(chain, end.RPC).count(m, end.Class)
	m.proxies.get(proxyKey{end.Proxy, end.Verdict}, func() prometheus.Counter {
		return m.proxyAttempts.WithLabelValues(end.Proxy, verdictLabel(end.Verdict))
	}, nil).Inc()
}

// verdictLabel names a verdict; an empty label value would be none at all.
func verdictLabel(v rpcpool.Verdict) string {
	if v == "" {
		return "none"
	}
	return string(v)
}

// CooldownChanged implements [rpcpool.CooldownHook].
func (m *Metrics) CooldownChanged(_ context.Context, event rpcpool.CooldownEvent) {
	chain := m.chain(event.ChainLabels)
	m.changes.WithLabelValues(chain.chain, chain.policy, string(event.Change)).Inc()
}

// ProxyChanged implements [rpcpool.ProxyHook].
func (m *Metrics) ProxyChanged(_ context.Context, event rpcpool.ProxyEvent) {
	m.proxyChanges.WithLabelValues(event.Proxy, string(event.Change)).Inc()
}

// ListFetched implements [rpcpool.ListHook].
func (m *Metrics) ListFetched(_ context.Context, event rpcpool.ListEvent) {
	result := fetchOK
	switch {
	case event.StatusCode != 0:
		result = fetchRefused
	case event.Error != "":
		result = fetchFailed
	}
	labels := event.ChainLabels
	if !event.Checks { // a list for checks is no handle's
		labels = m.chain(labels).labels()
	}
	m.fetches.WithLabelValues(labels.Chain, labels.Policy, string(event.Source), result, strconv.FormatBool(event.Checks)).Inc()
}

func (k chainKey) labels() rpcpool.ChainLabels {
	return rpcpool.ChainLabels{Chain: k.chain, Policy: k.policy}
}

// ReportChanged implements [rpcpool.ReportHook].
func (m *Metrics) ReportChanged(_ context.Context, event rpcpool.ReportEvent) {
	m.reports.WithLabelValues(event.Kind, string(event.Change)).Inc()
}

// RangeSplit implements [rpcpool.RangeSplitHook].
func (m *Metrics) RangeSplit(_ context.Context, event rpcpool.RangeSplitEvent) {
	chain := m.chain(event.ChainLabels)
	m.splits.WithLabelValues(chain.chain, chain.policy, string(event.Cause)).Inc()
}

// RPCStale implements [rpcpool.StaleHook].
func (m *Metrics) RPCStale(_ context.Context, event rpcpool.StaleEvent) {
	chain := m.chain(event.ChainLabels)
	m.stale.WithLabelValues(chain.chain, chain.policy, strconv.FormatBool(event.Ejected)).Inc()
}

// ForkSeen implements [rpcpool.StaleHook].
func (m *Metrics) ForkSeen(_ context.Context, event rpcpool.ForkEvent) {
	chain := m.chain(event.ChainLabels)
	m.forks.WithLabelValues(chain.chain, chain.policy, string(event.Kind)).Inc()
}
