package rpcpool_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// Rule A5.4: connections are used again, through every kind of proxy: 64 goroutines that
// call for long open no more than 64, whether they call at the same moments or each at its
// own, and after a break that a kept connection outlives. Every call is answered.
func TestConnectionsAreUsedAgain(t *testing.T) {
	const callers, calls, rounds = 64, 5, 4
	for _, c := range []struct{ proxy, rpc, how string }{
		{"socks5://user-p1:word-p1@p1.test:1080", "http", "socks5"},
		{"socks5://user-p1:word-p1@p1.test:1080", "https", "socks5"},
		{"socks4a://user-p1@p1.test:1080", "http", "socks4a"},
		{"socks4a://user-p1@p1.test:1080", "https", "socks4a"},
		{"http://user-p1:word-p1@p1.test:3128", "http", "forward"}, // in absolute form
		{"http://user-p1:word-p1@p1.test:3128", "https", "connect"},
		{"https://user-p1:word-p1@p1.test:3128", "http", "forward"},
		{"https://user-p1:word-p1@p1.test:3128", "https", "connect"},
	} {
		scheme, _, _ := strings.Cut(c.proxy, ":")
		t.Run(scheme+" to "+c.rpc, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				p := w.ProxyAt("p1", c.proxy)
				node := w.NodeAt("r1", c.rpc+"://r1.test/key-r1", rpcpooltest.Result("0x1").Delay(20*time.Millisecond))
				w.List("1", node)
				chain := open(t, w).Chain("1")
				for round := range rounds {
					var all sync.WaitGroup
					for caller := range callers {
						all.Go(func() {
							for range calls {
								_, err := chain.Call(t.Context(), "eth_chainId")
								assert.NoError(t, err)
								time.Sleep(time.Duration(round*caller) * time.Millisecond)
							}
						})
					}
					all.Wait()
					dials := 0
					for _, addr := range w.Network.Dials() {
						if addr == p.Addr() {
							dials++
						}
					}
					require.LessOrEqual(t, dials, callers, "after round %d", round)
					require.Len(t, node.Requests(), (round+1)*callers*calls)
					time.Sleep(20 * time.Second) // under the time that a connection may be idle
				}
				for _, e := range w.Network.Exchanges() {
					require.Equal(t, c.how, e.How)
				}
			})
		})
	}
}
