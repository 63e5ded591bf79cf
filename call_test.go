package rpcpool_test

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// Params are sent as encoding/json writes them, by position or by name, and raw
// JSON as it is; no params are an empty list.
func TestCallSendsParamsAsGiven(t *testing.T) {
	for name, c := range map[string]struct {
		params []any
		want   string
	}{
		"none":            {nil, `[]`},
		"by position":     {[]any{"0xab", true, nil, 1.5, []int{1}}, `["0xab",true,null,1.5,[1]]`},
		"by name":         {[]any{rpcpool.NamedParams{"a": 1}}, `{"a":1}`},
		"no names":        {[]any{rpcpool.NamedParams(nil)}, `{}`},
		"name and more":   {[]any{rpcpool.NamedParams{"a": 1}, 2}, `[{"a":1},2]`},
		"raw":             {[]any{json.RawMessage(`{"n": 1e400, "big": 9007199254740993}`)}, `[{"n":1e400,"big":9007199254740993}]`},
		"not escaped":     {[]any{"<a&b>"}, `["<a&b>"]`},
		"a nil list":      {[]any{[]string(nil)}, `[null]`},
		"text with lines": {[]any{"a\nb\u2028"}, `["a\nb\u2028"]`},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				w.Proxy("p1")
				r := w.Node("r1")
				w.List("1", r)
				_, err := open(t, w).Chain("1").Call(t.Context(), "some_method", c.params...)
				require.NoError(t, err)
				require.Equal(t, c.want, string(r.Requests()[0].Params))
			})
		})
	}
}

// A request that can't be sent is a clear error, and nothing is asked of anybody.
func TestCallRefusesWhatCantBeSent(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		pool := open(t, w)
		var request *rpcpool.RequestError
		for _, params := range [][]any{{func() {}}, {math.Inf(1)}, {json.RawMessage(`{`)}, {rpcpool.NamedParams{"a": make(chan int)}}} {
			_, err := pool.Chain("1").Call(t.Context(), "eth_call", params...)
			require.ErrorAs(t, err, &request)
			require.Equal(t, "eth_call", request.Method)
		}
		_, err := pool.Chain("1").Call(t.Context(), "")
		require.ErrorAs(t, err, &request)

		var config *rpcpool.ConfigError
		_, err = pool.Chain("").Call(t.Context(), "eth_call")
		require.ErrorAs(t, err, &config)
		_, err = pool.Chain("1", rpcpool.WithArchive(99)).Call(t.Context(), "eth_call")
		require.ErrorAs(t, err, &config)
		require.Empty(t, w.Requests())
		require.Empty(t, w.Pool.Asked())
	})
}

// Results are decoded where the caller wants it; what doesn't fit is an error that
// names the method.
func TestCallAsAndCallContextDecode(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1", w.Node("r1", rpcpooltest.Result(map[string]any{"number": "0x10"})))
		chain := open(t, w).Chain("1")
		block, err := rpcpool.CallAs[struct{ Number string }](t.Context(), chain, "eth_getBlockByNumber", "latest", false)
		require.NoError(t, err)
		require.Equal(t, "0x10", block.Number)
		require.NoError(t, chain.CallContext(t.Context(), nil, "eth_getBlockByNumber", "latest", false))
		_, err = rpcpool.CallAs[int](t.Context(), chain, "eth_getBlockByNumber", "latest", false)
		var malformed *rpcpool.MalformedResponseError
		require.ErrorAs(t, err, &malformed)
		require.Equal(t, "eth_getBlockByNumber", malformed.Method)
	})
}

// A login in an RPC's URL goes to the RPC, in a header, and nowhere else; the one
// of an HTTP proxy goes to the proxy.
func TestLoginsGoWhereTheyBelong(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.ProxyAt("p1", "http://user-p:word-p@p1.test:3128")
		r := w.NodeAt("r1", "http://user-r:word-r@r1.test/key-r1")
		w.List("1", r)
		_, err := open(t, w).Chain("1").Call(t.Context(), "eth_blockNumber")
		require.NoError(t, err)
		header := r.Requests()[0].Header
		require.Equal(t, "Basic "+base64.StdEncoding.EncodeToString([]byte("user-r:word-r")), header.Get("Authorization"))
		require.Empty(t, header.Get("Proxy-Authorization"))
		require.Empty(t, header.Get("X-Api-Key"))
	})
}

// A raw transaction that the node already has is a success only if its hash can be
// computed; else the node's error is the answer (rule A6.3).
func TestAlreadyKnownNeedsAHash(t *testing.T) {
	for _, raw := range []any{"0x", "616263", "0xabc", 7, nil, "0xzz"} {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			w.Proxy("p1")
			w.List("1", w.Node("r1", rpcpooltest.Error(-32000, "already known")))
			_, err := open(t, w).Chain("1").Call(t.Context(), "eth_sendRawTransaction", raw)
			var rpcErr *rpcpool.RPCError
			require.ErrorAs(t, err, &rpcErr, "%v", raw)
		})
	}
}

// RPCError satisfies the interfaces that go-ethereum's callers ask for, and gives
// the data of a revert as the string that they decode.
func TestRPCErrorSatisfiesGoEthereumsInterfaces(t *testing.T) {
	var err error = &rpcpool.RPCError{Code: 3, Message: "execution reverted", Data: json.RawMessage(`"0x08c379a0"`)}
	coded, ok := err.(interface{ ErrorCode() int })
	require.True(t, ok)
	require.Equal(t, 3, coded.ErrorCode())
	withData, ok := err.(interface{ ErrorData() any })
	require.True(t, ok)
	require.Equal(t, "0x08c379a0", withData.ErrorData())
	require.Nil(t, (&rpcpool.RPCError{}).ErrorData())
	require.Equal(t, "{", (&rpcpool.RPCError{Data: json.RawMessage("{")}).ErrorData())
}

// HTTPError keeps the beginning of the body for the caller, and shows it nowhere.
func TestHTTPErrorKeepsTheBodyToItself(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1", w.Node("r1", rpcpooltest.Status(http.StatusUnprocessableEntity).Text("what was wrong")))
		_, err := open(t, w).Chain("1").Call(t.Context(), "eth_blockNumber")
		var refused *rpcpool.HTTPError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, http.StatusUnprocessableEntity, refused.StatusCode)
		require.Equal(t, "what was wrong", string(refused.Body))
		require.NotContains(t, err.Error(), "wrong")
		encoded, err := json.Marshal(refused)
		require.NoError(t, err)
		require.JSONEq(t, `{"statusCode":422,"status":"422 Unprocessable Entity"}`, string(encoded))
	})
}

// A raw transaction whose first attempt may have arrived isn't taken for refused
// because the next RPC says "nonce too low": it is looked up by its hash, and where
// that RPC has it the send was a success. A refusal without such an attempt, and one
// of a transaction that nobody has, stay what they are.
func TestSendThatWasMinedMeanwhileIsASuccess(t *testing.T) {
	const hash = "0x4e03657aea45a94fc7d47ba826c8d667c0d1e6e33a64a036ec44f58fa12d6c45" // of "abc"
	for name, c := range map[string]struct {
		first    rpcpooltest.Reply
		byHash   any
		success  bool
		requests int // to the second RPC
	}{
		"mined, the answer lost":      {rpcpooltest.Reset(), map[string]string{"hash": hash}, true, 2},
		"mined, the answer a 500":     {rpcpooltest.Status(500), map[string]string{"hash": hash}, true, 2},
		"not there":                   {rpcpooltest.Reset(), nil, false, 2},
		"another transaction's":       {rpcpooltest.Reset(), map[string]string{"hash": "0x12"}, false, 2},
		"no attempt may have arrived": {rpcpooltest.Error(-32601, "method not found"), map[string]string{"hash": hash}, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				w.Proxy("p1")
				r2 := w.Node("r2", rpcpooltest.Error(-32000, "nonce too low").Method("eth_sendRawTransaction"),
					rpcpooltest.Result(c.byHash).Method("eth_getTransactionByHash"))
				w.List("1", w.Node("r1", c.first), r2)
				got, err := rpcpool.CallAs[string](t.Context(), open(t, w).Chain("1"), "eth_sendRawTransaction", "0x616263")
				require.Len(t, r2.Requests(), c.requests)
				if c.success {
					require.NoError(t, err)
					require.Equal(t, hash, got)
					return
				}
				var rpcErr *rpcpool.RPCError
				require.ErrorAs(t, err, &rpcErr)
			})
		})
	}
}
