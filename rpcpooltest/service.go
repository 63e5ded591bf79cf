package rpcpooltest

import (
	"bufio"
	"context"
	"crypto/tls"
	"net"
	"sync"
	"time"
)

// service accepts the connections of one address and owns their goroutines.
type service struct {
	network *Network
	zone    zone
	addr    string
	admit   func() (any, Fault)
	serve   func(*link)

	mu    sync.Mutex // protects what follows
	point *endpoint  // nil while down
	links map[*link]struct{}
	wg    sync.WaitGroup
}

// start begins to listen. It panics where the address is taken: that is a
// mistake in the test, as it is for httptest.NewServer.
func (s *service) start() {
	if s.links == nil {
		s.links = map[*link]struct{}{}
		s.network.own(s.stop)
	}
	point, err := s.network.listen(s.zone, s.addr, s.admit)
	if err != nil {
		panic("rpcpooltest: " + err.Error())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.point = point
	s.wg.Add(1)
	go s.accept(point)
}

func (s *service) accept(point *endpoint) {
	defer s.wg.Done()
	for {
		conn, err := point.accept()
		if err != nil {
			return
		}
		if l := s.add(point, conn); l != nil {
			go s.run(l)
		}
	}
}

func (s *service) add(point *endpoint, conn taggedConn) *link {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.point != point { // stopped meanwhile
		reset(conn.Conn)
		return nil
	}
	l := newLink(s.network.ctx, conn)
	s.links[l] = struct{}{}
	s.wg.Add(1)
	return l
}

func (s *service) run(l *link) {
	defer s.wg.Done()
	s.serve(l)
	l.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.links, l)
}

// stop ends the listener and breaks all connections, and waits until their
// goroutines are gone.
func (s *service) stop() {
	s.mu.Lock()
	point := s.point
	s.point = nil
	links := make([]*link, 0, len(s.links))
	for l := range s.links {
		links = append(links, l)
	}
	s.mu.Unlock()
	if point != nil {
		_ = point.Close()
	}
	for _, l := range links {
		l.cancel()
		reset(l.raw)
	}
	s.wg.Wait()
}

// up tells whether the service listens.
func (s *service) up() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.point != nil
}

// link is the server's end of a connection while it is served.
type link struct {
	net.Conn          // TLS where it is spoken
	raw      net.Conn // what lies under it
	tag      any
	br       *bufio.Reader
	ctx      context.Context // ends with the service, or when a watch sees the peer go
	cancel   context.CancelFunc
	watching chan struct{}
}

func newLink(ctx context.Context, conn taggedConn) *link {
	l := &link{Conn: conn.Conn, raw: conn.Conn, tag: conn.tag, br: bufio.NewReader(conn.Conn)}
	l.ctx, l.cancel = context.WithCancel(ctx)
	return l
}

// secure begins TLS as host.
func (l *link) secure(config *tls.Config) error {
	secured := tls.Server(l.raw, config)
	l.Conn, l.br = secured, bufio.NewReader(secured)
	return secured.HandshakeContext(l.ctx)
}

// watch ends the link's context when the peer goes away, while nothing is read.
// Whoever reads next calls settle first.
func (l *link) watch() {
	if l.watching != nil {
		return
	}
	done := make(chan struct{})
	l.watching = done
	go func() {
		defer close(done)
		if _, err := l.br.Peek(1); err != nil {
			l.cancel()
		}
	}()
}

// settle waits until the watch has seen something of the peer, and ends it.
func (l *link) settle() {
	if l.watching != nil {
		<-l.watching
		l.watching = nil
	}
}

// pause lets d pass. It gives false when the peer went away meanwhile.
func (l *link) pause(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	l.watch()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-l.ctx.Done():
		return false
	}
}

// hang waits until the peer goes away or the service ends.
func (l *link) hang() {
	l.watch()
	<-l.ctx.Done()
}

// end closes the connection and waits for its watch.
func (l *link) end() {
	l.cancel()
	_ = l.Conn.Close()
	_ = l.raw.Close()
	l.settle()
}
