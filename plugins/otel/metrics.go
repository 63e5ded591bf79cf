package rpcpoolotel

import (
	"context"
	"strconv"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/semconv/v1.43.0/rpcconv"

	"github.com/bomzrpc/rpcpool"
)

// measures are the instruments that events write to.
type measures struct {
	calls     metric.Float64Histogram
	active    metric.Int64UpDownCounter
	attempts  metric.Int64Counter
	durations metric.Float64Histogram
	cooldowns metric.Int64Counter
	proxies   metric.Int64Counter
	fetches   metric.Int64Counter
	reports   metric.Int64Counter
	splits    metric.Int64Counter
	stale     metric.Int64Counter
	forks     metric.Int64Counter
}

// secondsBounds are the bounds that the conventions have for calls, for attempts too.
var secondsBounds = []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}

func newMeasures(meter metric.Meter) (m measures) {
	counter := func(name, unit, description string) metric.Int64Counter {
		c, err := meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description))
		return orNone[metric.Int64Counter](c, err, noop.Int64Counter{})
	}
	calls, err := rpcconv.NewClientCallDuration(meter)
	m.calls = orNone[metric.Float64Histogram](calls.Inst(), err, noop.Float64Histogram{})
	active, err := meter.Int64UpDownCounter("rpcpool.call.active", metric.WithUnit("{call}"),
		metric.WithDescription("Calls that have begun and haven't ended."))
	m.active = orNone[metric.Int64UpDownCounter](active, err, noop.Int64UpDownCounter{})
	durations, err := meter.Float64Histogram("rpcpool.attempt.duration", metric.WithUnit("s"),
		metric.WithDescription("Duration of requests to RPCs."), metric.WithExplicitBucketBoundaries(secondsBounds...))
	m.durations = orNone[metric.Float64Histogram](durations, err, noop.Float64Histogram{})
	m.attempts = counter("rpcpool.attempts", "{attempt}", "Requests to RPCs that have ended, by what their end means.")
	m.cooldowns = counter("rpcpool.cooldown.changes", "{change}", "Cooldowns of RPCs, and what became of them.")
	m.proxies = counter("rpcpool.proxy.changes", "{change}", "Changes of proxies.")
	m.fetches = counter("rpcpool.list.fetches", "{fetch}", "Requests for lists of RPCs, by where the list in use is from.")
	m.reports = counter("rpcpool.reports", "{report}", "Reports about RPCs, by what became of them.")
	m.splits = counter("rpcpool.range_splits", "{split}", "Pieces of log queries that were asked for again in smaller pieces.")
	m.stale = counter("rpcpool.stale", "{event}", "RPCs that were passed over because of their head.")
	m.forks = counter("rpcpool.forks", "{fork}", "Blocks with two hashes, and chains that went back.")
	return m
}

// orNone gives an instrument, or one that measures nothing where there is an error.
func orNone[I any](instrument I, err error, none I) I {
	if err != nil {
		otel.Handle(err)
		return none
	}
	return instrument
}

func (h *Hook) beginCall(ctx context.Context, start *rpcpool.CallStart) { h.countActive(ctx, start, 1) }

func (h *Hook) countActive(ctx context.Context, start *rpcpool.CallStart, n int64) {
	if start.Kind == rpcpool.KindBatch || !h.active.Enabled(ctx) {
		return // each element is a call
	}
	attrs := h.withHandle(make([]attribute.KeyValue, 0, 3), start.ChainLabels)
	attrs = append(attrs, keyKind.String(string(start.Kind)))
	h.active.Add(ctx, n, metric.WithAttributes(attrs...))
}

func (h *Hook) endCall(ctx context.Context, end *rpcpool.CallEnd) {
	h.countActive(ctx, &end.CallStart, -1)
	if end.Kind == rpcpool.KindBatch || !h.calls.Enabled(ctx) {
		return
	}
	attrs := h.withRequest(make([]attribute.KeyValue, 0, 8), end.Kind, end.Method)
	attrs = h.withHandle(attrs, end.ChainLabels)
	attrs = append(attrs, keyKind.String(string(end.Kind)), keyResult.String(string(end.Result)))
	attrs = withError(attrs, callError(end))
	h.calls.Record(ctx, end.Duration.Seconds(), metric.WithAttributes(attrs...))
}

func (h *Hook) endAttempt(ctx context.Context, end *rpcpool.AttemptEnd) {
	if h.durations.Enabled(ctx) {
		attrs := h.withRPC(make([]attribute.KeyValue, 0, 5), end.ChainLabels, end.RPC)
		attrs = withError(attrs, attemptError(end))
		h.durations.Record(ctx, end.Duration.Seconds(), metric.WithAttributes(attrs...))
	}
	if h.attempts.Enabled(ctx) {
		attrs := h.withRPC(make([]attribute.KeyValue, 0, 8), end.ChainLabels, end.RPC)
		attrs = append(attrs, keyProxy.String(end.Proxy))
		attrs = withFailure(attrs, end.Verdict, end.Class)
		attrs = withError(attrs, attemptError(end))
		h.attempts.Add(ctx, 1, metric.WithAttributes(attrs...))
	}
}

// count counts what happened once.
func count(ctx context.Context, counter metric.Int64Counter, attrs ...attribute.KeyValue) {
	counter.Add(ctx, 1, metric.WithAttributes(attrs...))
}

func (h *Hook) countCooldown(ctx context.Context, event *rpcpool.CooldownEvent) {
	attrs := h.withRPC([]attribute.KeyValue{keyCooldown.String(string(event.Change))}, event.ChainLabels, event.RPC)
	count(ctx, h.cooldowns, withFailure(attrs, event.Verdict, event.Class)...)
}

func (h *Hook) countProxy(ctx context.Context, event *rpcpool.ProxyEvent) {
	count(ctx, h.proxies, keyProxy.String(event.Proxy), keyProxyChange.String(string(event.Change)))
}

func (h *Hook) countList(ctx context.Context, event *rpcpool.ListEvent) {
	failed := ""
	switch {
	case event.StatusCode > 0:
		failed = strconv.Itoa(event.StatusCode)
	case event.Error != "":
		failed = otherMethod // the conventions' word for other errors, too
	}
	attrs := h.withHandle([]attribute.KeyValue{keyListSource.String(string(event.Source))}, event.ChainLabels)
	count(ctx, h.fetches, withError(attrs, failed)...)
}

func (h *Hook) countReport(ctx context.Context, event *rpcpool.ReportEvent) {
	attrs := []attribute.KeyValue{keyReportChange.String(string(event.Change)), keyReportKind.String(event.Kind)}
	count(ctx, h.reports, h.withListed(attrs, event.Chain, event.RPC)...)
}

func (h *Hook) countSplit(ctx context.Context, event *rpcpool.RangeSplitEvent) {
	count(ctx, h.splits, h.withHandle([]attribute.KeyValue{keyCause.String(string(event.Cause))}, event.ChainLabels)...)
}

func (h *Hook) countStale(ctx context.Context, event *rpcpool.StaleEvent) {
	attrs := []attribute.KeyValue{keyEjected.Bool(event.Ejected)}
	count(ctx, h.stale, h.withRPC(attrs, event.ChainLabels, event.RPC)...)
}

func (h *Hook) countFork(ctx context.Context, event *rpcpool.ForkEvent) {
	count(ctx, h.forks, h.withHandle([]attribute.KeyValue{keyForkKind.String(string(event.Kind))}, event.ChainLabels)...)
}
