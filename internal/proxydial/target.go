package proxydial

import (
	"net"
	"net/netip"
	"strconv"
)

// target is what a proxy is asked for.
type target struct {
	name string     // empty for an address
	ip   netip.Addr // invalid for a name
	port uint16
}

// parseTarget reads "host:port". A name must be in ASCII: net/http hands over IDN
// in their xn-- form, and what it couldn't convert no proxy could resolve.
func parseTarget(addr string) (target, error) {
	host, portText, err := net.SplitHostPort(addr)
	if err != nil {
		return target{}, findingError("the target isn't of the form host:port")
	}
	port, err := parsePort(portText)
	if err != nil {
		return target{}, findingError("the target's port isn't a number from 1 to 65535")
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		if ip.Zone() != "" {
			return target{}, findingError("the target's address has a zone, which means nothing to a proxy")
		}
		return target{ip: ip.Unmap(), port: port}, nil
	}
	if !isHostName(host) {
		return target{}, findingError("the target's host isn't a host name of at most 255 ASCII letters, digits, '-', '_' and '.'")
	}
	return target{name: host, port: port}, nil
}

// String gives host:port, as CONNECT wants it.
func (t target) String() string {
	host := t.name
	if host == "" {
		host = t.ip.String()
	}
	return net.JoinHostPort(host, strconv.Itoa(int(t.port)))
}

// sayable tells why the target can't be said in a protocol; nil if it can.
func (t target) sayable(spoken protocol) error {
	if spoken != socks4 || !t.ip.IsValid() {
		return nil
	}
	if t.ip.Is6() {
		return findingError("SOCKS4 has no IPv6 addresses; use a SOCKS5 or HTTP proxy")
	}
	if ip := t.ip.As4(); ip[0] == 0 && ip[1] == 0 && ip[2] == 0 {
		return findingError("SOCKS4 can't say an address of the form 0.0.0.x: there it announces a host name")
	}
	return nil
}
