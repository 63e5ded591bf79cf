package rpcpoolprom_test

import (
	"log"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/bomzrpc/rpcpool"
	rpcpoolprom "github.com/bomzrpc/rpcpool/plugins/prometheus"
)

// A bot serves its metrics for Prometheus to scrape.
func Example() {
	metrics := rpcpoolprom.New(rpcpoolprom.WithMethods("eth_call", "eth_getLogs", "eth_sendRawTransaction"))
	pool, err := rpcpool.New(rpcpool.Config{
		Proxies: []string{"socks5://user:password@proxy-a.example.com:1080"},
		APIURL:  "https://pool.example.com",
		APIKey:  "…",
		Hooks:   []rpcpool.Hook{metrics},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	metrics.Watch(pool)

	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics)
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	server := &http.Server{Addr: "127.0.0.1:9100", Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { log.Println(server.ListenAndServe()) }()

	// … pool.Chain("8453").Call(ctx, "eth_blockNumber") …
}
