package proxydial_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool/internal/proxydial"
)

// dialerWith is a Dialer over a dial function that needs no arguments.
func dialerWith(t *testing.T, url string, dial func() (net.Conn, error)) *proxydial.Dialer {
	d := dialerTo(t, url, nil)
	d.Dial = func(context.Context, string, string) (net.Conn, error) { return dial() }
	return d
}

// Reach connects to the proxy and, for https, does TLS; it says no word of the
// proxy's protocol, ends at HandshakeTimeout, and gives a connection that lives on.
func TestReach(t *testing.T) {
	for _, url := range []string{"http://p.test", "https://p.test", "socks5://jo:pw@p.test"} {
		t.Run(url, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := &fakeNet{serve: speaker{t: t, conv: conversation{url: url}, then: echo}.serve}
				d := dialerTo(t, url, n)
				d.HandshakeTimeout = time.Second
				ctx, cancel := context.WithCancel(t.Context())
				ctx, attempt := proxydial.WithAttempt(ctx)
				conn, err := d.Reach(ctx)
				require.NoError(t, err)
				assert.Equal(t, proxydial.PhaseReady, attempt.Phase())
				cancel()
				time.Sleep(time.Hour)
				_, err = io.WriteString(conn, "ping")
				require.NoError(t, err)
				assert.Equal(t, "ping", readN(t, conn, 4))
				require.NoError(t, conn.Close())
				assert.Zero(t, n.openConns())
			})
		})
	}
}

// TLS to the proxy ends as everything else does, wherever the proxy falls silent or
// breaks off in it, and the failures of TLS itself are told by their kind.
func TestTLSToTheProxyFails(t *testing.T) {
	hello := func(conn net.Conn) { _, _ = conn.Read(make([]byte, 16<<10)) }
	speak := func(cfg *tls.Config) func(net.Conn) {
		return func(conn net.Conn) { _ = tls.Server(conn, cfg).Handshake() }
	}
	foreign := serverTLS().Clone()
	foreign.NextProtos = []string{"foreign"}
	for _, test := range []struct {
		name   string
		serve  func(net.Conn)
		reason proxydial.Reason
		text   string
	}{
		{"silent", silence, proxydial.Timeout, "setting up TLS with the proxy: timed out"},
		{"closed", hello, proxydial.Closed, "setting up TLS with the proxy: the proxy closed the connection"},
		{"cut", saying("\x16\x03", nil), proxydial.Closed, "closed the connection"},
		{"plain HTTP", saying("HTTP/1.1 400 secret\r\n\r\n", silence), proxydial.BadTLS, "doesn't speak TLS"},
		{"alert", speak(foreign), proxydial.BadTLS, "the TLS handshake failed"},
		{"other name", speak(serverTLSFor("secret.test", farFuture)), proxydial.BadTLS, "for another host name"},
		{"expired", speak(serverTLSFor("p.test", time.Date(1995, 1, 1, 0, 0, 0, 0, time.UTC))), proxydial.BadTLS, "isn't valid"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := &fakeNet{serve: test.serve}
				d := dialerTo(t, "https://p.test", n)
				d.HandshakeTimeout = time.Second
				_, err := d.Reach(t.Context())
				wantError(t, err, proxydial.PhaseTLS, test.reason)
				assert.Contains(t, err.Error(), test.text)
				assert.NotContains(t, err.Error(), "secret")
				assert.Zero(t, n.openConns())
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		n := &fakeNet{serve: speak(serverTLS())}
		d := dialerTo(t, "https://p.test", n)
		d.RootCAs = x509.NewCertPool()
		_, err := d.Tunnel(t.Context(), target)
		wantError(t, err, proxydial.PhaseTLS, proxydial.BadTLS)
		assert.Contains(t, err.Error(), "unknown authority")
	})
}

// A zone is part of the address that is dialed, but of no certificate.
func TestTLSToAnAddressWithAZone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &fakeNet{serve: func(conn net.Conn) {
			_ = tls.Server(conn, serverTLSFor("fe80::1", farFuture)).Handshake()
			silence(conn)
		}}
		conn, err := dialerTo(t, "https://[fe80::1%25eth0]", n).Reach(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []string{"[fe80::1%eth0]:443"}, n.dials())
		_ = conn.(*tls.Conn).NetConn().Close() // the fake doesn't read TLS's farewell
	})
}

// A dial that ends in an error is told by it, in the phase of the dial.
func TestDialFails(t *testing.T) {
	failed := func(err error) error {
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", err)}
	}
	for _, test := range []struct {
		err    error
		reason proxydial.Reason
		text   string
	}{
		{failed(syscall.ECONNREFUSED), proxydial.Unreachable, "connection refused"},
		{failed(syscall.ENETUNREACH), proxydial.Unreachable, "no route to the proxy"},
		{failed(syscall.EHOSTUNREACH), proxydial.Unreachable, "no route to the proxy"},
		{failed(syscall.ECONNRESET), proxydial.Unreachable, "no connection to the proxy"},
		{failed(syscall.ETIMEDOUT), proxydial.Timeout, "timed out"},
		{&net.DNSError{Name: "secret.test", IsNotFound: true}, proxydial.Unreachable, "the proxy's host name can't be resolved"},
		{&net.DNSError{Name: "secret.test", IsTimeout: true}, proxydial.Timeout, "timed out"},
		{os.ErrDeadlineExceeded, proxydial.Timeout, "timed out"},
		{context.DeadlineExceeded, proxydial.Timeout, "timed out"},
		// An OpError tells only of what is directly in it.
		{&net.OpError{Op: "dial", Err: fmt.Errorf("chained: %w", os.ErrDeadlineExceeded)}, proxydial.Timeout, "timed out"},
		{&net.OpError{Op: "dial", Err: fmt.Errorf("chained: %w", context.DeadlineExceeded)}, proxydial.Timeout, "timed out"},
	} {
		_, err := dialerWith(t, "socks5://p.test", func() (net.Conn, error) { return nil, test.err }).Tunnel(t.Context(), target)
		wantError(t, err, proxydial.PhaseDial, test.reason)
		require.ErrorIs(t, err, test.err)
		assert.Equal(t, "connecting to the proxy: "+test.text, err.Error())
		if test.reason == proxydial.Timeout {
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
	}
	_, err := dialerWith(t, "socks5://p.test", func() (net.Conn, error) { return nil, nil }).Reach(t.Context())
	wantError(t, err, proxydial.PhaseDial, proxydial.Unreachable)
	assert.Contains(t, err.Error(), "neither a connection nor an error")
}

// A dial function that ignores its context doesn't hold up the caller; what it
// brings too late is closed, and its goroutine ends (as the bubble checks).
func TestDialThatIgnoresItsContext(t *testing.T) {
	for _, ending := range endings {
		for _, brings := range []string{"connection", "error", "nothing"} {
			t.Run(ending.name+"/"+brings, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := &fakeNet{serve: silence}
					d := dialerTo(t, "socks5://p.test", n)
					d.Dial = func(context.Context, string, string) (net.Conn, error) {
						time.Sleep(5 * time.Hour)
						switch brings {
						case "connection":
							return n.dial(context.Background(), "", "")
						case "error":
							return nil, errOfTest
						}
						return nil, nil
					}
					ctx, cancel := ending.start(t.Context(), d)
					defer cancel()
					started := time.Now()
					_, err := d.Tunnel(ctx, target)
					assert.Equal(t, time.Second, time.Since(started))
					wantError(t, err, proxydial.PhaseDial, ending.reason)
					require.ErrorIs(t, err, ending.is)
					time.Sleep(5 * time.Hour)
					synctest.Wait()
					assert.Zero(t, n.openConns())
					if brings == "connection" {
						assert.Len(t, n.dials(), 1)
					}
				})
			})
		}
	}
}

// A dial function that obeys its context learns of each ending, and knows the
// deadline beforehand, though net/http's context has none; values come through.
func TestDialKnowsTheDeadline(t *testing.T) {
	for _, ending := range endings {
		synctest.Test(t, func(t *testing.T) {
			deadlines := make(chan time.Time, 1)
			d := dialerTo(t, "socks5://p.test", nil)
			d.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
				assert.Equal(t, "tcp", network)
				assert.Equal(t, "p.test:1080", addr)
				assert.Equal(t, "v", ctx.Value(t))
				deadline, _ := ctx.Deadline()
				deadlines <- deadline
				<-ctx.Done()
				return nil, ctx.Err()
			}
			ctx, cancel := ending.start(context.WithValue(t.Context(), t, "v"), d)
			defer cancel()
			started := time.Now()
			_, err := d.Tunnel(ctx, target)
			wantError(t, err, proxydial.PhaseDial, ending.reason)
			if deadline := <-deadlines; ending.reason == proxydial.Timeout {
				assert.Equal(t, started.Add(time.Second), deadline, ending.name)
			}
			assert.Equal(t, time.Second, time.Since(started))
		})
	}
}

// Of HandshakeTimeout and the attempt's end, the earlier one is the deadline.
func TestDialKnowsTheEarlierDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := dialerTo(t, "socks5://p.test", nil)
		d.HandshakeTimeout = time.Minute
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		ctx, _ = proxydial.WithAttempt(ctx)
		want := time.Now().Add(time.Second)
		d.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
			deadline, _ := ctx.Deadline()
			assert.Equal(t, want, deadline)
			return nil, errOfTest
		}
		_, err := d.Tunnel(context.WithoutCancel(ctx), target)
		wantError(t, err, proxydial.PhaseDial, proxydial.Unreachable)
	})
}

// A deadline that a dial function left on its connection doesn't end the tunnel.
func TestTunnelHasNoDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv := conversations[0]
		n := &fakeNet{serve: speaker{t: t, conv: conv, limit: -1, then: echo}.serve}
		d := dialerTo(t, conv.url, n)
		d.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := n.dial(ctx, network, addr)
			return conn, errors.Join(err, conn.SetDeadline(time.Now().Add(time.Second)))
		}
		conn, err := d.Tunnel(t.Context(), target)
		require.NoError(t, err)
		time.Sleep(time.Minute)
		_, err = io.WriteString(conn, "ping")
		require.NoError(t, err)
		assert.Equal(t, "ping", readN(t, conn, 4))
		_ = conn.Close()
	})
}

// A deadline that passes on the connection itself is a Timeout.
func TestTunnelOnAConnectionThatTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &fakeNet{serve: silence}
		d := dialerTo(t, "socks5://p.test", n)
		d.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := n.dial(ctx, network, addr)
			return conn, errors.Join(err, conn.SetDeadline(time.Now().Add(time.Second)))
		}
		_, err := d.Tunnel(t.Context(), target)
		wantError(t, err, greeting, proxydial.Timeout)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Zero(t, n.openConns())
	})
}

// Targets that are none, or that the protocol can't say, are refused before
// anything is dialed; a name in its own alphabet is one of them, for it would be
// the caller's omission, and no proxy could be relied on to convert it.
func TestTunnelRefusesTargets(t *testing.T) {
	long := strings.Repeat("a", 256)
	for _, url := range []string{"socks5://p.test", "socks4://p.test", "http://p.test"} {
		socks4 := strings.HasPrefix(url, "socks4")
		for addr, refused := range map[string]bool{
			"":                        true,
			"rpc.test":                true,
			"rpc.test:":               true,
			"rpc.test:0":              true,
			"rpc.test:65536":          true,
			"rpc.test:http":           true,
			":443":                    true,
			"пример.test:443":         true,
			"a b:443":                 true,
			"a\r\nX-Injected: 1:443":  true,
			"a\x00b:443":              true,
			"user@rpc.test:443":       true,
			"rpc.test/path:443":       true,
			"[fe80::1%eth0]:443":      true,
			long + ":443":             true,
			long[:255] + ":443":       false,
			"xn--e1afmkfd.test:443":   false,
			"under_score.test.:65535": false,
			"[2001:db8::1]:443":       socks4,
			"0.0.0.9:443":             socks4,
			"0.0.1.0:443":             false,
			"[::ffff:192.0.2.1]:1":    false,
		} {
			dialed := false
			d := dialerWith(t, url, func() (net.Conn, error) { dialed = true; return nil, errOfTest })
			ctx, attempt := proxydial.WithAttempt(t.Context())
			_, err := d.Tunnel(ctx, addr)
			assert.Equal(t, !refused, dialed, "%s to %q", url, addr)
			if refused {
				reason := proxydial.BadTarget
				if strings.HasPrefix(addr, "[2001") || strings.HasPrefix(addr, "0.0.0.9") {
					reason = proxydial.AddressType // an address, but not one that SOCKS4 can say
				}
				own := wantError(t, err, proxydial.PhaseNone, reason)
				assert.Equal(t, own.Err.Error(), err.Error())
				assert.Equal(t, proxydial.PhaseNone, attempt.Phase())
				assert.NotContains(t, err.Error(), "waiting")
			}
		}
	}
}
