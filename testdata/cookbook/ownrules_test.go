package cookbook

import (
	"errors"
	"strings"
	"testing"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

func ownRulesRecipe(cfg rpcpool.Config) rpcpool.Config {
	//recipe: An unknown error text
	return cfg
}

// The rule has its wording fail over, for its methods and its code alone; without the rule
// that wording is the caller's.
func TestOwnRules(t *testing.T) {
	for _, test := range []struct {
		method string
		code   int
		words  string
		rules  bool
		asked  string
	}{
		{"eth_call", -32099, "Lost a shard: 7 of 8", true, "[acme p eth_call good p eth_call]"},
		{"eth_call", -32099, "Lost a shard: 7 of 8", false, "[acme p eth_call]"},
		{"eth_feeHistory", -32099, "Lost a shard: 7 of 8", true, "[acme p eth_feeHistory]"},
		{"eth_call", 3, "execution reverted: lost a shard", true, "[acme p eth_call]"},
	} {
		inWorld(t, func(t *testing.T, world *rpcpooltest.World) {
			world.List("1", world.Node("acme", rpcpooltest.Error(test.code, test.words)), world.Node("good", rpcpooltest.Result("0x1")))
			cfg := world.Config()
			if test.rules {
				cfg = ownRulesRecipe(cfg)
			}
			pool := newPool(t, cfg)
			_, err := pool.Chain("1").Call(t.Context(), test.method)
			var said *rpcpool.RPCError
			if asked := asked(world); asked != test.asked || errors.As(err, &said) == strings.Contains(asked, "good") {
				t.Errorf("%+v: %v; asked were %s", test, err, asked)
			}
		})
	}
}
