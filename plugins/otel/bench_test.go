package rpcpoolotel_test

import (
	"context"
	"testing"
	"time"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/bomzrpc/rpcpool"
	rpcpoolotel "github.com/bomzrpc/rpcpool/plugins/otel"
)

// BenchmarkCall is what the hook costs a call that the first RPC answers: two spans and four
// measurements.
func BenchmarkCall(b *testing.B) {
	noTraces, noMetrics := tracenoop.NewTracerProvider(), metricnoop.NewMeterProvider()
	traces := func(sampler sdktrace.Sampler) *sdktrace.TracerProvider {
		return sdktrace.NewTracerProvider(sdktrace.WithSampler(sampler), sdktrace.WithSyncer(discard{}))
	}
	metrics := metric.NewMeterProvider(metric.WithReader(metric.NewManualReader()))
	for _, c := range []struct {
		name string
		opts []rpcpoolotel.Option
	}{
		{"noop", []rpcpoolotel.Option{rpcpoolotel.WithTracerProvider(noTraces), rpcpoolotel.WithMeterProvider(noMetrics)}},
		{"globals that nobody has set", nil},
		{"sdk, metrics", []rpcpoolotel.Option{rpcpoolotel.WithTracerProvider(noTraces), rpcpoolotel.WithMeterProvider(metrics)}},
		{"sdk, traces not sampled", []rpcpoolotel.Option{
			rpcpoolotel.WithTracerProvider(traces(sdktrace.NeverSample())), rpcpoolotel.WithMeterProvider(noMetrics),
		}},
		{"sdk, traces", []rpcpoolotel.Option{
			rpcpoolotel.WithTracerProvider(traces(sdktrace.AlwaysSample())), rpcpoolotel.WithMeterProvider(noMetrics),
		}},
		{"sdk, both", []rpcpoolotel.Option{
			rpcpoolotel.WithTracerProvider(traces(sdktrace.AlwaysSample())), rpcpoolotel.WithMeterProvider(metrics),
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			hook := rpcpoolotel.New(c.opts...)
			b.ReportAllocs()
			for b.Loop() {
				tellCall(hook)
			}
		})
	}
}

// tellCall tells the hook what a pool tells of a call.
func tellCall(hook *rpcpoolotel.Hook) {
	labels := rpcpool.ChainLabels{Chain: "8453"}
	call := rpcpool.CallStart{ChainLabels: labels, Kind: rpcpool.KindCall, Method: "eth_call"}
	attempt := rpcpool.AttemptStart{
		ChainLabels: labels, Kind: rpcpool.KindCall, Method: "eth_call",
		RPC: "https://rpc.example.org/***", Proxy: "socks5://***@proxy.example.com:1080", Number: 1,
	}
	ctx := hook.CallStarted(context.Background(), call)
	in := hook.AttemptStarted(ctx, attempt)
	hook.AttemptEnded(in, rpcpool.AttemptEnd{AttemptStart: attempt, Verdict: rpcpool.VerdictOK, Bytes: 66, Duration: 40 * time.Millisecond})
	hook.CallEnded(ctx, rpcpool.CallEnd{CallStart: call, Result: rpcpool.ResultOK, Attempts: 1, Duration: 41 * time.Millisecond})
}

// discard is an exporter that keeps nothing.
type discard struct{}

func (discard) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }
func (discard) Shutdown(context.Context) error                             { return nil }
