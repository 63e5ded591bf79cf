package rpcpool

import "net/http"

// UseStub has all requests of a pool go to a stub in place of net/http's transports.
func UseStub(p *Pool, stub http.RoundTripper) {
	for _, each := range p.s.proxies.proxies {
		l := each.links
		l.tunnel, l.forward = stubTransport{stub}, nil
		l.freshTunnel, l.freshForward = stubTransport{stub}, nil
	}
}

type stubTransport struct{ http.RoundTripper }

func (stubTransport) CloseIdleConnections() {}
