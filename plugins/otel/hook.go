package rpcpoolotel

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/bomzrpc/rpcpool"
)

// scope is the name of the instrumentation.
const scope = "github.com/bomzrpc/rpcpool/plugins/otel"

// Hook makes spans and measures. Make one with [New] and put it into
// [rpcpool.Config.Hooks]; one Hook may be in the configurations of several pools. It is safe
// for concurrent use, and owns no goroutine and nothing that must be closed.
type Hook struct {
	tracer  trace.Tracer // nil where nobody wants spans
	meter   metric.Meter
	methods map[string]bool
	handles *firsts[rpcpool.ChainLabels] // those that are measured by themselves
	lists   *firsts[string]              // likewise, by their keys
	measures
	gauges
}

// A method of another form would never be called.
var _ interface {
	rpcpool.CallHook
	rpcpool.AttemptHook
	rpcpool.CooldownHook
	rpcpool.ProxyHook
	rpcpool.ListHook
	rpcpool.ReportHook
	rpcpool.RangeSplitHook
	rpcpool.StaleHook
} = (*Hook)(nil)

// Option changes what [New] makes.
type Option func(*options)

type options struct {
	tracers   trace.TracerProvider
	meters    metric.MeterProvider
	methods   []string
	maxChains int
}

const defaultMaxChains = 100

// WithTracerProvider says where spans go. The default, also for nil, is
// [otel.GetTracerProvider] at the time of [New]. For metrics alone give the provider of
// go.opentelemetry.io/otel/trace/noop.
func WithTracerProvider(p trace.TracerProvider) Option {
	return func(o *options) { o.tracers = p }
}

// WithMeterProvider says where measurements go. The default, also for nil, is
// [otel.GetMeterProvider] at the time of [New]. For spans alone give the provider of
// go.opentelemetry.io/otel/metric/noop.
func WithMeterProvider(p metric.MeterProvider) Option {
	return func(o *options) { o.meters = p }
}

// WithMethods adds methods to those that are known by name: the usual ones of Ethereum,
// Solana, Starknet, Sui and CometBFT. All others are "_OTHER" in rpc.method, so that what a
// program passes on from elsewhere can't make time series without end; on spans
// rpc.method_original has the name then.
func WithMethods(methods ...string) Option {
	return func(o *options) { o.methods = append(o.methods, methods...) }
}

// WithMaxChains limits how many handles are measured by themselves, and how many lists in
// rpcpool.reports. Those beyond are measured together, with "other" as rpcpool.chain and
// rpcpool.policy and no server; they have no heads and lags. It is for programs that take
// references from others. Spans aren't limited: they have the handle's own reference.
// Default: 100. 0 or less: none.
func WithMaxChains(n int) Option { return func(o *options) { o.maxChains = n } }

// New makes a hook. An instrument that the MeterProvider refuses, because another of its
// name and of another form is there, say, is told to [otel.Handle]; the rest works.
func New(opts ...Option) *Hook {
	o := options{maxChains: defaultMaxChains}
	for _, opt := range opts {
		if opt != nil {
			opt(&o)
		}
	}
	if o.tracers == nil {
		o.tracers = otel.GetTracerProvider()
	}
	if o.meters == nil {
		o.meters = otel.GetMeterProvider()
	}
	h := &Hook{
		meter:   o.meters.Meter(scope, metric.WithSchemaURL(semconv.SchemaURL)),
		methods: make(map[string]bool, len(knownMethods)+len(o.methods)),
		handles: newFirsts[rpcpool.ChainLabels](o.maxChains),
		lists:   newFirsts[string](o.maxChains),
	}
	if _, off := o.tracers.(noop.TracerProvider); !off {
		h.tracer = o.tracers.Tracer(scope, trace.WithSchemaURL(semconv.SchemaURL))
	}
	for _, method := range knownMethods {
		h.methods[method] = true
	}
	for _, method := range o.methods {
		h.methods[method] = true
	}
	h.measures = newMeasures(h.meter)
	h.gauges = newGauges(h.meter)
	return h
}

// CallStarted begins the span of a call.
func (h *Hook) CallStarted(ctx context.Context, start rpcpool.CallStart) context.Context {
	h.beginCall(ctx, &start)
	return h.startCallSpan(ctx, &start)
}

// CallEnded ends the span of a call.
func (h *Hook) CallEnded(ctx context.Context, end rpcpool.CallEnd) {
	h.endCall(ctx, &end)
	h.endCallSpan(ctx, &end)
}

// AttemptStarted begins the span of an attempt.
func (h *Hook) AttemptStarted(ctx context.Context, start rpcpool.AttemptStart) context.Context {
	return h.startAttemptSpan(ctx, &start)
}

// AttemptEnded ends the span of an attempt.
func (h *Hook) AttemptEnded(ctx context.Context, end rpcpool.AttemptEnd) {
	h.endAttempt(ctx, &end)
	h.endAttemptSpan(ctx, &end)
}

// CooldownChanged puts an event on the span of the call that caused the change.
func (h *Hook) CooldownChanged(ctx context.Context, event rpcpool.CooldownEvent) {
	h.countCooldown(ctx, &event)
	h.markCooldown(ctx, &event)
}

// ProxyChanged counts; it is no call's.
func (h *Hook) ProxyChanged(ctx context.Context, event rpcpool.ProxyEvent) {
	h.countProxy(ctx, &event)
}

// ListFetched counts; it is no call's.
func (h *Hook) ListFetched(ctx context.Context, event rpcpool.ListEvent) {
	h.countList(ctx, &event)
}

// ReportChanged counts; it is no call's.
func (h *Hook) ReportChanged(ctx context.Context, event rpcpool.ReportEvent) {
	h.countReport(ctx, &event)
}

// RangeSplit puts an event on the span under which the log query was asked for: the query
// itself has none, each of its pieces has.
func (h *Hook) RangeSplit(ctx context.Context, event rpcpool.RangeSplitEvent) {
	h.countSplit(ctx, &event)
	h.markSplit(ctx, &event)
}

// RPCStale puts an event on the span of the call that passes the RPC over.
func (h *Hook) RPCStale(ctx context.Context, event rpcpool.StaleEvent) {
	h.countStale(ctx, &event)
	h.markStale(ctx, &event)
}

// ForkSeen puts an event on the span of the call whose answer showed the fork.
func (h *Hook) ForkSeen(ctx context.Context, event rpcpool.ForkEvent) {
	h.countFork(ctx, &event)
	h.markFork(ctx, &event)
}
