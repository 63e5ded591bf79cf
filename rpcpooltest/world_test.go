package rpcpooltest_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// A pool lives in a world inside a bubble: a cooldown of a minute passes at once,
// and at the end nothing is left, or the bubble would not end.
func TestWorldInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world := rpcpooltest.New(t)
		world.Proxy("p1")
		r1 := world.NodeAt("r1", "https://r1.test/key", rpcpooltest.Status(500).Times(1))
		world.List("8453", r1)
		pool, err := rpcpool.New(world.Config())
		require.NoError(t, err)
		defer func() { assert.NoError(t, pool.Close()) }()

		_, err = pool.Chain("8453").Call(t.Context(), "eth_blockNumber")
		var none *rpcpool.NoHealthyRPCError
		require.ErrorAs(t, err, &none)
		time.Sleep(61 * time.Second)
		_, err = pool.Chain("8453").Call(t.Context(), "eth_blockNumber")
		require.NoError(t, err)
		assert.Equal(t, []string{"r1 p1 eth_blockNumber", "r1 p1 eth_blockNumber"}, world.Requests())
		require.Len(t, world.Pool.Reports(), 1)
		assert.Equal(t, "eip155:8453", world.Pool.Reports()[0].Chain)
		assert.Equal(t, r1.URL(), world.Pool.Reports()[0].URL)
	})
}

// The same world works over real connections.
func TestWorldOnLoopback(t *testing.T) {
	world := rpcpooltest.NewWorld(rpcpooltest.NewLoopbackNetwork())
	defer func() { assert.NoError(t, world.Close()) }()
	p1 := world.Proxy("p1", rpcpooltest.ProxyRefuse())
	world.ProxyAt("p2", "https://user:word@p2.test:3129")
	world.List("8453", world.NodeAt("r1", "https://r1.test/key", rpcpooltest.Reset()), world.Node("r2"))
	cfg := world.Config()
	pool, err := rpcpool.New(cfg)
	require.NoError(t, err)
	_, err = pool.Chain("8453").Call(t.Context(), "eth_blockNumber")
	require.NoError(t, err)
	assert.Equal(t, []string{"- p1 -", "r1 p2 eth_blockNumber", "r2 p2 eth_blockNumber"}, world.Requests())
	assert.NotEmpty(t, world.Network.RealAddr(p1.Addr()))
	require.NoError(t, pool.Close())
	require.NoError(t, world.Close())
	_, err = os.Stat(cfg.CacheDir)
	assert.ErrorIs(t, err, os.ErrNotExist, "the world's own cache folder goes with it")
}

// fakeT records what a world says about a client.
type fakeT struct {
	*testing.T
	errors   []string
	cleanups []func()
}

func (f *fakeT) Errorf(format string, args ...any) {
	f.errors = append(f.errors, fmt.Sprintf(format, args...))
}
func (f *fakeT) Cleanup(end func()) { f.cleanups = append(f.cleanups, end) }

// A client that breaks a rule fails the test, at its end and on its goroutine.
func TestWorldFailsTheTestForBreaches(t *testing.T) {
	fake := &fakeT{T: t}
	world := rpcpooltest.New(fake)
	node := world.Node("r1")
	response, err := node.Client().Get(node.URL())
	require.NoError(t, err)
	_ = response.Body.Close()
	assert.Empty(t, fake.errors)
	for _, end := range fake.cleanups {
		end()
	}
	require.Len(t, fake.errors, 1)
	assert.Contains(t, fake.errors[0], "GET instead of POST")
}

// Secrets are everything that a bot must not show.
func TestWorldSecrets(t *testing.T) {
	world := rpcpooltest.New(t)
	world.Proxy("p1")
	world.ProxyAt("p2", "socks5://p2.test:1080")
	world.NodeAt("r1", "http://r1.test/v2/secret?token=hidden")
	world.NodeAt("r2", "http://r2.test")
	assert.ElementsMatch(t, []string{
		world.Pool.Key(), "user-p1", "word-p1", "v2/secret", "token=hidden", "hidden",
	}, world.Secrets())
}

// Many calls at once, while proxies and nodes come and go, leave no connection
// and no dial behind.
func TestWorldUnderManyCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world := rpcpooltest.New(t)
		world.Proxy("p1", rpcpooltest.ProxyCarry().Times(30), rpcpooltest.ProxyRefuse().Times(1))
		world.ProxyAt("p2", "http://user:word@p2.test:3128")
		chain := rpcpooltest.NewEVM(8453, 1000)
		world.List("8453", world.Node("r1", chain.Serve()), world.NodeAt("r2", "https://r2.test/key",
			rpcpooltest.Reset().Times(5), chain.Serve().Delay(time.Second)), world.Node("r3", chain.Serve()))
		cfg := world.Config()
		cfg.Mode = rpcpool.RoundRobin
		pool, err := rpcpool.New(cfg)
		require.NoError(t, err)
		var workers sync.WaitGroup
		for range 20 {
			workers.Go(func() {
				for range 20 {
					head, err := rpcpool.CallAs[string](context.Background(), pool.Chain("8453"), "eth_blockNumber")
					assert.NoError(t, err)
					assert.Equal(t, "0x3e8", head)
				}
			})
		}
		workers.Wait()
		served := map[string]bool{}
		for _, e := range world.Network.Exchanges() {
			served[e.Node+e.Proxy] = served[e.Node+e.Proxy] || e.Method != ""
		}
		// r2 may be cooling by the time that p2 is in use: which of its calls are
		// reset together is left to chance.
		assert.True(t, served["r1p2"] && served["r3p2"], "%v", served)
		require.NoError(t, pool.Close())
		synctest.Wait()
		assert.Zero(t, world.Network.OpenConns())
		assert.Zero(t, world.Network.PendingDials())
	})
}
