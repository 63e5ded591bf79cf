package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// A request goes through a proxy to the RPC as it is, and its answer comes back
// byte for byte under the program's own id; the path names the chain, with or
// without a slash behind it.
func TestGatewayPassesARequestOn(t *testing.T) {
	b := newBed(t)
	b.proxy("p1")
	node := b.Node("r1", rpcpooltest.Handle(func(q rpcpooltest.Request) rpcpooltest.Reply {
		return rpcpooltest.Body(`{"jsonrpc":"2.0","id":` + string(q.ID) + `,"result":{"n":1e400, "s":"\u003c","n":12345678901234567890}}`)
	}))
	b.List("eip155:8453", node)
	b.start()

	for _, path := range []string{"/eip155:8453", "/eip155%3A8453", "/eip155:8453/"} {
		got := b.do(http.MethodPost, path, `{"jsonrpc":"2.0","id":"a-1","method":"eth_any","params":{"b":[1.0]}}`)
		assert.Equal(t, http.StatusOK, got.status)
		assert.Equal(t, "application/json", got.header.Get("Content-Type"))
		assert.Equal(t, `{"jsonrpc":"2.0","id":"a-1","result":{"n":1e400, "s":"\u003c","n":12345678901234567890}}`, got.body)
	}
	require.Len(t, node.Requests(), 3)
	assert.Equal(t, "p1", node.Requests()[0].Via)
	assert.Equal(t, `{"b":[1.0]}`, string(node.Requests()[0].Params))
}

// A batch comes back as a batch; one of its calls that reverts keeps its code and
// data, and an RPC that fails isn't seen.
func TestGatewayPassesABatchOn(t *testing.T) {
	b := newBed(t)
	b.proxy("p1")
	b.List("8453", b.Node("r1", rpcpooltest.Status(500)), b.Node("r2",
		rpcpooltest.ErrorData(3, "execution reverted", "0x08c379a0").Method("eth_call"), rpcpooltest.Result("0x2a")))
	b.start()

	got := b.do(http.MethodPost, "/8453", "["+request(0, "eth_call")+","+request(1, "eth_blockNumber")+"]")
	assert.Equal(t, http.StatusOK, got.status)
	assert.JSONEq(t, `[
		{"jsonrpc":"2.0","id":0,"error":{"code":3,"message":"execution reverted","data":"0x08c379a0"}},
		{"jsonrpc":"2.0","id":1,"result":"0x2a"}
	]`, got.body)
}

// ?archive chooses RPCs that keep old state; nothing is sent where there is none.
func TestGatewayArchive(t *testing.T) {
	b := newBed(t)
	b.proxy("p1")
	node := b.Node("r1")
	b.Pool.Lists("8453", rpcpooltest.PoolList("eip155:8453", rpcpooltest.Listed{URL: node.URL()}))
	b.start()

	got := b.call("8453?archive=full", "eth_blockNumber")
	assert.Equal(t, http.StatusOK, got.status)
	assert.Equal(t, -32004, errorOf(t, got).Code)
	assert.Contains(t, errorOf(t, got).Message, "archive full")
	assert.Equal(t, http.StatusNotFound, b.call("8453?archive=old", "eth_blockNumber").status)
	assert.Equal(t, http.StatusOK, b.call("8453", "eth_blockNumber").status)
	assert.Len(t, node.Requests(), 1)
}

// rpcError is a JSON-RPC error as a program gets it.
type rpcError struct {
	Code    int
	Message string
	Data    struct {
		Kind     string
		Attempts []struct{ RPC, Proxy, Verdict, Detail string }
		RetryAt  string
	}
}

func errorOf(t *testing.T, got answer) rpcError {
	t.Helper()
	var envelope struct {
		ID    json.RawMessage
		Error *rpcError
	}
	require.NoError(t, json.Unmarshal([]byte(got.body), &envelope), got.body)
	require.NotNil(t, envelope.Error, got.body)
	assert.Equal(t, "1", string(envelope.ID), "the id is the request's")
	return *envelope.Error
}

// What goes wrong behind the gateway is a JSON-RPC error that says what, under a
// status that tells an SDK whether to try again. Attempts are listed, masked.
func TestGatewayTellsTrouble(t *testing.T) {
	tests := []struct {
		name   string
		script func(b *bed)
		args   []string
		method string
		status int
		code   int
		kind   string
		want   string
		retry  bool // there is a Retry-After
		tries  int
	}{
		{
			name: "no RPC answers",
			script: func(b *bed) {
				b.List("8453", b.Node("r1", rpcpooltest.Status(500)), b.Node("r2", rpcpooltest.Garbage()))
			},
			status: 502, code: -32000, kind: "no_healthy_rpc", want: `no RPC of chain "8453" answered (2 listed, 2 attempts)`, retry: true, tries: 2,
		},
		{
			name:   "no RPC is listed",
			script: func(b *bed) { b.List("8453") },
			status: 503, code: -32000, kind: "no_healthy_rpc", want: `no RPC is listed for chain "8453"`,
		},
		{
			name: "proxies are dead",
			script: func(b *bed) {
				b.List("8453", b.Node("r1"))
				b.proxy("p2").Kill()
				b.proxies = b.proxies[1:]
			},
			status: 503, code: -32000, kind: "proxies", want: "every proxy is cooling down", retry: true, tries: 1,
		},
		{
			name:   "the chain isn't known",
			script: func(*bed) {},
			status: 404, code: -32000, kind: "unknown_chain", want: `chain "8453" isn't known`,
		},
		{
			name:   "the pool refuses the key",
			script: func(b *bed) { b.List("8453", b.Node("r1")) },
			args:   []string{"-key", "another-secret-key"},
			status: 502, code: -32000, kind: "pool", want: "the pool API refuses the gateway's key",
		},
		{
			name:   "the pool is down",
			script: func(b *bed) { b.Pool.Kill() },
			status: 503, code: -32000, kind: "pool", want: "unreachable and no cache",
		},
		{
			name: "the range is refused",
			script: func(b *bed) {
				b.List("8453", b.Node("r1", rpcpooltest.Error(-32602, "exceed maximum block range: 500")))
			},
			method: "eth_getLogs",
			status: 200, code: -32602, kind: "range", want: "exceed maximum block range: 500", tries: 1,
		},
		{
			name:   "the RPC refuses the request",
			script: func(b *bed) { b.List("8453", b.Node("r1", rpcpooltest.Status(413).Text("POST /key-r1 is too large"))) },
			status: 413, code: -32000, kind: "refused", want: "HTTP status 413 Request Entity Too Large",
		},
		{
			name:   "a subscription",
			script: func(b *bed) { b.List("8453", b.Node("r1")) },
			method: "eth_subscribe",
			status: 400, code: -32600, kind: "request", want: "subscriptions need a WebSocket",
		},
		{
			name:   "the time runs out",
			script: func(b *bed) { b.List("8453", b.Node("r1", rpcpooltest.Hang())) },
			args:   []string{"-limit", "50ms"},
			status: 504, code: -32000, kind: "timeout", want: "the time for one request ran out",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := newBed(t)
			b.proxy("p1")
			test.script(b)
			b.start(test.args...)
			if test.method == "" {
				test.method = "eth_blockNumber"
			}
			got := b.call("8453", test.method)
			assert.Equal(t, test.status, got.status, got.body)
			assert.Equal(t, "application/json", got.header.Get("Content-Type"))
			e := errorOf(t, got)
			assert.Equal(t, test.code, e.Code)
			assert.Equal(t, test.kind, e.Data.Kind)
			assert.Contains(t, e.Message, test.want)
			assert.Equal(t, test.retry, got.header.Get("Retry-After") != "")
			assert.Equal(t, test.retry, e.Data.RetryAt != "")
			assert.Len(t, e.Data.Attempts, test.tries)
			for _, attempt := range e.Data.Attempts {
				assert.Contains(t, attempt.RPC, ".test/***")
				assert.Contains(t, attempt.Proxy, "socks5://***@127.0.0.1:")
			}
			assert.NotContains(t, got.body, "another-secret-key")
		})
	}
}

// When every RPC is cooling nothing is sent, and Retry-After says when to come back.
func TestGatewayAllCooling(t *testing.T) {
	b := newBed(t)
	b.proxy("p1")
	node := b.Node("r1", rpcpooltest.Status(500))
	b.List("8453", node)
	b.start()

	require.Equal(t, http.StatusBadGateway, b.call("8453", "eth_blockNumber").status)
	got := b.call("8453", "eth_blockNumber")
	assert.Equal(t, http.StatusServiceUnavailable, got.status)
	assert.Contains(t, errorOf(t, got).Message, `none of the 1 RPCs of chain "8453" is fit now`)
	assert.Regexp(t, `^(5\d|60)$`, got.header.Get("Retry-After"))
	assert.Len(t, node.Requests(), 1)
}

// A method that no RPC serves is told as what it is, each time: programs try such
// methods out, and a 5xx would look like an outage. While one that might serve it is
// cooling, it is one.
func TestGatewayUnservedMethod(t *testing.T) {
	b := newBed(t)
	b.proxy("p1")
	missing := rpcpooltest.Error(-32601, "the method eth_odd does not exist")
	r1, r2 := b.Node("r1", missing.Method("eth_odd")), b.Node("r2", missing.Method("eth_odd"))
	b.List("8453", r1, r2)
	b.start()
	for range 2 {
		got := b.call("8453", "eth_odd")
		assert.Equal(t, http.StatusOK, got.status)
		assert.Equal(t, -32601, errorOf(t, got).Code)
		assert.Equal(t, "the method eth_odd isn't served by any of the 2 RPCs", errorOf(t, got).Message)
	}
	assert.Len(t, r1.Requests(), 1)

	r1.Script(missing)
	r2.Kill()
	assert.Equal(t, http.StatusBadGateway, b.call("8453", "eth_even").status)
}

// A batch that nobody answered is a batch of errors, one for each id, so that every
// call of the SDK's ends.
func TestGatewayTroubleOfABatch(t *testing.T) {
	b := newBed(t)
	b.proxy("p1")
	b.List("8453", b.Node("r1", rpcpooltest.Status(500)))
	b.start()

	got := b.do(http.MethodPost, "/8453", `[`+request(7, "a")+`,{"jsonrpc":"2.0","method":"b"},{"jsonrpc":"2.0","id":"x","method":"c"}]`)
	assert.Equal(t, http.StatusBadGateway, got.status)
	var answers []struct {
		ID    any
		Error struct{ Code int }
	}
	require.NoError(t, json.Unmarshal([]byte(got.body), &answers))
	require.Len(t, answers, 2)
	assert.Equal(t, []any{7.0, "x"}, []any{answers[0].ID, answers[1].ID})
	assert.Equal(t, -32000, answers[1].Error.Code)
}

// Requests that can't be meant are refused before anything is sent: by method,
// path, type, coding and size, with what to do instead.
func TestGatewayRefusesMisuse(t *testing.T) {
	b := newBed(t)
	b.proxy("p1")
	node := b.Node("r1")
	b.List("8453", node)
	b.start("-chains", "8453,1", "-max-body", "1000")

	for name, test := range map[string]struct {
		method, path, body string
		headers            []string
		status             int
		want               string
	}{
		"GET":            {http.MethodGet, "/8453", "", nil, 405, "a chain is called by POST"},
		"a WebSocket":    {http.MethodGet, "/8453", "", []string{"Connection", "Upgrade", "Upgrade", "websocket"}, 405, "no WebSockets"},
		"PUT":            {http.MethodPut, "/8453", "", nil, 405, "a chain is called by POST"},
		"no chain":       {http.MethodPost, "/", request(1, "a"), nil, 404, "chains are at /8453"},
		"deep path":      {http.MethodPost, "/v2/8453", request(1, "a"), nil, 404, "chains are at /8453"},
		"odd chain":      {http.MethodPost, "/84%2F53", request(1, "a"), nil, 404, "the path isn't a chain"},
		"own path":       {http.MethodPost, "/status.json", request(1, "a"), nil, 404, "the path isn't a chain"},
		"not served":     {http.MethodPost, "/10", request(1, "a"), nil, 404, "doesn't serve this chain"},
		"a form":         {http.MethodPost, "/8453", "a=b", []string{"Content-Type", "application/x-www-form-urlencoded"}, 415, "Content-Type must be application/json"},
		"plain text":     {http.MethodPost, "/8453", request(1, "a"), []string{"Content-Type", "text/plain"}, 415, "Content-Type must be application/json"},
		"gzip":           {http.MethodPost, "/8453", request(1, "a"), []string{"Content-Encoding", "gzip"}, 415, "without a Content-Encoding"},
		"too large":      {http.MethodPost, "/8453", request(1, strings.Repeat("a", 1000)), nil, 413, "larger than 1000 bytes"},
		"no body":        {http.MethodPost, "/8453", "", nil, 400, "no body"},
		"no JSON":        {http.MethodPost, "/8453", "{", nil, 200, "-32700"},
		"an empty batch": {http.MethodPost, "/8453", "[]", nil, 200, "-32600"},
	} {
		t.Run(name, func(t *testing.T) {
			b.t = t
			got := b.do(test.method, test.path, test.body, test.headers...)
			assert.Equal(t, test.status, got.status)
			assert.Contains(t, got.body, test.want)
			if test.status == 405 {
				assert.Equal(t, "POST", got.header.Get("Allow"))
			}
		})
	}
	assert.Empty(t, node.Requests())
}

// A body that is announced as too large is refused without being read.
func TestGatewayLimitsBodiesOfUnknownLength(t *testing.T) {
	b := newBed(t)
	b.proxy("p1")
	node := b.Node("r1")
	b.List("8453", node)
	b.start("-max-body", "1000")

	for _, length := range []int64{-1, 5000} {
		body := strings.NewReader(request(1, strings.Repeat("a", 4900)))
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url+"/8453", body)
		require.NoError(t, err)
		req.ContentLength = length
		if length > 0 {
			req.ContentLength = int64(body.Len())
		}
		res, err := b.client.Do(req)
		require.NoError(t, err)
		res.Body.Close()
		assert.Equal(t, http.StatusRequestEntityTooLarge, res.StatusCode)
	}
	assert.Empty(t, node.Requests())
}

// Where any chain may be asked for, their number is bounded; those there are go on.
func TestGatewayBoundsChains(t *testing.T) {
	b := newBed(t)
	b.proxy("p1")
	b.List("8453", b.Node("r1"))
	b.start()

	require.Equal(t, http.StatusOK, b.call("8453", "eth_blockNumber").status)
	for i := range maxRoutes - 1 {
		require.Contains(t, errorOf(t, b.call(fmt.Sprintf("no-%d", i), "eth_blockNumber")).Message, "isn't known")
	}
	got := b.call("another", "eth_blockNumber")
	assert.Equal(t, http.StatusNotFound, got.status)
	assert.Contains(t, errorOf(t, got).Message, "name those that you need by -chains")
	assert.Equal(t, http.StatusOK, b.call("8453", "eth_blockNumber").status)
}

// Lists can come from a file instead of the pool API.
func TestGatewayByFile(t *testing.T) {
	b := newBed(t)
	b.proxy("p1")
	node := b.Node("r1", rpcpooltest.Result("0x2a"))
	file := t.TempDir() + "/rpcpool.json"
	writeFile(t, file, fmt.Sprintf(`{"chain":{"key":"eip155:8453"},"rpcs":[{"url":%q}]}`, node.URL()))
	b.pool = []string{"-file", file}
	b.start()
	assert.Contains(t, b.call("8453", "eth_blockNumber").body, `"0x2a"`)
}
