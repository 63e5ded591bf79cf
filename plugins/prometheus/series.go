package rpcpoolprom

import (
	"sync/atomic"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bomzrpc/rpcpool"
)

// This file has the series that a call counts in, looked up by what events say.

type chainKey struct{ chain, policy string }

type rpcKey struct {
	chainKey
	rpc string
}

type callKey struct {
	chain  *chainSeries
	kind   rpcpool.CallKind
	result rpcpool.CallResult
	method string
}

type endKey struct {
	chain   *chainSeries
	verdict rpcpool.Verdict
}

type proxyKey struct {
	proxy   string
	verdict rpcpool.Verdict
}

// The values that a label may have, where series begin at 0: what appears with its first
// increment is an increase that Prometheus doesn't see.
var (
	classes = []rpcpool.FailureClass{
		rpcpool.TransportFailure, rpcpool.ProtocolFailure, rpcpool.SemanticFailure, rpcpool.RateLimitFailure,
	}
	rpcChanges = []rpcpool.CooldownChange{
		rpcpool.RPCCooled, rpcpool.RPCRested, rpcpool.RPCExpelled, rpcpool.RPCUndone, rpcpool.RPCBack,
	}
	proxyEvents = []rpcpool.ProxyChange{
		rpcpool.ProxyDead, rpcpool.ProxyCooled, rpcpool.ProxyUndone, rpcpool.ProxyBack, rpcpool.ProxySwitched,
	}
	reportChanges = []rpcpool.ReportChange{
		rpcpool.ReportQueued, rpcpool.ReportSent, rpcpool.ReportFailed, rpcpool.ReportDropped,
	}
	reportKinds = []string{"timeout", "http_403", "http_429", "conn", "rpc_error"}
	forkKinds   = []rpcpool.ForkKind{rpcpool.ForkBetween, rpcpool.ForkReorg, rpcpool.ForkRollback}
	splitCauses = []rpcpool.SplitCause{rpcpool.SplitNamed, rpcpool.SplitTaken, rpcpool.SplitHalved}
	goodSources = []rpcpool.ListSource{rpcpool.ListFromPool, rpcpool.ListFromDirectory, rpcpool.ListFromStatic}
	poorSources = []rpcpool.ListSource{rpcpool.ListFromMemory, rpcpool.ListFromCache, rpcpool.ListFromNowhere}
)

// The results of a request for a list.
const (
	fetchOK      = "ok"
	fetchRefused = "refused"
	fetchFailed  = "failed"
)

// chainSeries are those of a handle.
type chainSeries struct {
	chainKey      // the label values
	shared   bool // they are of all chains that have none of their own

	inFlight      prometheus.Gauge
	hedged, bytes prometheus.Counter
	seconds       prometheus.Observer
	failures      map[rpcpool.FailureClass]prometheus.Counter
	surplus       *rpcSeries // of RPCs that have none of their own
}

// chain gives the series of a handle. A reference is whatever the program is asked for, and
// the client library takes no label that isn't UTF-8: one such would end every scrape.
func (m *Metrics) chain(of rpcpool.ChainLabels) *chainSeries {
	if !utf8.ValidString(of.Chain) {
		return m.surplus()
	}
	key := chainKey{of.Chain, of.Policy}
	if c := m.chains.get(key, func() *chainSeries { return m.newChain(key) }, nil); c != nil {
		return c
	}
	return m.surplus()
}

func (m *Metrics) newChain(k chainKey) *chainSeries {
	c := &chainSeries{
		chainKey: k,
		inFlight: m.callsInFlight.WithLabelValues(k.chain, k.policy),
		hedged:   m.hedged.WithLabelValues(k.chain, k.policy),
		bytes:    m.bytes.WithLabelValues(k.chain, k.policy),
		seconds:  m.attemptSeconds.WithLabelValues(k.chain, k.policy),
		failures: map[rpcpool.FailureClass]prometheus.Counter{},
		surplus:  &rpcSeries{key: rpcKey{k, other}},
	}
	for _, class := range classes {
		c.failures[class] = m.failures.WithLabelValues(k.chain, k.policy, class.String())
	}
	for _, change := range rpcChanges {
		m.changes.WithLabelValues(k.chain, k.policy, string(change))
	}
	for _, source := range goodSources {
		m.fetches.WithLabelValues(k.chain, k.policy, string(source), fetchOK, "false")
	}
	for _, source := range poorSources {
		m.fetches.WithLabelValues(k.chain, k.policy, string(source), fetchRefused, "false")
		m.fetches.WithLabelValues(k.chain, k.policy, string(source), fetchFailed, "false")
	}
	for _, cause := range splitCauses {
		m.splits.WithLabelValues(k.chain, k.policy, string(cause))
	}
	for _, kind := range forkKinds {
		m.forks.WithLabelValues(k.chain, k.policy, string(kind))
	}
	m.stale.WithLabelValues(k.chain, k.policy, "true")
	m.stale.WithLabelValues(k.chain, k.policy, "false")
	return c
}

// rpcSeries are those of an RPC, or of all of one label.
type rpcSeries struct {
	key      rpcKey
	attempts atomic.Pointer[prometheus.Counter] // nil before the first
	failures [rpcpool.RateLimitFailure + 1]atomic.Pointer[prometheus.Counter]
}

// rpc gives the series of an RPC.
func (m *Metrics) rpc(chain *chainSeries, label string) *rpcSeries {
	if chain.shared {
		return chain.surplus
	}
	key := rpcKey{chain.chainKey, label}
	return m.rpcs.get(key, func() *rpcSeries { return &rpcSeries{key: key} }, chain.surplus)
}

// count counts an attempt.
func (s *rpcSeries) count(m *Metrics, class rpcpool.FailureClass) {
	counterAt(&s.attempts, func() prometheus.Counter {
		return m.rpcAttempts.WithLabelValues(s.key.chain, s.key.policy, s.key.rpc)
	}).Inc()
	if class <= rpcpool.NoFailure || int(class) >= len(s.failures) {
		return
	}
	counterAt(&s.failures[class], func() prometheus.Counter {
		return m.rpcFailures.WithLabelValues(s.key.chain, s.key.policy, s.key.rpc, class.String())
	}).Inc()
}

// counterAt gives the counter that is kept at a place, which is looked up once.
func counterAt(at *atomic.Pointer[prometheus.Counter], find func() prometheus.Counter) prometheus.Counter {
	if c := at.Load(); c != nil {
		return *c
	}
	c := find()
	at.Store(&c)
	return c
}

// dropRPC takes an RPC's series out of the metrics.
func (m *Metrics) dropRPC(k rpcKey) {
	m.rpcAttempts.DeleteLabelValues(k.chain, k.policy, k.rpc)
	for _, class := range classes {
		m.rpcFailures.DeleteLabelValues(k.chain, k.policy, k.rpc, class.String())
	}
}

// callSeries are those of a kind of call, and of a result.
type callSeries struct {
	total   prometheus.Counter
	seconds prometheus.Observer
}

func (m *Metrics) call(chain *chainSeries, end *rpcpool.CallEnd) callSeries {
	key := callKey{chain, end.Kind, end.Result, ""}
	if m.options.methods != nil {
		if key.method = end.Method; !m.options.methods[end.Method] {
			key.method = other
		}
	}
	return m.calls.get(key, func() callSeries {
		labels := []string{chain.chain, chain.policy, string(key.kind)}
		if m.options.methods != nil {
			labels = append(labels, key.method)
		}
		return callSeries{
			seconds: m.callSeconds.WithLabelValues(labels...),
			total:   m.callsTotal.WithLabelValues(append(labels, string(key.result))...),
		}
	}, callSeries{})
}
