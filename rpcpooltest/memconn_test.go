package rpcpooltest

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Both directions of a memory connection carry bytes at the same time, and the
// end of one leaves the other open.
func TestMemConnIsFullDuplexAndHalfCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newMemPipe("a:1", "b:2")
		go func() {
			_, _ = a.Write([]byte("question"))
			_ = a.CloseWrite()
		}()
		question, err := io.ReadAll(b)
		require.NoError(t, err)
		assert.Equal(t, "question", string(question))

		_, err = b.Write([]byte("answer"))
		require.NoError(t, err)
		require.NoError(t, b.Close())
		answer, err := io.ReadAll(a)
		require.NoError(t, err)
		assert.Equal(t, "answer", string(answer))
		assert.Equal(t, "b:2", a.RemoteAddr().String())
		assert.Equal(t, "a:1", a.LocalAddr().String())
	})
}

// A read waits until its deadline, fails with a timeout as a socket's does, and
// works again once the deadline is moved.
func TestMemConnReadDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newMemPipe("a:1", "b:2")
		begin := time.Now()
		require.NoError(t, a.SetReadDeadline(begin.Add(3*time.Second)))
		buf := make([]byte, 10)
		_, err := a.Read(buf)
		assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
		var timeout net.Error
		require.ErrorAs(t, err, &timeout)
		assert.True(t, timeout.Timeout())
		assert.Equal(t, 3*time.Second, time.Since(begin))

		require.NoError(t, a.SetReadDeadline(time.Time{}))
		time.AfterFunc(time.Minute, func() { _, _ = b.Write([]byte("late")) })
		n, err := a.Read(buf)
		require.NoError(t, err)
		assert.Equal(t, "late", string(buf[:n]))
	})
}

// A deadline that is set while a read waits ends that read, also one in the past:
// net/http interrupts its reads so.
func TestMemConnDeadlineWakesAReadInProgress(t *testing.T) {
	for name, after := range map[string]time.Duration{"past": -time.Hour, "future": time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, _ := newMemPipe("a:1", "b:2")
				done := make(chan error)
				go func() {
					_, err := a.Read(make([]byte, 1))
					done <- err
				}()
				synctest.Wait()
				require.NoError(t, a.SetDeadline(time.Now().Add(after)))
				assert.ErrorIs(t, <-done, os.ErrDeadlineExceeded)
			})
		})
	}
}

// A deadline that was replaced in time has no effect, even when its timer has
// begun to fire.
func TestMemConnReplacedDeadlineIsVoid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newMemPipe("a:1", "b:2")
		require.NoError(t, a.SetReadDeadline(time.Now().Add(time.Second)))
		require.NoError(t, a.SetReadDeadline(time.Now().Add(time.Minute)))
		time.AfterFunc(2*time.Second, func() { _, _ = b.Write([]byte("x")) })
		_, err := a.Read(make([]byte, 1))
		assert.NoError(t, err)
	})
}

// A reset reaches the peer as ECONNRESET, after what was written before it; the
// end that reset can't use the connection any more.
func TestMemConnReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newMemPipe("a:1", "b:2")
		_, err := b.Write([]byte("before"))
		require.NoError(t, err)
		require.NoError(t, b.Reset())

		got, err := io.ReadAll(a)
		assert.Equal(t, "before", string(got))
		assert.ErrorIs(t, err, syscall.ECONNRESET)
		var op *net.OpError
		require.ErrorAs(t, err, &op)
		assert.Equal(t, "read", op.Op)
		_, err = a.Write([]byte("x"))
		assert.ErrorIs(t, err, syscall.ECONNRESET)

		_, err = b.Read(make([]byte, 1))
		assert.ErrorIs(t, err, net.ErrClosed)
		_, err = b.Write([]byte("x"))
		assert.ErrorIs(t, err, net.ErrClosed)
	})
}

// A reset ends a read that waits.
func TestMemConnResetWakesAReadInProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newMemPipe("a:1", "b:2")
		done := make(chan error)
		go func() {
			_, err := a.Read(make([]byte, 1))
			done <- err
		}()
		synctest.Wait()
		require.NoError(t, b.Reset())
		assert.ErrorIs(t, <-done, syscall.ECONNRESET)
	})
}

// After a close the own end is closed, its waiting read included; the peer's
// first write is taken and lost, as a kernel does, and the next one fails.
func TestMemConnClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newMemPipe("a:1", "b:2")
		done := make(chan error)
		go func() {
			_, err := b.Read(make([]byte, 1))
			done <- err
		}()
		synctest.Wait()
		require.NoError(t, b.Close())
		assert.ErrorIs(t, <-done, net.ErrClosed)
		_, err := b.Write([]byte("x"))
		assert.ErrorIs(t, err, net.ErrClosed)

		_, err = a.Write([]byte("x"))
		assert.NoError(t, err)
		_, err = a.Write([]byte("x"))
		assert.ErrorIs(t, err, syscall.EPIPE)
		_, err = a.Read(make([]byte, 1))
		assert.Equal(t, io.EOF, err)
	})
}

// A write waits only when the buffer is full, and goes on as the reader reads;
// or ends at its deadline, telling how much was taken.
func TestMemConnWriteWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newMemPipe("a:1", "b:2")
		most := bytes.Repeat([]byte("x"), memBuffer-1)
		n, err := a.Write(most)
		require.NoError(t, err)
		require.Equal(t, len(most), n)

		require.NoError(t, a.SetWriteDeadline(time.Now().Add(time.Second)))
		n, err = a.Write([]byte("xyz"))
		assert.Equal(t, 1, n)
		assert.ErrorIs(t, err, os.ErrDeadlineExceeded)

		require.NoError(t, a.SetWriteDeadline(time.Time{}))
		done := make(chan error)
		go func() {
			_, err := a.Write([]byte("yz"))
			done <- errors.Join(err, a.Close())
		}()
		synctest.Wait()
		_, err = io.CopyN(io.Discard, b, memBuffer-1)
		require.NoError(t, err)
		rest, err := io.ReadAll(b)
		require.NoError(t, err)
		require.NoError(t, <-done)
		assert.Equal(t, "xyz", string(rest))
	})
}
