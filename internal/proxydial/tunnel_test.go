package proxydial_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool/internal/proxydial"
)

// Every kind of proxy gets exactly the right bytes, whether its answers come whole
// or byte by byte; the tunnel carries what follows the answer, even in the same
// write, from its first byte; and it outlives the attempt.
func TestTunnelThroughEveryProxy(t *testing.T) {
	for _, conv := range conversations {
		for _, slow := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/slow=%t", conv.name, slow), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := &fakeNet{serve: speaker{t: t, conv: conv, slow: slow, limit: -1, after: "early", then: echo}.serve}
					d := dialerTo(t, conv.url, n)
					d.HandshakeTimeout = 5 * time.Second
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
					ctx, attempt := proxydial.WithAttempt(ctx)

					conn, err := d.Tunnel(ctx, conv.target)
					require.NoError(t, err)
					assert.Equal(t, proxydial.PhaseReady, attempt.Phase())
					cancel()
					time.Sleep(time.Minute)
					assert.Equal(t, "early", readN(t, conn, 5))
					_, err = io.WriteString(conn, "ping")
					require.NoError(t, err)
					assert.Equal(t, "ping", readN(t, conn, 4))
					require.NoError(t, conn.Close())
					assert.Zero(t, n.openConns())
				})
			})
		}
	}
}

func echo(conn net.Conn) { _, _ = io.Copy(conn, conn) }

func readN(t *testing.T, conn net.Conn, n int) string {
	t.Helper()
	b := make([]byte, n)
	_, err := io.ReadFull(iotest.OneByteReader(conn), b)
	require.NoError(t, err)
	return string(b)
}

// A single byte that came with the answer's last ones is the tunnel's too.
func TestTunnelKeepsOneEarlyByte(t *testing.T) {
	for _, conv := range conversations {
		synctest.Test(t, func(t *testing.T) {
			n := &fakeNet{serve: speaker{t: t, conv: conv, limit: -1, after: "e", then: silence}.serve}
			conn, err := dialerTo(t, conv.url, n).Tunnel(t.Context(), conv.target)
			require.NoError(t, err)
			assert.Equal(t, "e", readN(t, conn, 1), conv.name)
			_ = conn.Close()
		})
	}
}

// Wherever a proxy's answer breaks off, the error says Closed in the phase of that
// byte, and the connection is closed.
func TestTunnelCutAtEveryByte(t *testing.T) {
	for _, conv := range conversations {
		t.Run(conv.name, func(t *testing.T) {
			for cut := range len(conv.said()) {
				synctest.Test(t, func(t *testing.T) {
					n := &fakeNet{serve: speaker{t: t, conv: conv, limit: cut}.serve}
					ctx, attempt := proxydial.WithAttempt(t.Context())
					_, err := dialerTo(t, conv.url, n).Tunnel(ctx, conv.target)
					wantError(t, err, conv.phaseAfter(cut), proxydial.Closed)
					assert.Equal(t, conv.phaseAfter(cut), attempt.Phase())
					assert.Zero(t, n.openConns())
				})
			}
		})
	}
}

// ending is a way in which a dial is ended from outside, a second after its start.
type ending struct {
	name   string
	start  func(ctx context.Context, d *proxydial.Dialer) (context.Context, context.CancelFunc)
	reason proxydial.Reason
	is     error
}

var endings = []ending{
	{"deadline of the caller", func(ctx context.Context, _ *proxydial.Dialer) (context.Context, context.CancelFunc) {
		return context.WithTimeout(ctx, time.Second)
	}, proxydial.Timeout, context.DeadlineExceeded},
	{"cancel by the caller", func(ctx context.Context, _ *proxydial.Dialer) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(ctx)
		time.AfterFunc(time.Second, cancel)
		return ctx, cancel
	}, proxydial.Canceled, context.Canceled},
	// As net/http does it: the dial's own context never ends.
	{"deadline of the attempt", func(ctx context.Context, _ *proxydial.Dialer) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithTimeoutCause(ctx, time.Second, errOfTest)
		ctx, _ = proxydial.WithAttempt(ctx)
		return context.WithoutCancel(ctx), cancel
	}, proxydial.Timeout, context.DeadlineExceeded},
	{"cancel of the attempt", func(ctx context.Context, _ *proxydial.Dialer) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(ctx)
		time.AfterFunc(time.Second, cancel)
		ctx, _ = proxydial.WithAttempt(ctx)
		return context.WithoutCancel(ctx), cancel
	}, proxydial.Canceled, context.Canceled},
	{"HandshakeTimeout", func(ctx context.Context, d *proxydial.Dialer) (context.Context, context.CancelFunc) {
		d.HandshakeTimeout = time.Second
		return context.WithTimeout(ctx, time.Hour)
	}, proxydial.Timeout, context.DeadlineExceeded},
	{"HandshakeTimeout before the attempt's", func(ctx context.Context, d *proxydial.Dialer) (context.Context, context.CancelFunc) {
		d.HandshakeTimeout = time.Second
		ctx, cancel := context.WithTimeout(ctx, time.Hour)
		ctx, _ = proxydial.WithAttempt(ctx)
		return context.WithoutCancel(ctx), cancel
	}, proxydial.Timeout, context.DeadlineExceeded},
}

var errOfTest = fmt.Errorf("the attempt took too long")

// Wherever a proxy falls silent, each ending of the dial ends it at once, with the
// phase it hung in, leaving neither a connection nor (as the bubble checks) a
// goroutine. HandshakeTimeout alone doesn't count once the target was asked for.
func TestTunnelEndsAtEveryByte(t *testing.T) {
	for _, conv := range conversations {
		for _, ending := range endings {
			t.Run(conv.name+"/"+ending.name, func(t *testing.T) {
				for at := range len(conv.said()) {
					synctest.Test(t, func(t *testing.T) { testEnding(t, conv, ending, at) })
				}
			})
		}
	}
}

func testEnding(t *testing.T, conv conversation, ending ending, at int) {
	n := &fakeNet{serve: speaker{t: t, conv: conv, limit: at, then: silence}.serve}
	d := dialerTo(t, conv.url, n)
	ctx, cancel := ending.start(t.Context(), d)
	defer cancel()
	wantAfter := time.Second
	if d.HandshakeTimeout > 0 && conv.phaseAfter(at) == asking {
		wantAfter = time.Hour
	}
	started := time.Now()
	_, err := d.Tunnel(ctx, conv.target)
	assert.Equal(t, wantAfter, time.Since(started))
	wantError(t, err, conv.phaseAfter(at), ending.reason)
	require.ErrorIs(t, err, ending.is)
	if a := proxydial.AttemptFrom(ctx); a != nil {
		assert.Equal(t, conv.phaseAfter(at), a.Phase())
	}
	assert.Zero(t, n.openConns())
}

// A proxy that takes long to reach the target isn't cut off by HandshakeTimeout.
func TestTunnelWaitsForTheTargetBeyondHandshakeTimeout(t *testing.T) {
	for _, conv := range conversations {
		synctest.Test(t, func(t *testing.T) {
			last := len(conv.turns) - 1
			pause := conv
			pause.turns = append([]turn(nil), conv.turns...)
			pause.turns[last].says = ""
			n := &fakeNet{serve: speaker{t: t, conv: pause, limit: -1, then: func(conn net.Conn) {
				time.Sleep(time.Minute)
				_, _ = io.WriteString(conn, conv.turns[last].says)
				silence(conn)
			}}.serve}
			d := dialerTo(t, conv.url, n)
			d.HandshakeTimeout = time.Second
			conn, err := d.Tunnel(t.Context(), conv.target)
			require.NoError(t, err, conv.name)
			_ = conn.Close()
		})
	}
}

// The cause that the attempt's context was ended with is found in the error.
func TestTunnelKeepsTheCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &fakeNet{serve: silence}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errOfTest)
		defer cancel()
		ctx, _ = proxydial.WithAttempt(ctx)
		_, err := dialerTo(t, "socks5://p.test", n).Tunnel(context.WithoutCancel(ctx), target)
		require.ErrorIs(t, err, errOfTest)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, context.Canceled)
	})
}

// An attempt that has ended before dials nothing.
func TestTunnelOfAnEndedAttempt(t *testing.T) {
	n := &fakeNet{serve: silence}
	ctx, cancel := context.WithCancel(t.Context())
	ctx, _ = proxydial.WithAttempt(ctx)
	cancel()
	_, err := dialerTo(t, "socks5://p.test", n).Tunnel(context.WithoutCancel(ctx), target)
	wantError(t, err, proxydial.PhaseDial, proxydial.Canceled)
	assert.Empty(t, n.dials())
}

// endingConn ends the dial with the after-th byte that is read, and hands the byte
// over all the same: at once, or when the dialer has closed the connection.
type endingConn struct {
	net.Conn
	after  int
	end    context.CancelFunc
	wait   bool
	closed chan struct{}
	once   sync.Once
}

func (c *endingConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.after -= n; c.after <= 0 && n > 0 {
		c.end()
		if c.wait {
			<-c.closed
		}
	}
	return n, err
}

func (c *endingConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// An end that coincides with a byte of the proxy's answer, even its last one, is an
// end: no step follows it, and no closed connection is handed out as a tunnel.
func TestTunnelEndsTogetherWithAByte(t *testing.T) {
	for _, conv := range conversations {
		if conv.name == "https" {
			continue // the bytes read are TLS's
		}
		for after := 1; after <= len(conv.said()); after++ {
			for _, wait := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					n := &fakeNet{serve: speaker{t: t, conv: conv, slow: true, limit: -1, then: silence}.serve}
					ctx, cancel := context.WithCancel(t.Context())
					ctx, attempt := proxydial.WithAttempt(ctx)
					d := dialerTo(t, conv.url, n)
					d.HandshakeTimeout = time.Minute
					d.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
						conn, err := n.dial(ctx, network, addr)
						return &endingConn{Conn: conn, after: after, end: cancel, wait: wait, closed: make(chan struct{})}, err
					}
					_, err := d.Tunnel(context.WithoutCancel(ctx), conv.target)
					// Without the wait, the next phase may have begun before the end was noticed.
					if phase := conv.phaseAfter(after - 1); wait {
						wantError(t, err, phase, proxydial.Canceled)
					} else {
						wantError(t, err, attempt.Phase(), proxydial.Canceled)
						assert.NotEqual(t, proxydial.PhaseReady, attempt.Phase())
					}
					assert.Zero(t, n.openConns())
				})
			}
		}
	}
}

// Who derives the dial's context from the attempt's by hand, as a pool does that
// must also end dials when it's closed, still gets the attempt's own end and cause.
func TestTunnelTellsTheAttemptsEndFromItsConsequences(t *testing.T) {
	for range 20 { // the consequences come in any order
		synctest.Test(t, func(t *testing.T) {
			n := &fakeNet{serve: silence}
			attemptCtx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errOfTest)
			defer cancel()
			attemptCtx, _ = proxydial.WithAttempt(attemptCtx)
			ctx, cancelDial := context.WithCancel(context.WithoutCancel(attemptCtx))
			defer cancelDial()
			defer context.AfterFunc(attemptCtx, cancelDial)()
			_, err := dialerTo(t, "socks5://p.test", n).Tunnel(ctx, target)
			wantError(t, err, greeting, proxydial.Timeout)
			require.ErrorIs(t, err, errOfTest)
		})
	}
}
