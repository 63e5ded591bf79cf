package rpcpooltest

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// memBuffer is how many bytes a memory connection takes before a write waits for
// the reader. It is generous so that a server may answer without having read the
// request's body, as tinyproxy does.
const memBuffer = 64 << 20

// memAddr is the address of an end of a memory connection.
type memAddr string

func (memAddr) Network() string  { return "tcp" }
func (a memAddr) String() string { return string(a) }

// memConn is one end of a full-duplex connection in memory. It behaves like a
// TCP connection to those who read and write it, errors included, and waits on
// a sync.Cond only, so that a testing/synctest bubble knows when all are idle.
type memConn struct {
	local, remote memAddr
	in, out       *stream
}

// newMemPipe makes both ends of a connection.
func newMemPipe(client, server memAddr) (*memConn, *memConn) {
	up, down := newStream(), newStream()
	return &memConn{local: client, remote: server, in: down, out: up},
		&memConn{local: server, remote: client, in: up, out: down}
}

func (c *memConn) Read(p []byte) (int, error) {
	n, err := c.in.read(p)
	return n, c.wrap("read", err)
}

func (c *memConn) Write(p []byte) (int, error) {
	n, err := c.out.write(p)
	return n, c.wrap("write", err)
}

// Close ends both directions: the peer reads what was written, then io.EOF.
func (c *memConn) Close() error {
	c.out.finish()
	c.in.abandon()
	return nil
}

// CloseWrite ends this end's direction only.
func (c *memConn) CloseWrite() error {
	c.out.finish()
	return nil
}

// Reset breaks the connection: the peer reads what was written, then ECONNRESET.
func (c *memConn) Reset() error {
	c.out.breakOff()
	c.in.breakOff()
	return c.Close()
}

func (c *memConn) LocalAddr() net.Addr  { return c.local }
func (c *memConn) RemoteAddr() net.Addr { return c.remote }

func (c *memConn) SetDeadline(t time.Time) error {
	c.in.setDeadline(&c.in.readBy, t)
	c.out.setDeadline(&c.out.writeBy, t)
	return nil
}

func (c *memConn) SetReadDeadline(t time.Time) error {
	c.in.setDeadline(&c.in.readBy, t)
	return nil
}

func (c *memConn) SetWriteDeadline(t time.Time) error {
	c.out.setDeadline(&c.out.writeBy, t)
	return nil
}

// wrap gives errors the form that the net package gives them.
func (c *memConn) wrap(op string, err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	if _, ok := errors.AsType[syscall.Errno](err); ok {
		err = os.NewSyscallError(op, err)
	}
	return &net.OpError{Op: op, Net: "tcp", Source: c.local, Addr: c.remote, Err: err}
}

// stream is one direction of a connection.
type stream struct {
	mu      sync.Mutex
	changed *sync.Cond // everything below

	buf       bytes.Buffer
	finished  bool // the writer is done: io.EOF after what is buffered
	abandoned bool // the reader is gone
	ignored   bool // a write after that was taken and dropped, as a kernel does once
	broken    bool // reset
	readBy    deadline
	writeBy   deadline
}

type deadline struct {
	passed bool
	timer  *time.Timer
	set    int // counts the settings, so that a late timer knows that it is void
}

func newStream() *stream {
	s := &stream{}
	s.changed = sync.NewCond(&s.mu)
	return s
}

func (s *stream) read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.abandoned:
			return 0, net.ErrClosed
		case s.readBy.passed:
			return 0, os.ErrDeadlineExceeded
		case len(p) == 0:
			return 0, nil
		case s.buf.Len() > 0:
			n, _ := s.buf.Read(p)
			if s.buf.Len() == 0 && s.buf.Cap() > 1<<20 {
				s.buf = bytes.Buffer{} // a big answer's memory isn't kept for small ones
			}
			s.changed.Broadcast()
			return n, nil
		case s.broken:
			return 0, syscall.ECONNRESET
		case s.finished:
			return 0, io.EOF
		}
		s.changed.Wait()
	}
}

func (s *stream) write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	written := 0
	for {
		switch {
		case s.finished:
			return written, net.ErrClosed
		case s.writeBy.passed:
			return written, os.ErrDeadlineExceeded
		case s.broken:
			return written, syscall.ECONNRESET
		case s.abandoned && s.ignored:
			return written, syscall.EPIPE
		case s.abandoned:
			s.ignored = true
			return written + len(p), nil
		case len(p) == 0:
			return written, nil
		}
		if room := memBuffer - s.buf.Len(); room > 0 {
			n := min(room, len(p))
			s.buf.Write(p[:n])
			written, p = written+n, p[n:]
			s.changed.Broadcast()
			continue
		}
		s.changed.Wait()
	}
}

func (s *stream) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finished = true
	s.writeBy.stop()
	s.changed.Broadcast()
}

func (s *stream) abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.abandoned = true
	s.buf = bytes.Buffer{}
	s.readBy.stop()
	s.changed.Broadcast()
}

func (s *stream) breakOff() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = true
	s.changed.Broadcast()
}

func (s *stream) setDeadline(d *deadline, t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d.stop()
	d.passed = false
	if t.IsZero() {
		return
	}
	wait := time.Until(t)
	if wait <= 0 {
		d.passed = true
		s.changed.Broadcast()
		return
	}
	set := d.set
	d.timer = time.AfterFunc(wait, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if d.set == set {
			d.passed = true
			s.changed.Broadcast()
		}
	})
}

func (d *deadline) stop() {
	d.set++
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}
