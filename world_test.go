package rpcpool_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// inWorld runs a test in a bubble, with a world of its own in memory.
func inWorld(t *testing.T, test func(t *testing.T, w *rpcpooltest.World)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		test(t, rpcpooltest.New(t))
	})
}

// open makes a pool of the world's configuration, which ends with the test.
func open(t *testing.T, w *rpcpooltest.World, change ...func(*rpcpool.Config)) *rpcpool.Pool {
	t.Helper()
	cfg := w.Config()
	cfg.Logger = slog.New(slog.DiscardHandler)
	for _, each := range change {
		each(&cfg)
	}
	pool, err := rpcpool.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = pool.Close() })
	return pool
}

// within gives a context that ends after so long.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// nothingLeft checks that no dial and no connection to a proxy is left.
func nothingLeft(t *testing.T, w *rpcpooltest.World, proxies ...*rpcpooltest.Proxy) {
	t.Helper()
	synctest.Wait()
	for _, p := range proxies {
		require.Zero(t, w.Network.PendingDials(p.Addr()), "dials that outlive the call")
		require.Zero(t, w.Network.OpenConns(p.Addr()), "connections that outlive the call")
	}
}
