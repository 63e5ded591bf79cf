package rpcpool_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// One RPC that says that the params are wrong isn't all of them: another one may just not
// have the state, or not answer. Then the params may be right.
func TestSnapshotParamsThatOneRefuses(t *testing.T) {
	for _, second := range []rpcpooltest.Reply{rpcpooltest.Error(-32000, "missing trie node 0xaa"), rpcpooltest.Status(500)} {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			w.Proxy("p1")
			evm := rpcpooltest.NewEVM(1, 1000)
			w.List("1",
				w.Node("old", rpcpooltest.Error(-32602, "invalid argument 1: cannot unmarshal object").Method("eth_call"), evm.Serve()),
				w.Node("second", second.Method("eth_call"), evm.Serve()))
			snap, err := open(t, w, func(cfg *rpcpool.Config) { cfg.MaxRounds = 1 }).Chain("1").Snapshot(t.Context(), "latest")
			require.NoError(t, err)
			_, err = snap.Call(t.Context(), "eth_call", map[string]string{"to": "0xaa"})
			var gone *rpcpool.SnapshotError
			require.ErrorAs(t, err, &gone)
			require.Len(t, gone.Attempts, 2)
		})
	}
}

// Rule D2: that an RPC has a block's header, or its logs, says nothing of its state: an
// empty answer of that must be confirmed all the same.
func TestSnapshotProofIsOfItsKind(t *testing.T) {
	for _, other := range []struct {
		method, sent string
		params       []any
	}{
		{"eth_getBlockByNumber", "eth_getBlockByHash", []any{"latest", false}},
		{"eth_getLogs", "eth_getLogs", []any{map[string]string{}}},
	} {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			w.Proxy("p1")
			evm := rpcpooltest.NewEVM(1, 1000)
			w.List("1", w.Node("header", rpcpooltest.Result("0x").Method("eth_call"), evm.Serve()), w.Node("r2", evm.Serve()), w.Node("r3", evm.Serve()))
			snap, err := open(t, w).Chain("1").Snapshot(t.Context(), "latest")
			require.NoError(t, err)
			raw, err := snap.Call(t.Context(), other.method, other.params...)
			require.NoError(t, err)
			require.Contains(t, string(raw), snap.Hash())
			require.Equal(t, 1, requestsOf(w, "header", other.sent))
			raw, err = snap.Call(t.Context(), "eth_call", map[string]string{"to": "0xaa"})
			require.NoError(t, err)
			require.Contains(t, string(raw), snap.Hash(), other.method)
		})
	}
}

// Rule D2: whatever names the block that it is of must name the snapshot's.
func TestSnapshotAnswersOfAnotherBlock(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		evm := rpcpooltest.NewEVM(1, 1000)
		item := func(block uint64, hash string) any {
			return map[string]string{"hash": hash, "blockHash": evm.Hash(block)}
		}
		for _, c := range []struct {
			ref, method, sent string
			params            []any
			other, own        any
		}{
			{"1", "eth_getTransactionByBlockNumberAndIndex", "eth_getTransactionByBlockHashAndIndex", []any{"latest", "0x0"}, item(999, "0x1"), item(1000, "0x2")},
			{"2", "eth_getUncleByBlockNumberAndIndex", "eth_getUncleByBlockHashAndIndex", []any{"latest", "0x0"}, item(999, "0x1"), item(1000, "0x2")},
			{"3", "eth_getBlockByNumber", "eth_getBlockByHash", []any{"latest", false}, map[string]string{"hash": evm.Hash(999)}, map[string]string{"hash": evm.Hash(1000)}},
			{"4", "eth_getLogs", "eth_getLogs", []any{map[string]string{}}, []any{item(1000, "0x1"), item(999, "0x1")}, []any{item(1000, "0x2")}},
			{"5", "eth_getBlockReceipts", "eth_getBlockReceipts", []any{"latest"}, []any{item(999, "0x1")}, []any{item(1000, "0x2")}},
		} {
			if c.ref == "1" {
				w.Proxy("p1")
			}
			wrong := w.Node("wrong"+c.ref, rpcpooltest.Result(c.other).Method(c.sent), evm.Serve())
			w.List(c.ref, wrong, w.Node("right"+c.ref, rpcpooltest.Result(c.own).Method(c.sent), evm.Serve()))
			chain := open(t, w).Chain(c.ref)
			snap, err := chain.Snapshot(t.Context(), "latest")
			require.NoError(t, err)
			raw, err := snap.Call(t.Context(), c.method, c.params...)
			require.NoError(t, err, c.method)
			want, err := json.Marshal(c.own)
			require.NoError(t, err)
			require.JSONEq(t, string(want), string(raw), c.method)
			require.Equal(t, 1, requestsOf(w, wrong.Name(), c.sent), c.method)
			require.False(t, chain.Stats()[0].Cooling, c.method)
		}
	})
}
