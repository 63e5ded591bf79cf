package rpcpoolotel_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/bomzrpc/rpcpool"
	rpcpoolotel "github.com/bomzrpc/rpcpool/plugins/otel"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// watched is a pool in a world of its own, whose spans and metrics are kept.
type watched struct {
	*rpcpooltest.World
	pool   *rpcpool.Pool
	hook   *rpcpoolotel.Hook
	spans  *tracetest.InMemoryExporter
	reader *metric.ManualReader
	tracer trace.Tracer // of the program itself
}

// inWorld runs a test in a bubble, with a world in memory.
func inWorld(t *testing.T, test func(t *testing.T, w *watched)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &watched{World: rpcpooltest.New(t), spans: tracetest.NewInMemoryExporter(), reader: metric.NewManualReader()}
		tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(w.spans))
		w.tracer = tracers.Tracer("bot")
		w.hook = rpcpoolotel.New(
			rpcpoolotel.WithTracerProvider(tracers),
			rpcpoolotel.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(w.reader))),
		)
		test(t, w)
	})
}

// open makes the pool of what the world has by now.
func (w *watched) open(t *testing.T, change ...func(*rpcpool.Config)) *rpcpool.Pool {
	t.Helper()
	cfg := w.Config()
	cfg.Logger, cfg.Hooks = slog.New(slog.DiscardHandler), []rpcpool.Hook{w.hook}
	for _, each := range change {
		each(&cfg)
	}
	pool, err := rpcpool.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = pool.Close() })
	w.pool = pool
	return pool
}

// asked counts the requests of a method that reached RPCs.
func (w *watched) asked(method string) (n int) {
	for _, line := range w.Requests() {
		if strings.HasSuffix(line, " "+method) {
			n++
		}
	}
	return n
}

// tree gives the spans as lines, indented by depth: name, status, error.type, and the events.
func (w *watched) tree() (lines []string) {
	spans := w.spans.GetSpans() // in the order of their ends
	slices.SortStableFunc(spans, func(a, b tracetest.SpanStub) int { return a.StartTime.Compare(b.StartTime) })
	known := map[trace.SpanID]bool{}
	for i := range spans {
		known[spans[i].SpanContext.SpanID()] = true
	}
	var grow func(under trace.SpanID, depth string)
	grow = func(under trace.SpanID, depth string) {
		for i := range spans {
			parent := spans[i].Parent.SpanID()
			if !known[parent] {
				parent = trace.SpanID{}
			}
			if parent != under {
				continue
			}
			lines = append(lines, depth+inShort(&spans[i]))
			for _, event := range spans[i].Events {
				lines = append(lines, depth+"  * "+eventInShort(event))
			}
			grow(spans[i].SpanContext.SpanID(), depth+"  ")
		}
	}
	grow(trace.SpanID{}, "")
	return lines
}

func inShort(span *tracetest.SpanStub) string {
	line := span.Name
	for _, key := range []attribute.Key{"server.address", "rpcpool.call.result", "rpcpool.verdict", "error.type"} {
		if value := valueOf(span.Attributes, key); value != "" {
			line += " " + value
		}
	}
	if span.Status.Code != codes.Unset {
		line += " " + span.Status.Code.String()
	}
	return line
}

func eventInShort(event sdktrace.Event) string {
	line := event.Name
	for _, attr := range event.Attributes {
		switch attr.Key {
		case "server.address", "rpcpool.cooldown.change", "rpcpool.range.span", "rpcpool.range.new_span", "rpcpool.range.cause",
			"rpcpool.rpc.lag", "rpcpool.rpc.ejected", "rpcpool.fork.kind":
			line += " " + attr.Value.String()
		}
	}
	return line
}

func valueOf(attrs []attribute.KeyValue, key attribute.Key) string {
	for _, attr := range attrs {
		if attr.Key == key {
			return attr.Value.String()
		}
	}
	return ""
}

// attributesOf writes attributes as a map.
func attributesOf(attrs []attribute.KeyValue) map[string]string {
	all := map[string]string{}
	for _, attr := range attrs {
		all[string(attr.Key)] = attr.Value.String()
	}
	return all
}

// one gives the only span of a name.
func (w *watched) one(t *testing.T, name string) tracetest.SpanStub {
	t.Helper()
	var found []tracetest.SpanStub
	for _, span := range w.spans.GetSpans() {
		if span.Name == name {
			found = append(found, span)
		}
	}
	require.Len(t, found, 1, name)
	return found[0]
}

// collect gives all metrics by name.
func (w *watched) collect(t *testing.T) map[string]metricdata.Metrics {
	t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(t, w.reader.Collect(context.Background(), &all))
	byName := map[string]metricdata.Metrics{}
	for _, scope := range all.ScopeMetrics {
		require.Equal(t, "github.com/bomzrpc/rpcpool/plugins/otel", scope.Scope.Name)
		for _, m := range scope.Metrics {
			byName[m.Name] = m
		}
	}
	return byName
}

// counts gives a metric's values, or a histogram's counts, by the values of some attributes;
// those that have the same are added up.
func (w *watched) counts(t *testing.T, name string, by ...attribute.Key) map[string]int64 {
	t.Helper()
	counts := map[string]int64{}
	add := func(set attribute.Set, n int64) {
		var values []string
		for _, key := range by {
			if value, ok := set.Value(key); ok {
				values = append(values, value.String())
			}
		}
		counts[strings.Join(values, " ")] += n
	}
	switch data := w.collect(t)[name].Data.(type) {
	case metricdata.Sum[int64]:
		for _, point := range data.DataPoints {
			add(point.Attributes, point.Value)
		}
	case metricdata.Gauge[int64]:
		for _, point := range data.DataPoints {
			add(point.Attributes, point.Value)
		}
	case metricdata.Histogram[float64]:
		for _, point := range data.DataPoints {
			add(point.Attributes, int64(point.Count))
		}
	case nil:
	default:
		require.Fail(t, fmt.Sprintf("%s is a %T", name, data))
	}
	return counts
}

// latest reads the newest state, so that freshness counts.
func latest(t *testing.T, chain *rpcpool.Chain) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := chain.Call(ctx, "eth_getBalance", "0x4200000000000000000000000000000000000006", "latest")
	require.NoError(t, err)
}
