package rpcpoolotel_test

import (
	"context"
	"log"

	"github.com/bomzrpc/rpcpool"
	rpcpoolotel "github.com/bomzrpc/rpcpool/plugins/otel"
)

// The providers are those that the program has set with otel.SetTracerProvider and
// otel.SetMeterProvider before.
func Example() {
	hook := rpcpoolotel.New(rpcpoolotel.WithMethods("acme_getQuote"))
	pool, err := rpcpool.New(rpcpool.Config{
		Proxies: []string{"socks5://user:password@proxy.example.com:1080"},
		Hooks:   []rpcpool.Hook{hook},
	})
	if err != nil {
		log.Print(err)
		return
	}
	defer pool.Close()

	observed, err := hook.Observe(pool)
	if err != nil {
		log.Print(err)
		return
	}
	defer func() { _ = observed.Unregister() }() // before Close

	// A span "eth_blockNumber" under the one in ctx, with a child for each attempt.
	_, _ = pool.Chain("8453").Call(context.Background(), "eth_blockNumber")
}
