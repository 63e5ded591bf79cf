package rpcpool

import (
	"net"
	"net/netip"
	"net/url"
	"strings"

	"golang.org/x/net/publicsuffix"
)

// operatorOf names who runs an RPC, as far as its URL tells: the registrable domain
// of its host. Several URLs of one operator are one source where the agreement of
// several is asked for (rule D4). An address is an operator of its own; on this very
// machine each port is.
func operatorOf(target *url.URL) string {
	host := strings.TrimSuffix(strings.ToLower(target.Hostname()), ".")
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return net.JoinHostPort(host, target.Port())
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		if addr.IsLoopback() {
			return net.JoinHostPort(host, target.Port())
		}
		return addr.Unmap().String()
	}
	if domain, err := publicsuffix.EffectiveTLDPlusOne(host); err == nil {
		return domain
	}
	return host
}
