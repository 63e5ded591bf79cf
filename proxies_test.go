package rpcpool_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// That this host can open no more connections is nobody's fault: the call says so,
// and no proxy cools.
func TestExhaustedHostBlamesNobody(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.EADDRNOTAVAIL, syscall.ENOBUFS} {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			p := w.Proxy("p1")
			w.List("1", w.Node("r1"))
			var full atomic.Bool
			full.Store(true)
			pool := open(t, w, func(c *rpcpool.Config) {
				c.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
					if full.Load() && addr == p.Addr() {
						return nil, &net.OpError{Op: "dial", Net: network, Err: os.NewSyscallError("socket", errno)}
					}
					return w.Network.DialContext(ctx, network, addr)
				}
			})
			_, err := pool.Chain("1").Call(t.Context(), "eth_blockNumber")
			var host *rpcpool.HostError
			require.ErrorAs(t, err, &host)
			require.ErrorIs(t, err, errno)
			require.Contains(t, err.Error(), errno.Error())
			full.Store(false)
			_, err = pool.Chain("1").Call(t.Context(), "eth_blockNumber")
			require.NoError(t, err, "a proxy cools for it")
		})
	}
}

// A socket that times out at the caller's own deadline says nothing of the proxy,
// even where the context's timer fires a moment later (rule A6.2).
func TestDialThatTimesOutAtTheCallersDeadline(t *testing.T) {
	for range 100 {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			p := w.Proxy("p1")
			w.List("1", w.Node("r1"))
			var late atomic.Bool
			late.Store(true)
			pool := open(t, w, func(c *rpcpool.Config) {
				c.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
					if deadline, ok := ctx.Deadline(); ok && late.Load() && addr == p.Addr() {
						time.Sleep(time.Until(deadline))
						return nil, &net.OpError{Op: "dial", Net: network, Err: os.ErrDeadlineExceeded}
					}
					return w.Network.DialContext(ctx, network, addr)
				}
			})
			chain := pool.Chain("1")
			_, err := chain.Call(within(t, 100*time.Millisecond), "eth_blockNumber")
			require.ErrorIs(t, err, context.DeadlineExceeded)
			late.Store(false)
			_, err = chain.Call(t.Context(), "eth_blockNumber")
			require.NoError(t, err, "the proxy was blamed")
		})
	}
}

// Of several proxies whose cooldowns end together, the first of the list is the
// current one next (rule A4.2a).
func TestProxiesThatCameToCoolTogether(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		for i := range 3 {
			w.Proxy(fmt.Sprintf("p%d", i+1), rpcpooltest.ProxyRefuse().Times(1))
		}
		w.List("1", w.Node("r1"))
		chain := open(t, w).Chain("1")
		_, err := chain.Call(t.Context(), "eth_blockNumber")
		var proxies *rpcpool.ProxyError
		require.ErrorAs(t, err, &proxies)
		require.Equal(t, time.Now().Add(60*time.Second), proxies.RetryAt)
		time.Sleep(61 * time.Second)
		_, err = chain.Call(t.Context(), "eth_blockNumber")
		require.NoError(t, err)
		require.Equal(t, "r1 p1 eth_blockNumber", w.Requests()[3])
	})
}

// While one chain's dead host name is refused by every proxy, calls on a healthy one
// go on: at no moment do all proxies cool for it (rule A5.1).
func TestDeadHostNameHarmsNoOtherCall(t *testing.T) {
	for _, proxies := range []int{1, 2} {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			for i := range proxies {
				w.Proxy(fmt.Sprintf("p%d", i+1))
			}
			w.List("1", w.Node("r1", rpcpooltest.Unreachable().Code(1)), w.Node("r2"))
			w.List("2", w.Node("s1"))
			pool := open(t, w)
			var calls sync.WaitGroup
			for range 100 {
				for _, ref := range []string{"1", "2", "2"} {
					calls.Go(func() {
						_, err := pool.Chain(ref).Call(t.Context(), "eth_blockNumber")
						require.NoError(t, err, "chain %s, %d proxies", ref, proxies)
					})
				}
			}
			calls.Wait()
		})
	}
}

// Rule A7.2: a page of the proxy's own is no answer of the target's, whatever its status: a
// proxy that says no more than that is dead.
func TestCheckAnsweredByTheProxyItself(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		own := rpcpooltest.ProxyStatus(500).Header("X-Squid-Error", "ERR_CANNOT_FORWARD 0")
		w.ProxyAt("p1", "http://p1.test:3128", rpcpooltest.ProxyCarry().Times(3), own)
		w.Proxy("p2")
		var nodes []*rpcpooltest.Node
		for i := range 3 {
			nodes = append(nodes, w.Node(fmt.Sprint("r", i), rpcpooltest.Reset().Via("p1")))
		}
		w.List("1", nodes...)
		pool := open(t, w, func(cfg *rpcpool.Config) { cfg.ProxyCheckURL = w.Node("c1").URL() })
		_, err := pool.Chain("1").Call(t.Context(), "eth_blockNumber")
		require.NoError(t, err)
		require.Equal(t, uint64(1), pool.ProxyStats()[0].Deaths)
		for _, s := range pool.Chain("1").Stats() {
			require.False(t, s.Cooling, "%+v", s)
		}
	})
}
