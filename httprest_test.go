package rpcpool_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// restNode adds a node that takes any request.
func restNode(w *rpcpooltest.World, name string, script ...rpcpooltest.Reply) *rpcpooltest.Node {
	n := w.Node(name, script...)
	n.AllowREST()
	return n
}

// ask sends a REST request as an SDK would.
func ask(t *testing.T, client *http.Client, method, path, body string) (*http.Response, error) {
	t.Helper()
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, "http://label.invalid"+path, reader)
	require.NoError(t, err)
	return client.Do(req)
}

// Method, path, query, headers and body of a request arrive at the RPC, under its own
// URL and with its own login and query; what speaks of one connection, or of the
// label's host, doesn't (rule E1.1).
func TestRESTSendsTheRequestAsItIs(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		r := w.NodeAt("r1", "http://user-r:word-r@r1.test/key%2Fr1/?apikey=key-q1", rpcpooltest.Body(`{"ok":1}`))
		r.AllowREST()
		w.List("1", r)
		client := open(t, w).Chain("1").HTTPClient(rpcpool.REST(nil))
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://label.invalid/a%2Fb/c%20d?limit=5&x=%26", strings.NewReader("a body"))
		require.NoError(t, err)
		req.Header = http.Header{
			"Content-Type": {"application/x.aptos.signed_transaction+bcs"}, "X-Two": {"1", "2"}, "Accept-Encoding": {"identity"},
			"Connection": {"close, X-Hop"}, "X-Hop": {"1"}, "Te": {"trailers"}, "Keep-Alive": {"1"}, "Proxy-Authorization": {"mine"},
			"Expect": {"100-continue"},
		}
		req.Host = "label-two.invalid"
		before := req.Header.Clone()
		res, err := client.Do(req)
		require.NoError(t, err)
		require.Equal(t, `{"ok":1}`, readAll(t, res))
		require.Same(t, req, res.Request)
		require.Equal(t, before, req.Header)

		got := r.Requests()[0]
		require.Equal(t, "PUT /key%2Fr1/a%2Fb/c%20d?apikey=key-q1&limit=5&x=%26", got.Method)
		require.Equal(t, "a body", string(got.Body))
		require.Equal(t, "Basic "+base64.StdEncoding.EncodeToString([]byte("user-r:word-r")), got.Header.Get("Authorization"))
		require.Equal(t, "application/x.aptos.signed_transaction+bcs", got.Header.Get("Content-Type"))
		require.Equal(t, []string{"1", "2"}, got.Header["X-Two"])
		for _, name := range []string{"Connection", "X-Hop", "Te", "Keep-Alive", "Proxy-Authorization", "Expect"} {
			require.Empty(t, got.Header.Get(name), name)
		}
	})
}

// The joins make of an RPC's path and a request's path what the API expects, whichever
// of the two has the API's prefix.
func TestJoins(t *testing.T) {
	for _, c := range []struct {
		name          string
		join          func(rpcPath, path string) string
		rpcPath, path string
		want          string
	}{
		{"path", rpcpool.JoinPath, "", "/cosmos/bank/v1beta1/supply", "/cosmos/bank/v1beta1/supply"},
		{"path under a key", rpcpool.JoinPath, "/key/rest", "/cosmos/tx", "/key/rest/cosmos/tx"},
		{"aptos, neither", rpcpool.JoinAptos, "", "/accounts/0x1", "/v1/accounts/0x1"},
		{"aptos, the RPC's", rpcpool.JoinAptos, "/key/v1", "/accounts/0x1", "/key/v1/accounts/0x1"},
		{"aptos, the request's", rpcpool.JoinAptos, "/key", "/v1/accounts/0x1", "/key/v1/accounts/0x1"},
		{"aptos, both", rpcpool.JoinAptos, "/key/v1", "/v1/accounts/0x1", "/key/v1/accounts/0x1"},
		{"aptos, the ledger", rpcpool.JoinAptos, "/v1", "/v1", "/v1"},
		{"aptos, the ledger with a slash", rpcpool.JoinAptos, "", "/v1/", "/v1"},
		{"aptos, nothing", rpcpool.JoinAptos, "", "", "/v1"},
		{"aptos, another word", rpcpool.JoinAptos, "/key", "/v1beta/x", "/key/v1/v1beta/x"},
		{"tron", rpcpool.JoinTron, "", "/wallet/getnowblock", "/wallet/getnowblock"},
		{"tron, listed by its JSON-RPC", rpcpool.JoinTron, "/key/jsonrpc", "/walletsolidity/getnowblock", "/key/walletsolidity/getnowblock"},
		{"tron, listed by its wallet", rpcpool.JoinTron, "/key/wallet", "/wallet/getnowblock", "/key/wallet/getnowblock"},
		{"tron, grid", rpcpool.JoinTron, "/key", "/v1/accounts/T", "/key/v1/accounts/T"},
	} {
		require.Equal(t, c.want, c.join(c.rpcPath, c.path), c.name)
	}
}

// A response is the SDK's whatever its status, complete and with its own body, unless
// the status speaks of the RPC or the proxy (rule A10).
func TestRESTGivesTheSDKItsResponse(t *testing.T) {
	for _, status := range []int{200, 201, 202, 206, 304, 400, 404, 405, 406, 409, 410, 412, 413, 415, 416, 418, 422} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				w.Proxy("p1")
				body := `{"message":"Account not found by Address(0x1) and Ledger version(5)","error_code":"account_not_found"}`
				if status == 304 {
					body = "" // it has none
				}
				r1 := restNode(w, "r1", rpcpooltest.Body(body).WithStatus(status).Header("X-Aptos-Chain-Id", "1").Header("Set-Cookie", "a=b"))
				w.List("1", r1, restNode(w, "r2"))
				pool := open(t, w)
				client := pool.Chain("1").HTTPClient(rpcpool.REST(rpcpool.JoinAptos))
				for _, method := range []string{"GET", "POST"} {
					res, err := ask(t, client, method, "/v1/accounts/0x1", "")
					require.NoError(t, err)
					require.Equal(t, status, res.StatusCode)
					require.Equal(t, fmt.Sprint(status, " ", http.StatusText(status)), res.Status)
					require.Equal(t, "HTTP/1.1", res.Proto)
					require.Equal(t, "/v1/accounts/0x1", res.Request.URL.Path)
					require.Equal(t, "1", res.Header.Get("X-Aptos-Chain-Id"))
					require.Empty(t, res.Header.Get("Set-Cookie"))
					require.Equal(t, int64(len(body)), res.ContentLength)
					require.Equal(t, body, readAll(t, res))
				}
				require.Zero(t, count(w.Requests(), "r2"))
				require.NoError(t, pool.Close())
				require.Empty(t, w.Pool.Reports())
			})
		})
	}
}

// What speaks of the RPC, the proxy or the way fails over, for GET.
func TestRESTFailsOver(t *testing.T) {
	for name, fault := range map[string]rpcpooltest.Reply{
		"401": rpcpooltest.Status(401), "403": rpcpooltest.Status(403), "408": rpcpooltest.Status(408),
		"429": rpcpooltest.Status(429), "500": rpcpooltest.Status(500), "502": rpcpooltest.Status(502),
		"503": rpcpooltest.Status(503), "504": rpcpooltest.Status(504), "521": rpcpooltest.Status(521),
		"reset": rpcpooltest.Reset(), "closed": rpcpooltest.Close(), "hang": rpcpooltest.Hang(), "unreachable": rpcpooltest.Unreachable(),
		"cut": rpcpooltest.Body(`{"a":1}`).Cut(), "cut 404": rpcpooltest.Status(404).Text("not here").Cut(),
		"hangs in the body": rpcpooltest.HangInBody(), "too large": rpcpooltest.Big(3000),
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				w.Proxy("p1")
				w.List("1", restNode(w, "r1", fault), restNode(w, "r2", rpcpooltest.Body("good")))
				chain := open(t, w, func(c *rpcpool.Config) { c.MaxResponseBytes = 2000 }).Chain("1")
				res, err := ask(t, chain.HTTPClient(rpcpool.REST(nil)), "GET", "/x", "")
				require.NoError(t, err)
				require.Equal(t, "good", readAll(t, res))
				require.Equal(t, 1, chain.Stats()[0].FailuresInRow)
			})
		})
	}
}

// Where no RPC answers, the error has every attempt; it is found through net/http's
// wrapping and shows no secret.
func TestRESTNobodyAnswers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1", restNode(w, "r1", rpcpooltest.Status(503).Text("r1 is down")), restNode(w, "r2", rpcpooltest.Reset()))
		_, err := ask(t, open(t, w).Chain("1").HTTPClient(rpcpool.REST(nil)), "GET", "/x", "")
		var unhealthy *rpcpool.NoHealthyRPCError
		require.ErrorAs(t, err, &unhealthy)
		require.Len(t, unhealthy.Attempts, 2)
		for _, secret := range w.Secrets() {
			require.NotContains(t, err.Error(), secret)
		}
	})
}

// Words of the response that say more than its status count: the request's own fault
// under a 5xx is the SDK's at once; state that an RPC has dropped, and a part of the
// API that it doesn't serve, is looked for elsewhere, without blame.
func TestRESTReadsTheWords(t *testing.T) {
	const good = "good"
	for name, c := range map[string]struct {
		status int
		body   string
		passed bool // to the SDK at once
	}{
		"a fault of the transaction":  {500, `{"code":32,"message":"account sequence mismatch, expected 255, got 254: incorrect account sequence","details":[]}`, true},
		"not found yet":               {404, `{"code":5,"message":"tx not found: ABCD","details":[]}`, true},
		"an account that isn't there": {404, `{"message":"Account not found by Address(0x1) and Ledger version(5)","error_code":"account_not_found"}`, true},
		"a page for a wrong path":     {404, `<html><title>404 Not Found</title></html>`, true},
		"pruned":                      {410, `{"message":"Ledger version(1) has been pruned","error_code":"version_pruned"}`, false},
		"pruned, as a 500":            {500, `{"message":"Transaction at version 100 is pruned, min available version is 21114670.","error_code":"internal_error"}`, false},
		"not served":                  {501, `{"code":12,"message":"Not Implemented","details":[]}`, false},
		"closed":                      {404, `{"Error":"this API is unavailable due to config"}`, false},
		"disabled":                    {403, `{"message":"The API is disabled","error_code":"api_disabled"}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				w.Proxy("p1")
				reply := rpcpooltest.Body(c.body).WithStatus(c.status)
				r2 := restNode(w, "r2", rpcpooltest.Body(good))
				w.List("1", restNode(w, "r1", reply), r2)
				pool := open(t, w)
				client := pool.Chain("1").HTTPClient(rpcpool.REST(nil))
				res, err := ask(t, client, "GET", "/x", "")
				require.NoError(t, err)
				if c.passed {
					require.Equal(t, c.status, res.StatusCode)
					require.Equal(t, c.body, readAll(t, res))
					return
				}
				require.Equal(t, good, readAll(t, res))
				require.Zero(t, pool.Chain("1").Stats()[0].FailuresInRow)

				// Nobody has it: the SDK gets what was said.
				r2.Script(reply)
				res, err = ask(t, client, "GET", "/x", "")
				require.NoError(t, err)
				require.Equal(t, c.status, res.StatusCode)
				require.Equal(t, c.body, readAll(t, res))
			})
		})
	}
}

// A 4xx that blames the node is tried elsewhere and, if nobody does better, the SDK's;
// that of a request with effects is the SDK's at once. A 5xx that blames the node is
// nobody's answer.
func TestRESTWordsThatBlameTheNode(t *testing.T) {
	const busy = `{"code":-32005,"message":"daily request limit exceeded"}`
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		reply := rpcpooltest.Body(busy).WithStatus(400)
		r1, r2 := restNode(w, "r1", reply), restNode(w, "r2", rpcpooltest.Body("good"))
		w.List("1", r1, r2)
		chain := open(t, w).Chain("1")
		client := chain.HTTPClient(rpcpool.REST(nil))

		res, err := ask(t, client, "POST", "/pay", "ten")
		require.NoError(t, err)
		require.Equal(t, busy, readAll(t, res))
		require.Zero(t, chain.Stats()[0].FailuresInRow)

		res, err = ask(t, client, "GET", "/x", "")
		require.NoError(t, err)
		require.Equal(t, "good", readAll(t, res))
		require.Equal(t, 1, chain.Stats()[0].FailuresInRow)

		r2.Script(reply)
		res, err = ask(t, client, "GET", "/x", "")
		require.NoError(t, err)
		require.Equal(t, 400, res.StatusCode)
		require.Equal(t, busy, readAll(t, res))

		time.Sleep(15 * time.Minute)
		r1.Script(reply.WithStatus(507))
		r2.Script(reply.WithStatus(507))
		_, err = ask(t, client, "GET", "/x", "")
		var unhealthy *rpcpool.NoHealthyRPCError
		require.ErrorAs(t, err, &unhealthy)
	})
}

// A request that isn't GET or HEAD goes on only where it didn't reach the RPC, or was
// refused before it ran. Else it may have had its effect: the error says so, and it
// isn't sent again (rule C2).
func TestRESTSendsEffectsOnce(t *testing.T) {
	for name, c := range map[string]struct {
		fault rpcpooltest.Reply
		again bool
	}{
		"unreachable":       {rpcpooltest.Unreachable(), true},
		"401":               {rpcpooltest.Status(401), true},
		"403":               {rpcpooltest.Status(403), true},
		"429":               {rpcpooltest.Status(429), true},
		"not served":        {rpcpooltest.Body(`{"code":12,"message":"Not Implemented"}`).WithStatus(501), true},
		"408":               {rpcpooltest.Status(408), false},
		"500":               {rpcpooltest.Status(500), false},
		"503":               {rpcpooltest.Status(503), false},
		"reset":             {rpcpooltest.Reset(), false},
		"closed":            {rpcpooltest.Close(), false},
		"hang":              {rpcpooltest.Hang(), false},
		"cut":               {rpcpooltest.Body(`{"a":1}`).Cut(), false},
		"hangs in the body": {rpcpooltest.HangInBody(), false},
		"too large":         {rpcpooltest.Big(3000), false},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				w.Proxy("p1")
				r1, r2 := restNode(w, "r1", c.fault), restNode(w, "r2", rpcpooltest.Body("good"))
				w.List("1", r1, r2)
				pool := open(t, w, func(c *rpcpool.Config) { c.MaxResponseBytes = 2000 })
				client := pool.Chain("1").HTTPClient(rpcpool.REST(nil))
				res, err := ask(t, client, "POST", "/pay", "ten")
				require.LessOrEqual(t, len(r1.Requests()), 1)
				if c.again {
					require.NoError(t, err)
					require.Equal(t, "good", readAll(t, res))
					require.Equal(t, "ten", string(r2.Requests()[0].Body))
					return
				}
				var open *rpcpool.AmbiguousError
				require.ErrorAs(t, err, &open)
				require.Equal(t, "POST", open.Method)
				require.Len(t, open.Attempts, 1)
				require.Empty(t, r2.Requests())
				require.Equal(t, 1, pool.Chain("1").Stats()[0].FailuresInRow, "the RPC is at fault all the same")

				safe := func(req *http.Request) bool { return req.URL.Path == "/read" }
				client = pool.Chain("1").HTTPClient(rpcpool.REST(nil), rpcpool.SafeToRepeat(safe))
				time.Sleep(61 * time.Second)
				res, err = ask(t, client, "POST", "/read", "ten")
				require.NoError(t, err)
				require.Equal(t, "good", readAll(t, res))
			})
		})
	}
}

// A proxy that refuses a request with effects hasn't let it through: the next one does.
func TestRESTEffectsThroughTheNextProxy(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1", rpcpooltest.ProxyRefuse())
		w.Proxy("p2", rpcpooltest.ProxyHang())
		w.Proxy("p3")
		r := restNode(w, "r1", rpcpooltest.Body("good"))
		w.List("1", r)
		res, err := ask(t, open(t, w).Chain("1").HTTPClient(rpcpool.REST(nil)), "POST", "/pay", "ten")
		require.NoError(t, err)
		require.Equal(t, "good", readAll(t, res))
		require.Len(t, r.Requests(), 1)
	})
}

// A kept connection that turns out dead is nobody's fault: a GET goes out again on a
// fresh one. A POST may have arrived, so it doesn't (rules A5.3, C2).
func TestRESTOnADeadConnection(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		r := restNode(w, "r1", rpcpooltest.Body("good").Times(1), rpcpooltest.Close().Times(1), rpcpooltest.Body("good").Times(1), rpcpooltest.Close())
		w.List("1", r)
		client := open(t, w).Chain("1").HTTPClient(rpcpool.REST(nil))
		for range 2 {
			res, err := ask(t, client, "GET", "/x", "")
			require.NoError(t, err)
			require.Equal(t, "good", readAll(t, res))
		}
		require.Len(t, r.Requests(), 3)
		_, err := ask(t, client, "POST", "/pay", "ten")
		var open *rpcpool.AmbiguousError
		require.ErrorAs(t, err, &open)
		require.Len(t, r.Requests(), 4)
	})
}

// Redirects stay where they are: the address of one RPC isn't another's, and it isn't
// shown.
func TestRESTDoesNotFollowRedirects(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1", restNode(w, "r1", rpcpooltest.Status(308).Header("Location", "http://r1.test/key-r1/v1/")))
		res, err := ask(t, open(t, w).Chain("1").HTTPClient(rpcpool.REST(nil)), "GET", "/v1", "")
		require.NoError(t, err)
		require.Equal(t, 308, res.StatusCode)
		require.NotContains(t, res.Header.Get("Location"), "key-r1")
		require.Contains(t, res.Header.Get("Location"), "http://r1.test")
		require.Len(t, w.Requests(), 1)
	})
}

// HEAD has a response without a body; gzip is undone for those who didn't ask for it,
// and left to those who did.
func TestRESTHeadAndGzip(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		head := rpcpooltest.Body("").Header("X-Block", "5").Method("HEAD /key-r1/x")
		w.List("1", restNode(w, "r1", head, rpcpooltest.Body("good").Gzip()))
		client := open(t, w).Chain("1").HTTPClient(rpcpool.REST(nil))
		res, err := ask(t, client, "GET", "/x", "")
		require.NoError(t, err)
		require.Equal(t, "good", readAll(t, res))
		require.True(t, res.Uncompressed)

		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://label.invalid/x", http.NoBody)
		require.NoError(t, err)
		req.Header.Set("Accept-Encoding", "gzip")
		res, err = client.Do(req)
		require.NoError(t, err)
		require.Equal(t, "gzip", res.Header.Get("Content-Encoding"))
		require.NotEqual(t, "good", readAll(t, res))

		res, err = ask(t, client, "HEAD", "/x", "")
		require.NoError(t, err)
		require.Empty(t, readAll(t, res))
		require.Equal(t, "5", res.Header.Get("X-Block"))
	})
}

// What can't be sent is the caller's mistake, and no RPC's.
func TestRESTMisuse(t *testing.T) {
	for name, change := range map[string]func(*http.Request){
		"a WebSocket":         func(r *http.Request) { r.Header.Set("Upgrade", "websocket") },
		"a WebSocket's URL":   func(r *http.Request) { r.URL.Scheme = "wss" },
		"a method with space": func(r *http.Request) { r.Method = "GET /" },
		"CONNECT":             func(r *http.Request) { r.Method = "CONNECT" },
		"a header of lines":   func(r *http.Request) { r.Header["X-A"] = []string{"a\r\nX-B: b"} },
		"a header's name":     func(r *http.Request) { r.Header["X A"] = []string{"a"} },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				w.Proxy("p1")
				w.List("1", restNode(w, "r1"))
				pool := open(t, w)
				body := &watchedReader{Reader: strings.NewReader("x")}
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://label.invalid/x", body)
				require.NoError(t, err)
				change(req)
				_, err = pool.Chain("1").HTTPClient(rpcpool.REST(nil)).Transport.RoundTrip(req)
				var misused *rpcpool.RequestError
				require.ErrorAs(t, err, &misused)
				require.True(t, body.closed)
				require.Empty(t, w.Requests())
			})
		})
	}
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1", restNode(w, "r1"))
		join := func(_, path string) string { return path + "%zz" }
		_, err := ask(t, open(t, w).Chain("1").HTTPClient(rpcpool.REST(join)), "GET", "/x", "")
		var misused *rpcpool.RequestError
		require.ErrorAs(t, err, &misused)
	})
}

// The end of the context, and the client's own time limit, end a request; nothing is left.
func TestRESTEndsWithItsContext(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		p := w.Proxy("p1")
		w.List("1", restNode(w, "r1", rpcpooltest.Hang()))
		client := open(t, w).Chain("1").HTTPClient(rpcpool.REST(nil))
		client.Timeout = 3 * time.Second
		for _, method := range []string{"GET", "POST"} {
			_, err := ask(t, client, method, "/x", "")
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		client.Timeout = 0 // which hides the error that it cut short
		for _, method := range []string{"GET", "POST"} {
			req, err := http.NewRequestWithContext(within(t, time.Second), method, "http://label.invalid/x", http.NoBody)
			require.NoError(t, err)
			_, err = client.Do(req)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			var open *rpcpool.AmbiguousError
			require.Equal(t, method == "POST", errors.As(err, &open), "it may have had its effect")
		}
		nothingLeft(t, w, p)
	})
}
