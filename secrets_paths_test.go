package rpcpool_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// listedURL has the pool list one RPC by its URL, whether or not there is such a node.
func (r *room) listedURL(rawURL string) {
	r.w.Pool.Lists("1", rpcpooltest.PoolList("eip155:1", rpcpooltest.Listed{URL: rawURL, Caps: rpcpooltest.AllCaps()}))
}

// parrot is a server at addr that repeats, in an answer of its own making, what it was
// sent. It lives in the bubble and ends with the world.
func (r *room) parrot(addr, answer string) {
	listener, err := r.w.Network.Listen(addr)
	require.NoError(r.t, err)
	r.t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go repeat(conn, answer)
		}
	}()
}

// repeat serves one connection: ECHO in the answer stands for the request.
func repeat(conn net.Conn, answer string) {
	defer conn.Close()
	var request strings.Builder
	for lines := bufio.NewReader(conn); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		if strings.TrimSpace(line) == "" {
			break
		}
		request.WriteString(strings.TrimSpace(line) + " ")
	}
	_, _ = io.WriteString(conn, strings.ReplaceAll(answer, "ECHO", request.String()))
}

// A proxy that fails, whatever it says, shows nothing of its login or of the RPC.
func TestSecretsWhenAProxyFails(t *testing.T) {
	type proxyCase struct {
		name, scheme, target, want string
		script                     []rpcpooltest.ProxyReply
	}
	cases := []proxyCase{
		{"refuses", "socks5", "http", "proxy_fail", []rpcpooltest.ProxyReply{rpcpooltest.ProxyRefuse()}},
		{"hangs", "socks5", "https", "proxy_fail", []rpcpooltest.ProxyReply{rpcpooltest.ProxyHang()}},
		{"refuses the login", "socks5", "http", "proxy_fail", []rpcpooltest.ProxyReply{rpcpooltest.ProxyRefuseLogin()}},
		{"talks nonsense", "socks5", "http", "proxy_fail", []rpcpooltest.ProxyReply{rpcpooltest.ProxyGarbage()}},
		{"black hole", "socks5", "http", "conn_fail", []rpcpooltest.ProxyReply{rpcpooltest.ProxyBlackHole()}},
		{"refuses the login", "http", "https", "proxy_fail", []rpcpooltest.ProxyReply{rpcpooltest.ProxyRefuseLogin()}},
		{"refuses the login", "http", "http", "proxy_fail", []rpcpooltest.ProxyReply{rpcpooltest.ProxyRefuseLogin()}},
		{"talks nonsense", "http", "https", "proxy_fail", []rpcpooltest.ProxyReply{rpcpooltest.ProxyGarbage()}},
		{"talks nonsense", "http", "http", "conn_fail", []rpcpooltest.ProxyReply{rpcpooltest.ProxyGarbage()}},
		{"black hole", "http", "http", "conn_fail", []rpcpooltest.ProxyReply{rpcpooltest.ProxyBlackHole()}},
		{"squid's page", "http", "http", "conn_fail", []rpcpooltest.ProxyReply{rpcpooltest.ProxyStatus(503).Header("X-Squid-Error", "ERR_DNS_FAIL "+pathKey)}},
		{"tinyproxy's page", "http", "http", "proxy_fail", []rpcpooltest.ProxyReply{rpcpooltest.ProxyStatus(403).Header("Server", "tinyproxy/1.11 "+pathKey)}},
		{"privoxy's page", "http", "http", "conn_fail", []rpcpooltest.ProxyReply{rpcpooltest.ProxyStatus(404).Header("Last-Modified", "Wed, 08 Jun 1955 12:00:00 GMT")}},
		{"unknown target", "socks5", "http", "SOCKS5 code 4", nil},
		{"unknown target", "http", "https", "502", nil},
		{"unknown target", "http", "http", "502", nil},
	}
	for _, code := range []int{1, 2, 3, 5, 6, 7, 8, 9, 255} {
		cases = append(cases, proxyCase{fmt.Sprint("code ", code), "socks5", "http", fmt.Sprintf("SOCKS5 code %d", code),
			[]rpcpooltest.ProxyReply{rpcpooltest.ProxyCode(code)}})
	}
	for _, status := range []int{400, 401, 403, 407, 429, 500, 502, 503, 504, 599} {
		cases = append(cases, proxyCase{fmt.Sprint("CONNECT ", status), "http", "https", fmt.Sprintf("HTTP status %d", status),
			[]rpcpooltest.ProxyReply{rpcpooltest.ProxyStatus(status).Header("X-Echo", pathKey)}})
	}
	for _, c := range cases {
		t.Run(c.scheme+"/"+c.target+"/"+c.name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				r := newRoom(t, w)
				w.ProxyAt("p1", proxyURL(c.scheme, "p1.test:1080"), c.script...)
				r.listedURL(rpcURL(c.target, "nobody.test"))
				pool := r.open()
				_, err := pool.Chain("1").Call(t.Context(), "eth_chainId")
				r.error(err)
				require.ErrorContains(t, err, c.want)
				r.end(pool)
			})
		})
	}
}

// A SOCKS4 proxy is told a user id; a refusal of it shows neither that nor the RPC.
func TestSecretsWhenASOCKS4ProxyFails(t *testing.T) {
	for _, code := range []int{91, 92, 93, 1} {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			r := newRoom(t, w)
			w.ProxyAt("p1", "socks4a://"+proxyUser+"@p1.test:1080", rpcpooltest.ProxyCode(code))
			r.listedURL(rpcURL("http", "nobody.test"))
			pool := r.open()
			_, err := pool.Chain("1").Call(t.Context(), "eth_chainId")
			r.error(err)
			require.ErrorContains(t, err, fmt.Sprint("SOCKS4 code ", code))
			r.end(pool)
		})
	}
}

// parrotAnswers are answers that repeat the request where an answer has text.
var parrotAnswers = map[string]string{
	"in the reason":             "HTTP/1.1 502 ECHO\r\nContent-Length: 0\r\n\r\n",
	"in the reason of a caller": "HTTP/1.1 422 ECHO\r\nContent-Length: 0\r\n\r\n",
	"in a header's value":       "HTTP/1.1 503 No\r\nX-Squid-Error: ECHO\r\nProxy-Authenticate: ECHO\r\nContent-Length: 0\r\n\r\n",
	"in a header's name":        "HTTP/1.1 407 No\r\nECHO\r\n\r\n",
	"in the version":            "HTTP/ECHO 200 OK\r\n\r\n",
	"in the status":             "HTTP/1.1 ECHO\r\n\r\n",
	"in the length":             "HTTP/1.1 200 OK\r\nContent-Length: ECHO\r\n\r\n",
	"in the encoding":           "HTTP/1.1 200 OK\r\nTransfer-Encoding: ECHO\r\n\r\n",
	"in a chunk's length":       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nECHO\r\n",
	"in the redirect":           "HTTP/1.1 307 Go\r\nLocation: http://elsewhere.test/ECHO\r\nContent-Length: 0\r\n\r\n",
	"in the body":               "HTTP/1.1 500 No\r\nContent-Length: 5000\r\n\r\nECHO",
	"as no HTTP at all":         "ECHO\r\n\r\n",
}

// A proxy, or the node that it speaks for, may repeat the request wherever an HTTP
// answer has text, its own login and the RPC's among it.
func TestSecretsThatAProxyRepeats(t *testing.T) {
	for where, answer := range parrotAnswers {
		for _, target := range []string{"http", "https"} {
			t.Run(target+"/"+where, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
					r := newRoom(t, w)
					r.parrot("parrot.test:8080", answer)
					r.listedURL(rpcURL(target, "nobody.test"))
					pool := r.open(func(cfg *rpcpool.Config) { cfg.Proxies = []string{proxyURL("http", "parrot.test:8080")} })
					_, err := pool.Chain("1").Call(t.Context(), "eth_chainId")
					r.error(err)
					r.end(pool)
				})
			})
		}
	}
}

// The pool may repeat the API key wherever it likes: neither the error nor the warning
// about a list that is kept shows it.
func TestSecretsThatThePoolRepeats(t *testing.T) {
	for where, answer := range parrotAnswers {
		t.Run(where, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				r := newRoom(t, w)
				r.w.ProxyAt("p1", proxyURL("socks5", "p1.test:1080"))
				r.parrot("parrot.test:80", answer)
				pool := r.open(func(cfg *rpcpool.Config) { cfg.APIURL = "http://parrot.test" })
				_, err := pool.Chain("1").Call(t.Context(), "eth_chainId")
				r.error(err)
				r.hidden("the log", r.logged.String())
				require.NoError(t, pool.Close())
			})
		})
	}
}

// A list that can't be refreshed, entries that can't be used, reports that aren't taken
// and cache files that are torn are logged without what is in them.
func TestSecretsInWarnings(t *testing.T) {
	for name, again := range map[string]rpcpooltest.PoolReply{
		"refused": rpcpooltest.PoolStatus(401), "down": rpcpooltest.PoolStatus(500), "gone": rpcpooltest.PoolReset(),
		"garbage": rpcpooltest.PoolBody(pathKey + queryKey), "hangs": rpcpooltest.PoolHang(), "empty": rpcpooltest.PoolList("eip155:1"),
		"a redirect": rpcpooltest.PoolStatus(302).Header("Location", "http://x.test/"+queryKey),
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				r := newRoom(t, w)
				w.ProxyAt("p1", proxyURL("socks5", "p1.test:1080"))
				node := w.NodeAt("r1", rpcURL("http", "r1.test"))
				bad := rpcURL("https", "bad host.test")
				w.Pool.Lists("1",
					rpcpooltest.PoolList("eip155:1", node, node, map[string]any{"url": bad}, map[string]any{"url": rpcURL("ws", "ws.test")}).Times(1),
					again)
				w.Pool.ScriptReports(rpcpooltest.PoolStatus(500), rpcpooltest.PoolHang())
				pool := r.open(func(cfg *rpcpool.Config) { cfg.RefreshInterval = time.Second })
				_, err := pool.Chain("1").Call(t.Context(), "eth_chainId")
				require.NoError(t, err)
				time.Sleep(2 * time.Second)
				node.Script(rpcpooltest.Status(500))
				_, err = pool.Chain("1").Call(t.Context(), "eth_chainId")
				r.error(err)

				cached, err := filepath.Glob(filepath.Join(w.Config().CacheDir, "*.json"))
				require.NoError(t, err)
				require.Len(t, cached, 1)
				body, err := os.ReadFile(cached[0])
				require.NoError(t, err)
				other := r.open(func(cfg *rpcpool.Config) { cfg.CacheDir = filepath.Dir(cached[0]) })
				for _, spoilt := range []string{string(body[:len(body)-9]), strings.Replace(string(body), `"ref":"1"`, `"ref":"`+pathKey+`"`, 1), string(body)} {
					require.NoError(t, os.WriteFile(cached[0], []byte(spoilt), 0o600))
					if _, err = other.Chain("1").Call(t.Context(), "eth_chainId"); err != nil {
						r.error(err)
					}
				}
				require.NoError(t, other.Close())
				r.end(pool)
			})
		})
	}
}

// What New refuses is named, not quoted.
func TestSecretsInConfigErrors(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		r := newRoom(t, w)
		w.Proxy("p1")
		login := proxyUser + ":" + proxyPassword
		for _, bad := range []string{
			"ftp://" + login + "@p.test", login + "@p.test:1080", "socks5://" + login + "@", "socks5://" + login + "@p.test:port",
			"socks5://" + login + "@p.test:1080/" + pathKey, "socks5://" + login + "@p test:1080", "http://" + proxyUser + ":%zz" + proxyPassword + "@p.test",
			"socks5://" + login + "@[::1", "\x00" + login, "socks5://" + proxyUser + ":" + proxyPassword + "/x@p.test", proxyPassword,
		} {
			cfg := w.Config()
			cfg.Proxies = append(cfg.Proxies, bad)
			_, err := rpcpool.New(cfg)
			r.error(err)
			r.forms("the configuration", cfg)
			r.forms("the configuration", &cfg)
		}
		for _, bad := range []string{"://" + pathKey, rpcURL("ftp", "x.test"), "https://x.test:" + pathKey, "https://%zz" + pathKey, rpcURL("https", "x.test") + "#" + pathKey, pathKey} {
			cfg := w.Config()
			cfg.APIURL, cfg.ProxyCheckURL = "http://"+nodeUser+":"+nodePassword+"@pool.test/"+pathKey, bad
			_, err := rpcpool.New(cfg)
			if err != nil {
				r.error(err)
			}
			cfg.APIURL, cfg.ProxyCheckURL = bad, ""
			_, err = rpcpool.New(cfg)
			r.error(err)
			r.forms("the configuration", cfg)
		}
		cfg := w.Config()
		cfg.APIKey += "\r\n"
		_, err := rpcpool.New(cfg)
		r.error(err)
		r.hidden("the log", r.logged.String())
	})
}

// Pools, handles and what a Directory gives and gets show no secret in any form.
func TestSecretsInExportedTypes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		r := newRoom(t, w)
		w.ProxyAt("p1", proxyURL("socks5", "p1.test:1080"))
		node := w.NodeAt("r1", rpcURL("http", "r1.test"), rpcpooltest.Status(500).Times(1))
		w.List("1", node, w.Node("r2"))
		pool := r.open()
		_, err := pool.Chain("1").Call(t.Context(), "eth_chainId")
		require.NoError(t, err)
		r.forms("a pool", pool)
		r.forms("a pool", *pool)
		r.forms("a handle", pool.Chain("1"))
		r.forms("a handle", *pool.Chain("1"))
		rpc := rpcpool.RPC{URL: node.URL()}
		report := rpcpool.Report{URL: node.URL(), Detail: "d"}
		for _, value := range []any{
			rpc, &rpc, report, &report, rpcpool.List{RPCs: []rpcpool.RPC{rpc}}, &rpcpool.List{RPCs: []rpcpool.RPC{rpc}},
			rpcpool.HTTPError{StatusCode: 400, Body: []byte(pathKey)}, &rpcpool.HTTPError{StatusCode: 400, Body: []byte(pathKey)},
			map[string]any{"a": rpc, "b": []any{&report}},
		} {
			r.forms(fmt.Sprintf("%T", value), value)
		}
		r.end(pool)
	})
}

// talkative is a user's Directory that puts what it knows into errors and panics.
type talkative struct {
	list   *rpcpool.List
	err    error
	panics bool
}

func (d *talkative) RPCs(context.Context, string) (*rpcpool.List, error) { return d.list, d.err }

func (d *talkative) Report(_ context.Context, report rpcpool.Report) error {
	if d.panics {
		panic("can't send " + report.URL)
	}
	return &url.Error{Op: "Post", URL: report.URL, Err: errors.New("no route to " + report.URL)}
}

// What a Directory says in its errors, or panics with, is logged without the login of a
// proxy or the RPC that the report is about.
func TestSecretsOfADirectory(t *testing.T) {
	for _, panics := range []bool{false, true} {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			r := newRoom(t, w)
			w.ProxyAt("p1", proxyURL("socks5", "p1.test:1080"))
			node := w.NodeAt("r1", rpcURL("http", "r1.test"), rpcpooltest.Status(500))
			directory := &talkative{list: &rpcpool.List{Key: "eip155:1", RPCs: []rpcpool.RPC{{URL: node.URL()}}}, panics: panics}
			pool := r.open(func(cfg *rpcpool.Config) { cfg.Directory = directory })
			_, err := pool.Chain("1").Call(t.Context(), "eth_chainId")
			r.error(err)

			broken := &talkative{err: &url.Error{Op: "Get", URL: "https://x.test/" + pathKey, Err: errors.New("behind " + proxyURL("socks5", "p1.test"))}}
			pool2 := r.open(func(cfg *rpcpool.Config) { cfg.Directory = broken })
			_, err = pool2.Chain("2").Call(t.Context(), "eth_chainId")
			r.error(err)
			require.NoError(t, pool2.Close())
			r.end(pool)
		})
	}
}

// http.Client wraps what went wrong in an error that quotes the whole URL. A function
// that returns it gets failover; the call's error, attempts, logs and reports don't
// show it.
func TestSecretsInErrorsOfRunsClient(t *testing.T) {
	for _, way := range ways {
		for name, reply := range map[string]rpcpooltest.Reply{
			"reset": rpcpooltest.Reset(), "hang": rpcpooltest.Hang(), "hang in the body": rpcpooltest.HangInBody(), "cut": rpcpooltest.Result("x").Cut(),
			"unreachable": rpcpooltest.Unreachable(), "500": rpcpooltest.Status(500).Text(pathKey), "403": rpcpooltest.Status(403).Text(pathKey),
			"bad TLS": rpcpooltest.BadTLS(), "a revert": rpcpooltest.Error(3, "execution reverted"),
		} {
			t.Run(way.name+"/"+name, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
					r := newRoom(t, w)
					w.ProxyAt("p1", proxyURL(way.proxy, "p1.test:1080"))
					w.List("1", w.NodeAt("r1", rpcURL(way.scheme, "r1.test"), reply))
					pool := r.open()
					err := pool.Chain("1").Run(t.Context(), func(ctx context.Context, address string, client *http.Client) error {
						raw, err := post(ctx, client, address, "eth_chainId")
						if err == nil {
							return &rpcpool.RPCError{Code: -32005, Message: "limit of " + address + string(raw)}
						}
						return err
					})
					r.error(err)
					r.end(pool)
				})
			})
		}
	}
}

// A client that is kept beyond its function quotes the URL that its user asks for, in
// an error of http.Client's own; what the library says in it doesn't.
func TestSecretsInAKeptClient(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		r := newRoom(t, w)
		w.ProxyAt("p1", proxyURL("socks5", "p1.test:1080"))
		node := w.NodeAt("r1", rpcURL("http", "r1.test"), rpcpooltest.Reset())
		w.List("1", node)
		pool := r.open()
		var kept *http.Client
		var first error
		err := pool.Chain("1").Run(t.Context(), func(ctx context.Context, address string, client *http.Client) error {
			kept = client
			_, first = post(ctx, client, address, "eth_chainId")
			return first
		})
		r.error(err)
		for range 2 {
			var wrapped *url.Error
			require.ErrorAs(t, first, &wrapped)
			r.forms(fmt.Sprintf("%T", wrapped.Err), wrapped.Err)
			_, first = post(t.Context(), kept, node.URL(), "eth_chainId")
		}
		r.end(pool)
	})
}
