package rpcpool_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// An RPC whose TLS isn't in order is the RPC's failure, in words that tell what is
// wrong (table of rule A5).
func TestTLSFailuresOfAnRPC(t *testing.T) {
	for detail, script := range map[string]rpcpooltest.Reply{
		"signed by an unknown authority": rpcpooltest.BadCertificate(),
		"doesn't speak TLS":              rpcpooltest.BadTLS(),
		"setting up TLS with the target": rpcpooltest.HangTLS(),
	} {
		t.Run(detail, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				w.Proxy("p1")
				w.List("1", w.NodeAt("r1", "https://r1.test/key-r1", script))
				pool := open(t, w, func(c *rpcpool.Config) { c.ProxyCheckURL = w.Node("c1").URL() })
				_, err := pool.Chain("1").Call(t.Context(), "eth_blockNumber")
				var unhealthy *rpcpool.NoHealthyRPCError
				require.ErrorAs(t, err, &unhealthy)
				require.Equal(t, rpcpool.VerdictConnFail, unhealthy.Attempts[0].Verdict)
				require.Contains(t, unhealthy.Attempts[0].Detail, detail)
			})
		})
	}
}

// A 407 inside TLS can't be a proxy's: the RPC is at fault, and the proxies stay.
// To a plain-http request it counts as the proxy's (table of rule A5).
func TestStatus407IsTheProxysOnPlainHTTPOnly(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1", w.NodeAt("r1", "https://r1.test/key-r1", rpcpooltest.Status(407)), w.Node("r2"))
		_, err := open(t, w).Chain("1").Call(t.Context(), "eth_blockNumber")
		require.NoError(t, err)
		require.Equal(t, []string{"r1 p1 eth_blockNumber", "r2 p1 eth_blockNumber"}, w.Requests())
	})
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1", w.Node("r1", rpcpooltest.Status(407)))
		_, err := open(t, w).Chain("1").Call(t.Context(), "eth_blockNumber")
		var proxies *rpcpool.ProxyError
		require.ErrorAs(t, err, &proxies)
	})
}

// An RPC whose URL no proxy can be asked for is at fault, not the proxies.
func TestURLThatCantBeUsedIsTheRPCsFault(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.Pool.Lists("1", rpcpooltest.PoolList("eip155:1", rpcpooltest.Listed{URL: "http://bad.test:99999/key-bad"}, w.Node("r2")))
		_, err := open(t, w).Chain("1").Call(t.Context(), "eth_blockNumber")
		require.NoError(t, err)
		require.Equal(t, []string{"r2 p1 eth_blockNumber"}, w.Requests())
	})
}
