package rpcpool

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// listings are answers of a pool, whole and spoilt.
var listings = []string{
	``, `null`, `[]`, `{}`, `{"chain":null,"rpcs":null}`, `{"chain":{"key":""},"rpcs":[]}`,
	`{"chain":{"key":"eip155:8453"},"rpcs":[]}`,
	`{"chain":{"key":"eip155:8453"},"policy":{"x":[1]},"rpcs":[{"url":"https://a.test/key","score":99.5,"height":12,"caps":{"send_tx":true,"logs":10000,"archive":"full"}}]}`,
	`{"chain":{"key":"eip155:1"},"rpcs":[{"url":"http://a.test","caps":{"send_tx":null,"logs":null,"archive":null}},{"url":"http://a.test"},{"url":"ws://b.test"},{}]}`,
	`{"chain":{"key":"k"},"rpcs":[null,1,"https://a.test",[],{"url":5},{"url":"https://"},{"url":"https://:80/"},{"url":"https://b.test/x","height":-1,"score":"high","caps":[]}]}`,
	`{"chain":{"key":"k"},"rpcs":[{"url":"https://c.test/\u0000","height":18446744073709551615,"caps":{"send_tx":"yes","logs":-5,"archive":"everything"}}]}`,
	`{"chain":"eip155:1","rpcs":{"url":"https://a.test"}}`,
	`{"chain":{"key":"k"},"rpcs":[{"URL":"HTTPS://A.test:99999/","Caps":{"LOGS":1e3}}],"rpcs":[{"url":"http://[::1]:8545/x?y=z#w"}]}`,
}

// Whatever the pool sends, each RPC that is kept has an http(s) URL with a host, no
// two are the same, and a place in the ring; the log names none of them by more
// than may be shown.
func FuzzListing(f *testing.F) {
	for _, seed := range listings {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		list, err := parseListing(body)
		if err != nil {
			require.Nil(t, list)
			return
		}
		require.NotEmpty(t, list.Key)
		r, dropped := newRing(list, nil)
		require.Len(t, r.endpoints, len(list.RPCs)-len(dropped))
		require.Equal(t, len(r.endpoints) > 0, usable(list))
		seen := map[string]bool{}
		for i, e := range r.endpoints {
			require.Contains(t, []string{"http", "https"}, e.target.Scheme)
			require.NotEmpty(t, e.target.Hostname())
			require.False(t, seen[e.url], "%q stands twice", e.url)
			seen[e.url] = true
			require.Equal(t, i, e.pos)
			require.NotNil(t, newPost(e.target).URL)
		}
		again, droppedAgain := newRing(list, r)
		require.Equal(t, r.endpoints, again.endpoints, "the same list keeps the same endpoints")
		require.Equal(t, dropped, droppedAgain)
	})
}

// A cache file is taken only where it names this handle, whatever is in it; and what
// is taken can be written and read back.
func FuzzCacheFile(f *testing.F) {
	mine := newCacheFile(f.TempDir(), "eip155:8453", ArchiveRecent)
	whole, err := mine.encode(sampleList(), time.Unix(0, 0))
	require.NoError(f, err)
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add(bytes.Replace(whole, []byte("eip155:8453"), []byte("eip155:1"), 1))
	f.Add(bytes.Replace(whole, []byte(`"archive"`), []byte(`"any"`), 1))
	f.Add([]byte(`{"ref":"eip155:8453","require":"archive","saved_at":"never","chain":{"key":"k"},"rpcs":[]}`))
	f.Add([]byte(`{"ref":"eip155:8453","require":"archive","chain":{"key":"k"},"rpcs":[{"url":"http://a.test"}]}`))
	f.Add([]byte(`{"REF":"eip155:8453","ref":"1","require":"archive","chain":{"key":"k"},"rpcs":[]}`))
	for _, seed := range listings {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		list, savedAt, err := mine.decode(body)
		if err != nil {
			require.Nil(t, list)
			return
		}
		var named struct{ Ref, Require string }
		require.NoError(t, json.Unmarshal(body, &named))
		require.Equal(t, mine.ref, named.Ref)
		require.Equal(t, mine.require, named.Require)

		written, err := mine.encode(list, savedAt)
		require.NoError(t, err)
		read, readAt, err := mine.decode(written)
		require.NoError(t, err)
		require.Equal(t, list, read)
		require.True(t, savedAt.Equal(readAt))
	})
}

// Whether a page is a proxy's own is decided by its marks alone, and such a page is
// held against the proxy or the connection, never against the request or the RPC.
func FuzzProxyPage(f *testing.F) {
	f.Add(503, "X-Squid-Error", "ERR_CONNECT_FAIL 111", []byte("<html>squid</html>"))
	f.Add(403, "Server", "tinyproxy/1.11.1", []byte(""))
	f.Add(404, "Last-Modified", privoxyDate, []byte("no such domain"))
	f.Add(502, "Via", "1.1 proxy (squid/5.7)", []byte(privoxyBadAnswer))
	f.Add(200, "", "", []byte("Blocked (Privoxy@localhost)"))
	f.Add(407, "Server", "nginx", []byte(`{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"x"}}`))
	f.Fuzz(func(t *testing.T, status int, name, value string, body []byte) {
		header := http.Header{}
		header.Set(name, value)
		who, own := proxyPage(header, body)
		require.Equal(t, own, who != "")
		plain, marked := proxyPage(http.Header{"Via": {"1.1 somebody"}}, nil)
		require.Empty(t, plain)
		require.False(t, marked, "a Via alone proves nothing (rule A5.2)")
		if !own {
			return
		}
		out := judgeProxyPage(who, status)
		require.Contains(t, []Verdict{VerdictProxyFail, VerdictConnFail}, out.verdict)
		require.Equal(t, status == 401 || status == 403 || status == 407, out.verdict == VerdictProxyFail)
		require.Equal(t, out.verdict == VerdictConnFail, out.report == reportConn)
		require.Contains(t, out.detail, who)
		if len(value) > 20 && value != who {
			require.NotContains(t, out.detail, value, "nothing that was sent is shown")
		}
	})
}

// A URL that makes an endpoint is shown without anything but scheme, host and port,
// and is dialled under the host that it names.
func FuzzEndpoint(f *testing.F) {
	for _, seed := range []string{
		"https://rpc.example.org/v2/key", "http://user:pass@[2001:db8::1]:8545/?key=x#y", "HTTPS://A", "http://a:/", "http://a:99999/", "http://@/",
		"http://%41.test/", "https://a.test:x/", "http:///x", "//a.test", "http://a b/", "http://a.test/\x00", "https://:443",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		e := newEndpoint(raw)
		if e == nil {
			return
		}
		shown, err := url.Parse(e.label)
		require.NoError(t, err)
		require.Nil(t, shown.User)
		require.Contains(t, []string{"", "/***"}, shown.Path)
		require.Empty(t, shown.RawQuery+shown.Fragment)
		require.Equal(t, e.target.Host, shown.Host)
	})
}
