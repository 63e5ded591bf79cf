package proxydial

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode"

	"github.com/bomzrpc/rpcpool/internal/redact"
)

// wantedForm ends every error of Parse.
const wantedForm = "; wanted form: SCHEME://HOST:PORT or SCHEME://LOGIN@HOST:PORT " +
	"with one of the schemes socks5, socks5h, socks4, socks4a, http, https"

// maxLogin is the most that a SOCKS5 login's length bytes can say.
const maxLogin = 255

// maxName is the most that a SOCKS5 request's length byte can say; no name that
// can be looked up is longer.
const maxName = 255

// malformedError is an error of Parse. All of its texts stand in this file as they
// are: quoting even a part of a URL that can't be parsed could show its login, as
// the errors of net/url do.
type malformedError string

func (m malformedError) Error() string { return "the proxy's URL " + string(m) + wantedForm }

// Parse reads a proxy's URL. The port defaults to 1080 for SOCKS, 80 for http and
// 443 for https. Schemes may be in upper case. Errors say what is wrong without
// any part of the URL. See wantedForm for the form.
func Parse(raw string) (*Proxy, error) {
	if strings.ContainsFunc(raw, func(r rune) bool { return r == ' ' || unicode.IsControl(r) }) {
		return nil, malformedError("has a space or control character in it (write a space in a login as %20)")
	}
	name, rest, found := strings.Cut(raw, "://")
	if !found {
		return nil, malformedError("has no scheme")
	}
	name = strings.ToLower(name)
	kind, ok := schemes[name]
	if !ok {
		return nil, malformedError("has an unknown scheme")
	}
	authority, err := authorityOf(rest)
	if err != nil {
		return nil, err
	}
	var userinfo string
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		userinfo, authority = authority[:at], authority[at+1:]
	}
	p := &Proxy{scheme: kind}
	if p.host, p.port, err = splitHost(authority, kind.port); err != nil {
		return nil, err
	}
	known, err := parseLogin(userinfo, kind.protocol)
	if err != nil {
		return nil, err
	}
	shown := &url.URL{Scheme: name, Host: authority}
	if known != nil {
		shown.User = url.UserPassword(known.user, known.password)
		user, password, _ := strings.Cut(userinfo, ":")
		secrets := redact.Join(redact.OfProxy(shown), redact.Of(userinfo, user, password, known.basic()))
		p.login = func() (*login, redact.Secrets) { return known, secrets }
	}
	p.label = redact.Proxy(shown)
	return p, nil
}

// authorityOf cuts login, host and port out of what follows "://".
func authorityOf(rest string) (string, error) {
	end := strings.IndexAny(rest, "/?#")
	if end < 0 || rest[end:] == "/" {
		return strings.TrimSuffix(rest, "/"), nil
	}
	if strings.Contains(rest[end:], "@") {
		return "", malformedError("has /, ? or # in its login (percent-encode it: %2F, %3F, %23) or something after the port")
	}
	return "", malformedError("has a path, query or fragment, which a proxy's URL must not have")
}

func splitHost(authority string, defaultPort uint16) (host string, port uint16, err error) {
	var portText string
	var hasPort bool
	if bracketed, ok := strings.CutPrefix(authority, "["); ok {
		var after string
		host, after, ok = strings.Cut(bracketed, "]")
		portText, hasPort = strings.CutPrefix(after, ":")
		host = strings.Replace(host, "%25", "%", 1) // a zone's mark, as URLs write it
		ip, err := netip.ParseAddr(host)
		if !ok || after != "" && !hasPort || err != nil || !ip.Is6() {
			return "", 0, malformedError("has something else than an IPv6 address in brackets as its host")
		}
	} else {
		host, portText, hasPort = strings.Cut(authority, ":")
		switch {
		case host == "":
			return "", 0, malformedError("has no host")
		case strings.Contains(portText, ":"):
			return "", 0, malformedError("has more than one colon after the login (an IPv6 address must be in brackets)")
		case !isHostName(host):
			return "", 0, malformedError("has a host that is no host name (names in other alphabets must be in their xn-- form)")
		}
	}
	if !hasPort {
		return host, defaultPort, nil
	}
	if port, err = parsePort(portText); err != nil {
		return "", 0, malformedError("has a port that isn't a number from 1 to 65535")
	}
	return host, port, nil
}

func parsePort(text string) (uint16, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err == nil && n == 0 {
		err = strconv.ErrRange
	}
	return uint16(n), err
}

// isHostName tells whether name can be asked of a resolver or proxy. It keeps out
// whatever would mean something in a URL, a CONNECT request or a SOCKS4 request.
func isHostName(name string) bool {
	for i := range len(name) {
		c := name[i]
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && !('0' <= c && c <= '9') && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return 0 < len(name) && len(name) <= maxName
}

// parseLogin gives nil where there is no login, an empty one included.
func parseLogin(userinfo string, spoken protocol) (*login, error) {
	rawUser, rawPassword, _ := strings.Cut(userinfo, ":")
	user, err1 := url.PathUnescape(rawUser)
	password, err2 := url.PathUnescape(rawPassword)
	if err1 != nil || err2 != nil {
		return nil, malformedError("has a % in its login that isn't followed by two hex digits (write % as %25)")
	}
	switch {
	case user == "" && password == "":
		return nil, nil
	case strings.ContainsFunc(user+password, unicode.IsControl):
		return nil, malformedError("has a control character in its login")
	case spoken == socks4 && password != "":
		return nil, malformedError("has a password, but SOCKS4 knows a user id only")
	case spoken == socks5 && user == "":
		return nil, malformedError("has a password but no user, which a SOCKS5 login must have")
	case spoken != httpProxy && (len(user) > maxLogin || len(password) > maxLogin):
		return nil, malformedError("has a user or password of more than 255 bytes, too long for SOCKS")
	}
	return &login{user: user, password: password}, nil
}
