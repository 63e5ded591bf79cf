package rpcpoolprom

import (
	"math"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bomzrpc/rpcpool"
)

// other is the label value of what has no series of its own. No masked URL is like it.
const other = "other"

// Metrics is a hook for [rpcpool.Config.Hooks] and a [prometheus.Collector]. It is made by
// [New], and safe for concurrent use. One may serve many pools: what has the same labels is
// added up.
type Metrics struct {
	options options
	vectors
	gauges gauges

	chains  *capped[chainKey, *chainSeries]
	rpcs    *capped[rpcKey, *rpcSeries]
	calls   *capped[callKey, callSeries]
	ends    *capped[endKey, prometheus.Counter]
	proxies *capped[proxyKey, prometheus.Counter]
	surplus func() *chainSeries // of chains that have none of their own

	mu    sync.Mutex // protects what follows
	pools []*rpcpool.Pool
}

var (
	_ prometheus.Collector   = (*Metrics)(nil)
	_ rpcpool.CallHook       = (*Metrics)(nil)
	_ rpcpool.AttemptHook    = (*Metrics)(nil)
	_ rpcpool.CooldownHook   = (*Metrics)(nil)
	_ rpcpool.ProxyHook      = (*Metrics)(nil)
	_ rpcpool.ListHook       = (*Metrics)(nil)
	_ rpcpool.ReportHook     = (*Metrics)(nil)
	_ rpcpool.RangeSplitHook = (*Metrics)(nil)
	_ rpcpool.StaleHook      = (*Metrics)(nil)
)

// New makes metrics that count nothing yet.
func New(opts ...Option) *Metrics {
	o := options{maxRPCs: defaultMaxRPCs, maxChains: defaultMaxChains, buckets: defaultBuckets}
	for _, each := range opts {
		if each != nil {
			each(&o)
		}
	}
	m := &Metrics{
		options: o, vectors: newVectors(&o), gauges: newGauges(),
		chains: newCapped[chainKey, *chainSeries](o.maxChains),
		rpcs:   newCapped[rpcKey, *rpcSeries](o.maxRPCs),
		// These are bounded by what the library tells, and by the chains.
		calls:   newCapped[callKey, callSeries](math.MaxInt),
		ends:    newCapped[endKey, prometheus.Counter](math.MaxInt),
		proxies: newCapped[proxyKey, prometheus.Counter](math.MaxInt),
	}
	m.surplus = sync.OnceValue(func() *chainSeries {
		c := m.newChain(chainKey{other, other})
		c.shared = true
		return c
	})
	for _, change := range reportChanges {
		for _, kind := range reportKinds {
			m.reports.WithLabelValues(kind, string(change))
		}
	}
	return m
}

// Watch has the gauges show the state of these pools too: their RPCs, heads and proxies. It
// can't fail halfway: a scrape sees all of them, or, before Watch, none; nil is passed over. A
// pool is watched until [Metrics.Unwatch], also after it was closed; to watch it twice is as
// good as once.
func (m *Metrics) Watch(pools ...*rpcpool.Pool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, pool := range pools {
		if pool != nil && !slices.Contains(m.pools, pool) {
			m.pools = append(m.pools, pool)
		}
	}
}

// Unwatch ends what Watch began.
func (m *Metrics) Unwatch(pool *rpcpool.Pool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pools = slices.DeleteFunc(slices.Clone(m.pools), func(p *rpcpool.Pool) bool { return p == pool })
}

// Describe implements [prometheus.Collector].
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, each := range m.all() {
		each.Describe(ch)
	}
	m.gauges.describe(ch)
}

// Collect implements [prometheus.Collector]. It sends nothing to anybody else.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	m.mu.Lock()
	pools := slices.Clone(m.pools)
	m.mu.Unlock()
	now := m.look(pools)
	m.forget(now)
	for _, each := range m.all() {
		each.Collect(ch)
	}
	m.gauges.collect(ch, now)
}

// vectors are the metrics that hooks count.
type vectors struct {
	callsTotal, attempts, failures, changes *prometheus.CounterVec
	rpcAttempts, rpcFailures                *prometheus.CounterVec
	hedged, bytes                           *prometheus.CounterVec
	proxyAttempts, proxyChanges             *prometheus.CounterVec
	fetches, reports                        *prometheus.CounterVec
	splits, stale, forks                    *prometheus.CounterVec
	callsInFlight                           *prometheus.GaugeVec
	callSeconds, attemptSeconds             *prometheus.HistogramVec
}

func newVectors(o *options) vectors {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, labels ...string) *prometheus.HistogramVec {
		opts := prometheus.HistogramOpts{Name: name, Help: help, Buckets: o.buckets}
		if o.buckets == nil {
			opts.NativeHistogramBucketFactor, opts.NativeHistogramMaxBucketNumber = 1.1, 160
		}
		return prometheus.NewHistogramVec(opts, labels)
	}
	callLabels := []string{"chain", "policy", "kind"}
	if o.methods != nil {
		callLabels = append(callLabels, "method")
	}
	return vectors{
		callsTotal: counter("rpcpool_calls_total", "Calls that ended, by how.", append(slices.Clone(callLabels), "result")...),
		callSeconds: histogram("rpcpool_call_duration_seconds",
			"How long calls took, waits and all attempts included.", callLabels...),
		callsInFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "rpcpool_calls_in_flight", Help: "Calls under way; a batch as a whole is one, and so is each of its elements.",
		}, []string{"chain", "policy"}),
		hedged: counter("rpcpool_hedged_calls_total", "Calls for which a second RPC was asked because the first was slow.", "chain", "policy"),
		attempts: counter("rpcpool_attempts_total",
			`Requests to RPCs that ended, by what the end means; "none" where the call ended first.`, "chain", "policy", "verdict"),
		attemptSeconds: histogram("rpcpool_attempt_duration_seconds", "How long requests to RPCs took.", "chain", "policy"),
		bytes:          counter("rpcpool_response_bytes_total", "Bytes of results; not those in Run and of REST.", "chain", "policy"),
		failures:       counter("rpcpool_failures_total", "Requests that failed by an RPC's fault, by class.", "chain", "policy", "class"),
		rpcAttempts:    counter("rpcpool_rpc_attempts_total", "Requests that ended, by RPC.", "chain", "policy", "rpc"),
		rpcFailures:    counter("rpcpool_rpc_failures_total", "Requests that failed by the RPC's fault, by RPC and class.", "chain", "policy", "rpc", "class"),
		changes: counter("rpcpool_rpc_changes_total",
			"What happened to RPCs: cooled (ejected for a cooldown), rested, expelled, undone (a cooldown taken back), back.", "chain", "policy", "change"),
		proxyAttempts: counter("rpcpool_proxy_attempts_total", "Requests that ended, by proxy and what the end means.", "proxy", "verdict"),
		proxyChanges:  counter("rpcpool_proxy_changes_total", "What happened to proxies: dead, cooled, undone, back, switched (to it).", "proxy", "change"),
		fetches: counter("rpcpool_list_fetches_total",
			`Requests for a list, by where the list in use is from and result ("ok", "refused" with an HTTP status, "failed"); checks="true": one to check proxies by.`,
			"chain", "policy", "source", "result", "checks"),
		reports: counter("rpcpool_reports_total", "Reports about RPCs, by kind and what became of them.", "kind", "change"),
		splits:  counter("rpcpool_range_splits_total", "Pieces of log queries that were cut, by why they are as small as they are.", "chain", "policy", "cause"),
		stale: counter("rpcpool_stale_skips_total",
			`How often an RPC was passed over because of its head; ejected="true" where it was held against it.`, "chain", "policy", "ejected"),
		forks: counter("rpcpool_forks_total", "Blocks with two hashes, and chains that went back.", "chain", "policy", "kind"),
	}
}

func (v *vectors) all() []prometheus.Collector {
	return []prometheus.Collector{
		v.callsTotal, v.callSeconds, v.callsInFlight, v.hedged, v.attempts, v.attemptSeconds, v.bytes, v.failures,
		v.rpcAttempts, v.rpcFailures, v.changes, v.proxyAttempts, v.proxyChanges, v.fetches, v.reports, v.splits, v.stale, v.forks,
	}
}
