package rpcpooltest

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// poolClient asks a pool API by net/http.
type poolClient struct {
	t      *testing.T
	pool   *PoolAPI
	client *http.Client
}

func withPool(t *testing.T, url string, test func(t *testing.T, c *poolClient)) {
	t.Helper()
	onBoth(t, func(t *testing.T, network *Network) {
		c := &poolClient{t: t, pool: NewPoolAPI(network, url, "the key")}
		c.client = &http.Client{
			Transport: &http.Transport{
				DialContext:       network.DialContext,
				TLSClientConfig:   &tls.Config{RootCAs: network.RootCAs()},
				DisableKeepAlives: true,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
		test(t, c)
	})
}

func (c *poolClient) do(method, path, key, body string) (*http.Response, string, error) {
	r, err := http.NewRequest(method, c.pool.URL()+path, strings.NewReader(body))
	require.NoError(c.t, err)
	r.Header.Set("X-API-Key", key)
	r.Header.Set("Content-Type", "application/json")
	response, err := c.client.Do(r)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	return response, string(raw), err
}

// A list has the form of the pool's; each reference has its own script; one
// without is unknown. References are unescaped.
func TestPoolAPIServesLists(t *testing.T) {
	withPool(t, "https://pool.test/base", func(t *testing.T, c *poolClient) {
		node := NewNode(c.pool.network, "r1", "http://r1.test/key")
		c.pool.Lists("my chain/1",
			PoolList("eip155:1001", node, Listed{URL: "http://r2.test", Height: 7}, map[string]any{"url": "wss://x"}).Times(1),
			PoolStatus(302).Header("Location", "http://elsewhere.test/").Times(1))
		_, body, err := c.do("GET", "/v1/chains/my%20chain%2F1/rpcs?transport=http", "the key", "")
		require.NoError(t, err)
		assert.JSONEq(t, `{"chain":{"key":"eip155:1001"},"policy":{"note":"of no matter"},"rpcs":[
			{"url":"http://r1.test/key","score":50,"height":1000,"caps":{"send_tx":true,"logs":10000,"archive":"full"}},
			{"url":"http://r2.test","score":0,"height":7,"caps":{"send_tx":null,"logs":null,"archive":null}},
			{"url":"wss://x"}]}`, body)
		response, _, err := c.do("GET", "/v1/chains/my%20chain%2F1/rpcs?transport=http", "the key", "")
		require.NoError(t, err)
		assert.Equal(t, 302, response.StatusCode)
		assert.Equal(t, "http://elsewhere.test/", response.Header.Get("Location"))
		for _, ref := range []string{"my%20chain%2F1", "unknown"} {
			response, _, err = c.do("GET", "/v1/chains/"+ref+"/rpcs?transport=http", "the key", "")
			require.NoError(t, err)
			assert.Equal(t, 404, response.StatusCode)
		}
		var asked []string
		for _, a := range c.pool.Asked() {
			asked = append(asked, a.Chain)
		}
		assert.Equal(t, []string{"my chain/1", "my chain/1", "my chain/1", "unknown"}, asked)
		assert.Empty(t, c.pool.network.Breaches())
	})
}

// Reports are recorded, and answered as scripted.
func TestPoolAPITakesReports(t *testing.T) {
	withPool(t, "http://pool.test", func(t *testing.T, c *poolClient) {
		c.pool.ScriptReports(PoolStatus(500).Times(1))
		const report = `{"chain":"eip155:8453","url":"http://r1.test/key","error":"conn","detail":"no"}`
		for _, want := range []int{500, 202} {
			response, _, err := c.do("POST", "/v1/report", "the key", report)
			require.NoError(t, err)
			assert.Equal(t, want, response.StatusCode)
		}
		got := c.pool.Reports()
		require.Len(t, got, 2)
		assert.WithinDuration(t, time.Now(), got[0].Time, time.Minute)
		got[0].Time = time.Time{}
		assert.Equal(t, Report{Chain: "eip155:8453", URL: "http://r1.test/key", Error: "conn", Detail: "no"}, got[0])
	})
}

// What a client must not do is a breach: no key, another query, an unknown path,
// a malformed report.
func TestPoolAPINotesBreaches(t *testing.T) {
	long := strings.Repeat("é", 501)
	cases := map[string]struct {
		method, path, key, body string
		status                  int
		want                    string
	}{
		"key":     {"GET", "/v1/chains/1/rpcs?transport=http", "wrong", "", 401, "without the API key"},
		"query":   {"GET", "/v1/chains/1/rpcs", "the key", "", 404, "instead of transport=http"},
		"path":    {"GET", "/v1/chains/a/b/rpcs?transport=http", "the key", "", 404, "doesn't serve"},
		"method":  {"GET", "/v1/report", "the key", "", 404, "doesn't serve"},
		"no JSON": {"POST", "/v1/report", "the key", "x", 400, "can't be read"},
		"no url":  {"POST", "/v1/report", "the key", `{"chain":"1","error":"conn"}`, 400, "without a chain or URL"},
		"error":   {"POST", "/v1/report", "the key", `{"chain":"1","url":"u","error":"odd"}`, 400, `"odd"`},
		"detail":  {"POST", "/v1/report", "the key", `{"chain":"1","url":"u","error":"conn","detail":"` + long + `"}`, 400, "500 characters"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			withPool(t, "http://pool.test", func(t *testing.T, client *poolClient) {
				response, _, err := client.do(c.method, c.path, c.key, c.body)
				require.NoError(t, err)
				assert.Equal(t, c.status, response.StatusCode)
				require.Len(t, client.pool.network.Breaches(), 1)
				assert.Contains(t, client.pool.network.Breaches()[0], c.want)
			})
		})
	}
}

// The pool's faults: garbage, a reset, a hang, a delay, being away.
func TestPoolAPIFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := NewMemoryNetwork()
		defer func() { _ = network.Close() }()
		c := &poolClient{t: t, pool: NewPoolAPI(network, "http://pool.test", "the key")}
		c.client = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DialContext: network.DialContext, DisableKeepAlives: true}}
		list := func() (*http.Response, string, error) {
			return c.do("GET", "/v1/chains/1/rpcs?transport=http", "the key", "")
		}
		gate := NewGate()
		c.pool.Lists("1", PoolGarbage().Times(1), PoolBody("[]").Delay(9*time.Second).Times(1), PoolReset().Times(1),
			PoolHang().Times(1), PoolBody("{}").Hold(gate))
		_, body, err := list()
		require.NoError(t, err)
		assert.Equal(t, "<html>Please log in</html>", body)
		begin := time.Now()
		_, body, err = list()
		require.NoError(t, err)
		assert.Equal(t, "[]", body)
		assert.Equal(t, 9*time.Second, time.Since(begin))
		_, _, err = list()
		assert.ErrorIs(t, err, syscall.ECONNRESET)
		_, _, err = list()
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		go func() {
			held, err := gate.Next(t.Context())
			if err == nil {
				time.Sleep(3 * time.Second)
				held.Release()
			}
		}()
		_, body, err = list()
		require.NoError(t, err)
		assert.Equal(t, "{}", body)

		c.pool.Kill()
		_, _, err = list()
		assert.ErrorIs(t, err, syscall.ECONNREFUSED)
		c.pool.Revive()
		gate.Open()
		_, _, err = list()
		assert.NoError(t, err)
	})
}
