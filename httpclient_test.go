package rpcpool_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// label is the URL that SDKs are given in these tests. Nothing is ever sent to it.
const label = "http://label.invalid/some/path?key=unused"

// sendAs sends a body as an SDK would, and gives the whole response.
func sendAs(t *testing.T, client *http.Client, body string) (*http.Response, string) {
	t.Helper()
	res, err := client.Post(label, "application/json", strings.NewReader(body))
	require.NoError(t, err)
	return res, readAll(t, res)
}

func readAll(t *testing.T, res *http.Response) string {
	t.Helper()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	return string(body)
}

// rawResult answers with these bytes as the result, in an envelope with more in it than
// JSON-RPC has.
func rawResult(raw string) rpcpooltest.Reply {
	return rpcpooltest.Handle(func(q rpcpooltest.Request) rpcpooltest.Reply {
		return rpcpooltest.Body(fmt.Sprintf(`{"usage":{"credits":1},"error":null,"result":%s,"id":%s,"jsonrpc":"2.0"}`, raw, q.ID))
	})
}

// Each client is a new one: an SDK that changes it (aptos-go-sdk's SetTimeout does)
// changes nobody else's. The state behind them is the handle's (rule E1).
func TestHTTPClientIsANewOneEachTime(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1", w.Node("r1", rpcpooltest.Status(503)), w.Node("r2"))
		chain := open(t, w).Chain("1")
		one, other := chain.HTTPClient(), chain.HTTPClient()
		one.Timeout, one.Jar = time.Nanosecond, nil
		require.Zero(t, other.Timeout)
		_, body := sendAs(t, other, `{"jsonrpc":"2.0","id":1,"method":"m"}`)
		require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":"0x1"}`, body)
		_, err := chain.Call(t.Context(), "m")
		require.NoError(t, err)
		require.Equal(t, []string{"r1 p1 m", "r2 p1 m", "r2 p1 m"}, w.Requests())
	})
}

// The answer has the caller's own id, byte for byte, whatever a client makes ids of:
// numbers from 0, Unix milliseconds, UUIDs, numbers beyond any type.
func TestHTTPClientGivesTheIDBackAsItCame(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1", w.Node("r1"))
		client := open(t, w).Chain("1").HTTPClient()
		for _, id := range []string{
			`0`, `1`, `-1`, `1701388800123`, `18446744073709551616`, `1.50e+2`, `1E400`, `null`, `""`, `"0"`,
			`"2c8f1f4e-6f0a-4a51-9c4c-6a1c3d9b8e21"`, `"\u0061\/<\"é"`, `"\ud800"`,
		} {
			_, body := sendAs(t, client, ` { "id" : `+id+` , "method":"m","jsonrpc":"2.0"}`)
			require.Equal(t, `{"jsonrpc":"2.0","id":`+id+`,"result":"0x1"}`, body)
			_, body = sendAs(t, client, `[{"jsonrpc":"2.0","id":`+id+`,"method":"m"},{"jsonrpc":"2.0","id":`+id+`,"method":"m"}]`)
			require.Equal(t, `[{"jsonrpc":"2.0","id":`+id+`,"result":"0x1"},{"jsonrpc":"2.0","id":`+id+`,"result":"0x1"}]`, body)
		}
	})
}

// awkward are results that change when they are decoded and encoded again.
var awkward = map[string]string{
	"a number over 2^53":  `9007199254740993`,
	"a number over 2^64":  `123456789012345678901234567890`,
	"beyond a float":      `[1e400,-1E+400,1e-400]`,
	"as it was written":   `{"a":1.50e+10,"b":-0,"c":0.10}`,
	"a name twice":        `{"a":1,"b":2,"a":3}`,
	"names in no order":   `{"z":1,"a":2,"m":{"y":1,"b":2}}`,
	"escapes":             `"\u0041\/\u003c\"\\\ud83d\ude00\u2028<&>"`,
	"half a character":    `"\ud800"`,
	"not UTF-8":           "\"\xff\xfe\"",
	"spaces":              "[ 1 ,\n\t{ \"a\" : [ ] } ]",
	"null":                `null`,
	"an empty text":       `""`,
	"false":               `false`,
	"an envelope inside":  `{"jsonrpc":"2.0","id":7,"error":{"code":1},"result":"x"}`,
	"brackets in a text":  `"}],{\"result\":["`,
	"deep":                strings.Repeat("[", 500) + strings.Repeat("]", 500),
	"a result of a block": `{"number":"0x10","transactions":[],"extra":"0x","totalDifficulty":123456789012345678901234567890}`,
}

// Results aren't touched: they come as the bytes that the node wrote, alone and in a
// batch. Members that JSON-RPC doesn't have, and a null error, are dropped.
func TestHTTPClientDoesNotTouchResults(t *testing.T) {
	for name, raw := range awkward {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				w.Proxy("p1")
				w.List("1", w.Node("r1", rpcpooltest.Handle(func(q rpcpooltest.Request) rpcpooltest.Reply {
					if !inBatch(q) {
						return rawResult(raw)
					}
					var parts []string
					for _, id := range batchIDs(q) {
						parts = append(parts, `{"error":null,"id":`+id+`,"result":`+raw+`}`)
					}
					return whole(parts...)
				})))
				chain := open(t, w).Chain("1")
				_, body := sendAs(t, chain.HTTPClient(), `{"jsonrpc":"2.0","id":7,"method":"m"}`)
				require.Equal(t, `{"jsonrpc":"2.0","id":7,"result":`+raw+`}`, body)
				_, body = sendAs(t, chain.HTTPClient(), `[{"jsonrpc":"2.0","id":7,"method":"m"},{"jsonrpc":"2.0","id":8,"method":"m"}]`)
				require.Equal(t, `[{"jsonrpc":"2.0","id":7,"result":`+raw+`},{"jsonrpc":"2.0","id":8,"result":`+raw+`}]`, body)
				result, err := chain.Call(t.Context(), "m")
				require.NoError(t, err)
				require.Equal(t, raw, string(result))
			})
		})
	}
}

// A result of 30 MB comes as it was.
func TestHTTPClientLargeResult(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1", w.Node("r1", rpcpooltest.Big(30<<20)))
		res, body := sendAs(t, open(t, w).Chain("1").HTTPClient(), `{"jsonrpc":"2.0","id":1,"method":"m"}`)
		require.Equal(t, int64(len(body)), res.ContentLength)
		require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":"`+strings.Repeat("x", 30<<20)+`"}`, body)
	})
}

// Params go out as the caller wrote them, of whatever form; absent ones stay absent.
func TestHTTPClientSendsParamsAsTheyCame(t *testing.T) {
	for _, params := range []string{
		`[]`, `["0xab", true,null, 1.50e+2,9007199254740993]`, `{}`, `{"b":1,"a":1e400,"b":2}`, `null`, `[ [ ] ]`,
		"[\"\\u003c<\xff\"]", `"0x1"`, ``,
	} {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			w.Proxy("p1")
			r := w.Node("r1", rpcpooltest.Handle(func(q rpcpooltest.Request) rpcpooltest.Reply {
				if !inBatch(q) {
					return rpcpooltest.Result(1)
				}
				return whole(answerOf(batchIDs(q)[0], 1), answerOf(batchIDs(q)[1], 1))
			}))
			w.List("1", r)
			client := open(t, w).Chain("1").HTTPClient()
			request := `{"jsonrpc":"2.0","id":1,"method":"a_<b>"}`
			if params != "" {
				request = `{"jsonrpc":"2.0","id":1,"method":"a_<b>","params":` + params + `}`
			}
			sendAs(t, client, request)
			sendAs(t, client, "["+request+","+request+"]")
			for _, q := range r.Requests() {
				require.Equal(t, params, string(q.Params))
				require.Equal(t, "a_<b>", q.Method)
				require.Equal(t, params != "", strings.Contains(string(q.Body), "params"))
			}
			require.Len(t, r.Requests(), 3)
		})
	}
}

// The response is as complete as a server's. SDKs print Status and Proto, read Header
// and ContentLength, and one panics where Request is nil.
func TestHTTPClientFillsTheResponse(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1", w.Node("r1", rpcpooltest.Status(413).Method("refused").Text("key-r1 says no"), rpcpooltest.Error(3, "execution reverted").Method("reverts")))
		client := open(t, w).Chain("1").HTTPClient()
		for _, c := range []struct {
			body, status, contentType string
		}{
			{`{"jsonrpc":"2.0","id":1,"method":"m"}`, "200 OK", "application/json"},
			{`{"jsonrpc":"2.0","id":1,"method":"reverts"}`, "200 OK", "application/json"},
			{`[{"jsonrpc":"2.0","id":1,"method":"m"}]`, "200 OK", "application/json"},
			{`{`, "200 OK", "application/json"},
			{`{"jsonrpc":"2.0","id":1,"method":"refused"}`, "413 Request Entity Too Large", "text/plain; charset=utf-8"},
			{`{"jsonrpc":"2.0","method":"m"}`, "204 No Content", ""},
		} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, label, strings.NewReader(c.body))
			require.NoError(t, err)
			res, err := client.Do(req)
			require.NoError(t, err)
			require.Equal(t, c.status, res.Status)
			require.Equal(t, c.status, fmt.Sprint(res.StatusCode, " ", http.StatusText(res.StatusCode)))
			require.Equal(t, "HTTP/1.1", res.Proto)
			require.True(t, res.ProtoAtLeast(1, 1))
			require.Equal(t, c.contentType, res.Header.Get("Content-Type"))
			require.Same(t, req, res.Request)
			body := readAll(t, res)
			require.Equal(t, int64(len(body)), res.ContentLength)
			require.NotContains(t, body, "key-r1")
		}
	})
}

// sdkAnswer decodes as several SDKs do at once.
type sdkAnswer struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   json.RawMessage `json:"error,omitempty"`
}

// SDKs that are stricter than servers are loose get on with what they get: one fails on
// a member that it doesn't know (solana-go), one takes a null error for an error
// (go-ethereum 1.17), one compares ids from 0 on (CometBFT's).
func TestHTTPClientServesStrictSDKs(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1", w.Node("r1", rawResult(`"0x10"`)))
		client := open(t, w).Chain("1").HTTPClient()
		for id := range 3 {
			_, body := sendAs(t, client, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"m","params":null}`, id))
			decoder := json.NewDecoder(strings.NewReader(body))
			decoder.DisallowUnknownFields()
			var answer sdkAnswer
			require.NoError(t, decoder.Decode(&answer))
			require.Nil(t, answer.Error)
			require.Equal(t, fmt.Sprint(id), string(answer.ID))
			require.Equal(t, `"0x10"`, string(answer.Result))
			require.Equal(t, "2.0", answer.Version)
		}
	})
}

// A node's JSON-RPC error comes back under HTTP 200, whatever its status was, with code,
// message and data: any other status hides them from go-ethereum.
func TestHTTPClientHandsErrorsOn(t *testing.T) {
	const data = `{"b": 9007199254740993, "a":"\u003c"}`
	reverted := rpcpooltest.ErrorData(3, "execution reverted: <é>\n", json.RawMessage(data))
	for name, reply := range map[string]rpcpooltest.Reply{
		"200": reverted,
		"500": reverted.WithStatus(500),
		"as some servers write it": rpcpooltest.Handle(func(q rpcpooltest.Request) rpcpooltest.Reply {
			return rpcpooltest.Body(`{"id":` + string(q.ID) + `,"error":{"data":` + data + `,"message":"execution reverted: <é>\n","code":"3","more":1},"result":null}`)
		}),
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				w.Proxy("p1")
				w.List("1", w.Node("r1", reply))
				res, body := sendAs(t, open(t, w).Chain("1").HTTPClient(), `{"jsonrpc":"2.0","id":"x","method":"eth_call"}`)
				require.Equal(t, 200, res.StatusCode)
				var answer struct {
					Error struct {
						Code    int
						Message string
						Data    json.RawMessage
					}
					Result json.RawMessage
				}
				require.NoError(t, json.Unmarshal([]byte(body), &answer))
				require.Equal(t, 3, answer.Error.Code)
				require.Equal(t, "execution reverted: <é>\n", answer.Error.Message)
				require.JSONEq(t, data, string(answer.Error.Data))
				require.Contains(t, string(answer.Error.Data), "9007199254740993")
				require.Nil(t, answer.Result)
				require.Contains(t, body, "<é>", "text isn't escaped for HTML")
			})
		})
	}
}

// What isn't an answer is the request's error. net/http wraps it, and errors.As finds it.
func TestHTTPClientErrorsAreFoundThroughTheWrapping(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1", w.Node("r1", rpcpooltest.Status(503)))
		pool := open(t, w)
		client := pool.Chain("1").HTTPClient()
		for _, body := range []string{
			`{"jsonrpc":"2.0","id":1,"method":"m"}`, `[{"jsonrpc":"2.0","id":1,"method":"m"},{"jsonrpc":"2.0","id":2,"method":"m"}]`,
			`{"jsonrpc":"2.0","method":"m"}`,
		} {
			_, err := client.Post(label, "application/json", strings.NewReader(body))
			var wrapped *url.Error
			require.ErrorAs(t, err, &wrapped)
			var unhealthy *rpcpool.NoHealthyRPCError
			require.ErrorAs(t, err, &unhealthy)
			require.NotContains(t, err.Error(), "key-r1")
		}
		require.NoError(t, pool.Close())
		_, err := client.Post(label, "application/json", strings.NewReader(`{"id":1,"method":"m"}`))
		require.ErrorIs(t, err, rpcpool.ErrClosed)

		var config *rpcpool.ConfigError
		_, err = open(t, w).Chain("").HTTPClient().Post(label, "application/json", strings.NewReader(`{"id":1,"method":"m"}`))
		require.ErrorAs(t, err, &config)
	})
}

// A batch is answered in the shape and order asked, each request with its own end: a
// result, an error, a fault of its own; notifications not at all.
func TestHTTPClientBatch(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		r := w.Node("r1",
			rpcpooltest.Error(-32000, "nonce too low").Method("low"),
			rpcpooltest.Error(-32603, "internal error").Method("sick"),
			rpcpooltest.Result("0x1"))
		w.List("1", r)
		_, body := sendAs(t, open(t, w).Chain("1").HTTPClient(), `[
			{"jsonrpc":"2.0","id":5,"method":"m"}, {"jsonrpc":"2.0","method":"told"}, {"jsonrpc":"2.0","id":"b","method":"low"},
			7, {"jsonrpc":"2.0","id":[1],"method":"m"}, {"jsonrpc":"2.0","id":9}, {"jsonrpc":"2.0","id":10,"method":""},
			{"jsonrpc":"2.0","id":11,"method":"eth_subscribe","params":["newHeads"]}, {"jsonrpc":"2.0","id":1,"method":"m"} ]`)
		var answers []string
		var parts []json.RawMessage
		require.NoError(t, json.Unmarshal([]byte(body), &parts))
		for _, part := range parts {
			answers = append(answers, string(part))
		}
		require.Equal(t, []string{
			`{"jsonrpc":"2.0","id":5,"result":"0x1"}`,
			`{"jsonrpc":"2.0","id":"b","error":{"code":-32000,"message":"nonce too low"}}`,
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request: it isn't an object"}}`,
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request: its id is neither a string, nor a number, nor null"}}`,
			`{"jsonrpc":"2.0","id":9,"error":{"code":-32600,"message":"invalid request: it has no method"}}`,
			`{"jsonrpc":"2.0","id":10,"error":{"code":-32600,"message":"invalid request: its method isn't a name"}}`,
			`{"jsonrpc":"2.0","id":11,"error":{"code":-32600,"message":"rpcpool: invalid request \"eth_subscribe\": subscriptions need a WebSocket, and RPCs are reached over HTTP only; poll instead, by eth_blockNumber or eth_getLogs"}}`,
			`{"jsonrpc":"2.0","id":1,"result":"0x1"}`,
		}, answers)
		require.Equal(t, []string{"r1 p1 batch"}, w.Requests())
		require.Len(t, r.Requests(), 4, "the notification was sent")
	})
}

// A request of a batch that nobody answers is that one's error, as long as others are
// answered.
func TestHTTPClientBatchWithOneThatFails(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1", w.Node("r1",
			rpcpooltest.Error(-32601, "method not found").Method("none"),
			rpcpooltest.Result("0x1")))
		_, body := sendAs(t, open(t, w).Chain("1").HTTPClient(), `[{"jsonrpc":"2.0","id":1,"method":"none"},{"jsonrpc":"2.0","id":2,"method":"m"}]`)
		var answers []struct {
			ID     int
			Result string
			Error  struct {
				Code    int
				Message string
			}
		}
		require.NoError(t, json.Unmarshal([]byte(body), &answers))
		require.Len(t, answers, 2)
		require.Equal(t, -32603, answers[0].Error.Code)
		require.Contains(t, answers[0].Error.Message, "no healthy RPC")
		require.NotContains(t, body, "key-r1")
		require.Equal(t, "0x1", answers[1].Result)
	})
}

// Notifications are sent like any request, and answered by nothing.
func TestHTTPClientNotifications(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		r := w.Node("r1", rpcpooltest.Error(3, "execution reverted").Method("reverts"))
		w.List("1", r)
		client := open(t, w).Chain("1").HTTPClient()
		for _, body := range []string{
			`{"jsonrpc":"2.0","method":"m"}`, `{"jsonrpc":"2.0","method":"reverts"}`,
			`[{"jsonrpc":"2.0","method":"m"}]`, `[{"jsonrpc":"2.0","method":"m"},{"jsonrpc":"2.0","method":"m"}]`,
		} {
			res, answer := sendAs(t, client, body)
			require.Equal(t, 204, res.StatusCode)
			require.Empty(t, answer)
		}
		require.Len(t, r.Requests(), 5)
	})
}

// What isn't JSON-RPC, though it is JSON, or isn't even that, is answered as servers do.
func TestHTTPClientAnswersWhatIsNoRequest(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		client := open(t, w).Chain("1").HTTPClient()
		for body, want := range map[string]int{
			`{`: -32700, `nonsense`: -32700, ` `: -32700, `{"id":1,"method":"m"}{"id":2,"method":"m"}`: -32700,
			`[{"id":1,"method":"m"}`: -32700, strings.Repeat("[", 20_000): -32700,
			`[]`: -32600, `[ ]`: -32600, `7`: -32600, `"text"`: -32600, `null`: -32600, `true`: -32600, `{}`: -32600,
			`{"id":1,"method":7}`: -32600, `{"id":1,"METHOD":"m"}`: -32600,
		} {
			res, answer := sendAs(t, client, body)
			require.Equal(t, 200, res.StatusCode, "%s", body)
			var parsed struct {
				ID    json.RawMessage
				Error struct {
					Code    int
					Message string
				}
			}
			require.NoError(t, json.Unmarshal([]byte(answer), &parsed), "%s", body)
			require.Equal(t, want, parsed.Error.Code, "%s", body)
			require.NotEmpty(t, parsed.Error.Message)
			if !strings.Contains(body, `"id":1`) || want == -32700 {
				require.Equal(t, "null", string(parsed.ID), "%s", body)
			}
		}
		require.Empty(t, w.Requests())
	})
}

// Misuse is an error that says what is wrong, and sends nothing.
func TestHTTPClientMisuse(t *testing.T) {
	const call = `{"jsonrpc":"2.0","id":1,"method":"m"}`
	for name, c := range map[string]struct {
		method, url, body string
		header            http.Header
		want              string
	}{
		"GET":                {"GET", label, "", nil, "JSON-RPC is sent by POST, not by GET"},
		"no method is GET":   {"", label, "", nil, "not by GET"},
		"PUT":                {"PUT", label, call, nil, "not by PUT"},
		"no body":            {"POST", label, "", nil, "no body"},
		"a form":             {"POST", label, "a=1", http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, "isn't JSON"},
		"a page":             {"POST", label, "<html>", http.Header{"Content-Type": {"text/html; charset=utf-8"}}, `"text/html; charset=utf-8" isn't JSON`},
		"no type at all":     {"POST", label, call, http.Header{"Content-Type": {";;"}}, "isn't JSON"},
		"compressed":         {"POST", label, call, http.Header{"Content-Encoding": {"gzip"}}, "compressed"},
		"a WebSocket's URL":  {"POST", "ws://label.invalid/", call, nil, "WebSocket"},
		"and with TLS":       {"POST", "wss://label.invalid/", call, nil, "WebSocket"},
		"a WebSocket's head": {"GET", label, "", http.Header{"Upgrade": {"websocket"}, "Connection": {"Upgrade"}}, "WebSocket"},
		"a subscription":     {"POST", label, `{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["newHeads"]}`, nil, "poll instead"},
		"Solana's":           {"POST", label, `{"jsonrpc":"2.0","id":1,"method":"slotSubscribe"}`, nil, "poll instead"},
		"CometBFT's":         {"POST", label, `{"jsonrpc":"2.0","id":1,"method":"subscribe"}`, nil, "poll instead"},
		"in a batch":         {"POST", label, `[{"jsonrpc":"2.0","id":1,"method":"starknet_subscribeNewHeads"}]`, nil, "poll instead"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				w.Proxy("p1")
				w.List("1", w.Node("r1"))
				u, err := url.Parse(c.url)
				require.NoError(t, err)
				req := (&http.Request{Method: c.method, URL: u, Header: c.header}).WithContext(t.Context())
				body := &watchedReader{Reader: strings.NewReader(c.body)}
				if c.body != "" {
					req.Body = body
				}
				_, err = open(t, w).Chain("1").HTTPClient().Do(req)
				var misused *rpcpool.RequestError
				require.ErrorAs(t, err, &misused)
				require.ErrorContains(t, err, c.want)
				require.Empty(t, w.Requests())
				require.Equal(t, c.body != "", body.closed)
			})
		})
	}
}

// Types of content that JSON-RPC is sent under are taken, and so is none.
func TestHTTPClientContentTypes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1", w.Node("r1"))
		client := open(t, w).Chain("1").HTTPClient()
		for _, kind := range []string{
			"", "application/json", "Application/JSON; charset=utf-8", "application/json-rpc", "application/jsonrequest",
			"application/vnd.api+json", "text/plain",
		} {
			res, err := client.Post(label, kind, strings.NewReader(`{"id":1,"method":"m"}`))
			require.NoError(t, err, kind)
			require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":"0x1"}`, readAll(t, res))
		}
	})
}

// watchedReader is a request's body that knows whether it was closed.
type watchedReader struct {
	io.Reader
	mu     sync.Mutex
	closed bool
}

func (r *watchedReader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	return nil
}

// The request is read, closed and not changed, so that an SDK may send it again.
func TestHTTPClientLeavesTheRequestAlone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		r := w.Node("r1")
		w.List("1", r)
		client := open(t, w).Chain("1").HTTPClient()
		body := &watchedReader{Reader: strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"m"}`)}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, label, body)
		require.NoError(t, err)
		req.Header.Set("X-Mine", "1")
		req.Header.Set("Accept-Encoding", "gzip")
		before, header := *req, req.Header.Clone()
		res, err := client.Transport.RoundTrip(req)
		require.NoError(t, err)
		require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":"0x1"}`, readAll(t, res), "plain, though gzip was welcome")
		require.Empty(t, res.Header.Get("Content-Encoding"))
		require.True(t, body.closed)
		require.Equal(t, before, *req)
		require.Equal(t, header, req.Header)
		require.Empty(t, r.Requests()[0].Header.Get("X-Mine"), "the SDK's headers are for its own server")
	})
}

// A body that fails to be read is the caller's error.
func TestHTTPClientBodyThatFails(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		client := open(t, w).Chain("1").HTTPClient()
		mine := errors.New("mine")
		_, err := client.Post(label, "application/json", io.MultiReader(strings.NewReader(`{"id":1`), failingReader{mine}))
		require.ErrorIs(t, err, mine)
		var request *rpcpool.RequestError
		require.ErrorAs(t, err, &request)
		require.Empty(t, w.Requests())
	})
}

type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) { return 0, r.err }

// The request's context ends it at once wherever it is: while its own body is read,
// while an RPC is asked, in a batch. Nothing is left, and nobody is blamed.
func TestHTTPClientEndsWithItsContext(t *testing.T) {
	pipe := func() io.Reader { r, _ := io.Pipe(); return r }
	for name, body := range map[string]func() io.Reader{
		"while the body is read": pipe,
		"while it waits":         func() io.Reader { return strings.NewReader(`{"id":1,"method":"m"}`) },
		"in a batch":             func() io.Reader { return strings.NewReader(`[{"id":1,"method":"m"},{"id":2,"method":"m"}]`) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				p := w.Proxy("p1")
				w.List("1", w.Node("r1", rpcpooltest.Hang()), w.Node("r2", rpcpooltest.Hang()))
				pool := open(t, w)
				client := pool.Chain("1").HTTPClient()

				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(7*time.Second, cancel)
				start := time.Now()
				req, err := http.NewRequestWithContext(ctx, http.MethodPost, label, body())
				require.NoError(t, err)
				_, err = client.Do(req)
				require.ErrorIs(t, err, context.Canceled)
				require.Equal(t, 7*time.Second, time.Since(start))

				client.Timeout = 3 * time.Second
				start = time.Now()
				_, err = client.Post(label, "application/json", body())
				require.ErrorIs(t, err, context.DeadlineExceeded)
				var timeout interface{ Timeout() bool }
				require.ErrorAs(t, err, &timeout)
				require.True(t, timeout.Timeout())
				require.Equal(t, 3*time.Second, time.Since(start))

				nothingLeft(t, w, p)
				require.NoError(t, pool.Close())
				require.Empty(t, w.Pool.Reports())
			})
		})
	}
}

// A body that is closed early, or never read, leaves nothing behind; closed is closed.
func TestHTTPClientBodyClosedEarly(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		p := w.Proxy("p1")
		w.SetKeepAlive(false)
		w.List("1", w.Node("r1", rpcpooltest.Big(1<<20)))
		client := open(t, w).Chain("1").HTTPClient()
		client.Timeout = time.Minute
		res, err := client.Post(label, "application/json", strings.NewReader(`{"id":1,"method":"m"}`))
		require.NoError(t, err)
		var some [10]byte
		_, err = io.ReadFull(res.Body, some[:])
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		_, err = res.Body.Read(some[:])
		require.ErrorIs(t, err, http.ErrBodyReadAfterClose)

		client.Timeout = 0
		_, err = client.Post(label, "application/json", strings.NewReader(`{"id":1,"method":"m"}`))
		require.NoError(t, err)
		nothingLeft(t, w, p)
	})
}

// The body is read right in pieces of any size.
func TestHTTPClientBodyInPieces(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1", w.Node("r1"))
		client := open(t, w).Chain("1").HTTPClient()
		for size := 1; size < 50; size++ {
			res, err := client.Post(label, "application/json", strings.NewReader(`{"id":1,"method":"m"}`))
			require.NoError(t, err)
			var whole bytes.Buffer
			_, err = io.CopyBuffer(struct{ io.Writer }{&whole}, struct{ io.Reader }{res.Body}, make([]byte, size))
			require.NoError(t, err)
			require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":"0x1"}`, whole.String())
			n, err := res.Body.Read(make([]byte, 1))
			require.Zero(t, n)
			require.ErrorIs(t, err, io.EOF)
		}
	})
}

// 64 goroutines on one client, single requests and batches, while RPCs fail: each gets
// its own answer, and nothing is left.
func TestHTTPClientFrom64Goroutines(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		p1, p2 := w.Proxy("p1"), w.Proxy("p2")
		w.SetKeepAlive(false)
		w.List("1",
			w.Node("r1", rpcpooltest.Handle(giveBack).Times(20), rpcpooltest.Status(502)),
			w.Node("r2", rpcpooltest.Handle(giveBack).Times(50), rpcpooltest.Reset()),
			w.Node("r3", rpcpooltest.Handle(giveBack)))
		pool := open(t, w)
		client := pool.Chain("1").HTTPClient()
		var callers sync.WaitGroup
		for caller := range 64 {
			callers.Go(func() {
				for i := range 10 {
					n := caller*10 + i
					request := fmt.Sprintf(`{"jsonrpc":"2.0","id":"%d","method":"m","params":[%d]}`, n, n)
					want := fmt.Sprintf(`{"jsonrpc":"2.0","id":"%d","result":%d}`, n, n)
					if i%2 == 1 {
						request, want = "["+request+","+request+"]", "["+want+","+want+"]"
					}
					res, err := client.Post(label, "application/json", strings.NewReader(request))
					if err != nil {
						t.Error(err)
						return
					}
					body, err := io.ReadAll(res.Body)
					if err != nil || string(body) != want {
						t.Errorf("got %s, %v, want %s", body, err, want)
					}
					_ = res.Body.Close()
				}
			})
		}
		callers.Wait()
		synctest.Wait()
		nothingLeft(t, w, p1, p2)
	})
}
