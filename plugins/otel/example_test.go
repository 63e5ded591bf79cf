package rpcpoolotel_test

import (
	"context"
	"fmt"
	"log/slog"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/bomzrpc/rpcpool"
	rpcpoolotel "github.com/bomzrpc/rpcpool/plugins/otel"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// A call is a span, and each attempt one under it. Here spans and metrics are kept in memory,
// and the better of two RPCs, in memory too, is down; without the options they go to the
// providers that the program has set with otel.SetTracerProvider and otel.SetMeterProvider.
func Example() {
	spans, reader := tracetest.NewInMemoryExporter(), metric.NewManualReader()
	hook := rpcpoolotel.New(
		rpcpoolotel.WithMethods("acme_getQuote"),
		rpcpoolotel.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))),
		rpcpoolotel.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(reader))),
	)
	world := rpcpooltest.NewWorld(rpcpooltest.NewMemoryNetwork())
	defer world.Close()
	world.Proxy("p1")
	world.List("8453", world.Node("down", rpcpooltest.Status(503)), world.Node("good", rpcpooltest.Result("0x2a")))
	cfg := world.Config()
	cfg.Logger = slog.New(slog.DiscardHandler)
	cfg.Hooks = []rpcpool.Hook{hook}
	pool, err := rpcpool.New(cfg)
	if err != nil {
		panic(err)
	}
	defer pool.Close()
	observed, err := hook.Observe(pool)
	if err != nil {
		panic(err)
	}
	defer func() { _ = observed.Unregister() }() // before Close

	quote, err := rpcpool.CallAs[string](context.Background(), pool.Chain("8453"), "acme_getQuote")
	fmt.Println(quote, err)
	for _, span := range spans.GetSpans() { // in the order of their ends
		fmt.Println(span.Name, span.Status.Code)
	}
	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		panic(err)
	}
	fmt.Println(all.ScopeMetrics[0].Scope.Name)
	// Output:
	// 0x2a <nil>
	// attempt acme_getQuote Error
	// attempt acme_getQuote Unset
	// acme_getQuote Unset
	// github.com/bomzrpc/rpcpool/plugins/otel
}
