package rpcpooltest

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// inBubble runs a test with one node on a memory network.
func inBubble(t *testing.T, url string, script []Reply, test func(t *testing.T, n *Node)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		network := NewMemoryNetwork()
		defer func() { _ = network.Close() }()
		test(t, NewNode(network, "r1", url, script...))
	})
}

// post sends a body and gives status and answer.
func post(t *testing.T, client *http.Client, url, body string) (int, string) {
	t.Helper()
	response, err := client.Post(url, "application/json", strings.NewReader(body))
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(raw)
}

func call(id, method string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":["a",{"b":1}]}`
}

// For each request the first entry serves whose conditions hold and that isn't
// used up; the result "0x1" where none fits.
func TestNodeFollowsItsScript(t *testing.T) {
	script := []Reply{
		Result("other").Method("eth_other"),
		Error(-32000, "twice").Times(2),
		Result("via p1").Via("p1"),
		Result("step 1 on").FromStep(1).ToStep(2),
		ErrorData(3, "reverted", "0x08").FromStep(4),
	}
	inBubble(t, "http://r1.test/key", script, func(t *testing.T, n *Node) {
		var got []string
		for step := range 5 {
			n.network.SetStep(step)
			_, body := post(t, n.Client(), n.URL(), call("9", "eth_x"))
			got = append(got, body)
		}
		assert.Equal(t, []string{
			`{"jsonrpc":"2.0","id":9,"error":{"code":-32000,"message":"twice"}}`,
			`{"jsonrpc":"2.0","id":9,"error":{"code":-32000,"message":"twice"}}`,
			`{"jsonrpc":"2.0","id":9,"result":"step 1 on"}`,
			`{"jsonrpc":"2.0","id":9,"result":"0x1"}`,
			`{"jsonrpc":"2.0","id":9,"error":{"code":3,"data":"0x08","message":"reverted"}}`,
		}, got)
		_, body := post(t, n.Client(), n.URL(), call(`"an id"`, "eth_other"))
		assert.Equal(t, `{"jsonrpc":"2.0","id":"an id","result":"other"}`, body)
	})
}

// A modifier changes a copy: the reply that it was called on stays as it was.
func TestReplyModifiersCopy(t *testing.T) {
	base := Status(503).Header("A", "1")
	_ = base.Header("B", "2").Times(3)
	assert.Equal(t, http.Header{"A": {"1"}}, base.header)
	assert.Zero(t, base.when.times)
}

// The node's answers on the wire: status, headers, body.
func TestNodeAnswers(t *testing.T) {
	cases := map[string]struct {
		reply  Reply
		status int
		header string
		body   string
	}{
		"status":       {Status(204), 204, "", ""},
		"page":         {Status(503).Text("busy"), 503, "text/plain; charset=utf-8", "busy"},
		"odd status":   {Status(599).Text("no"), 599, "text/plain; charset=utf-8", "no"},
		"error in 500": {Error(3, "reverted").WithStatus(500), 500, "application/json", `{"jsonrpc":"2.0","id":7,"error":{"code":3,"message":"reverted"}}`},
		"garbage":      {Garbage(), 200, "text/html", "<!DOCTYPE html>"},
		"body":         {Body(`{"id":`), 200, "", `{"id":`},
		"wrong id":     {WrongID("0x9"), 200, "application/json", `{"jsonrpc":"2.0","id":"another","result":"0x9"}`},
		"big":          {Big(5), 200, "application/json", `{"jsonrpc":"2.0","id":7,"result":"xxxxx"}`},
		"null":         {Result(nil), 200, "application/json", `{"jsonrpc":"2.0","id":7,"result":null}`},
		"gzip":         {Result("z").Gzip(), 200, "application/json", `{"jsonrpc":"2.0","id":7,"result":"z"}`},
		"drip":         {Result("slow").Drip(7, time.Second), 200, "application/json", `{"jsonrpc":"2.0","id":7,"result":"slow"}`},
		"no JSON":      {Result(func() {}), 200, "application/json", `{"jsonrpc":"2.0","id":7,"error"`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			inBubble(t, "http://r1.test/", []Reply{c.reply}, func(t *testing.T, n *Node) {
				response, err := n.Client().Post(n.URL(), "application/json", strings.NewReader(call("7", "eth_x")))
				require.NoError(t, err)
				body, err := io.ReadAll(response.Body)
				require.NoError(t, err)
				assert.Equal(t, c.status, response.StatusCode)
				assert.True(t, strings.HasPrefix(string(body), c.body), "%s", body)
				if c.header != "" {
					assert.Equal(t, c.header, response.Header.Get("Content-Type"))
				}
			})
		})
	}
}

// RateLimited is a 429, with or without the time to wait.
func TestRateLimited(t *testing.T) {
	script := []Reply{RateLimited(7 * time.Second).Times(1), RateLimited(0)}
	inBubble(t, "http://r1.test/", script, func(t *testing.T, n *Node) {
		for _, want := range []string{"7", ""} {
			response, err := n.Client().Post(n.URL(), "application/json", strings.NewReader(call("7", "eth_x")))
			require.NoError(t, err)
			_ = response.Body.Close()
			assert.Equal(t, 429, response.StatusCode)
			assert.Equal(t, want, response.Header.Get("Retry-After"))
		}
	})
}

// Delays are exact in a bubble; a client that gives up ends them, and a hang.
func TestNodeWaitsAndNoticesTheClientGoing(t *testing.T) {
	script := []Reply{Result("0x5").Delay(12 * time.Second).Times(1), Result("0x5").Delay(time.Hour).Times(1), Hang()}
	inBubble(t, "http://r1.test/", script, func(t *testing.T, n *Node) {
		begin := time.Now()
		_, _ = post(t, n.Client(), n.URL(), call("7", "eth_x"))
		assert.Equal(t, 12*time.Second, time.Since(begin))
		for range 2 {
			client := n.Client()
			client.Timeout = 3 * time.Second
			_, err := client.Post(n.URL(), "application/json", strings.NewReader(call("7", "eth_x")))
			assert.Error(t, err)
			synctest.Wait()
			n.server.mu.Lock()
			assert.Empty(t, n.server.links, "nothing of it is left at the node")
			n.server.mu.Unlock()
		}
		assert.Equal(t, 18*time.Second, time.Since(begin))
	})
}

// The node records what it was asked, and gives it to handlers decoded.
func TestNodeHandlerSeesTheRequest(t *testing.T) {
	answer := Handle(func(q Request) Reply {
		var params struct{ B int }
		if err := errors.Join(q.Param(1, &params), q.Context().Err()); err != nil {
			return Error(-1, err.Error())
		}
		if q.Param(2, nil) == nil {
			return Error(-2, "a third param")
		}
		return Result(map[string]any{"method": q.Method, "b": params.B, "agent": q.Header.Get("User-Agent")})
	})
	inBubble(t, "http://r1.test/", []Reply{answer}, func(t *testing.T, n *Node) {
		_, body := post(t, n.Client(), n.URL(), call("7", "eth_x"))
		assert.JSONEq(t, `{"jsonrpc":"2.0","id":7,"result":{"method":"eth_x","b":1,"agent":"Go-http-client/1.1"}}`, body)
		seen := n.Requests()
		require.Len(t, seen, 1)
		assert.Equal(t, "eth_x", seen[0].Method)
		assert.JSONEq(t, `["a",{"b":1}]`, string(seen[0].Params))
		assert.Equal(t, json.RawMessage("7"), seen[0].ID)
		assert.Equal(t, time.Now(), seen[0].Time)
		assert.Empty(t, seen[0].Via)
	})
}

// What isn't a JSON-RPC POST to the node's own path is a breach, and so is a
// secret that must not come here.
func TestNodeNotesBreaches(t *testing.T) {
	good := call("7", "eth_x")
	cases := map[string]struct {
		method, path, kind, body string
		header                   string
		status                   int
		want                     string
	}{
		"GET":             {"GET", "/key?a=1", "application/json", good, "", 405, "GET instead of POST"},
		"path":            {"POST", "/", "application/json", good, "", 404, "another path"},
		"query":           {"POST", "/key?a=2", "application/json", good, "", 404, "another path"},
		"type":            {"POST", "/key?a=1", "text/plain", good, "", 415, "text/plain"},
		"no JSON":         {"POST", "/key?a=1", "application/json", "hello", "", 400, "isn't a JSON-RPC request"},
		"version":         {"POST", "/key?a=1", "application/json", `{"id":1,"method":"m"}`, "", 400, "instead of 2.0"},
		"no id":           {"POST", "/key?a=1", "application/json", `{"jsonrpc":"2.0","method":"m"}`, "", 400, "without an id"},
		"no method":       {"POST", "/key?a=1", "application/json", `{"jsonrpc":"2.0","id":1}`, "", 400, "without a method"},
		"empty batch":     {"POST", "/key?a=1", "application/json", `[]`, "", 400, "batch"},
		"the pool's key":  {"POST", "/key?a=1", "application/json", good, "X-Api-Key", 200, "X-Api-Key"},
		"a proxy's login": {"POST", "/key?a=1", "application/json; charset=utf-8", good, "Proxy-Authorization", 200, "Proxy-Authorization"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			inBubble(t, "http://r1.test/key?a=1", nil, func(t *testing.T, n *Node) {
				r, err := http.NewRequest(c.method, "http://r1.test"+c.path, strings.NewReader(c.body))
				require.NoError(t, err)
				r.Header.Set("Content-Type", c.kind)
				if c.header != "" {
					r.Header.Set(c.header, "secret")
				}
				response, err := n.Client().Do(r)
				require.NoError(t, err)
				_ = response.Body.Close()
				assert.Equal(t, c.status, response.StatusCode)
				require.Len(t, n.network.Breaches(), 1)
				assert.Contains(t, n.network.Breaches()[0], c.want)
				assert.NotContains(t, n.network.Breaches()[0], "secret")
			})
		})
	}
}

// A node that takes REST sees method and path, and follows its script by them.
func TestNodeREST(t *testing.T) {
	script := []Reply{Body(`{"ok":true}`).Method("GET /v1/accounts?limit=5"), Status(404)}
	inBubble(t, "http://r1.test/v1", script, func(t *testing.T, n *Node) {
		n.AllowREST()
		response, err := n.Client().Get("http://r1.test/v1/accounts?limit=5")
		require.NoError(t, err)
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		assert.Equal(t, `{"ok":true}`, string(body))
		assert.Empty(t, n.network.Breaches())
	})
}

// Each request of a batch gets its own reply; the first that is no JSON-RPC
// answer stands for the whole.
func TestNodeBatches(t *testing.T) {
	script := []Reply{Error(-32601, "no").Method("eth_b"), Status(429).Method("eth_c")}
	inBubble(t, "http://r1.test/", script, func(t *testing.T, n *Node) {
		status, body := post(t, n.Client(), n.URL(), "["+call("1", "eth_a")+","+call("2", "eth_b")+"]")
		assert.Equal(t, 200, status)
		assert.JSONEq(t, `[{"jsonrpc":"2.0","id":1,"result":"0x1"},{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"no"}}]`, body)
		status, _ = post(t, n.Client(), n.URL(), "["+call("1", "eth_a")+","+call("2", "eth_c")+"]")
		assert.Equal(t, 429, status)
		assert.Len(t, n.Requests(), 4)
		assert.Equal(t, "batch", n.network.Exchanges()[0].Method)
	})
}

// Logs shows both ends of a range, and refuses what is wider than allowed.
func TestLogs(t *testing.T) {
	filter := func(from, to string) string {
		return `{"jsonrpc":"2.0","id":7,"method":"eth_getLogs","params":[{"fromBlock":"` + from + `","toBlock":"` + to + `"}]}`
	}
	script := []Reply{LogsUpTo(100, Error(-32000, "too wide"))}
	inBubble(t, "http://r1.test/", script, func(t *testing.T, n *Node) {
		for _, c := range []struct{ from, to, want string }{
			{"0x0", "0x63", `0x0 0x63`}, {"0x5", "0x5", "0x5"}, {"0x0", "0x64", "too wide"},
			{"0x5", "0x4", ""}, {"0x5", "latest", ""},
		} {
			_, body := post(t, n.Client(), n.URL(), filter(c.from, c.to))
			var answer struct {
				Result []struct{ BlockNumber string }
				Error  *struct{ Message string }
			}
			require.NoError(t, json.Unmarshal([]byte(body), &answer))
			var got []string
			for _, log := range answer.Result {
				got = append(got, log.BlockNumber)
			}
			if answer.Error != nil {
				got = append(got, answer.Error.Message)
			}
			assert.Equal(t, c.want, strings.Join(got, " "))
		}
	})
}

// A gate holds requests in the order of their arrival; the test lets each go as
// it likes, and those whose client gave up are no longer held.
func TestGate(t *testing.T) {
	gate := NewGate()
	inBubble(t, "http://r1.test/", []Reply{Result("as scripted").Hold(gate)}, func(t *testing.T, n *Node) {
		answers := make(chan string, 3)
		ask := func(method string, timeout time.Duration) {
			client := n.Client()
			client.Timeout = timeout
			response, err := client.Post(n.URL(), "application/json", strings.NewReader(call("7", method)))
			if err != nil {
				answers <- "gave up"
				return
			}
			body, _ := io.ReadAll(response.Body)
			answers <- string(body)
		}
		go ask("eth_a", 0)
		synctest.Wait()
		go ask("eth_b", 0)
		synctest.Wait()
		go ask("eth_c", time.Second)
		synctest.Wait()
		assert.Equal(t, 3, gate.Waiting())

		first, err := gate.Next(t.Context())
		require.NoError(t, err)
		assert.Equal(t, "eth_a", first.Request.Method)
		second, err := gate.Next(t.Context())
		require.NoError(t, err)
		second.Reply(Result("another"))
		second.Release() // too late to count
		assert.Contains(t, <-answers, `"another"`)
		assert.Equal(t, "gave up", <-answers)
		synctest.Wait()
		assert.Equal(t, 1, gate.Waiting())

		gate.Open()
		assert.Contains(t, <-answers, `"as scripted"`)
		_, body := post(t, n.Client(), n.URL(), call("7", "eth_d"))
		assert.Contains(t, body, "as scripted")
	})
}

// Faults of TLS: what a client says about them.
func TestNodeTLSFaults(t *testing.T) {
	script := []Reply{BadTLS().Times(1), BadCertificate().Times(1), HangTLS().Times(1)}
	inBubble(t, "https://r1.test/", script, func(t *testing.T, n *Node) {
		ask := func() error {
			client := n.Client()
			client.Timeout = 5 * time.Second
			response, err := client.Post(n.URL(), "application/json", strings.NewReader(call("7", "eth_x")))
			if err == nil {
				_ = response.Body.Close()
			}
			return err
		}
		var record tls.RecordHeaderError
		assert.ErrorAs(t, ask(), &record)
		var certificate *tls.CertificateVerificationError
		assert.ErrorAs(t, ask(), &certificate)
		begin := time.Now()
		assert.Error(t, ask())
		assert.Equal(t, 5*time.Second, time.Since(begin))
		assert.NoError(t, ask(), "the script is used up")
	})
}

// With keep-alive connections serve several requests; without it each is closed
// after one answer, and says so.
func TestNodeKeepAlive(t *testing.T) {
	inBubble(t, "http://r1.test/", nil, func(t *testing.T, n *Node) {
		client := n.Client()
		client.Transport.(*http.Transport).DisableKeepAlives = false
		for range 3 {
			_, _ = post(t, client, n.URL(), call("7", "eth_x"))
		}
		n.server.mu.Lock()
		assert.Len(t, n.server.links, 1)
		n.server.mu.Unlock()
		n.SetKeepAlive(false)
		_, _ = post(t, client, n.URL(), call("7", "eth_x"))
		synctest.Wait()
		n.server.mu.Lock()
		assert.Empty(t, n.server.links)
		n.server.mu.Unlock()
	})
}
