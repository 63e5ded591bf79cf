package cookbook

import (
	"context"
	"errors"
	"testing"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

func solanaRecipe(ctx context.Context, pool *rpcpool.Pool, account, rawTx string) (uint64, string, error) {
	//recipe: Solana
	return balance.Value, signature, err
}

// A balance is read and a transaction sent although the first RPC is behind and breaks off.
// That the transaction was processed already, where its answer was lost, is an error.
func TestSolana(t *testing.T) {
	taken := rpcpooltest.Result("5h6x")
	processed := rpcpooltest.Error(-32002, "Transaction simulation failed: This transaction has already been processed")
	for _, answer := range []rpcpooltest.Reply{taken, processed} {
		inWorld(t, func(t *testing.T, world *rpcpooltest.World) {
			behind := world.Node("behind",
				rpcpooltest.Error(-32005, "Node is behind by 152 slots").Method("getBalance").Times(1), rpcpooltest.Reset().Method("sendTransaction"))
			good := world.Node("good", answer.Method("sendTransaction"),
				rpcpooltest.Result(map[string]any{"context": map[string]any{"slot": 1}, "value": 7}))
			world.List("solana:mainnet", behind, good)
			pool := newPool(t, world.Config())
			balance, signature, err := solanaRecipe(t.Context(), pool, "4Nd1", "AQID")
			if balance != 7 {
				t.Errorf("the balance is %d", balance)
			}
			var said *rpcpool.RPCError
			if lost := errors.As(err, &said) && said.Code == -32002; lost != (signature == "") || !lost && signature != "5h6x" {
				t.Errorf("%q, %v", signature, err)
			}
			sent := good.Requests()[len(good.Requests())-1]
			if string(sent.Params) != `["AQID",{"encoding":"base64","maxRetries":0}]` {
				t.Errorf("sent was %s", sent.Params)
			}
		})
	}
}
