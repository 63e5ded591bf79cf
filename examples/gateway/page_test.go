package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
)

// The page is one file that asks nobody for anything: no address of another host, no
// source, link or import that leads out of it, and nothing that its policy forbids.
func TestPageIsSelfContained(t *testing.T) {
	page := string(pageHTML)
	assert.NotRegexp(t, `(?i)\b(https?|wss?|ftp):`, page, "an address")
	assert.NotRegexp(t, `(?i)["'(]\s*//`, page, "an address without a scheme")
	assert.NotRegexp(t, `(?i)@import|url\(|<(iframe|object|embed|base|form|img|audio|video)\b|<meta[^>]+http-equiv`, page)
	references := regexp.MustCompile(`(?i)\s(?:src|srcset|href|xlink:href|action|poster|ping|data)\s*=\s*["']?([^"'\s>]*)`).FindAllStringSubmatch(page, -1)
	require.NotEmpty(t, references)
	for _, reference := range references {
		assert.Regexp(t, `^(#|data:image/svg\+xml;base64,)`, reference[1])
	}
	assert.NotRegexp(t, `(?i)<[^>]+\son[a-z]+\s*=`, page, "an inline event handler")
	assert.NotRegexp(t, `(?i)<[^>]+\sstyle\s*=`, page, "an inline style")
	assert.NotRegexp(t, `innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function`, page)
	assert.Equal(t, 1, strings.Count(page, "<script"), "one script, for the policy names its hash")
	assert.Equal(t, 1, strings.Count(page, "<style"))
}

// The page's policy lets in its own style and script, by their hashes, and lets it
// talk to the gateway; nothing else.
func TestPagePolicy(t *testing.T) {
	got := httptest.NewRecorder()
	newPage().ServeHTTP(got, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
	assert.Equal(t, http.StatusOK, got.Code)
	assert.Equal(t, "text/html; charset=utf-8", got.Header().Get("Content-Type"))
	assert.Equal(t, string(pageHTML), got.Body.String())
	policy := got.Header().Get("Content-Security-Policy")
	assert.Regexp(t, `^default-src 'none'; style-src 'sha256-[A-Za-z0-9+/]{43}='; script-src 'sha256-[A-Za-z0-9+/]{43}='; connect-src 'self'; `, policy)
	assert.NotContains(t, policy, "unsafe")
	assert.NotContains(t, policy, hashOf(nil, "script"), "the hash of nothing: the element wasn't found")
}

// The hash is the one that the specification of the policy gives for this script.
func TestHashOf(t *testing.T) {
	assert.Equal(t, "'sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng='", hashOf([]byte("<p><script>alert('Hello, world.');</script>"), "script"))
}

// The page is served with what keeps it to itself.
func TestGatewayServesThePage(t *testing.T) {
	b := newBed(t)
	b.proxy("p1")
	b.start()
	got := b.do(http.MethodGet, "/", "")
	assert.Equal(t, http.StatusOK, got.status)
	for name, want := range map[string]string{
		"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
		"Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
	} {
		assert.Equal(t, want, got.header.Get(name), name)
	}
}

// The page reads what the gateway sends: each field of its tables is one of the state's,
// and each state that an RPC can be in has words of its own.
func TestPageShowsTheStatistics(t *testing.T) {
	rpc, proxy := encode(rpcState{}), encode(proxyState{})
	drawn := map[string]int{}
	for _, fields := range regexp.MustCompile(`\bs\.([a-zA-Z0-9]+)`).FindAllStringSubmatch(string(pageHTML), -1) {
		assert.Contains(t, string(rpc)+string(proxy), `"`+fields[1]+`":`)
		drawn[fields[1]]++
	}
	for _, counts := range regexp.MustCompile(`for \(const name of (\[[a-zA-Z", ]+\])\) setCount`).FindAllStringSubmatch(string(pageHTML), -1) {
		var names []string
		require.NoError(t, json.Unmarshal([]byte(counts[1]), &names))
		for _, name := range names {
			assert.Contains(t, string(rpc)+string(proxy), `"`+name+`":`)
			drawn[name]++
		}
	}
	for name := range strings.FieldsSeq("state until head lag mean p95 inFlight served transport protocol semantic rateLimited ejections failures deaths") {
		assert.NotZero(t, drawn[name], name)
	}
	for _, state := range []rpcpool.RPCState{
		rpcpool.StateReady, rpcpool.StateCooling, rpcpool.StateTrial, rpcpool.StateResting, rpcpool.StateWrongChain,
	} {
		assert.Contains(t, string(pageHTML), string(state)+`: ["`)
	}
}
