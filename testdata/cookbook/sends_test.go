package cookbook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

//recipe: Send and wait

// A transaction whose answers were all lost is waited for; one that was refused isn't.
func TestSendAndWait(t *testing.T) {
	inWorld(t, func(t *testing.T, world *rpcpooltest.World) {
		chain := rpcpooltest.NewEVM(8453, 1000)
		chain.SetBlockTime(2 * time.Second)
		lost := rpcpooltest.Handle(func(request rpcpooltest.Request) rpcpooltest.Reply {
			chain.Answer(request)
			return rpcpooltest.Reset()
		}).Method("eth_sendRawTransaction")
		world.List("8453", world.Node("r1", lost, chain.Serve()), world.Node("r2", lost, chain.Serve()))
		pool := newPool(t, world.Config())
		raw, err := sendAndWait(t.Context(), pool.Chain("8453"), []byte{2, 7})
		var receipt struct{ TransactionHash string }
		if json.Unmarshal(raw, &receipt) != nil || err != nil || chain.Transactions()[receipt.TransactionHash] != "0x0207" {
			t.Errorf("%s, %v; asked were %s", raw, err, asked(world))
		}
	})
	inWorld(t, func(t *testing.T, world *rpcpooltest.World) {
		world.List("8453", world.Node("r1", rpcpooltest.Error(-32000, "insufficient funds for gas * price + value")))
		pool := newPool(t, world.Config())
		_, err := sendAndWait(t.Context(), pool.Chain("8453"), []byte{2, 7})
		if err == nil || !strings.Contains(err.Error(), "insufficient funds") || asked(world) != "[r1 p eth_sendRawTransaction]" {
			t.Errorf("%v; asked were %s", err, asked(world))
		}
	})
}
