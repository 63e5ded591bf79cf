// Package rpcpoolotel makes OpenTelemetry spans and metrics of what happens in a pool of
// rpcpool: a hook for [rpcpool.Config.Hooks].
//
//	cfg.Hooks = []rpcpool.Hook{rpcpoolotel.New()}
//
// It needs the API of OpenTelemetry alone; where spans and metrics go is the business of the
// TracerProvider and MeterProvider that the program has set up: the global ones, or those of
// [WithTracerProvider] and [WithMeterProvider].
//
// # Spans
//
// Each call has a span, a child of the span in the context that it is given, and each
// attempt (one request to one RPC through one proxy) a child of the call's. A batch has a
// span over those of its elements, whose attempts are spans of their own also where they
// travel together. What happens to RPCs meanwhile (cooldowns, failures that are taken back,
// RPCs that lag, forks) are events of the call's span. A log query has no span of its own:
// its pieces are calls, and a cut of one is an event of the span that the query was asked
// under.
//
// The span of an attempt is current in a function given to [rpcpool.Chain.Run], and in the
// log record of the attempt the call's is. A hedged read's slower attempt may end after its
// call. Calls that the library makes for itself outside any call begin a trace.
//
// Nothing of a trace is ever sent to an RPC, a proxy or the pool service: no header, no
// baggage.
//
// # Errors
//
// The status of a call's span is Error where nobody answered; error.type is its
// [rpcpool.CallResult] then. A revert, invalid params and all else that is about the request
// is an answer: the status stays unset, and rpcpool.call.result tells it. The status of an
// attempt is Error where the RPC or the proxy failed, with the [rpcpool.Verdict] as
// error.type.
//
// # Metrics
//
// Events are counted as they happen. [Hook.Observe] adds what statistics tell: the states,
// heads and lags of RPCs.
//
// The number of time series is bounded: the first hundred handles are measured by themselves
// ([WithMaxChains]), and the usual methods ([WithMethods]); all others are measured together.
//
// docs/OBSERVABILITY.md lists spans, metrics and attributes. Names follow version 1.43.0 of
// the semantic conventions, and begin with "rpcpool." where these have none. RPCs and
// proxies are named by host and port; paths, queries and logins, params and results are in
// no attribute.
package rpcpoolotel
