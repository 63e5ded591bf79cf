package integration

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bomzrpc/rpcpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Rule A5.3: a kept-alive connection that the RPC closes while it is idle is
// nobody's failure: the next call is served without a failed attempt, a cooldown
// or a report.
func TestIdleConnectionClosedByTheTargetIsNobodysFailure(t *testing.T) {
	for _, proxy := range proxyKinds {
		for _, scheme := range both {
			t.Run(proxy.name+"/"+scheme, func(t *testing.T) {
				t.Parallel()
				need(t, proxy.runs)
				server, url := idleTarget(t, scheme)
				b := newBed(t, []string{proxy.url()}, map[string][]string{"1": {url}})
				for range 4 {
					_, err := b.ChainID(1).Call(bounded(t), "eth_blockNumber")
					require.NoError(t, err)
					server.dropIdle(t)
				}
				assert.Equal(t, []rpcpool.Verdict{"ok", "ok", "ok", "ok"}, verdicts(b.log.attempts(), "idle"))
				assert.Empty(t, b.complaints())
			})
		}
	}
}

// idleServer knows its connections and can drop those that idle.
type idleServer struct {
	http.Server
	idle chan net.Conn
}

func idleTarget(t *testing.T, scheme string) (*idleServer, string) {
	t.Helper()
	s := &idleServer{idle: make(chan net.Conn, 100)}
	s.Handler, s.ErrorLog = http.HandlerFunc(answerEverything), silentLog
	s.ConnState = func(conn net.Conn, state http.ConnState) {
		if state == http.StateIdle {
			s.idle <- conn
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := listener.Addr().(*net.TCPAddr).Port
	if scheme == "https" {
		listener = tls.NewListener(listener, serving(goodCert))
	}
	go s.Serve(listener)
	t.Cleanup(func() { s.Close() })
	return s, fmt.Sprintf("%s://idle%s:%d/", scheme, rpcDomain, port)
}

// dropIdle closes the connection on which the last call was answered, if the proxy
// left it open that long.
func (s *idleServer) dropIdle(t *testing.T) {
	t.Helper()
	select {
	case conn := <-s.idle:
		conn.Close()
	case <-time.After(100 * time.Millisecond):
		// The proxy asked for the connection to be closed after the answer.
	}
}

// Rule A5.4: when an attempt's time is over, its connection through the proxy is
// over too: the target, which said nothing, sees it end.
func TestNoConnectionOutlivesItsAttempt(t *testing.T) {
	for _, proxy := range proxyKinds {
		for _, scheme := range both {
			if !proxy.relays(scheme) {
				continue // what becomes of its own connection is then the proxy's business
			}
			t.Run(proxy.name+"/"+scheme, func(t *testing.T) {
				t.Parallel()
				need(t, proxy.runs)
				var seen atomic.Int64
				ended := make(chan struct{}, 10)
				url := faultyTarget(t, scheme, nil, func(conn net.Conn) {
					seen.Add(1)
					stayMute(conn)
					ended <- struct{}{}
				})
				b := newBed(t, []string{proxy.url()}, map[string][]string{"1": {url}}, withTimeout(silence))
				begun := time.Now()
				_, err := b.ChainID(1).Call(bounded(t), "eth_blockNumber")
				require.Error(t, err)
				assert.Less(t, time.Since(begun), 3*silence, "one attempt and one check")
				require.EqualValues(t, 1, seen.Load())
				select {
				case <-ended:
				case <-time.After(3 * time.Second):
					t.Error("the connection is still there")
				}
			})
		}
	}
}

// A caller who goes away ends the attempt at once, through every proxy, and
// nobody is blamed for it (A6.2, C1).
func TestCancelledCallEndsAtOnce(t *testing.T) {
	for _, proxy := range proxyKinds {
		for _, scheme := range both {
			t.Run(proxy.name+"/"+scheme, func(t *testing.T) {
				t.Parallel()
				need(t, proxy.runs)
				ctx, cancel := context.WithCancel(bounded(t))
				url := faultyTarget(t, scheme, nil, func(conn net.Conn) {
					cancel()
					_, _ = io.Copy(io.Discard, conn)
					conn.Close()
				})
				b := newBed(t, []string{proxy.url()}, map[string][]string{"1": {url}})
				begun := time.Now()
				_, err := b.ChainID(1).Call(ctx, "eth_blockNumber")
				assert.ErrorIs(t, err, context.Canceled)
				assert.Less(t, time.Since(begun), timeout/2)
				assert.Empty(t, b.complaints())
			})
		}
	}
}
