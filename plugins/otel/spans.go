package rpcpoolotel

import (
	"context"
	"math"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/bomzrpc/rpcpool"
)

// callKey has the span of a call in its context. Another hook may put a span of its own over
// it, and a call made within a Run of another has a context of that one, so that
// trace.SpanFromContext isn't enough.
type callKey struct{ hook *Hook }

// attemptKey has the span of an attempt in its context.
type attemptKey struct{ hook *Hook }

func (h *Hook) callSpan(ctx context.Context) trace.Span { return spanUnder(ctx, callKey{h}) }

// spanUnder gives the span that a context has under a key; one that records nothing where
// there is none.
func spanUnder(ctx context.Context, key any) trace.Span {
	if span, ok := ctx.Value(key).(trace.Span); ok {
		return span
	}
	return trace.SpanFromContext(context.Background())
}

// spanName is the method, which the conventions want; without one it is what made the call.
func (h *Hook) spanName(kind rpcpool.CallKind, method string) string {
	switch {
	case method == "":
		return string(kind)
	case h.methods[method]:
		return method
	}
	return "jsonrpc"
}

func (h *Hook) startCallSpan(ctx context.Context, start *rpcpool.CallStart) context.Context {
	if h.tracer == nil {
		return ctx
	}
	attrs := make([]attribute.KeyValue, 0, 8)
	attrs = h.withRequest(attrs, start.Kind, start.Method)
	attrs = h.withOriginal(attrs, start.Method)
	attrs = withLabels(attrs, start.ChainLabels)
	attrs = append(attrs, keyKind.String(string(start.Kind)))
	kind := trace.SpanKindClient
	if start.Kind == rpcpool.KindBatch {
		attrs = append(attrs, keyBatchSize.Int(start.Elements))
		kind = trace.SpanKindInternal // each element is a call of its own
	}
	ctx, span := h.tracer.Start(ctx, h.spanName(start.Kind, start.Method), trace.WithSpanKind(kind), trace.WithAttributes(attrs...))
	return context.WithValue(ctx, callKey{h}, span)
}

func (h *Hook) endCallSpan(ctx context.Context, end *rpcpool.CallEnd) {
	span := h.callSpan(ctx)
	if span.IsRecording() {
		attrs := make([]attribute.KeyValue, 0, 4)
		attrs = append(attrs, keyResult.String(string(end.Result)))
		if end.Kind != rpcpool.KindBatch {
			attrs = append(attrs, keyAttempts.Int(end.Attempts))
		}
		if end.Hedged {
			attrs = append(attrs, keyCallHedged.Bool(true))
		}
		failed := callError(end)
		if failed != "" {
			span.SetStatus(codes.Error, "")
		}
		span.SetAttributes(withError(attrs, failed)...)
	}
	span.End()
}

func (h *Hook) startAttemptSpan(ctx context.Context, start *rpcpool.AttemptStart) context.Context {
	if h.tracer == nil {
		return ctx
	}
	attrs := make([]attribute.KeyValue, 0, 12)
	attrs = h.withRequest(attrs, start.Kind, start.Method)
	attrs = h.withOriginal(attrs, start.Method)
	attrs = withServer(attrs, start.RPC)
	attrs = withLabels(attrs, start.ChainLabels)
	attrs = append(attrs, keyRPC.String(start.RPC), keyProxy.String(start.Proxy), keyNumber.Int(start.Number))
	if start.Hedged {
		attrs = append(attrs, keyHedged.Bool(true))
	}
	if start.Question {
		attrs = append(attrs, keyQuestion.Bool(true))
	}
	name := "attempt " + h.spanName(start.Kind, start.Method)
	ctx, span := h.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attrs...))
	return context.WithValue(ctx, attemptKey{h}, span)
}

func (h *Hook) endAttemptSpan(ctx context.Context, end *rpcpool.AttemptEnd) {
	span := spanUnder(ctx, attemptKey{h})
	if span.IsRecording() {
		attrs := make([]attribute.KeyValue, 0, 4)
		attrs = withFailure(attrs, end.Verdict, end.Class)
		if end.Bytes > 0 {
			attrs = append(attrs, keyBytes.Int(end.Bytes))
		}
		failed := attemptError(end)
		switch {
		case failed != "":
			span.SetStatus(codes.Error, end.Detail)
		case end.Verdict != rpcpool.VerdictOK:
			attrs = append(attrs, keyDetail.String(end.Detail))
		}
		span.SetAttributes(withError(attrs, failed)...)
	}
	span.End()
}

func (h *Hook) markCooldown(ctx context.Context, event *rpcpool.CooldownEvent) {
	span := h.callSpan(ctx)
	if !span.IsRecording() {
		return
	}
	attrs := withServer(make([]attribute.KeyValue, 0, 8), event.RPC)
	attrs = append(attrs, keyRPC.String(event.RPC), keyCooldown.String(string(event.Change)), keyFailures.Int(event.FailuresInRow))
	attrs = withFailure(attrs, event.Verdict, event.Class)
	if !event.Until.IsZero() {
		attrs = append(attrs, keyUntil.String(event.Until.UTC().Format(time.RFC3339Nano)))
	}
	span.AddEvent("rpcpool.cooldown", trace.WithAttributes(attrs...))
}

func (h *Hook) markSplit(ctx context.Context, event *rpcpool.RangeSplitEvent) {
	span := trace.SpanFromContext(ctx)
	if h.tracer == nil || !span.IsRecording() {
		return
	}
	span.AddEvent("rpcpool.range_split", trace.WithAttributes(
		keyChain.String(event.Chain), number(keyFrom, event.From), number(keyTo, event.To),
		number(keySpan, event.Span), number(keyNewSpan, event.NewSpan), keyCause.String(string(event.Cause)),
	))
}

func (h *Hook) markStale(ctx context.Context, event *rpcpool.StaleEvent) {
	span := h.callSpan(ctx)
	if !span.IsRecording() {
		return
	}
	attrs := withServer(make([]attribute.KeyValue, 0, 8), event.RPC)
	attrs = append(attrs, keyRPC.String(event.RPC), number(keyHead, event.Head),
		number(keyHighWater, event.HighWater), number(keyLag, event.Lag), keyEjected.Bool(event.Ejected))
	span.AddEvent("rpcpool.stale", trace.WithAttributes(attrs...))
}

func (h *Hook) markFork(ctx context.Context, event *rpcpool.ForkEvent) {
	span := h.callSpan(ctx)
	if !span.IsRecording() {
		return
	}
	attrs := withServer(make([]attribute.KeyValue, 0, 8), event.RPC)
	attrs = append(attrs, keyRPC.String(event.RPC), keyForkKind.String(string(event.Kind)))
	if event.Other != "" {
		attrs = append(attrs, keyForkOther.String(event.Other))
	}
	if event.Block > 0 {
		attrs = append(attrs, number(keyBlock, event.Block))
	}
	span.AddEvent("rpcpool.fork", trace.WithAttributes(attrs...))
}

// number gives a block's number, or a number of blocks, as the signed ones that attributes
// and gauges have.
func number(key attribute.Key, n uint64) attribute.KeyValue { return key.Int64(signed(n)) }

func signed(n uint64) int64 { return int64(min(n, math.MaxInt64)) }
