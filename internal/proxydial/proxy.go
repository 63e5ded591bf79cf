package proxydial

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash"
	"log/slog"
	"net"
	"strconv"

	"github.com/bomzrpc/rpcpool/internal/redact"
)

// protocol is what is spoken to a proxy, above TLS where there is TLS.
type protocol int

const (
	socks5 protocol = iota + 1
	socks4
	httpProxy
)

// scheme is what a URL's scheme stands for.
type scheme struct {
	protocol protocol
	tls      bool
	port     uint16 // where the URL has none
}

// schemes are the known ones. As names are always resolved at the proxy (rule
// A1.2), socks5 and socks5h are the same here, and so are socks4 and socks4a.
var schemes = map[string]scheme{
	"socks5":  {protocol: socks5, port: 1080},
	"socks5h": {protocol: socks5, port: 1080},
	"socks4":  {protocol: socks4, port: 1080},
	"socks4a": {protocol: socks4, port: 1080},
	"http":    {protocol: httpProxy, port: 80},
	"https":   {protocol: httpProxy, tls: true, port: 443},
}

// login is a proxy's user and password, unescaped.
type login struct {
	user, password string
}

// Proxy is a proxy's address and login, made by [Parse]. It doesn't change, and
// may be shared. Every way of printing it gives its label, without the login
// (rule A1.5).
type Proxy struct {
	scheme scheme
	host   string // name or address, without brackets
	port   uint16
	label  string
	// login is nil for none. It is behind a function because fmt doesn't ask the
	// methods of values in unexported fields: with a verb that doesn't fit, it
	// prints whatever it reaches through them, pointers included.
	login func() (*login, redact.Secrets)
}

// String gives the label: the URL as it was written, with "***" for the login.
func (p Proxy) String() string { return p.label }

// Format prints the label under every verb.
func (p Proxy) Format(s fmt.State, verb rune) {
	if verb == 'q' {
		_, _ = fmt.Fprint(s, strconv.Quote(p.label))
		return
	}
	_, _ = fmt.Fprint(s, p.label)
}

// GoString gives the label.
func (p Proxy) GoString() string { return p.label }

// LogValue gives the label.
func (p Proxy) LogValue() slog.Value { return slog.StringValue(p.label) }

// MarshalJSON gives the label.
func (p Proxy) MarshalJSON() ([]byte, error) { return json.Marshal(p.label) }

// Secrets gives the texts that must be hidden wherever they may turn up: the
// login as written, unescaped, and as it stands in a Proxy-Authorization header.
func (p *Proxy) Secrets() redact.Secrets {
	_, secrets := p.revealed()
	return append(redact.Secrets(nil), secrets...)
}

// WriteIdentity writes what tells the proxy from others into a hash: protocol, address and
// login. It is as secret as the login, so only a sum of it may be shown.
func (p *Proxy) WriteIdentity(sum hash.Hash) {
	var user, password string
	if login, _ := p.revealed(); login != nil {
		user, password = login.user, login.password
	}
	_, _ = fmt.Fprintf(sum, "%d\x00%t\x00%s\x00%q\x00%q", p.scheme.protocol, p.scheme.tls, p.addr(), user, password)
}

// revealed gives the login; nil without one.
func (p *Proxy) revealed() (*login, redact.Secrets) {
	if p.login == nil {
		return nil, nil
	}
	return p.login()
}

// AbsoluteForm tells whether plain-http targets are asked for by sending the proxy
// the request with the target's whole URL, over a connection of [Dialer.Reach]:
// true for http and https proxies. A tunnel would give clearer failures, but
// squid, as it comes, answers 403 to CONNECT on ports other than 443.
func (p *Proxy) AbsoluteForm() bool { return p.scheme.protocol == httpProxy }

// Authorization gives the value of the Proxy-Authorization header; empty without
// a login, and for SOCKS proxies, whose login isn't a header.
func (p *Proxy) Authorization() string {
	login, _ := p.revealed()
	if login == nil || p.scheme.protocol != httpProxy {
		return ""
	}
	return "Basic " + login.basic()
}

func (l *login) basic() string {
	return base64.StdEncoding.EncodeToString([]byte(l.user + ":" + l.password))
}

func (p *Proxy) addr() string {
	return net.JoinHostPort(p.host, strconv.Itoa(int(p.port)))
}
