package cookbook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

func oldStateRecipe(ctx context.Context, pool *rpcpool.Pool, account string, use func(json.RawMessage)) error {
	//recipe: Old state
	use(balance)
	return err
}

// Only archive RPCs are asked for old state; where there is none the error says so.
func TestOldState(t *testing.T) {
	none, recent, full := "none", "recent", "full"
	for _, has := range []*string{&full, &recent} {
		inWorld(t, func(t *testing.T, world *rpcpooltest.World) {
			chain := rpcpooltest.NewEVM(1, 20_000)
			plain := rpcpooltest.List(world.Node("plain", chain.Serve(rpcpooltest.PrunedBelow(19_900))))
			other := rpcpooltest.List(world.Node("other", chain.Serve()))
			plain.Caps.Archive, other.Caps.Archive = &none, has
			world.Pool.Lists("1", rpcpooltest.PoolList("eip155:1", plain, other))
			pool := newPool(t, world.Config())
			var balance string
			err := oldStateRecipe(t.Context(), pool, account, func(b json.RawMessage) { balance = string(b) })
			asked := asked(world)
			if has == &full {
				if err != nil || balance != `"0x10"` || asked != "[other p eth_getBalance]" { // a balance is its block's number
					t.Errorf("%s, %v; asked were %s", balance, err, asked)
				}
				return
			}
			var incapable *rpcpool.NoCapableRPCError
			if !errors.As(err, &incapable) || !strings.HasPrefix(err.Error(), "none of 2 RPCs has old state") || asked != "[]" {
				t.Errorf("%v; asked were %s", err, asked)
			}
		})
	}
}
