package rpcpooltest

import (
	"context"
	"net"
	"sync"
	"syscall"
)

// endpoint is an open address of a network: a listener whose connections bring
// along what was decided about them at the dial (their tag).
type endpoint struct {
	network *Network
	place   place
	admit   func() (any, Fault) // asked at each dial of the client; nil: welcome
	tcp     net.Listener        // nil in memory

	mu      sync.Mutex // protects what follows
	changed *sync.Cond
	queue   []taggedConn   // in memory: made, not yet accepted
	tags    map[string]any // on loopback: by the dialling end's address
	dialing int            // on loopback: dials that may still bring a tag
	closed  bool
}

type taggedConn struct {
	net.Conn
	tag any
}

func newEndpoint(n *Network, where place, admit func() (any, Fault)) (*endpoint, error) {
	point := &endpoint{network: n, place: where, admit: admit, tags: map[string]any{}}
	point.changed = sync.NewCond(&point.mu)
	if n.loopback {
		tcp, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		point.tcp = tcp
	}
	return point, nil
}

// connect makes a connection to the endpoint.
func (p *endpoint) connect(ctx context.Context, from memAddr, tag any) (net.Conn, error) {
	if p.tcp != nil {
		return p.connectTCP(ctx, tag)
	}
	client, server := newMemPipe(from, memAddr(p.place.addr))
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, syscall.ECONNREFUSED
	}
	p.queue = append(p.queue, taggedConn{server, tag})
	p.changed.Signal()
	return client, nil
}

func (p *endpoint) connectTCP(ctx context.Context, tag any) (net.Conn, error) {
	p.mu.Lock()
	p.dialing++
	p.mu.Unlock()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", p.tcp.Addr().String())

	p.mu.Lock()
	defer p.mu.Unlock()
	p.dialing--
	if err == nil {
		p.tags[conn.LocalAddr().String()] = tag
	}
	p.changed.Broadcast()
	return conn, err
}

// Accept gives the next connection, as net.Listener has it.
func (p *endpoint) Accept() (net.Conn, error) {
	conn, err := p.accept()
	if err != nil {
		return nil, err
	}
	return conn.Conn, nil
}

func (p *endpoint) accept() (taggedConn, error) {
	if p.tcp != nil {
		return p.acceptTCP()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.queue) == 0 {
		if p.closed {
			return taggedConn{}, &net.OpError{Op: "accept", Net: "tcp", Addr: p.Addr(), Err: net.ErrClosed}
		}
		p.changed.Wait()
	}
	conn := p.queue[0]
	p.queue = p.queue[1:]
	return conn, nil
}

// acceptTCP finds the tag by the peer's address. A connection may arrive before
// its dialler has put the tag down, so it waits while there are such dials; one
// of a stranger (a browser, another process) has none.
func (p *endpoint) acceptTCP() (taggedConn, error) {
	conn, err := p.tcp.Accept()
	if err != nil {
		return taggedConn{}, err
	}
	from := conn.RemoteAddr().String()
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		if tag, ok := p.tags[from]; ok {
			delete(p.tags, from)
			return taggedConn{conn, tag}, nil
		}
		if p.dialing == 0 || p.closed {
			return taggedConn{conn, nil}, nil
		}
		p.changed.Wait()
	}
}

// Close ends the listener: dials are refused from now on.
func (p *endpoint) Close() error {
	p.network.forget(p)
	p.shut()
	return nil
}

func (p *endpoint) shut() {
	p.mu.Lock()
	p.closed = true
	queue := p.queue
	p.queue = nil
	p.changed.Broadcast()
	p.mu.Unlock()
	for _, conn := range queue {
		reset(conn.Conn)
	}
	if p.tcp != nil {
		_ = p.tcp.Close()
	}
}

// Addr is the address by which the endpoint is known: on loopback the real one.
func (p *endpoint) Addr() net.Addr {
	if p.tcp != nil {
		return p.tcp.Addr()
	}
	return memAddr(p.place.addr)
}

// reset breaks a connection in such a way that the peer sees a reset.
func reset(conn net.Conn) {
	switch c := conn.(type) {
	case interface{ Reset() error }:
		_ = c.Reset()
	case *net.TCPConn:
		_ = c.SetLinger(0)
		_ = c.Close()
	case interface{ NetConn() net.Conn }: // *tls.Conn
		reset(c.NetConn())
	default:
		_ = conn.Close()
	}
}

// closeWrite ends this side's direction of a connection, or all of it where
// that can't be done.
func closeWrite(conn net.Conn) error {
	if c, ok := conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return conn.Close()
}
