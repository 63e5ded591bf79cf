package rpcpool

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bomzrpc/rpcpool/internal/proxydial"
)

const (
	// minHandshake is the least time for reaching a proxy and its greeting, where
	// the attempt has that long: net.Dialer gives the first of several addresses
	// no less than 2 s, so a shorter limit would never try the second.
	minHandshake = 3 * time.Second

	// Connections are kept in the number that was in use at once; the time that
	// they may be idle is what bounds them, not a number.
	idleConnTimeout   = 30 * time.Second
	maxIdlePerRPC     = 1 << 16
	maxResponseHeader = 64 << 10
)

// links are the connections through one proxy. Transports aren't shared between
// proxies: net/http's pool doesn't know which proxy a connection goes through.
type links struct {
	dialer  *proxydial.Dialer
	working context.Context // ends when the pool is closed
	late    lateDials

	tunnel  transport // connections through to the RPC
	forward transport // plain-http requests that an HTTP proxy is asked to carry out; nil for SOCKS

	// The same, but with a fresh connection for each request (rule A5.3).
	freshTunnel, freshForward transport

	mu     sync.Mutex // protects open and closed
	open   map[*linkConn]struct{}
	closed bool
}

// transport is an *http.Transport, but in tests that are about what is around it.
type transport interface {
	http.RoundTripper
	CloseIdleConnections()
}

func newProxy(dial *proxydial.Proxy, p *poolState) *proxy {
	l := &links{
		dialer: &proxydial.Dialer{
			Proxy:            dial,
			Dial:             p.dial,
			HandshakeTimeout: max(minHandshake, p.timeout/3),
			RootCAs:          p.rootCAs,
		},
		working: p.working,
		late:    lateDials{most: int64(p.maxConns)},
		open:    map[*linkConn]struct{}{},
	}
	targetTLS := &tls.Config{RootCAs: p.rootCAs, NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12}
	tunnel := newTransport()
	tunnel.DialContext = l.dialTunnel
	tunnel.DialTLSContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		return l.dialTLS(ctx, addr, targetTLS)
	}
	l.tunnel, l.freshTunnel = tunnel, fresh(tunnel)
	if dial.AbsoluteForm() {
		forward := newTransport()
		// That there is a proxy makes net/http write the absolute form; where it
		// is only dialProxy knows.
		forward.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: "proxy.invalid"})
		forward.DialContext = l.dialProxy
		l.forward, l.freshForward = forward, fresh(forward)
	}
	return &proxy{dial: dial, label: dial.String(), links: l}
}

// newTransport is HTTP/1.1 only: a dead HTTP/2 connection stays in the pool and
// fails every later request on it, a dead HTTP/1.1 connection fails one.
func newTransport() *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Transport{
		Protocols:              protocols,
		MaxIdleConnsPerHost:    maxIdlePerRPC,
		IdleConnTimeout:        idleConnTimeout,
		MaxResponseHeaderBytes: maxResponseHeader,
	}
}

func fresh(t *http.Transport) *http.Transport {
	f := t.Clone()
	f.MaxIdleConnsPerHost = -1 // none is kept, and no header says so
	return f
}

// forwards tells whether an HTTP proxy carries out requests to the target itself,
// so that its own pages can stand in for the target's answers (rule A5.2).
func (l *links) forwards(target *url.URL) bool {
	return l.forward != nil && target.Scheme == "http"
}

// transport gives the transport for a target.
func (l *links) transport(target *url.URL, freshConn bool) transport {
	switch forward := l.forwards(target); {
	case forward && freshConn:
		return l.freshForward
	case forward:
		return l.forward
	case freshConn:
		return l.freshTunnel
	}
	return l.tunnel
}

func (l *links) dialTunnel(ctx context.Context, _, addr string) (net.Conn, error) {
	ctx, release := l.bind(ctx)
	defer release()
	conn, err := l.dialer.Tunnel(ctx, addr)
	if err != nil {
		return nil, err
	}
	return l.track(ctx, conn)
}

func (l *links) dialProxy(ctx context.Context, _, _ string) (net.Conn, error) {
	ctx, release := l.bind(ctx)
	defer release()
	conn, err := l.dialer.Reach(ctx)
	if err != nil {
		return nil, err
	}
	return l.track(ctx, conn)
}

// dialTLS does the RPC's TLS handshake here instead of in net/http, which would
// run it under a context that doesn't end with the attempt.
func (l *links) dialTLS(ctx context.Context, addr string, config *tls.Config) (net.Conn, error) {
	attempt := proxydial.AttemptFrom(ctx)
	ctx, release := l.bind(ctx)
	defer release()
	conn, err := l.dialer.Tunnel(ctx, addr)
	if err != nil {
		return nil, err
	}
	attempt.SetPhase(proxydial.PhaseTargetTLS)
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		host = addr
	}
	config = config.Clone()
	config.ServerName = host
	secured := tls.Client(conn, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	attempt.SetPhase(proxydial.PhaseReady)
	return l.track(ctx, secured)
}

// bind gives a context that ends with the attempt, which net/http hides from its
// dialers, and with the pool.
func (l *links) bind(ctx context.Context) (bound context.Context, release func()) {
	ctx, cancel := context.WithCancel(ctx)
	stopPool := context.AfterFunc(l.working, cancel)
	stopAttempt := l.late.endWith(proxydial.AttemptFrom(ctx), cancel)
	return ctx, func() { stopPool(); stopAttempt(); cancel() }
}

// linkConn is a connection that Close of the pool can find. Until something is
// written on it, it belongs to the attempt that dialled it and ends with that, unless
// that was served over another one: net/http would keep one that came too late, and it
// would outlive its attempt.
type linkConn struct {
	net.Conn
	links *links
	once  sync.Once

	state   atomic.Int32
	forsake func() bool // undoes the hold of the attempt

	writes atomic.Uint64 // that were begun
	reads  atomic.Uint64 // that brought something
}

// The states of a linkConn: it is either used or abandoned, never both.
const (
	connUnused = iota
	connUsed
	connAbandoned
)

func (l *links) track(ctx context.Context, conn net.Conn) (net.Conn, error) {
	tracked := &linkConn{Conn: conn, links: l}
	l.mu.Lock()
	closed := l.closed
	if !closed {
		l.open[tracked] = struct{}{}
	}
	l.mu.Unlock()
	if closed {
		_ = conn.Close()
		return nil, ErrClosed
	}
	attempt := proxydial.AttemptFrom(ctx)
	tracked.forsake = context.AfterFunc(attempt.Own(), func() {
		if !attempt.Served() && tracked.state.CompareAndSwap(connUnused, connAbandoned) {
			_ = tracked.end()
		}
	})
	return tracked, nil
}

func (c *linkConn) Write(b []byte) (int, error) {
	if c.state.Load() != connUsed {
		if !c.state.CompareAndSwap(connUnused, connUsed) && c.state.Load() == connAbandoned {
			return 0, net.ErrClosed // nothing is sent on a connection that is being closed
		}
		c.forsake()
	}
	c.writes.Add(1)
	return c.Conn.Write(b)
}

func (c *linkConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.reads.Add(1)
	}
	return n, err
}

func (c *linkConn) Close() error {
	c.forsake()
	return c.end()
}

// end closes the connection. It leaves forsake alone, which may not be set yet.
func (c *linkConn) end() error {
	c.once.Do(func() {
		c.links.mu.Lock()
		delete(c.links.open, c)
		c.links.mu.Unlock()
	})
	return c.Conn.Close()
}

// close ends every connection, those in use included.
func (l *links) close() {
	l.mu.Lock()
	l.closed = true
	open := make([]*linkConn, 0, len(l.open))
	for conn := range l.open {
		open = append(open, conn)
	}
	l.mu.Unlock()
	for _, conn := range open {
		_ = conn.end()
	}
	for _, t := range []transport{l.tunnel, l.forward, l.freshTunnel, l.freshForward} {
		if t != nil {
			t.CloseIdleConnections()
		}
	}
}

// dropIdle closes the connections that are kept for later.
func (l *links) dropIdle() {
	l.tunnel.CloseIdleConnections()
	if l.forward != nil {
		l.forward.CloseIdleConnections()
	}
}

// trip is one request on its way, and how far it got: what the verdict on its failure
// hangs on. All that it needs is in one piece, as there is one for every call.
type trip struct {
	attempt proxydial.Attempt
	trace   httptrace.ClientTrace
	body    bytes.Reader

	conn   atomic.Pointer[linkConn] // nil before one was had
	reused atomic.Bool              // the connection had carried another request before
	writes atomic.Uint64            // on the connection before this request
	reads  atomic.Uint64            // likewise
}

// gotConn has net/http tell which connection the request goes over.
func (t *trip) gotConn(info httptrace.GotConnInfo) {
	conn, ok := info.Conn.(*linkConn)
	if !ok {
		return
	}
	t.attempt.SetServed()
	t.reused.Store(info.Reused)
	t.writes.Store(conn.writes.Load())
	t.reads.Store(conn.reads.Load())
	t.conn.Store(conn)
}

// written tells whether any part of the request may have been written: nothing else proves
// that it didn't reach the RPC (rule C2).
func (t *trip) written() bool {
	conn := t.conn.Load()
	return conn != nil && conn.writes.Load() != t.writes.Load()
}

// received tells whether a part of the answer came in.
func (t *trip) received() bool {
	conn := t.conn.Load()
	return conn != nil && conn.reads.Load() != t.reads.Load()
}

// replayedByNetHTTP tells whether net/http would send a request again by itself when a
// kept connection breaks. (Of other methods it sends an unknown body in chunks.)
func replayedByNetHTTP(req *http.Request) bool {
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions:
		return hasNoBody(req)
	}
	return false
}

// needsFreshConn tells the same of requests that emptyBody would change: net/http has no
// second try for what broke on a fresh connection.
func needsFreshConn(req *http.Request) bool {
	if !hasNoBody(req) {
		return false
	}
	_, key := req.Header["Idempotency-Key"]
	_, xKey := req.Header["X-Idempotency-Key"]
	return req.Method == http.MethodTrace || key || xKey
}

func hasNoBody(req *http.Request) bool { return req.Body == nil || req.Body == http.NoBody }

// emptyBody is a body with nothing in it. A request that has one isn't replayed by
// net/http, which takes requests without a body for repeatable: there is one loop of
// retries, and it isn't that one (rule C3).
type emptyBody struct{}

func (emptyBody) Read([]byte) (int, error) { return 0, io.EOF }
func (emptyBody) Close() error             { return nil }

// roundTrip sends a request through the proxy, with a body where one is given, and with
// the request's own else; once more where rule A5.3 allows it. The request is only a
// pattern, and isn't changed. before tells whether the RPC may have had it already when it
// was sent once more: of a kept connection that turns out to be dead nobody knows.
func (l *links) roundTrip(ctx context.Context, pattern *http.Request, body []byte) (res *http.Response, before bool, failed *linkError) {
	res, failed = l.trip(ctx, pattern, body, false)
	if failed == nil || !failed.diedIdle() || ctx.Err() != nil {
		return res, false, failed
	}
	if failed.unaffordable = budgetOf(ctx).spend(); failed.unaffordable != nil {
		return nil, false, failed
	}
	before = failed.written
	res, failed = l.trip(ctx, pattern, body, true)
	return res, before, failed
}

// roundTripOnce sends a request that must not be sent twice: on a fresh connection, for
// of a kept one that turns out to be dead nobody knows whether the request arrived.
func (l *links) roundTripOnce(ctx context.Context, pattern *http.Request, body []byte) (res *http.Response, before bool, failed *linkError) {
	res, failed = l.trip(ctx, pattern, body, true)
	return res, false, failed
}

// trip sends a request once.
func (l *links) trip(ctx context.Context, pattern *http.Request, body []byte, freshConn bool) (*http.Response, *linkError) {
	t := &trip{attempt: proxydial.Attempt{Context: ctx}}
	t.trace.GotConn = t.gotConn
	req := pattern.WithContext(httptrace.WithClientTrace(&t.attempt, &t.trace))
	if len(body) > 0 {
		t.body.Reset(body)
		req.Body, req.ContentLength = io.NopCloser(&t.body), int64(len(body))
	}
	switch {
	case replayedByNetHTTP(req):
		req.Body = emptyBody{}
	case needsFreshConn(req):
		freshConn = true
	}
	req.GetBody = nil
	if login := l.dialer.Proxy.Authorization(); login != "" && l.forwards(req.URL) {
		req.Header = req.Header.Clone()
		req.Header.Set("Proxy-Authorization", login)
	}
	res, err := l.transport(req.URL, freshConn).RoundTrip(req)
	if err != nil {
		return nil, newLinkError(ctx, t, err)
	}
	return res, nil
}
