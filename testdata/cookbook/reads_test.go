package cookbook

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

const getReserves = "0x0902f1ac"

func nonceRecipe(ctx context.Context, pool *rpcpool.Pool, use func(string)) error {
	//recipe: A nonce
	use(nonce)
	return err
}

// The nonce is never that of an RPC that lags; where nobody else is left there is none.
func TestNonce(t *testing.T) {
	inWorld(t, func(t *testing.T, world *rpcpooltest.World) {
		chain := rpcpooltest.NewEVM(8453, 1000) // a nonce is the number of its block
		good := world.Node("good", chain.Serve())
		world.List("8453", world.Node("lags", chain.Serve(rpcpooltest.Lagging(2))), good, world.Node("lags-too", chain.Serve(rpcpooltest.Lagging(3))))
		pool := newPool(t, world.Config())
		nonce := ""
		if err := nonceRecipe(t.Context(), pool, func(n string) { nonce = n }); err != nil || nonce != "0x3e8" {
			t.Errorf("%s, %v; asked were %s", nonce, err, asked(world))
		}
		good.Script(rpcpooltest.Status(503))
		if err := nonceRecipe(t.Context(), pool, func(string) {}); err == nil || !strings.HasPrefix(err.Error(), "nobody is fresh") {
			t.Errorf("%v; asked were %s", err, asked(world))
		}
	})
}

func pricesRecipe(ctx context.Context, base *rpcpool.Chain, poolA, poolB string, use func(a, b string)) error {
	//recipe: Prices of one block
	use(string(a), string(b))
	return err
}

// Both prices are of one block although a new one comes and the RPC that gave the first fails.
func TestPricesOfOneBlock(t *testing.T) {
	inWorld(t, func(t *testing.T, world *rpcpooltest.World) {
		chain := rpcpooltest.NewEVM(8453, 1000) // a price is the hash of its block
		first := rpcpooltest.Handle(func(request rpcpooltest.Request) rpcpooltest.Reply {
			defer chain.Mine(1)
			return chain.Answer(request)
		}).Method("eth_call").Times(1)
		world.List("8453", world.Node("r1", first, rpcpooltest.Status(500).Method("eth_call"), chain.Serve()), world.Node("r2", chain.Serve()))
		pool := newPool(t, world.Config())
		err := pricesRecipe(t.Context(), pool.Chain("8453"), account, account, func(a, b string) {
			if a != b || !strings.Contains(a, strings.TrimPrefix(chain.Hash(1000), "0x")) {
				t.Errorf("%s, %s", a, b)
			}
		})
		if reads := asked(world); err != nil || !strings.HasSuffix(reads, "r1 p eth_call r1 p eth_call r2 p eth_call]") {
			t.Errorf("%v; asked were %s", err, reads)
		}
	})
}

func operatorsRecipe(ctx context.Context, base *rpcpool.Chain) error {
	//recipe: Two operators must agree
	return err
}

// Operators who agree are believed, and where one lies nobody is.
func TestOperatorsMustAgree(t *testing.T) {
	for _, lies := range []bool{false, true} {
		inWorld(t, func(t *testing.T, world *rpcpooltest.World) {
			chain := rpcpooltest.NewEVM(8453, 1000)
			second := []rpcpooltest.Reply{chain.Serve()}
			if lies {
				second = []rpcpooltest.Reply{rpcpooltest.Result("0xffff").Method("eth_getBalance"), chain.Serve()}
			}
			world.List("8453", world.NodeAt("r1", "https://one.example.com/key-1", chain.Serve()),
				world.NodeAt("r2", "https://two.example.com/key-2", chain.Serve()), world.NodeAt("r3", "https://rpc.example.org/key-3", second...))
			pool := newPool(t, world.Config())
			err := operatorsRecipe(t.Context(), pool.Chain("8453"))
			var split *rpcpool.QuorumError
			if errors.As(err, &split) != lies || err != nil && !lies {
				t.Errorf("%v; asked were %s", err, asked(world))
			}
			if !strings.Contains(asked(world), "r3 p eth_getBalance") {
				t.Errorf("one operator is asked twice: %s", asked(world))
			}
		})
	}
}

func manyRecipe(ctx context.Context, base *rpcpool.Chain, use func([]string)) error {
	//recipe: Many reads at once
	use(balances)
	return nil
}

// All elements have their results, and the error of one that failed names it.
func TestManyReads(t *testing.T) {
	for _, fails := range []bool{false, true} {
		inWorld(t, func(t *testing.T, world *rpcpooltest.World) {
			world.List("8453", world.Node("r1", rpcpooltest.Handle(func(request rpcpooltest.Request) rpcpooltest.Reply {
				var of string
				if err := request.Param(0, &of); err != nil || fails && strings.HasSuffix(of, "05") {
					return rpcpooltest.Error(3, "execution reverted")
				}
				return rpcpooltest.Result(of[len(of)-2:])
			})))
			pool := newPool(t, world.Config())
			err := manyRecipe(t.Context(), pool.Chain("8453"), func(balances []string) {
				for i, balance := range balances {
					if balance != fmt.Sprintf("%02x", i+1) {
						t.Errorf("element %d has %s", i, balance)
					}
				}
			})
			if fails && (err == nil || !strings.HasPrefix(err.Error(), "element 4: ")) || !fails && err != nil {
				t.Error(err)
			}
		})
	}
}

func scanRecipe(ctx context.Context, base *rpcpool.Chain, use func(*rpcpool.BudgetError, *rpcpool.LogsError)) error {
	//recipe: A budget for a scan
	use(spent, stopped)
	return err
}

// A scan that outlasts its budget ends when that does, and says where to go on.
func TestScan(t *testing.T) {
	inWorld(t, func(t *testing.T, world *rpcpooltest.World) {
		world.List("8453", world.Node("r1", rpcpooltest.Result(fmt.Sprintf("0x%x", 40_500_000)).Method("eth_blockNumber"),
			rpcpooltest.Result([]any{}).Delay(14*time.Second)))
		pool := newPool(t, world.Config())
		began := time.Now()
		err := scanRecipe(t.Context(), pool.Chain("8453"), func(spent *rpcpool.BudgetError, stopped *rpcpool.LogsError) {
			if spent == nil || spent.Ran != "time" || stopped == nil || stopped.NextBlock < 40_300_000 {
				t.Errorf("%+v, %+v", spent, stopped)
			}
		})
		if err == nil || time.Since(began) != 10*time.Minute {
			t.Errorf("%v, after %v", err, time.Since(began))
		}
	})
}

func quickRecipe(ctx context.Context, pool *rpcpool.Pool, poolAddress string) error {
	//recipe: An answer within two seconds
	return err
}

// A second RPC answers while the first hangs; if both do, that is known after two seconds.
func TestWithinTwoSeconds(t *testing.T) {
	for took, second := range map[time.Duration]rpcpooltest.Reply{
		300 * time.Millisecond: rpcpooltest.Result("0x1"),
		2 * time.Second:        rpcpooltest.Hang(),
	} {
		inWorld(t, func(t *testing.T, world *rpcpooltest.World) {
			world.List("8453", world.Node("r1", rpcpooltest.Hang()), world.Node("r2", second))
			pool := newPool(t, world.Config())
			began := time.Now()
			err := quickRecipe(t.Context(), pool, account)
			if late := took > time.Second; time.Since(began) != took || late != errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v after %v; asked were %s", err, time.Since(began), asked(world))
			}
		})
	}
}
