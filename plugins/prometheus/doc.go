// Package rpcpoolprom tells Prometheus what a [rpcpool.Pool] does, by the official client
// library. One [Metrics] is both a hook of the pool, for counters and durations, and a
// [prometheus.Collector], which looks at the pool when it is scraped, for gauges:
//
//	metrics := rpcpoolprom.New()
//	cfg.Hooks = append(cfg.Hooks, metrics)
//	pool, err := rpcpool.New(cfg)
//	…
//	metrics.Watch(pool)
//	prometheus.MustRegister(metrics)
//
// The metrics are listed in docs/OBSERVABILITY.md; dashboard.json and alerts.yml, beside
// this file, are a Grafana dashboard and Prometheus rules that use them.
//
// # How many series
//
// The number is bounded, whatever the pool does. Each RPC that has been asked has at most
// nine series of its own (state, requests in flight, head, lag, attempts, four classes of
// failures), up to [WithMaxRPCs] RPCs of all chains together (by default 500); those never
// asked, and those beyond, share the label rpc="other" of their chain. The series of an RPC
// that has left its list go with the next scrape. Of each handle ([rpcpool.Chain.Ref] and
// [rpcpool.Chain.Policy]) there are about 100 series, up to [WithMaxChains] handles (by
// default 100), beyond which all share chain="other". 50 chains of 200 RPCs each, all
// asked, all failing in all four classes, have less than 12,000 series.
//
// # RPCs of one host
//
// RPCs are named by their masked labels, such as "https://rpc.example.org/***", so that two
// of one host may have the same. Their series are one: counters, states and requests in
// flight are added up, the head is the lowest and the lag the highest of them. The position
// in the list would tell them apart, but it changes with every list, and so would the series.
//
// # Methods
//
// Methods are whatever the program asks for, and so label nothing, unless [WithMethods]
// lists those that may.
//
// No label value is a secret: neither a proxy's login nor an RPC's path is in any.
package rpcpoolprom
