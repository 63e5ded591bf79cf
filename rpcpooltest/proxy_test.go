package rpcpooltest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/proxy"
)

// socksClient speaks SOCKS5 by golang.org/x/net/proxy, an implementation that
// knows nothing of this one.
func socksClient(t *testing.T, network *Network, p *Proxy, auth *proxy.Auth) *http.Client {
	t.Helper()
	dialer, err := proxy.SOCKS5("tcp", p.Addr(), auth, forward{network})
	require.NoError(t, err)
	return &http.Client{Transport: &http.Transport{
		DialContext:       dialer.(proxy.ContextDialer).DialContext,
		TLSClientConfig:   &tls.Config{RootCAs: network.RootCAs()},
		DisableKeepAlives: true,
	}}
}

type forward struct{ network *Network }

func (f forward) Dial(network, addr string) (net.Conn, error) {
	return f.DialContext(context.Background(), network, addr)
}

func (f forward) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	return f.network.DialContext(ctx, network, addr)
}

// httpClient speaks to an HTTP proxy by net/http.
func httpClient(t *testing.T, network *Network, rawURL string) *http.Client {
	t.Helper()
	u, err := url.Parse(rawURL)
	require.NoError(t, err)
	transport := &http.Transport{
		Proxy:           http.ProxyURL(u),
		DialContext:     network.DialContext,
		TLSClientConfig: &tls.Config{RootCAs: network.RootCAs()},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// ask posts an eth_blockNumber and gives what came of it.
func ask(client *http.Client, url string) (status int, body string, err error) {
	const question = `{"jsonrpc":"2.0","id":7,"method":"eth_blockNumber","params":[]}`
	response, err := client.Post(url, "application/json", strings.NewReader(question))
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	return response.StatusCode, string(raw), err
}

const answerOne = `{"jsonrpc":"2.0","id":7,"result":"0x1"}`

// SOCKS5 and HTTP proxies, with and without a login, carry requests to http and
// https nodes by name, and record them.
func TestProxyCarries(t *testing.T) {
	for _, rawURL := range []string{
		"socks5://user:word@p1.test:1080", "socks5h://p1.test:1080",
		"http://user:word@p1.test:3128", "http://p1.test:3128", "https://user:word@p1.test:3129",
	} {
		t.Run(rawURL, func(t *testing.T) {
			onBoth(t, func(t *testing.T, network *Network) {
				p := NewProxy(network, "p1", rawURL)
				NewNode(network, "r1", "http://r1.test/key-r1")
				NewNode(network, "r2", "https://r2.test:8443/key-r2?token=x")
				var client *http.Client
				how := []string{"socks5", "socks5"}
				if p.socks() {
					var auth *proxy.Auth
					if p.url.User != nil {
						auth = &proxy.Auth{User: "user", Password: "word"}
					}
					client = socksClient(t, network, p, auth)
				} else {
					client = httpClient(t, network, rawURL)
					how = []string{"forward", "connect"}
				}
				for _, target := range []string{"http://r1.test/key-r1", "https://r2.test:8443/key-r2?token=x"} {
					status, body, err := ask(client, target)
					require.NoError(t, err)
					assert.Equal(t, 200, status)
					assert.Equal(t, answerOne, body)
				}
				client.CloseIdleConnections()
				seen := p.Exchanges()
				require.Len(t, seen, 2)
				for i, want := range []Exchange{
					{Proxy: "p1", How: how[0], Target: "r1.test:80", Node: "r1", Method: "eth_blockNumber"},
					{Proxy: "p1", How: how[1], Target: "r2.test:8443", Node: "r2", Method: "eth_blockNumber"},
				} {
					seen[i].Time, seen[i].Params = time.Time{}, nil
					assert.Equal(t, want, seen[i])
				}
				assert.Empty(t, network.Breaches())
				assert.Equal(t, []string{p.Addr(), p.Addr()}, network.Dials())
			})
		})
	}
}

// A wrong login, a missing one, and a needless one get what the protocols say.
func TestProxyChecksTheLogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := NewMemoryNetwork()
		defer func() { _ = network.Close() }()
		NewNode(network, "r1", "http://r1.test/")
		closed := NewProxy(network, "p1", "socks5://user:word@p1.test:1080")
		open := NewProxy(network, "p2", "socks5://p2.test:1080")

		_, _, err := ask(socksClient(t, network, closed, &proxy.Auth{User: "user", Password: "wrong"}), "http://r1.test/")
		assert.ErrorContains(t, err, "username/password authentication failed")
		_, _, err = ask(socksClient(t, network, closed, nil), "http://r1.test/")
		assert.ErrorContains(t, err, "no acceptable authentication methods")
		_, _, err = ask(socksClient(t, network, open, &proxy.Auth{User: "user", Password: "word"}), "http://r1.test/")
		assert.NoError(t, err, "x/net offers both methods")

		NewProxy(network, "p3", "http://user:word@p3.test:3128")
		NewNode(network, "r2", "https://r2.test/")
		for _, login := range []string{"", "user:wrong@", "user@"} {
			client := httpClient(t, network, "http://"+login+"p3.test:3128")
			status, _, err := ask(client, "http://r1.test/")
			require.NoError(t, err)
			assert.Equal(t, 407, status)
			_, _, err = ask(client, "https://r2.test/")
			assert.ErrorContains(t, err, "Proxy Authentication Required")
		}
	})
}

// Each scripted fault of a SOCKS5 proxy is what an independent client takes it for.
func TestProxySOCKS5Faults(t *testing.T) {
	cases := map[string]struct {
		reply ProxyReply
		want  string
	}{
		"refuse":  {ProxyRefuse(), "connection refused"},
		"hang":    {ProxyHang(), "deadline exceeded"},
		"login":   {ProxyRefuseLogin(), "authentication failed"},
		"garbage": {ProxyGarbage(), "unexpected protocol version"},
		"code 2":  {ProxyCode(2), "connection not allowed by ruleset"},
		"code 9":  {ProxyCode(9), "unknown code: 9"},
		"nothing": {ProxyBlackHole(), "deadline exceeded"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := NewMemoryNetwork()
				defer func() { _ = network.Close() }()
				NewNode(network, "r1", "http://r1.test/")
				p := NewProxy(network, "p1", "socks5://user:word@p1.test:1080", c.reply.Times(1))
				client := socksClient(t, network, p, &proxy.Auth{User: "user", Password: "word"})
				client.Timeout = 10 * time.Second
				_, _, err := ask(client, "http://r1.test/")
				if c.want == "deadline exceeded" {
					assert.ErrorIs(t, err, context.DeadlineExceeded)
				} else {
					assert.ErrorContains(t, err, c.want)
				}
				_, body, err := ask(client, "http://r1.test/")
				require.NoError(t, err, "the fault is used up")
				assert.Equal(t, answerOne, body)
			})
		})
	}
}

// A SOCKS5 proxy whose URL has no login refuses one by accepting no method.
func TestProxySOCKS5RefusesWithoutLogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := NewMemoryNetwork()
		defer func() { _ = network.Close() }()
		p := NewProxy(network, "p1", "socks5://p1.test:1080", ProxyRefuseLogin())
		_, _, err := ask(socksClient(t, network, p, nil), "http://r1.test/")
		assert.ErrorContains(t, err, "no acceptable authentication methods")
	})
}

// Each scripted fault of an HTTP proxy, for plain requests and CONNECT.
func TestProxyHTTPFaults(t *testing.T) {
	cases := map[string]struct {
		reply          ProxyReply
		plain, connect string
	}{
		"refuse":  {ProxyRefuse(), "connection refused", "connection refused"},
		"login":   {ProxyRefuseLogin(), "status 407", "Proxy Authentication Required"},
		"garbage": {ProxyGarbage(), "malformed HTTP response", "malformed HTTP response"},
		"status":  {ProxyStatus(503), "status 503", "Service Unavailable"},
		"nothing": {ProxyBlackHole(), "deadline exceeded", "deadline exceeded"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := NewMemoryNetwork()
				defer func() { _ = network.Close() }()
				NewNode(network, "r1", "http://r1.test/")
				NewNode(network, "r2", "https://r2.test/")
				NewProxy(network, "p1", "http://p1.test:3128", c.reply)
				client := httpClient(t, network, "http://p1.test:3128")
				client.Timeout = 10 * time.Second
				for target, want := range map[string]string{"http://r1.test/": c.plain, "https://r2.test/": c.connect} {
					status, _, err := ask(client, target)
					if code, ok := strings.CutPrefix(want, "status "); ok {
						require.NoError(t, err)
						assert.Equal(t, code, strconv.Itoa(status))
					} else {
						assert.ErrorContains(t, err, want)
					}
				}
				client.CloseIdleConnections()
			})
		})
	}
}

// What a node says about its reachability is said by the proxy, in its protocol
// and with the headers that tell whose page it is.
func TestProxySaysThatANodeIsUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := NewMemoryNetwork()
		defer func() { _ = network.Close() }()
		gone := Unreachable().Code(4).WithStatus(503).Header("X-Squid-Error", "ERR_CONNECT_FAIL 111")
		NewNode(network, "r1", "http://r1.test/", gone.Via("p1"), gone.Via("p2"))
		p1 := NewProxy(network, "p1", "socks5://p1.test:1080")
		NewProxy(network, "p2", "http://p2.test:3128")
		p3 := NewProxy(network, "p3", "socks5://p3.test:1080")

		_, _, err := ask(socksClient(t, network, p1, nil), "http://r1.test/")
		assert.ErrorContains(t, err, "host unreachable")
		response, err := httpClient(t, network, "http://p2.test:3128").Post("http://r1.test/", "application/json", strings.NewReader("{}"))
		require.NoError(t, err)
		_ = response.Body.Close()
		assert.Equal(t, 503, response.StatusCode)
		assert.Equal(t, "ERR_CONNECT_FAIL 111", response.Header.Get("X-Squid-Error"))
		_, _, err = ask(socksClient(t, network, p3, nil), "http://r1.test/")
		assert.NoError(t, err, "through p3 it can be reached")

		_, _, err = ask(socksClient(t, network, p1, nil), "http://nobody.test/")
		assert.ErrorContains(t, err, "host unreachable")
		seen := p1.Exchanges()
		assert.Equal(t, "nobody.test:80", seen[len(seen)-1].Target)
		assert.Empty(t, seen[len(seen)-1].Node)
	})
}

// tinyproxy's own pages come as HTTP/1.0; those that it passes on have Via.
func TestProxyTinyproxyPagesAreHTTP10(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := NewMemoryNetwork()
		defer func() { _ = network.Close() }()
		NewProxy(network, "p1", "http://p1.test:3128",
			ProxyStatus(500).Header("Server", "tinyproxy/1.11.1").Times(1),
			ProxyStatus(500).Header("Server", "squid/5.7"))
		client := httpClient(t, network, "http://p1.test:3128")
		for _, want := range []string{"HTTP/1.0", "HTTP/1.1"} {
			response, err := client.Get("http://r1.test/secret")
			require.NoError(t, err)
			page, err := io.ReadAll(response.Body)
			require.NoError(t, err)
			assert.Equal(t, want, response.Proto)
			assert.Contains(t, string(page), "/secret", "pages repeat the URL, as real ones do")
		}
	})
}

// SOCKS4a carries by name; an address is a breach, as is one given to SOCKS5: the
// client looked the name up by itself (rule A1.2).
func TestProxyWantsNamesNotAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := NewMemoryNetwork()
		defer func() { _ = network.Close() }()
		NewNode(network, "r1", "http://r1.test/", Result("0x1"))
		p4 := NewProxy(network, "p4", "socks4a://p4.test:1080")
		p5 := NewProxy(network, "p5", "socks5://p5.test:1080")

		conn, err := network.DialContext(t.Context(), "tcp", p4.Addr())
		require.NoError(t, err)
		_, _ = conn.Write(append([]byte{4, 1, 0, 80, 0, 0, 0, 1, 0}, "r1.test\x00"...))
		granted := make([]byte, 8)
		_, err = io.ReadFull(conn, granted)
		require.NoError(t, err)
		assert.Equal(t, byte(90), granted[1])
		_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: r1.test\r\nContent-Type: application/json\r\nContent-Length: 45\r\n\r\n"+
			`{"jsonrpc":"2.0","id":7,"method":"eth_x"    }`)
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		assert.Equal(t, 200, response.StatusCode)
		_ = conn.Close()
		assert.Empty(t, network.Breaches())

		conn, err = network.DialContext(t.Context(), "tcp", p4.Addr())
		require.NoError(t, err)
		_, _ = conn.Write([]byte{4, 1, 0, 80, 10, 1, 2, 3, 0})
		_, err = io.ReadFull(conn, granted)
		require.NoError(t, err)
		assert.Equal(t, byte(91), granted[1])
		_ = conn.Close()
		assert.Len(t, network.Breaches(), 1)

		_, _, err = ask(socksClient(t, network, p5, nil), "http://10.1.2.3/")
		assert.Error(t, err)
		assert.Len(t, network.Breaches(), 2)
		assert.Contains(t, network.Breaches()[1], "10.1.2.3:80")
	})
}

// A proxy that is killed breaks its connections and refuses; revived, it works.
func TestProxyKillAndRevive(t *testing.T) {
	onBoth(t, func(t *testing.T, network *Network) {
		NewNode(network, "r1", "http://r1.test/")
		p := NewProxy(network, "p1", "socks5://p1.test:1080")
		conn, err := network.DialContext(t.Context(), "tcp", p.Addr())
		require.NoError(t, err)
		p.Kill()
		_, err = conn.Read(make([]byte, 1))
		assert.ErrorIs(t, err, syscall.ECONNRESET, "%v", err)
		_ = conn.Close()
		_, _, err = ask(socksClient(t, network, p, nil), "http://r1.test/")
		assert.ErrorIs(t, err, syscall.ECONNREFUSED)
		p.Revive()
		_, _, err = ask(socksClient(t, network, p, nil), "http://r1.test/")
		assert.NoError(t, err)
	})
}

// Over one kept connection an HTTP proxy serves many requests, plain ones to
// several nodes, and follows its script for each; every try is recorded.
func TestProxyHTTPKeepsConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := NewMemoryNetwork()
		defer func() { _ = network.Close() }()
		NewNode(network, "r1", "http://r1.test/")
		NewNode(network, "r2", "http://r2.test/", Result("0x2"))
		p := NewProxy(network, "p1", "http://p1.test:3128", ProxyCarry().Times(3), ProxyStatus(502))
		client := httpClient(t, network, "http://p1.test:3128")
		for _, target := range []string{"http://r1.test/", "http://r2.test/", "http://r1.test/"} {
			status, _, err := ask(client, target)
			require.NoError(t, err)
			require.Equal(t, 200, status)
		}
		status, _, err := ask(client, "http://r1.test/")
		require.NoError(t, err)
		assert.Equal(t, 502, status)
		assert.Len(t, network.Dials(), 1, "one connection for all")
		var nodes []string
		for _, e := range p.Exchanges() {
			nodes = append(nodes, e.Node+" "+e.Method)
		}
		assert.Equal(t, []string{"r1 eth_blockNumber", "r2 eth_blockNumber", "r1 eth_blockNumber", "r1 "}, nodes)
		client.CloseIdleConnections()
		synctest.Wait()
		assert.Zero(t, network.OpenConns())
	})
}

// What breaks at the node arrives at the client as it broke, through a tunnel and
// through a forwarding proxy alike.
func TestProxyPassesFaultsOn(t *testing.T) {
	cases := map[string]struct {
		reply Reply
		check func(t *testing.T, body string, err error)
	}{
		"reset": {Reset(), func(t *testing.T, _ string, err error) { assert.ErrorIs(t, err, syscall.ECONNRESET) }},
		"close": {Close(), func(t *testing.T, _ string, err error) { assert.ErrorIs(t, err, io.EOF) }},
		"truncated": {Truncated(), func(t *testing.T, body string, err error) {
			assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
			assert.True(t, strings.HasPrefix(answerOne, body) && body != "")
		}},
		"cut": {Status(500).Text("no").Cut(), func(t *testing.T, body string, err error) {
			assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
			assert.Equal(t, "no", body)
		}},
		"hang in the body": {HangInBody(), func(t *testing.T, body string, err error) {
			assert.ErrorIs(t, err, context.DeadlineExceeded)
			assert.NotEmpty(t, body)
		}},
	}
	for name, c := range cases {
		for _, kind := range []string{"socks5", "http"} {
			t.Run(name+" "+kind, func(t *testing.T) {
				onBoth(t, func(t *testing.T, network *Network) {
					p := NewProxy(network, "p1", kind+"://p1.test:1080")
					NewNode(network, "r1", "http://r1.test/", c.reply)
					client := httpClient(t, network, p.URL())
					if kind == "socks5" {
						client = socksClient(t, network, p, nil)
					}
					client.Timeout = 500 * time.Millisecond
					_, body, err := ask(client, "http://r1.test/")
					c.check(t, body, err)
					client.CloseIdleConnections()
				})
			})
		}
	}
}

// A big answer comes whole, also while nobody reads it.
func TestProxyCarriesBigAnswers(t *testing.T) {
	onBoth(t, func(t *testing.T, network *Network) {
		p := NewProxy(network, "p1", "socks5://p1.test:1080")
		NewNode(network, "r1", "https://r1.test/", Big(5<<20))
		_, body, err := ask(socksClient(t, network, p, nil), "https://r1.test/")
		require.NoError(t, err)
		assert.Equal(t, 5<<20, bytes.Count([]byte(body), []byte("x")))
	})
}

// A proxy waits as its script says, once it knows the target; a gate shows what
// waits.
func TestProxyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := NewMemoryNetwork()
		defer func() { _ = network.Close() }()
		NewNode(network, "r1", "http://r1.test/")
		gate := NewGate()
		p := NewProxy(network, "p1", "socks5://p1.test:1080", ProxyCarry().Delay(4*time.Second).Hold(gate))
		begin := time.Now()
		go func() {
			held, err := gate.Next(t.Context())
			if assert.NoError(t, err) {
				assert.Equal(t, "r1", held.Request.Node)
				assert.Equal(t, "p1", held.Request.Via)
				time.Sleep(3 * time.Second)
				held.Release()
			}
		}()
		_, _, err := ask(socksClient(t, network, p, nil), "http://r1.test/")
		require.NoError(t, err)
		assert.Equal(t, 7*time.Second, time.Since(begin))
	})
}

// On loopback a proxy also serves programs that know its real address only; what
// would be decided at their dial is done to the connection.
func TestProxyServesStrangers(t *testing.T) {
	network := NewLoopbackNetwork()
	defer func() { _ = network.Close() }()
	NewNode(network, "r1", "http://r1.test/")
	p := NewProxy(network, "p1", "socks5://p1.test:1080", ProxyCarry().Times(1), ProxyRefuse())
	dialer, err := proxy.SOCKS5("tcp", network.RealAddr(p.Addr()), nil, proxy.Direct)
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{Dial: dialer.Dial, DisableKeepAlives: true}} //nolint:staticcheck // a stranger without contexts
	_, body, err := ask(client, "http://r1.test/")
	require.NoError(t, err)
	assert.Equal(t, answerOne, body)
	_, _, err = ask(client, "http://r1.test/")
	assert.Error(t, err)
	assert.Empty(t, network.Dials(), "no dial of the client's")
}

// Scripts that a kind of proxy can't follow are a mistake in the test.
func TestProxyRefusesImpossibleScripts(t *testing.T) {
	network := NewMemoryNetwork()
	defer func() { _ = network.Close() }()
	assert.Panics(t, func() { NewProxy(network, "p1", "socks5://p1.test:1080", ProxyStatus(500)) })
	assert.Panics(t, func() { NewProxy(network, "p2", "http://p2.test:1080", ProxyCode(5)) })
	assert.Panics(t, func() { NewProxy(network, "p3", "ftp://p3.test:1080") })
}
