package proxydial_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool/internal/proxydial"
)

// listen runs a proxy on loopback; its connections are given to serve, one by one.
func listen(t *testing.T, serve func(conn *net.TCPConn)) (port int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serve(conn.(*net.TCPConn))
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return l.Addr().(*net.TCPAddr).Port
}

// reset makes Close send RST.
func reset(conn net.Conn) { _ = conn.(*net.TCPConn).SetLinger(0) }

// Over real sockets: a tunnel works, with the default dial function.
func TestTunnelOverLoopback(t *testing.T) {
	conv := conversations[1]
	port := listen(t, func(conn *net.TCPConn) { speaker{t: t, conv: conv, limit: -1, after: "early", then: echo}.serve(conn) })
	ctx, attempt := proxydial.WithAttempt(t.Context())
	conn, err := dialerTo(t, fmt.Sprintf("socks5://jo:pw@127.0.0.1:%d", port), nil).Tunnel(ctx, target)
	require.NoError(t, err)
	assert.Equal(t, proxydial.PhaseReady, attempt.Phase())
	assert.Equal(t, "early", readN(t, conn, 5))
	_, err = io.WriteString(conn, "ping")
	require.NoError(t, err)
	assert.Equal(t, "ping", readN(t, conn, 4))
	require.NoError(t, conn.Close())
}

// Over real sockets: a reset is Closed in its phase, a closed port Unreachable.
func TestTunnelResetOverLoopback(t *testing.T) {
	for _, test := range []struct {
		url    string
		serve  func(conn net.Conn)
		phase  proxydial.Phase
		reason proxydial.Reason
	}{
		{"socks5://127.0.0.1:%d", saying("", reset), greeting, proxydial.Closed},
		{"socks5://127.0.0.1:%d", saying(bytesOf("05 00"), func(conn net.Conn) {
			saying("", reset)(conn)
		}), asking, proxydial.Closed},
		{"socks4://127.0.0.1:%d", saying("", reset), asking, proxydial.Closed},
		{"http://127.0.0.1:%d", saying("", reset), asking, proxydial.Closed},
		{"https://127.0.0.1:%d", saying("", reset), proxydial.PhaseTLS, proxydial.Closed},
	} {
		port := listen(t, func(conn *net.TCPConn) { test.serve(conn) })
		_, err := dialerTo(t, fmt.Sprintf(test.url, port), nil).Tunnel(t.Context(), target)
		wantError(t, err, test.phase, test.reason)
	}

	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	_, err = dialerTo(t, "http://"+l.Addr().String(), nil).Reach(t.Context())
	wantError(t, err, proxydial.PhaseDial, proxydial.Unreachable)
	assert.Contains(t, err.Error(), "connection refused")
}

// Over real sockets: the end of an attempt closes the connection to a silent proxy.
func TestTunnelEndsOverLoopback(t *testing.T) {
	heard := make(chan struct{})
	closed := make(chan error, 1)
	port := listen(t, func(conn *net.TCPConn) {
		_, _ = conn.Read(make([]byte, 16))
		close(heard)
		_, err := conn.Read(make([]byte, 16))
		closed <- err
	})
	ctx, cancel := context.WithCancel(t.Context())
	ctx, _ = proxydial.WithAttempt(ctx)
	go func() {
		<-heard
		cancel()
	}()
	_, err := dialerTo(t, fmt.Sprintf("socks5://127.0.0.1:%d", port), nil).Tunnel(context.WithoutCancel(ctx), target)
	wantError(t, err, greeting, proxydial.Canceled)
	require.ErrorIs(t, <-closed, io.EOF)
}
