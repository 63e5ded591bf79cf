package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
)

// What may not be repeated isn't answered by a status that makes SDKs repeat it; an
// error of unknown origin isn't shown, for nobody has masked it; a wrapped error is
// the error in it.
func TestFaultOf(t *testing.T) {
	const secret = "https://rpc.example.org/key-1"
	for name, test := range map[string]struct {
		err    error
		status int
		kind   string
		want   string
	}{
		"a request that may have had its effect": {
			&rpcpool.AmbiguousError{Method: "eth_sendTransaction"}, 200, "ambiguous", "look before you ask again",
		},
		"an error that has no case of its own": {
			&rpcpool.MalformedResponseError{Method: "eth_getLogs", Reason: "a list was expected"}, 200, "other", "a list was expected",
		},
		"wrapped": {
			fmt.Errorf("Post %q: %w", secret, &rpcpool.ProxyError{}), 503, "proxies", "every proxy is cooling down",
		},
		"somebody else's": {
			errors.New("Post " + secret + ": no"), 502, "other", "the request couldn't be passed on",
		},
		"the program has gone, or the gateway goes": {
			&rpcpool.InterruptedError{Err: context.Canceled}, 503, "closing", "shutting down",
		},
		"the pool is closed": {rpcpool.ErrClosed, 503, "closing", "shutting down"},
	} {
		t.Run(name, func(t *testing.T) {
			f := faultOf(test.err)
			assert.Equal(t, test.status, f.status)
			assert.Equal(t, test.kind, f.data.Kind)
			body := string(f.body([]byte(request(1, "a"))))
			assert.Contains(t, body, test.want)
			assert.NotContains(t, body, secret)
		})
	}
}

// An error of a node's keeps code, message and data as they are.
func TestFaultOfANode(t *testing.T) {
	f := faultOf(&rpcpool.RPCError{Code: 3, Message: "execution reverted", Data: json.RawMessage(`"0x08c379a0"`)})
	assert.Equal(t, 200, f.status)
	assert.JSONEq(t, `{"jsonrpc":"2.0","id":"a","error":{"code":3,"message":"execution reverted","data":"0x08c379a0"}}`,
		string(f.body([]byte(`{"id":"a"}`))))
}

// An error goes under the request's own id, byte for byte; under null where none can
// be read. Only the first error of a batch lists the attempts.
func TestFaultBody(t *testing.T) {
	f := faultOf(&rpcpool.NoHealthyRPCError{Chain: "8453", Listed: 1, Attempts: []rpcpool.Attempt{{RPC: "https://r1.test/***"}}})
	for request, want := range map[string]string{
		`{"id":18446744073709551616}`:     `18446744073709551616`,
		`{"id":"a\u0041"}`:                `"a\u0041"`,
		`{"id":0.0}`:                      `0.0`,
		`{"method":"a"}`:                  `null`,
		`{"id":{"not":"allowed"}}`:        `null`,
		`[{"method":"a"},{"method":"b"}]`: `null`,
		`[]`:                              `null`,
		`{`:                               `null`,
		``:                                `null`,
	} {
		assert.Contains(t, string(f.body([]byte(request))), `{"jsonrpc":"2.0","id":`+want+`,"error":`, "%q", request)
	}
	var answers []struct {
		ID    int
		Error struct{ Data json.RawMessage }
	}
	require.NoError(t, json.Unmarshal(f.body([]byte(`[{"id":1},{"method":"n"},{"id":2}]`)), &answers))
	require.Len(t, answers, 2)
	assert.Contains(t, string(answers[0].Error.Data), "https://r1.test/***")
	assert.Equal(t, 2, answers[1].ID)
	assert.Empty(t, answers[1].Error.Data)
}
