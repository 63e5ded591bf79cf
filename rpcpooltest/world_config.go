package rpcpooltest

import (
	"log/slog"
	"os"

	"github.com/bomzrpc/rpcpool"
)

// Config gives the configuration for a pool in this world: its proxies, its pool
// API, its dialer and certificates, a cache folder of its own, and a logger that
// keeps silent. Everything else is at its default. Change what the test needs.
func (w *World) Config() rpcpool.Config {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cacheDir == "" {
		w.cacheDir = must(os.MkdirTemp("", "rpcpooltest-"))
		w.ownsCache = true
	}
	cfg := rpcpool.Config{
		APIURL:      w.Pool.URL(),
		APIKey:      w.Pool.Key(),
		CacheDir:    w.cacheDir,
		Logger:      slog.New(slog.DiscardHandler),
		DialContext: w.Network.DialContext,
		RootCAs:     w.Network.RootCAs(),
	}
	for _, p := range w.proxies {
		cfg.Proxies = append(cfg.Proxies, p.URL())
	}
	return cfg
}
