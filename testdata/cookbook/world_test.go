package cookbook

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

const account = "0x4200000000000000000000000000000000000006"

// inWorld runs a test in a bubble, with a world in memory and a proxy "p".
func inWorld(t *testing.T, test func(t *testing.T, world *rpcpooltest.World)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		world := rpcpooltest.New(t)
		world.Proxy("p")
		test(t, world)
	})
}

// newPool makes a pool that ends with the test.
func newPool(t *testing.T, cfg rpcpool.Config) *rpcpool.Pool {
	t.Helper()
	pool, err := rpcpool.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pool.Close() })
	return pool
}

// asked tells which nodes were asked by which proxy for what.
func asked(world *rpcpooltest.World) string { return fmt.Sprint(world.Requests()) }
