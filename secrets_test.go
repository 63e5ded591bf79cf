package rpcpool_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// What a bot must never show.
const (
	proxyUser, proxyPassword = "proxy-user-1", "proxy-word-2"
	nodeUser, nodePassword   = "node-user-3", "node-word-4"
	pathKey, queryKey        = "path-key-5", "query-key-6"
)

// kept are the texts that must not occur in anything that is shown; the API key is
// the world's.
func kept(w *rpcpooltest.World) []string {
	return []string{
		proxyUser, proxyPassword, nodeUser, nodePassword, pathKey, queryKey, w.Pool.Key(),
		base64.StdEncoding.EncodeToString([]byte(proxyUser + ":" + proxyPassword)),
		base64.StdEncoding.EncodeToString([]byte(nodeUser + ":" + nodePassword)),
	}
}

// echo is all that the other side can repeat, in one line: what it knows by itself,
// and what comes along in requests.
func echo(w *rpcpooltest.World) string { return strings.Join(kept(w), " ") }

// rpcURL is a URL that has a secret wherever there is room for one.
func rpcURL(scheme, host string) string {
	return fmt.Sprintf("%s://%s:%s@%s/v2/%s?apikey=%s", scheme, nodeUser, nodePassword, host, pathKey, queryKey)
}

// proxyURL is a proxy with a login.
func proxyURL(scheme, host string) string {
	return fmt.Sprintf("%s://%s:%s@%s", scheme, proxyUser, proxyPassword, host)
}

// room is a world whose secrets are watched: everything that comes out of the library
// is collected and looked through.
type room struct {
	t      *testing.T
	w      *rpcpooltest.World
	logged lockedBuffer
	events atomic.Int64 // that hooks were told
}

func newRoom(t *testing.T, w *rpcpooltest.World) *room {
	r := &room{t: t, w: w}
	w.SetKeepAlive(false)
	return r
}

// lockedBuffer is a bytes.Buffer for several goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// logger writes every record twice, as text and as JSON.
func (r *room) logger() *slog.Logger {
	options := &slog.HandlerOptions{Level: slog.LevelDebug}
	return slog.New(slog.NewMultiHandler(slog.NewTextHandler(&r.logged, options), slog.NewJSONHandler(&r.logged, options)))
}

// open makes a pool whose logs and events are collected.
func (r *room) open(change ...func(*rpcpool.Config)) *rpcpool.Pool {
	return open(r.t, r.w, append([]func(*rpcpool.Config){func(cfg *rpcpool.Config) {
		cfg.Logger = r.logger()
		cfg.Hooks = []rpcpool.Hook{&hookLog{each: r.showEvent}}
	}}, change...)...)
}

// showEvent writes what a hook is told among the logs.
func (r *room) showEvent(event any) {
	r.events.Add(1)
	encoded, err := json.Marshal(event)
	assert.NoError(r.t, err)
	fmt.Fprintf(&r.logged, "%T %+v %#v %s\n", event, event, event, encoded)
}

// hidden checks that a text has no secret in it, nor one in hexadecimal or as a list
// of bytes, as %x and %d would have it.
func (r *room) hidden(what, text string) {
	r.t.Helper()
	for _, secret := range kept(r.w) {
		for _, form := range []string{secret, fmt.Sprintf("%x", secret), strings.Trim(fmt.Sprintf("%d", []byte(secret)), "[]")} {
			if at := strings.Index(text, form); at >= 0 {
				r.t.Errorf("%s shows %q: …%s…", what, secret, text[max(0, at-80):at+len(form)])
			}
		}
	}
}

// forms checks every form in which a value can be shown.
func (r *room) forms(what string, value any) {
	r.t.Helper()
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		r.hidden(what+" as "+verb, fmt.Sprintf(verb, value))
	}
	encoded, err := json.Marshal(value)
	if assert.NoError(r.t, err, "%s as JSON", what) {
		r.hidden(what+" as JSON", string(encoded))
	}
	r.logger().Error("shown", "value", value)
}

// error checks an error, what it wraps, and the attempts that it tells of.
func (r *room) error(err error) {
	r.t.Helper()
	require.Error(r.t, err)
	var own rpcpool.Error
	require.ErrorAs(r.t, err, &own)
	for each := err; each != nil; each = errors.Unwrap(each) {
		r.forms(fmt.Sprintf("%T", each), each)
	}
	for _, attempt := range attemptsIn(err) {
		r.forms("an attempt", attempt)
	}
}

// end lets reports arrive, in a bubble, and looks through them and the log.
func (r *room) end(pool *rpcpool.Pool) {
	r.t.Helper()
	time.Sleep(time.Second)
	require.NoError(r.t, pool.Close())
	for _, report := range r.w.Pool.Reports() {
		r.hidden("a report", report.Detail+report.Error+report.Chain)
	}
	r.hidden("the log", r.logged.String())
	require.NotEmpty(r.t, r.logged.String())
	require.NotZero(r.t, r.events.Load(), "hooks were told something")
}

// leaks are what a node, or whoever speaks for it, repeats of what it knows, each
// with a part of the error that the caller gets.
var leaks = []struct {
	name   string
	want   string
	method string
	reply  func(echo string) rpcpooltest.Reply
}{
	{"invalid params", "JSON-RPC error -32602", "eth_call", func(e string) rpcpooltest.Reply { return rpcpooltest.Error(-32602, "invalid params at "+e) }},
	{"a revert with data", "JSON-RPC error 3", "eth_call", func(e string) rpcpooltest.Reply { return rpcpooltest.ErrorData(3, "execution reverted: "+e, e) }},
	{"data that is an object", "JSON-RPC error -32000", "eth_call", func(e string) rpcpooltest.Reply {
		return rpcpooltest.ErrorData(-32000, "nonce too low", map[string]any{"request": map[string]any{"url": e, e: []string{e}}})
	}},
	{"unsupported", "unsupported", "x_y", func(e string) rpcpooltest.Reply { return rpcpooltest.Error(-32601, "method not found: "+e) }},
	{"rate limited", "rpc_fail", "eth_call", func(e string) rpcpooltest.Reply { return rpcpooltest.Error(-32005, "rate limit of "+e) }},
	{"a long text", "rpc_fail", "eth_call", func(e string) rpcpooltest.Reply {
		return rpcpooltest.Error(-32603, "internal error: "+strings.Repeat(e+" ", 30))
	}},
	{"a range refused", "range", "eth_getLogs", func(e string) rpcpooltest.Reply {
		return rpcpooltest.Error(-32000, "block range too large, max is 500, see "+e)
	}},
	{"pruned", "no_state", "eth_call", func(e string) rpcpooltest.Reply {
		return rpcpooltest.Error(-32000, "required historical state unavailable (reexec=128) of "+e)
	}},
	{"a page", "isn't JSON", "eth_call", func(e string) rpcpooltest.Reply { return rpcpooltest.Body("<html>" + e + "</html>") }},
	{"no object", "isn't a JSON-RPC object", "eth_call", func(e string) rpcpooltest.Reply { return rpcpooltest.Body(`["` + e + `"]`) }},
	{"a malformed error", "error isn't of JSON-RPC's form", "eth_call", func(e string) rpcpooltest.Reply { return rpcpooltest.Body(`{"error":"` + e + `"}`) }},
	{"another id", "id isn't the request's", "eth_call", func(e string) rpcpooltest.Reply {
		return rpcpooltest.Body(`{"jsonrpc":"2.0","id":"` + e + `","result":"` + e + `"}`)
	}},
	{"400 and JSON-RPC", "HTTP status 400", "eth_call", func(e string) rpcpooltest.Reply {
		return rpcpooltest.Error(-32602, "invalid params "+e).WithStatus(400)
	}},
	{"400 and a page", "HTTP status 400", "eth_call", statusPage(400)},
	{"401", "HTTP status 401", "eth_call", statusPage(401)},
	{"403", "HTTP status 403", "eth_call", statusPage(403)},
	{"404", "HTTP status 404", "eth_call", statusPage(404)},
	{"407", "407", "eth_call", statusPage(407)},
	{"413", "HTTP status 413", "eth_call", statusPage(413)},
	{"429", "HTTP status 429", "eth_call", func(e string) rpcpooltest.Reply { return rpcpooltest.RateLimited(time.Second).Text(e) }},
	{"500 and a revert", "JSON-RPC error 3", "eth_call", func(e string) rpcpooltest.Reply {
		return rpcpooltest.Error(3, "execution reverted: "+e).WithStatus(500)
	}},
	{"500", "HTTP status 500", "eth_call", statusPage(500)},
	{"599", "HTTP status 599", "eth_call", statusPage(599)},
	{"a redirect", "HTTP status 302", "eth_call", func(e string) rpcpooltest.Reply {
		return rpcpooltest.Status(302).Header("Location", "http://other.test/"+e).Text(e)
	}},
	{"a header line that is none", "", "eth_call", func(e string) rpcpooltest.Reply {
		return rpcpooltest.Body(e).Header("Content-Encoding", "gzip")
	}},
	{"cut", "broke off", "eth_call", func(e string) rpcpooltest.Reply { return rpcpooltest.Result(e).Cut() }},
	{"a hang", "no answer in time", "eth_call", func(string) rpcpooltest.Reply { return rpcpooltest.Hang() }},
	{"a hang in the body", "no answer in time", "eth_call", func(string) rpcpooltest.Reply { return rpcpooltest.HangInBody() }},
	{"a reset", "", "eth_call", func(string) rpcpooltest.Reply { return rpcpooltest.Reset() }},
	{"unreachable", "", "eth_call", func(e string) rpcpooltest.Reply { return rpcpooltest.Unreachable().Header("X-Echo", e) }},
}

func statusPage(status int) func(string) rpcpooltest.Reply {
	return func(e string) rpcpooltest.Reply {
		return rpcpooltest.Status(status).Text("<html>"+e+"</html>").Header("X-Echo", e).Header("Www-Authenticate", "Basic realm="+e)
	}
}

// ways are the ways to a node.
var ways = []struct{ name, scheme, proxy string }{
	{"socks5", "http", "socks5"},
	{"absolute form", "http", "http"},
	{"CONNECT", "https", "http"},
}

// Whatever a node repeats of what it was asked by, no error, attempt, log line or
// report shows a secret (rule A1.5).
func TestSecretsThatANodeRepeats(t *testing.T) {
	for _, way := range ways {
		for _, leak := range leaks {
			t.Run(way.name+"/"+leak.name, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
					r := newRoom(t, w)
					w.ProxyAt("p1", proxyURL(way.proxy, "p1.test:1080"))
					w.List("1", w.NodeAt("r1", rpcURL(way.scheme, "r1.test"), leak.reply(echo(w))))
					pool := r.open()
					_, err := pool.Chain("1").Call(t.Context(), leak.method, map[string]any{"fromBlock": "0x1", "toBlock": "0x2"})
					r.error(err)
					require.ErrorContains(t, err, leak.want)
					r.end(pool)
				})
			})
		}
	}
}

// TLS that fails shows no secret either, whoever makes it fail.
func TestSecretsWhenTLSFails(t *testing.T) {
	for name, reply := range map[string]rpcpooltest.Reply{
		"no TLS": rpcpooltest.BadTLS(), "hangs": rpcpooltest.HangTLS(), "a stranger's certificate": rpcpooltest.BadCertificate(),
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				r := newRoom(t, w)
				w.ProxyAt("p1", proxyURL("https", "p1.test:443"))
				w.List("1", w.NodeAt("r1", rpcURL("https", "r1.test"), reply))
				pool := r.open()
				_, err := pool.Chain("1").Call(t.Context(), "eth_chainId")
				r.error(err)
				require.ErrorContains(t, err, "TLS")
				r.end(pool)
			})
		})
	}
}

// An error's data that a node filled with secrets is still JSON when they are masked.
func TestSecretsInDataLeaveItJSON(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		r := newRoom(t, w)
		w.Proxy("p1")
		// The key is a number, and the data has that number in it.
		w.List("1", w.NodeAt("r1", "http://r1.test/123456", rpcpooltest.ErrorData(-32000, "nonce too low", map[string]any{"project": 123456})))
		pool := r.open()
		_, err := pool.Chain("1").Call(t.Context(), "eth_chainId")
		var rpcErr *rpcpool.RPCError
		require.ErrorAs(t, err, &rpcErr)
		require.True(t, json.Valid(rpcErr.Data), "%s", rpcErr.Data)
		r.error(err)
	})
}

// The data of a revert is the caller's: a path that holds no more than the chain's
// number, or a short word, doesn't spoil the digits that happen to be the same.
func TestDataOfARevertIsLeftAlone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		const data = `"0x08c379a00000000000000000000000000000000000000000000000000000000000008453dead"`
		w.List("1", w.NodeAt("r1", "http://r1.test/dead/8453", rpcpooltest.ErrorData(3, "execution reverted", json.RawMessage(data))))
		_, err := open(t, w).Chain("1").Call(t.Context(), "eth_call")
		var rpcErr *rpcpool.RPCError
		require.ErrorAs(t, err, &rpcErr)
		require.Equal(t, data, string(rpcErr.Data))
	})
}

// A result that isn't what the caller wants is refused without quoting it: a node may
// have put anything there.
func TestSecretsInAResultOfAnotherType(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		r := newRoom(t, w)
		w.ProxyAt("p1", proxyURL("socks5", "p1.test:1080"))
		w.List("1", w.NodeAt("r1", rpcURL("http", "r1.test"), rpcpooltest.Result(echo(w))))
		pool := r.open()
		var when time.Time
		r.error(pool.Chain("1").CallContext(t.Context(), &when, "x_time"))
		var number int
		r.error(pool.Chain("1").CallContext(t.Context(), &number, "x_number"))
		_, err := pool.Chain("1").GetLogsChunked(t.Context(), rpcpool.LogFilter{})
		r.error(err)
		r.end(pool)
	})
}

// A user's rule sees the answer as it came; what it prints of it isn't shown whole.
func TestSecretsInWhatRulesSee(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		r := newRoom(t, w)
		w.ProxyAt("p1", proxyURL("socks5", "p1.test:1080"))
		w.List("1", w.NodeAt("r1", rpcURL("http", "r1.test"), rpcpooltest.ErrorData(-32000, echo(w), echo(w))))
		var seen []rpcpool.ErrorAnswer
		pool := r.open(func(cfg *rpcpool.Config) {
			cfg.Rules = []rpcpool.Rule{{Verdict: rpcpool.VerdictRPCFail, Match: func(answer rpcpool.ErrorAnswer) bool {
				seen = append(seen, answer)
				return true
			}}}
		})
		_, err := pool.Chain("1").Call(context.Background(), "eth_chainId")
		r.error(err)
		require.Len(t, seen, 1)
		r.forms("what a rule sees", seen[0])
		r.end(pool)
	})
}
