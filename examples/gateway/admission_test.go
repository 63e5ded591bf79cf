package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// Only the names of loopback, and those that the user gave, are the gateway's: a page
// that rebinds its own name to loopback is refused, whatever it asks for.
func TestAdmissionHost(t *testing.T) {
	a := newAdmission("192.0.2.7:8645", []string{"Gateway.example.org"}, nil)
	for _, host := range []string{
		"localhost", "localhost:8645", "LOCALHOST:1", "localhost.:80", "127.0.0.1", "127.0.0.1:8645", "[::1]", "[::1]:8645",
		"gateway.example.org", "GATEWAY.example.org:443", "192.0.2.7:8645",
	} {
		assert.True(t, a.knows(host), host)
	}
	for _, host := range []string{
		"", "evil.example", "evil.example:8645", "127.0.0.1.evil.example", "localhost.evil.example", "localhost@evil.example",
		"127.0.0.2", "0.0.0.0", "0.0.0.0:8645", "192.0.2.8", "sub.gateway.example.org", "[::]:8645", "::",
	} {
		assert.False(t, a.knows(host), host)
	}
	for _, everywhere := range []string{":8645", "0.0.0.0:8645", "[::]:8645"} {
		a := newAdmission(everywhere, nil, nil)
		assert.Equal(t, []string{"localhost", "127.0.0.1", "::1"}, a.hosts)
	}
}

// The Host is checked on every path, before anything else is done.
func TestGatewayChecksHost(t *testing.T) {
	b := newBed(t)
	b.proxy("p1")
	node := b.Node("r1")
	b.List("8453", node)
	b.start("-host", "gateway.example.org")

	for _, path := range []string{"/", "/status.json", "/events", "/healthz", "/8453"} {
		method := http.MethodGet
		if path == "/8453" {
			method = http.MethodPost
		}
		got := b.do(method, path, request(1, "eth_blockNumber"), "Host", "evil.example")
		assert.Equal(t, http.StatusForbidden, got.status, path)
		assert.Contains(t, got.body, `doesn't go by the name "evil.example"`)
	}
	assert.Empty(t, node.Requests())
	assert.Equal(t, http.StatusOK, b.do(http.MethodPost, "/8453", request(1, "eth_blockNumber"), "Host", "gateway.example.org:80").status)
}

// A page of another origin can't use the gateway unless it is named: not by a request
// that a browser sends without asking first, and not by one that it asks for.
func TestGatewayChecksOrigin(t *testing.T) {
	b := newBed(t)
	b.proxy("p1")
	node := b.Node("r1")
	b.List("8453", node)
	b.start("-cors", "http://localhost:3000")
	post := func(headers ...string) answer {
		return b.do(http.MethodPost, "/8453", request(1, "eth_blockNumber"), headers...)
	}

	for _, origin := range []string{"https://evil.example", "null", "http://localhost:3001", "https://localhost:3000", "http://localhost:3000.evil.example"} {
		got := post("Origin", origin)
		assert.Equal(t, http.StatusForbidden, got.status, origin)
		assert.Empty(t, got.header.Get("Access-Control-Allow-Origin"))
		got = b.do(http.MethodOptions, "/8453", "", "Origin", origin, "Access-Control-Request-Method", "POST")
		assert.Equal(t, http.StatusForbidden, got.status, origin)
	}
	assert.Equal(t, http.StatusForbidden, post("Sec-Fetch-Site", "cross-site").status)
	assert.Equal(t, http.StatusForbidden, b.do(http.MethodGet, "/events", "", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors").status)
	assert.Empty(t, node.Requests())

	got := b.do(http.MethodOptions, "/8453", "", "Origin", "http://localhost:3000",
		"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "content-type", "Access-Control-Request-Private-Network", "true")
	assert.Equal(t, http.StatusNoContent, got.status)
	assert.Equal(t, "http://localhost:3000", got.header.Get("Access-Control-Allow-Origin"))
	assert.Equal(t, "POST", got.header.Get("Access-Control-Allow-Methods"))
	assert.Contains(t, got.header.Get("Access-Control-Allow-Headers"), "Content-Type")
	assert.Equal(t, "true", got.header.Get("Access-Control-Allow-Private-Network"))
	assert.Empty(t, node.Requests(), "a browser's question isn't a request")

	got = post("Origin", "http://localhost:3000")
	assert.Equal(t, http.StatusOK, got.status)
	assert.Equal(t, "http://localhost:3000", got.header.Get("Access-Control-Allow-Origin"))
	assert.Equal(t, "Origin", got.header.Get("Vary"))
	assert.Equal(t, http.StatusOK, post().status, "a program that isn't a browser")
	assert.Equal(t, http.StatusOK, post("Origin", b.url, "Sec-Fetch-Site", "same-origin").status, "a page of the gateway's own")

	// The status isn't for other pages, but a link to it may stand anywhere.
	assert.Empty(t, b.do(http.MethodGet, "/status.json", "", "Origin", "http://localhost:3000").header.Get("Access-Control-Allow-Origin"))
	assert.Equal(t, http.StatusOK, b.do(http.MethodGet, "/", "", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate").status)
}

// Without -cors no page of another origin gets anything; with * every one does.
func TestAdmissionOrigin(t *testing.T) {
	ask := func(a admission, origin string) (allowed, foreign bool) {
		r := httptest.NewRequest(http.MethodPost, "http://localhost:8645/8453", http.NoBody)
		r.Header.Set("Origin", origin)
		return a.welcomes(r)
	}
	closed, open := newAdmission(defaultListen, nil, nil), newAdmission(defaultListen, nil, []string{anyOrigin})
	for _, origin := range []string{"https://evil.example", "null", "http://127.0.0.1:8645"} {
		allowed, foreign := ask(closed, origin)
		assert.False(t, allowed, origin)
		assert.True(t, foreign, origin)
		allowed, _ = ask(open, origin)
		assert.True(t, allowed, origin)
	}
	allowed, foreign := ask(closed, "http://localhost:8645")
	assert.True(t, allowed)
	assert.False(t, foreign)
}

// Whoever lets others reach the gateway is told what that means; on loopback nothing
// is said.
func TestAnnounceWarns(t *testing.T) {
	for name, test := range map[string]struct {
		addr  net.IP
		cors  []string
		where string
		warns string
	}{
		"loopback":       {net.IPv4(127, 0, 0, 1), nil, "http://127.0.0.1:8645", ""},
		"IPv6 loopback":  {net.IPv6loopback, nil, "http://[::1]:8645", ""},
		"everywhere":     {net.IPv6unspecified, nil, "http://127.0.0.1:8645", "anyone who reaches it uses your proxies and the keys of your RPCs"},
		"an address":     {net.IPv4(192, 0, 2, 7), nil, "http://192.0.2.7:8645", "anyone who reaches it uses your proxies and the keys of your RPCs"},
		"every web page": {net.IPv4(127, 0, 0, 1), []string{anyOrigin}, "http://127.0.0.1:8645", "every web page that you open can use your proxies"},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr := newOutput(), newOutput()
			where := announce(stdout, stderr, &net.TCPAddr{IP: test.addr, Port: 8645}, &options{cors: test.cors})
			assert.Equal(t, test.where, where)
			assert.Contains(t, stdout.String(), "status page: "+test.where+"/\n")
			if test.warns == "" {
				assert.Empty(t, stderr.String())
				return
			}
			assert.Contains(t, stderr.String(), "gateway: warning: ")
			assert.Contains(t, stderr.String(), test.warns)
		})
	}
}

// A supervisor is told when requests can't be served: while every proxy is cooling.
func TestGatewayHealth(t *testing.T) {
	b := newBed(t)
	p1 := b.proxy("p1")
	b.List("8453", b.Node("r1", rpcpooltest.Result("0x1")))
	b.start()
	got := b.do(http.MethodGet, "/healthz", "")
	assert.Equal(t, http.StatusOK, got.status)
	assert.Equal(t, "ok\n", got.body)

	p1.Kill()
	b.call("8453", "eth_blockNumber")
	got = b.do(http.MethodGet, "/healthz", "")
	assert.Equal(t, http.StatusServiceUnavailable, got.status)
	assert.Contains(t, got.body, "every proxy is cooling down")
}
