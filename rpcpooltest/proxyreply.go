package rpcpooltest

import (
	"net/http"
	"time"
)

// ProxyReply is an entry of a [Proxy]'s script: what the proxy does with a
// connection (an HTTP proxy: also with each further request on it), and with
// which. Its methods give changed copies. The zero ProxyReply carries it.
type ProxyReply struct {
	when   when
	act    proxyAct
	code   int
	status int
	header http.Header
}

type proxyAct int

const (
	carryIt proxyAct = iota
	refuseDial
	hangDial
	refuseLogin
	talkNonsense
	sayCode
	sayStatus
	swallow
)

func (r ProxyReply) conditions() when { return r.when }

// Times limits the reply to so many connections; 0 or less means no limit.
func (r ProxyReply) Times(n int) ProxyReply { r.when.times = max(n, 0); return r }

// FromStep limits the reply to the step given and later ones, see
// [Network.SetStep].
func (r ProxyReply) FromStep(step int) ProxyReply { r.when.from = step; return r }

// ToStep limits the reply to the step given and earlier ones.
func (r ProxyReply) ToStep(step int) ProxyReply { r.when.until = step + 1; return r }

// Delay has the proxy wait once it has been asked for a target.
func (r ProxyReply) Delay(d time.Duration) ProxyReply { r.when.delay = d; return r }

// Hold has the proxy wait, once it has been asked for a target, until the test
// lets it go, see [Gate].
func (r ProxyReply) Hold(g *Gate) ProxyReply { r.when.gate = g; return r }

// Header adds a header to an HTTP proxy's own page. The headers tell whose page
// it is: X-Squid-Error squid's, "Server: tinyproxy/…" without Via tinyproxy's
// (which is sent as HTTP/1.0, as tinyproxy does).
func (r ProxyReply) Header(name, value string) ProxyReply {
	if r.header = r.header.Clone(); r.header == nil {
		r.header = http.Header{}
	}
	r.header.Add(name, value)
	return r
}

// ProxyCarry carries the connection or request, as a proxy does that works.
func ProxyCarry() ProxyReply { return ProxyReply{} }

// ProxyRefuse refuses the connection to the proxy.
func ProxyRefuse() ProxyReply { return ProxyReply{act: refuseDial} }

// ProxyHang never lets the connection to the proxy come about.
func ProxyHang() ProxyReply { return ProxyReply{act: hangDial} }

// ProxyRefuseLogin refuses the login: a SOCKS5 proxy with status 1, or with no
// acceptable method where its URL has no login; SOCKS4 with code 93; an HTTP
// proxy with 407.
func ProxyRefuseLogin() ProxyReply { return ProxyReply{act: refuseLogin} }

// ProxyGarbage answers the SOCKS greeting, or an HTTP request, with something
// that isn't the protocol.
func ProxyGarbage() ProxyReply { return ProxyReply{act: talkNonsense} }

// ProxyCode answers with this SOCKS code, whatever is asked.
func ProxyCode(code int) ProxyReply { return ProxyReply{act: sayCode, code: code} }

// ProxyStatus answers with this HTTP status, whatever is asked, CONNECT or a
// plain request.
func ProxyStatus(status int) ProxyReply { return ProxyReply{act: sayStatus, status: status} }

// ProxyBlackHole takes the request for a connection, or the plain request, and
// then nothing comes.
func ProxyBlackHole() ProxyReply { return ProxyReply{act: swallow} }
