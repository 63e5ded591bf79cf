package rpcpooltest

import (
	"context"
	"io"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// onBoth runs a test on a memory network in a bubble, and on loopback.
func onBoth(t *testing.T, test func(t *testing.T, network *Network)) {
	t.Run("memory", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			network := NewMemoryNetwork()
			t.Cleanup(func() { _ = network.Close() })
			test(t, network)
		})
	})
	t.Run("loopback", func(t *testing.T) {
		network := NewLoopbackNetwork()
		t.Cleanup(func() { _ = network.Close() })
		test(t, network)
	})
}

// A name leads to its listener and to no other; the case of names doesn't count.
func TestNetworkNamesLeadToListeners(t *testing.T) {
	onBoth(t, func(t *testing.T, network *Network) {
		for _, name := range []string{"one.test:80", "two.test:80"} {
			listener, err := network.Listen(name)
			require.NoError(t, err)
			go func() {
				conn, err := listener.Accept()
				if err == nil {
					_, _ = io.WriteString(conn, name)
					_ = conn.Close()
				}
			}()
		}
		for dialled, want := range map[string]string{"two.test:80": "two.test:80", "ONE.test:80": "one.test:80"} {
			conn, err := network.DialContext(t.Context(), "tcp", dialled)
			require.NoError(t, err)
			got, err := io.ReadAll(conn)
			require.NoError(t, err)
			assert.Equal(t, want, string(got))
			require.NoError(t, conn.Close())
		}
		_, err := network.Listen("one.test:80")
		assert.ErrorContains(t, err, "in use")
	})
}

// An address that leads nowhere is refused, and noted all the same.
func TestNetworkUnknownAddressIsRefusedAndNoted(t *testing.T) {
	onBoth(t, func(t *testing.T, network *Network) {
		_, err := network.DialContext(t.Context(), "tcp", "r1.test:80")
		assert.ErrorIs(t, err, syscall.ECONNREFUSED)
		var op *net.OpError
		require.ErrorAs(t, err, &op)
		assert.Equal(t, "dial", op.Op)
		assert.Equal(t, []string{"r1.test:80"}, network.Dials())
	})
}

// A node can be reached through proxies only: a client that dials it finds nobody.
func TestNetworkClientCannotDialNodes(t *testing.T) {
	onBoth(t, func(t *testing.T, network *Network) {
		NewNode(network, "r1", "http://r1.test/key")
		_, err := network.DialContext(t.Context(), "tcp", "r1.test:80")
		assert.ErrorIs(t, err, syscall.ECONNREFUSED)
	})
}

// A closed listener refuses, and its name can be taken again.
func TestNetworkClosedListenerRefuses(t *testing.T) {
	onBoth(t, func(t *testing.T, network *Network) {
		listener, err := network.Listen("one.test:80")
		require.NoError(t, err)
		require.NoError(t, listener.Close())
		_, err = listener.Accept()
		assert.ErrorIs(t, err, net.ErrClosed)
		_, err = network.DialContext(t.Context(), "tcp", "one.test:80")
		assert.ErrorIs(t, err, syscall.ECONNREFUSED)
		_, err = network.Listen("one.test:80")
		assert.NoError(t, err)
	})
}

// A fault of an address decides about dials to it: refused, or hanging until the
// dial's context ends; without it the address works.
func TestNetworkFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := NewMemoryNetwork()
		defer func() { _ = network.Close() }()
		_, err := network.Listen("one.test:80")
		require.NoError(t, err)

		network.SetFault("one.test:80", RefuseIt)
		_, err = network.DialContext(t.Context(), "tcp", "one.test:80")
		assert.ErrorIs(t, err, syscall.ECONNREFUSED)

		network.SetFault("one.test:80", HangIt)
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 7*time.Second)
		defer cancel()
		go func() {
			synctest.Wait()
			assert.Equal(t, 1, network.PendingDials())
			assert.Equal(t, 1, network.PendingDials("one.test:80"))
			assert.Equal(t, 0, network.PendingDials("two.test:80"))
		}()
		_, err = network.DialContext(ctx, "tcp", "one.test:80")
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, 7*time.Second, time.Since(begin))
		assert.Equal(t, 0, network.PendingDials())

		network.SetFault("one.test:80", NoFault)
		_, err = network.DialContext(t.Context(), "tcp", "one.test:80")
		assert.NoError(t, err)
	})
}

// A connection counts as open until the client closes it, whatever the server
// does, and closing it twice counts once.
func TestNetworkCountsOpenConnections(t *testing.T) {
	onBoth(t, func(t *testing.T, network *Network) {
		listener, err := network.Listen("one.test:80")
		require.NoError(t, err)
		go func() {
			for conn, err := listener.Accept(); err == nil; conn, err = listener.Accept() {
				_ = conn.Close()
			}
		}()
		first, err := network.DialContext(t.Context(), "tcp", "one.test:80")
		require.NoError(t, err)
		second, err := network.DialContext(t.Context(), "tcp", "one.test:80")
		require.NoError(t, err)
		_, _ = io.ReadAll(first)
		assert.Equal(t, 2, network.OpenConns())
		_ = first.Close()
		_ = first.Close()
		assert.Equal(t, 1, network.OpenConns("one.test:80"))
		_ = second.Close()
		assert.Equal(t, 0, network.OpenConns())
	})
}

// Close ends dials that hang, servers and their connections; nothing can be
// opened after it. In a bubble a goroutine left behind fails the test.
func TestNetworkCloseEndsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := NewMemoryNetwork()
		proxy := NewProxy(network, "p1", "http://p1.test:3128", ProxyBlackHole())
		NewNode(network, "r1", "https://r1.test/", HangTLS())
		network.SetFault("hang.test:1", HangIt)
		conn, err := network.DialContext(t.Context(), "tcp", proxy.Addr())
		require.NoError(t, err)
		_, err = io.WriteString(conn, "CONNECT r1.test:443 HTTP/1.1\r\nHost: r1.test:443\r\n\r\n")
		require.NoError(t, err)
		dialled := make(chan error, 1)
		go func() {
			_, err := network.DialContext(context.Background(), "tcp", "hang.test:1")
			dialled <- err
		}()
		synctest.Wait()

		require.NoError(t, network.Close())
		assert.Error(t, <-dialled)
		_, err = conn.Read(make([]byte, 1))
		assert.ErrorIs(t, err, syscall.ECONNRESET)
		_, err = network.Listen("new.test:1")
		assert.Error(t, err)
		require.NoError(t, network.Close(), "closing twice is harmless")
	})
}
