package rpcpool_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// stuckAt has a way to get a call stuck in each of its phases.
var stuckAt = map[string]func(w *rpcpooltest.World, p *rpcpooltest.Proxy, r *rpcpooltest.Node){
	"the list": func(w *rpcpooltest.World, _ *rpcpooltest.Proxy, _ *rpcpooltest.Node) {
		w.Pool.Lists("1", rpcpooltest.PoolHang())
	},
	"the proxy": func(_ *rpcpooltest.World, p *rpcpooltest.Proxy, _ *rpcpooltest.Node) {
		p.Script(rpcpooltest.ProxyHang())
	},
	"the tunnel": func(_ *rpcpooltest.World, p *rpcpooltest.Proxy, _ *rpcpooltest.Node) {
		p.Script(rpcpooltest.ProxyBlackHole())
	},
	"the answer": func(_ *rpcpooltest.World, _ *rpcpooltest.Proxy, r *rpcpooltest.Node) {
		r.Script(rpcpooltest.Hang())
	},
	"the body": func(_ *rpcpooltest.World, _ *rpcpooltest.Proxy, r *rpcpooltest.Node) {
		r.Script(rpcpooltest.HangInBody())
	},
	"TLS": func(w *rpcpooltest.World, _ *rpcpooltest.Proxy, _ *rpcpooltest.Node) {
		w.List("1", w.NodeAt("r2", "https://r2.test/key-r2", rpcpooltest.HangTLS().Times(1)))
	},
}

// The caller's end ends the call at once, wherever it waits; nothing is cooled or
// reported for it, and nothing is left of it (rules A6.2, A5.4).
func TestCallEndsWithItsCaller(t *testing.T) {
	const patience = 2 * time.Second
	for where, getStuck := range stuckAt {
		for how, begin := range map[error]func(ctx context.Context) (context.Context, context.CancelFunc){
			context.DeadlineExceeded: func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeout(ctx, patience)
			},
			context.Canceled: func(ctx context.Context) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(ctx)
				time.AfterFunc(patience, cancel)
				return ctx, cancel
			},
		} {
			t.Run(where+"/"+how.Error(), func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
					p, r := w.Proxy("p1"), w.Node("r1")
					w.List("1", r)
					getStuck(w, p, r)
					pool := open(t, w)
					ctx, cancel := begin(t.Context())
					defer cancel()

					start := time.Now()
					_, err := pool.Chain("1").Call(ctx, "eth_blockNumber")
					require.ErrorIs(t, err, how)
					require.Equal(t, patience, time.Since(start))
					var interrupted *rpcpool.InterruptedError
					require.ErrorAs(t, err, &interrupted)
					nothingLeft(t, w, p)

					p.Script()
					r.Script()
					if where != "the list" {
						_, err = pool.Chain("1").Call(t.Context(), "eth_blockNumber")
						require.NoError(t, err, "something was cooled for the caller's end")
					}
					require.NoError(t, pool.Close())
					require.Empty(t, w.Pool.Reports())
				})
			})
		}
	}
}

// Close interrupts what is under way with ErrClosed, wherever it waits, and leaves
// nothing.
func TestCloseInterruptsCalls(t *testing.T) {
	for where, getStuck := range stuckAt {
		t.Run(where, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				p, r := w.Proxy("p1"), w.Node("r1")
				w.List("1", r)
				getStuck(w, p, r)
				pool := open(t, w)
				failed := make(chan error)
				go func() {
					_, err := pool.Chain("1").Call(t.Context(), "eth_blockNumber")
					failed <- err
				}()
				time.Sleep(time.Second)
				start := time.Now()
				closed := make(chan struct{})
				go func() { _ = pool.Close(); close(closed) }()
				require.ErrorIs(t, <-failed, rpcpool.ErrClosed)
				<-closed
				require.Zero(t, time.Since(start), "Close waited although nothing was left to deliver")
				nothingLeft(t, w, p)
				require.NoError(t, pool.Close(), "closing twice is no harm")
				_, err := pool.Chain("2").Call(t.Context(), "eth_blockNumber")
				require.ErrorIs(t, err, rpcpool.ErrClosed)
			})
		})
	}
}

// A kept connection that died while idle is nobody's failure: the request is
// repeated once on a fresh connection (rule A5.3).
func TestIdleConnectionThatDiedIsNobodysFailure(t *testing.T) {
	for url, proxyURL := range map[string]string{
		"http://r1.test/key-r1":  "socks5://p1.test:1080",
		"https://r1.test/key-r1": "http://p1.test:3128",
		"http://r1.test:8545/k1": "http://p1.test:3128",
	} {
		t.Run(url, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				chain, r := keptConnection(t, w, url, proxyURL)
				r.Script(rpcpooltest.Reset().Times(1))
				_, err := chain.Call(t.Context(), "eth_chainId")
				require.NoError(t, err, "not repeated")
				require.Len(t, r.Requests(), 3)

				r.Script(rpcpooltest.Reset().Times(2))
				_, err = chain.Call(t.Context(), "eth_chainId")
				var unhealthy *rpcpool.NoHealthyRPCError
				require.ErrorAs(t, err, &unhealthy, "on a fresh connection it is a failure")
				require.Len(t, r.Requests(), 4)
			})
		})
	}
}

// A method with an effect that another request would have again isn't repeated, and
// isn't sent on a kept connection, of whose end nobody could say whether the request had
// arrived (rule C2).
func TestIdleConnectionIsNotRepeatedForMethodsWithEffects(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		chain, r := keptConnection(t, w, "http://r1.test/key-r1", "socks5://p1.test:1080")
		r.Script(rpcpooltest.Reset())
		_, err := chain.Call(t.Context(), "eth_sendTransaction", map[string]string{"to": "0xab"})
		var ambiguous *rpcpool.AmbiguousError
		require.ErrorAs(t, err, &ambiguous)
		require.Len(t, r.Requests(), 2)
	})
}

// keptConnection gives a handle that has a kept connection to its one RPC.
func keptConnection(t *testing.T, w *rpcpooltest.World, url, proxyURL string) (*rpcpool.Chain, *rpcpooltest.Node) {
	t.Helper()
	p, r := w.ProxyAt("p1", proxyURL), w.NodeAt("r1", url)
	w.SetKeepAlive(true)
	w.List("1", r)
	chain := open(t, w, func(c *rpcpool.Config) { c.ProxyCheckURL = w.Node("c1").URL() }).Chain("1")
	_, err := chain.Call(t.Context(), "eth_blockNumber")
	require.NoError(t, err)
	synctest.Wait()
	require.Equal(t, 1, w.Network.OpenConns(p.Addr()), "no connection is kept")
	return chain, r
}

// What an RPC has dropped is remembered for every method that names its block by
// number, for that kind of thing (table of rule A5).
func TestPrunedMarksOfEveryKind(t *testing.T) {
	const state, history = "required historical state unavailable (reexec=128)", "pruned history unavailable"
	for method, c := range map[string]struct {
		params  []any
		message string
	}{
		"eth_getBalance":           {[]any{"0xab", "0x384"}, state},
		"eth_getProof":             {[]any{"0xab", []any{}, "0x384"}, state},
		"eth_estimateGas":          {[]any{map[string]any{}, "0x384"}, state},
		"debug_traceBlockByNumber": {[]any{"0x384"}, state},
		"eth_getBlockByNumber":     {[]any{"0x384", false}, history},
		"eth_getLogs":              {[]any{map[string]any{"fromBlock": "0x384", "toBlock": "0x390"}}, history},
	} {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			w.Proxy("p1")
			w.List("1", w.Node("r1", rpcpooltest.Error(-32000, c.message).Method(method)), w.Node("r2"))
			chain := open(t, w).Chain("1")
			for range 2 {
				_, err := chain.Call(t.Context(), method, c.params...)
				require.NoError(t, err)
			}
			require.Equal(t, []string{"r1 p1 " + method, "r2 p1 " + method, "r2 p1 " + method}, w.Requests())
			_, err := chain.Call(t.Context(), "eth_blockNumber")
			require.NoError(t, err)
			require.Equal(t, "r1 p1 eth_blockNumber", w.Requests()[3])
		})
	}
}

// A failure that stands moves the cursor on from where it is once the undo of others
// has put it back (rules A4.2, A7.3, A7.4).
func TestCursorMovesOnFromWhereAnUndoPutIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.SetKeepAlive(false)
		p1 := w.Proxy("p1")
		w.Proxy("p2")
		r1 := w.Node("r1", rpcpooltest.Reset().Delay(time.Second).Times(1), rpcpooltest.Status(500).Delay(10*time.Second).Times(1))
		w.List("1", r1, w.Node("r2", rpcpooltest.Hang().Times(1)), w.Node("r3"))
		w.List("2", w.Node("s1"))
		pool := open(t, w, func(c *rpcpool.Config) { c.ProxyCheckURL = w.Node("c1").URL() })
		var calls sync.WaitGroup
		for _, c := range []struct {
			ref   string
			after time.Duration
		}{{"1", 0}, {"1", 500 * time.Millisecond}, {"2", 5 * time.Second}} {
			calls.Go(func() {
				time.Sleep(c.after)
				if c.ref == "2" {
					p1.Script(rpcpooltest.ProxyRefuse().Times(1)) // the other chain finds p1 dead
				}
				_, err := pool.Chain(c.ref).Call(t.Context(), "eth_blockNumber")
				require.NoError(t, err)
			})
		}
		calls.Wait()
		time.Sleep(90 * time.Second)
		before := len(w.Requests())
		_, err := pool.Chain("1").Call(t.Context(), "eth_blockNumber")
		require.NoError(t, err)
		require.Contains(t, w.Requests()[before], "r2 ")
	})
}
