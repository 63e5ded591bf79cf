package rpcpooltest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
)

func (p *Proxy) serveHTTP(l *link, v *visit) {
	for {
		l.settle()
		request, err := http.ReadRequest(l.br)
		if err != nil {
			return
		}
		if request.Header.Get("X-Api-Key") != "" {
			p.network.trace.breach("proxy %s: it was sent the header X-Api-Key", p.name)
		}
		if v == nil { // a further request on the connection
			v = p.visit()
		}
		if !p.serveRequest(l, v, request) {
			return
		}
		v = nil
	}
}

// serveRequest serves a request, and tells whether the connection stays open.
func (p *Proxy) serveRequest(l *link, v *visit, r *http.Request) bool {
	how, target := "connect", r.Host
	if r.Method != http.MethodConnect {
		how = "forward"
		if r.URL.Host == "" {
			p.network.trace.breach("proxy %s: a plain request that isn't in absolute form", p.name)
			return p.page(l, r, http.StatusBadRequest, nil)
		}
		target = hostPort(r.URL)
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return false
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	if v.reply.act == carryIt && !p.knows(r.Header.Get("Proxy-Authorization")) {
		v.reply.act = refuseLogin
	}
	to, there := p.ask(l, v, how, target)
	if !there {
		return false
	}
	switch act := v.reply.act; {
	case act == refuseDial:
		reset(l.raw)
	case act == swallow || act == hangDial:
		l.hang()
	case act == talkNonsense:
		_, _ = io.WriteString(l.Conn, nonsense)
	case act == sayStatus:
		return p.page(l, r, v.reply.status, v.reply.header)
	case act == refuseLogin:
		return p.page(l, r, http.StatusProxyAuthRequired, http.Header{"Proxy-Authenticate": {`Basic realm="proxy"`}})
	case to.deny != nil:
		return p.page(l, r, orElse(to.deny.status, http.StatusBadGateway), to.deny.header)
	case how == "connect":
		const granted = "HTTP/1.1 200 Connection established\r\n\r\n"
		p.tunnel(l, to, []byte(granted), p.pageBytes(r, http.StatusBadGateway, nil))
	default:
		return p.forward(l, to, r)
	}
	return false
}

// knows checks a Proxy-Authorization against the login of the proxy's URL.
func (p *Proxy) knows(authorization string) bool {
	if p.url.User == nil {
		return true
	}
	scheme, coded, _ := strings.Cut(authorization, " ")
	given, err := base64.StdEncoding.DecodeString(coded)
	password, _ := p.url.User.Password()
	want := p.url.User.Username() + ":" + password
	return err == nil && strings.EqualFold(scheme, "Basic") && subtle.ConstantTimeCompare(given, []byte(want)) == 1
}

// page answers with a page of the proxy's own, and ends the connection.
func (p *Proxy) page(l *link, r *http.Request, status int, header http.Header) bool {
	_, _ = l.Write(p.pageBytes(r, status, header))
	return false
}

// pageBytes is the page. It repeats the URL that was asked for, key and all, as
// squid's and privoxy's do.
func (p *Proxy) pageBytes(r *http.Request, status int, header http.Header) []byte {
	proto := "HTTP/1.1"
	if strings.HasPrefix(header.Get("Server"), "tinyproxy") && header.Get("Via") == "" {
		proto = "HTTP/1.0"
	}
	body := fmt.Sprintf("<html><head><title>%d %s</title></head><body>The proxy couldn't serve %s</body></html>\n",
		status, reason(status), r.URL)
	full := http.Header{
		"Content-Type":   {"text/html"},
		"Content-Length": {strconv.Itoa(len(body))},
		"Connection":     {"close"},
	}
	maps.Copy(full, header)
	return append(head(proto, status, full), body...)
}

// forward carries a plain request to the node, and its answer back, byte for
// byte: faults of the node's arrive as they are.
func (p *Proxy) forward(l *link, to route, r *http.Request) bool {
	far, err := p.connect(l.ctx, to)
	if err != nil {
		return p.page(l, r, http.StatusBadGateway, nil)
	}
	defer func() { _ = far.Close() }()
	if err := toOrigin(r).Write(far); err != nil {
		return false
	}
	l.watch()
	defer context.AfterFunc(l.ctx, func() { _ = far.Close() })()
	return p.answerFrom(l, far, r)
}

// toOrigin is the request as the node gets it: without what is between the
// client and the proxy.
func toOrigin(r *http.Request) *http.Request {
	header := r.Header.Clone()
	for _, name := range []string{"Proxy-Authorization", "Proxy-Connection"} {
		header.Del(name)
	}
	if header.Get("User-Agent") == "" {
		header["User-Agent"] = nil // none of ours either
	}
	return &http.Request{
		Method:        r.Method,
		URL:           &url.URL{Scheme: r.URL.Scheme, Host: r.URL.Host, Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery},
		Host:          r.Host,
		Header:        header,
		Body:          r.Body,
		ContentLength: r.ContentLength,
		Close:         r.Close,
	}
}

// answerFrom passes the node's answer on, reading along to find its end.
func (p *Proxy) answerFrom(l *link, far net.Conn, r *http.Request) bool {
	br := bufio.NewReader(io.TeeReader(far, l.Conn))
	for {
		response, err := http.ReadResponse(br, r)
		if err == nil {
			_, err = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		}
		if err != nil {
			if !errors.Is(err, syscall.ECONNRESET) {
				_, err = io.Copy(io.Discard, br) // no HTTP, perhaps: pass on what comes
			}
			if errors.Is(err, syscall.ECONNRESET) {
				reset(l.raw)
			}
			return false
		}
		if response.StatusCode >= 200 {
			return !response.Close && !r.Close
		}
	}
}
