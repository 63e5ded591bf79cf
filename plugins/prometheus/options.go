package rpcpoolprom

import "slices"

// Option changes what [New] makes.
type Option func(*options)

type options struct {
	methods   map[string]bool // nil where methods label nothing
	maxRPCs   int
	maxChains int
	buckets   []float64 // nil where histograms are native
}

const (
	defaultMaxRPCs   = 500
	defaultMaxChains = 100
)

// defaultBuckets are the bounds of the histograms' buckets in seconds: public RPCs behind
// proxies take from tens of milliseconds to the 30 seconds of a few timeouts.
var defaultBuckets = []float64{0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30}

// WithMethods puts the label "method" on the metrics of calls, with these JSON-RPC methods
// as values and "other" for everything else. Each multiplies the series of calls: it costs
// about 15 a chain and kind of call in which it is used. Without the option there is no such
// label.
func WithMethods(methods ...string) Option {
	return func(o *options) {
		o.methods = make(map[string]bool, len(methods))
		for _, method := range methods {
			o.methods[method] = true
		}
	}
}

// WithMaxRPCs limits how many RPCs, of all chains together, have series of their own; the
// others of a chain share rpc="other". Those that are asked first have them, until they leave
// their list. Default: 500. 0 or less: none.
func WithMaxRPCs(n int) Option { return func(o *options) { o.maxRPCs = max(n, 0) } }

// WithMaxChains limits how many handles have series of their own; those beyond share
// chain="other", policy="other". It is for programs that take references from others.
// Default: 100. 0 or less: none.
func WithMaxChains(n int) Option { return func(o *options) { o.maxChains = max(n, 0) } }

// WithBuckets sets the upper bounds of the histograms' buckets, in seconds, in rising order.
// Default, and without any: eleven from 0.01 to 30. Each is one more series for each chain and
// kind of call.
func WithBuckets(bounds ...float64) Option {
	return func(o *options) {
		o.buckets = defaultBuckets
		if len(bounds) > 0 {
			o.buckets = slices.Clone(bounds)
		}
	}
}

// WithNativeHistograms makes the histograms native ones, which have one series each instead
// of one a bucket, and are right within 10 %. Prometheus must be told to take them, with
// --enable-feature=native-histograms or, as of version 3.8, scrape_native_histograms. The
// dashboard is made for classic ones.
func WithNativeHistograms() Option { return func(o *options) { o.buckets = nil } }
