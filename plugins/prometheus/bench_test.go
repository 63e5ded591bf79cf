package rpcpoolprom_test

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
	rpcpoolprom "github.com/bomzrpc/rpcpool/plugins/prometheus"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// BenchmarkScrape is a scrape of 50 chains with 200 RPCs each, all of which have been asked
// and have failed in every way; the text that Prometheus reads included.
func BenchmarkScrape(b *testing.B) {
	m := rpcpoolprom.New()
	pool := bigPool(b, m, 50, 200)
	useAll(b, m, pool)
	registry := prometheus.NewRegistry()
	require.NoError(b, registry.Register(m))
	b.ReportAllocs()
	for b.Loop() {
		families, err := registry.Gather()
		if err != nil {
			b.Fatal(err)
		}
		encoder := expfmt.NewEncoder(io.Discard, expfmt.NewFormat(expfmt.TypeTextPlain))
		for _, family := range families {
			if err := encoder.Encode(family); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(testutil.CollectAndCount(m)), "metrics")
}

// BenchmarkEvents is what the metrics themselves add to a call of one attempt.
func BenchmarkEvents(b *testing.B) {
	m := rpcpoolprom.New()
	ctx := context.Background()
	labels := rpcpool.ChainLabels{Chain: "8453", Policy: "fresh"}
	start := rpcpool.CallStart{ChainLabels: labels, Kind: rpcpool.KindCall, Method: "eth_call"}
	attempt := rpcpool.AttemptStart{
		ChainLabels: labels, Kind: rpcpool.KindCall, Method: "eth_call",
		RPC: "https://rpc.example.org/***", Proxy: "socks5://***@proxy-a.example.com:1080", Number: 1,
	}
	b.ReportAllocs()
	for b.Loop() {
		of := m.CallStarted(ctx, start)
		m.AttemptEnded(m.AttemptStarted(of, attempt), rpcpool.AttemptEnd{
			AttemptStart: attempt, Verdict: rpcpool.VerdictOK, Bytes: 100, Duration: 40 * time.Millisecond,
		})
		m.CallEnded(of, rpcpool.CallEnd{CallStart: start, Result: rpcpool.ResultOK, Attempts: 1, Duration: 40 * time.Millisecond})
	}
}

// BenchmarkCall is a call over loopback, through a SOCKS5 proxy to a node that answers at
// once, without metrics and with them.
func BenchmarkCall(b *testing.B) {
	for name, hooks := range map[string][]rpcpool.Hook{"off": nil, "on": {rpcpoolprom.New()}} {
		b.Run(name, func(b *testing.B) {
			w := rpcpooltest.NewWorld(rpcpooltest.NewLoopbackNetwork())
			defer w.Close()
			w.Network.SetRecording(false)
			w.Proxy("p1")
			w.List("1", w.Node("r1"))
			cfg := w.Config()
			cfg.Logger, cfg.Hooks = slog.New(slog.DiscardHandler), hooks
			pool, err := rpcpool.New(cfg)
			require.NoError(b, err)
			defer pool.Close()
			chain := pool.Chain("1")
			b.ReportAllocs()
			for b.Loop() {
				if _, err := chain.Call(context.Background(), "eth_chainId"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
