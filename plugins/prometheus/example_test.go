package rpcpoolprom_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/bomzrpc/rpcpool"
	rpcpoolprom "github.com/bomzrpc/rpcpool/plugins/prometheus"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// A bot serves its metrics for Prometheus to scrape. Here the better of two RPCs, in memory,
// is down, and the scrape is made by hand.
func Example() {
	world := rpcpooltest.NewWorld(rpcpooltest.NewMemoryNetwork())
	defer world.Close()
	world.Proxy("p1")
	world.List("8453", world.Node("down", rpcpooltest.Status(503)), world.Node("good", rpcpooltest.Result("0x2a")))

	metrics := rpcpoolprom.New(rpcpoolprom.WithMethods("eth_call", "eth_getLogs", "eth_sendRawTransaction"))
	cfg := world.Config() // a bot's own has Proxies, APIURL and APIKey
	cfg.Logger = slog.New(slog.DiscardHandler)
	cfg.Hooks = []rpcpool.Hook{metrics}
	pool, err := rpcpool.New(cfg)
	if err != nil {
		panic(err)
	}
	defer pool.Close()
	metrics.Watch(pool)
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics)
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))

	quote, err := rpcpool.CallAs[string](context.Background(), pool.Chain("8453"), "eth_call")
	fmt.Println(quote, err)
	scrape := httptest.NewRecorder()
	mux.ServeHTTP(scrape, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	for lines := bufio.NewScanner(scrape.Body); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "rpcpool_attempts_total{") {
			fmt.Println(lines.Text())
		}
	}
	// Output:
	// 0x2a <nil>
	// rpcpool_attempts_total{chain="8453",policy="",verdict="ok"} 1
	// rpcpool_attempts_total{chain="8453",policy="",verdict="rpc_fail"} 1
}
