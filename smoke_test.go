package rpcpool_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

func TestSmoke(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := rpcpooltest.New(t)
		w.Proxy("p1")
		w.Node("r1")
		w.List("8453")
		pool, err := rpcpool.New(w.Config())
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		res, err := pool.Chain("8453").Call(ctx, "eth_blockNumber")
		t.Log(string(res), err)
	})
}
