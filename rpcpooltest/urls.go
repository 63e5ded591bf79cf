package rpcpooltest

import (
	"net"
	"net/url"
	"slices"
	"strings"
)

var defaultPorts = map[string]string{
	"http": "80", "https": "443", "socks4": "1080", "socks4a": "1080", "socks5": "1080", "socks5h": "1080",
}

// parseURL panics where a URL can't be used: a mistake in the test.
func parseURL(raw string, schemes ...string) *url.URL {
	u := must(url.Parse(raw))
	if !slices.Contains(schemes, u.Scheme) || u.Hostname() == "" {
		panic("rpcpooltest: the URL " + raw + " needs a host and one of the schemes " + strings.Join(schemes, ", "))
	}
	return u
}

// hostPort gives the address of a URL's server.
func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = defaultPorts[u.Scheme]
	}
	return canonical(net.JoinHostPort(u.Hostname(), port))
}
