package rpcpoolprom_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
	rpcpoolprom "github.com/bomzrpc/rpcpool/plugins/prometheus"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// Nothing secret is in a scrape, whatever goes wrong and whoever repeats it: the nodes' and
// the pool's answers quote every secret there is.
func TestMetricsShowNoSecret(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.Proxy("p2")
		nodes := []*rpcpooltest.Node{w.Node("r1"), w.Node("r2"), w.Node("r3"), w.Node("r4"), w.Node("r5")}
		w.List("1", nodes...)
		all := strings.Join(w.Secrets(), " ")
		require.NotEmpty(t, w.Secrets())
		nodes[0].Script(rpcpooltest.Error(-32000, "required historical state unavailable "+all))
		nodes[1].Script(rpcpooltest.Status(403).Text(all))
		nodes[2].Script(rpcpooltest.Reset())
		nodes[3].Script(rpcpooltest.RateLimited(time.Hour))
		w.Pool.Lists("2", rpcpooltest.PoolBody(all))
		w.Pool.ScriptReports(rpcpooltest.PoolStatus(500))
		m := rpcpoolprom.New(rpcpoolprom.WithMethods("eth_call"))
		pool := open(t, w, m, func(cfg *rpcpool.Config) { cfg.ProxyCheckURL = nodes[4].URL() })
		_, err := pool.Chain("1").Call(t.Context(), "eth_call", all)
		require.NoError(t, err)
		_, err = pool.Chain("1").Call(t.Context(), all)
		require.NoError(t, err)
		_, err = pool.Chain("2").Call(t.Context(), "eth_call")
		require.Error(t, err)
		time.Sleep(time.Second)

		registry := prometheus.NewRegistry()
		require.NoError(t, registry.Register(m))
		page := httptest.NewRecorder()
		promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
		body := page.Body.Bytes()
		require.True(t, bytes.Contains(body, []byte(`rpc="http://r1.test/***"`)), "%s", body)
		require.True(t, bytes.Contains(body, []byte(`proxy="socks5://***@p1.test:1080"`)))
		for _, secret := range w.Secrets() {
			require.NotContains(t, string(body), secret)
		}
	})
}
