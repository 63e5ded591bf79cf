package proxydial

import (
	"context"
	"crypto/x509"
	"net"
	"time"
)

// Dialer makes connections through one proxy. It holds no state: one Dialer may
// be used by any number of goroutines, as long as its fields don't change.
//
// Its errors are all of type *[Error].
type Dialer struct {
	// Proxy is the proxy; required.
	Proxy *Proxy
	// Dial reaches the proxy. It may ignore its context: a connection that it
	// returns too late is closed. Default: a net.Dialer.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// HandshakeTimeout limits dial, TLS to the proxy, greeting and login together:
	// everything until the proxy is asked for the target. From then on only the
	// attempt's end limits the wait, for the time it takes is the target's.
	// Default: 0, no limit but the attempt's end. Under 3 s, a net.Dialer may
	// not come to the second of a proxy's addresses.
	HandshakeTimeout time.Duration
	// RootCAs are the authorities trusted for https:// proxies. Default: the system's.
	RootCAs *x509.CertPool
}

// Tunnel gives a connection through the proxy to addr, "host:port". The host is
// handed to the proxy as it is and never resolved here (rule A1.2); a name in
// another alphabet must be in its xn-- form, else the error is a BadTarget. A
// SOCKS4 proxy that doesn't know SOCKS4A, such as danted, answers every name with
// code 91.
//
// Tunnel ends when ctx ends or, where ctx carries an [Attempt] that wasn't served, the
// attempt's context; then it leaves no connection behind, and no goroutine but a Dial that
// doesn't return. The connection that it returns lives on after both.
func (d *Dialer) Tunnel(ctx context.Context, addr string) (net.Conn, error) {
	to, err := parseTarget(addr)
	if err != nil {
		return nil, &Error{Reason: BadTarget, Err: err}
	}
	if err := to.sayable(d.Proxy.scheme.protocol); err != nil {
		return nil, &Error{Reason: AddressType, Err: err}
	}
	return d.open(ctx, func(s *session) error { return s.ask(to) })
}

// Reach gives a connection to the proxy itself, with TLS to an https:// proxy, for
// requests in absolute form: see [Proxy.AbsoluteForm]. It ends as Tunnel does.
func (d *Dialer) Reach(ctx context.Context) (net.Conn, error) {
	return d.open(ctx, func(*session) error { return nil })
}

func (d *Dialer) open(ctx context.Context, ask func(*session) error) (net.Conn, error) {
	s, release := d.newSession(ctx)
	defer release()
	if err := s.reach(d); err != nil {
		return nil, err
	}
	if err := ask(s); err != nil {
		s.abandon()
		return nil, err
	}
	return s.finish()
}

// dialOwned runs a dial that may ignore its context. It returns at once when ctx
// ends; the goroutine then closes what the dial still brings.
func dialOwned(ctx context.Context, dial func(context.Context, string, string) (net.Conn, error), addr string) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	results := make(chan result)
	go func() {
		conn, err := dial(ctx, "tcp", addr)
		select {
		case results <- result{conn, err}:
		case <-ctx.Done():
			if err == nil && conn != nil {
				_ = conn.Close()
			}
		}
	}()
	select {
	case r := <-results:
		if r.err == nil && r.conn == nil {
			r.err = findingError("the dial function returned neither a connection nor an error")
		}
		return r.conn, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
