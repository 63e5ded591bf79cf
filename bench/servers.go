package main

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// domain is that of the endpoints. Nobody resolves it: each proxy is the nodes behind
// it, too, as cheap as can be.
const domain = ".bench.test"

// checkHost is an endpoint that is always well: who wants to know whether a proxy works
// asks it.
const checkHost = "check" + domain

// endpointCount is how many endpoints there are behind the proxies.
const endpointCount = 5

// addrs is where the servers are, all on 127.0.0.1.
type addrs struct {
	Connect string `json:"connect"` // an HTTP proxy
	Forward string `json:"forward"` // an HTTP proxy that carries out plain-http requests
	Socks   string `json:"socks"`   // a SOCKS5 proxy
	Control string `json:"control"`
	CA      []byte `json:"ca"` // of the endpoints, as PEM
}

// servers are the proxies and the endpoints behind them.
type servers struct {
	endpoints []*endpoint          // those that take on modes
	byHost    map[string]*endpoint // and checkHost
	large     *largeAnswers
	tls       *tls.Config

	mu           sync.Mutex // held while a command is carried out; protects what follows
	stopFlapping func()
	doors        []*door // of the endpoints, once somebody asked for them
}

// serve serves until the input ends, and writes where.
func serve(ctx context.Context, input io.Reader, output io.Writer) error {
	ca, config, err := certificate()
	if err != nil {
		return err
	}
	s := &servers{byHost: map[string]*endpoint{checkHost: newEndpoint()}, tls: config, large: new(largeAnswers), stopFlapping: func() {}}
	for i := range endpointCount {
		e := newEndpoint()
		s.endpoints = append(s.endpoints, e)
		s.byHost[hostName(i)] = e
	}
	at := addrs{CA: ca}
	for _, listener := range []struct {
		addr  *string
		serve func(net.Conn)
	}{
		{&at.Connect, s.through(connectGreeting)}, {&at.Socks, s.through(socksGreeting)}, {&at.Forward, s.carryOut}, {&at.Control, s.obey},
	} {
		if *listener.addr, err = listen(ctx, listener.serve); err != nil {
			return err
		}
	}
	if err := json.NewEncoder(output).Encode(at); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, input)
	s.closeDoors()
	return err
}

// listen serves each connection until the process ends.
func listen(ctx context.Context, serve func(net.Conn)) (addr string, err error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	return listener.Addr().String(), nil
}

func hostName(endpoint int) string { return fmt.Sprintf("rpc%d%s", endpoint+1, domain) }

// through serves the connections to a proxy, and in them the endpoint that they go to:
// in TLS on port 443.
func (s *servers) through(g greeting) func(net.Conn) {
	return func(conn net.Conn) {
		defer conn.Close()
		reader := bufio.NewReader(conn)
		target, err := g.read(reader, conn)
		if err != nil {
			return
		}
		host, port, err := net.SplitHostPort(target)
		e := s.byHost[host]
		if err != nil || e == nil {
			return
		}
		if !e.accept(conn) {
			_, _ = conn.Write(g.refused)
			return
		}
		defer e.forget(conn)
		if _, err := conn.Write(g.granted); err != nil {
			return
		}
		if port == "443" {
			secured := tls.Server(conn, s.tls)
			s.answer(e, secured, bufio.NewReader(secured))
			return
		}
		s.answer(e, conn, reader)
	}
}

// carryOut answers requests in absolute form, as an HTTP proxy does for plain http.
func (s *servers) carryOut(conn net.Conn) {
	defer conn.Close()
	s.answer(nil, conn, bufio.NewReader(conn))
}

// forwardTo finds whom a request in absolute form is for; nil where it is for nobody.
func (s *servers) forwardTo(target string) (e *endpoint, path string) {
	to, err := url.Parse(target)
	if err != nil {
		return nil, ""
	}
	return s.byHost[to.Host], to.RequestURI()
}

// greeting is how a proxy is asked for a connection.
type greeting struct {
	read             func(*bufio.Reader, net.Conn) (target string, err error)
	granted, refused []byte
}

var connectGreeting = greeting{
	read: func(br *bufio.Reader, _ net.Conn) (string, error) {
		head, err := readHead(br)
		return head.target, err
	},
	granted: []byte("HTTP/1.1 200 Connection established\r\n\r\n"),
	refused: []byte("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"),
}

var socksGreeting = greeting{
	read:    readSocks,
	granted: []byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0},
	refused: []byte{5, 5, 0, 1, 0, 0, 0, 0, 0, 0}, // the target refused the connection
}

// readSocks reads a SOCKS5 client's greeting, without a login, and its request.
func readSocks(br *bufio.Reader, conn net.Conn) (string, error) {
	head := make([]byte, 5)
	if _, err := io.ReadFull(br, head[:2]); err != nil {
		return "", err
	}
	if _, err := br.Discard(int(head[1])); err != nil {
		return "", err
	}
	if _, err := conn.Write([]byte{5, 0}); err != nil {
		return "", err
	}
	if _, err := io.ReadFull(br, head); err != nil { // version, command, reserved, address type, length
		return "", err
	}
	if head[3] != 3 {
		return "", fmt.Errorf("SOCKS address type %d instead of a name", head[3])
	}
	target := make([]byte, int(head[4])+2)
	if _, err := io.ReadFull(br, target); err != nil {
		return "", err
	}
	name, port := target[:head[4]], target[head[4]:]
	return fmt.Sprintf("%s:%d", name, int(port[0])<<8|int(port[1])), nil
}

func certificate() (ca []byte, config *tls.Config, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "bench"}, DNSNames: []string{"*" + domain},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, nil, err
	}
	config = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), config, nil
}

// serverProcess is the servers' process.
type serverProcess struct {
	addrs   addrs
	control *control
	stop    func()
}

// startServers starts the servers in a process of their own, so that their work isn't
// counted as the client's.
func startServers(ctx context.Context) (*serverProcess, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	talk, err := talkTo(exec.CommandContext(ctx, self, serveWord))
	if err != nil {
		return nil, err
	}
	p := &serverProcess{}
	p.stop = func() {
		if p.control != nil {
			p.control.close()
		}
		talk.stop()
	}
	if err = talk.reader.Decode(&p.addrs); err == nil {
		p.control, err = dialControl(ctx, p.addrs.Control)
	}
	if err != nil {
		p.stop()
		return nil, fmt.Errorf("starting the servers: %w", err)
	}
	return p, nil
}

// way is how the endpoints are reached.
type way struct {
	name, proxy, scheme string
}

func (a addrs) ways() []way {
	return []way{
		{"SOCKS5 proxy, plain http", "socks5://" + a.Socks, "http"},
		{"HTTP proxy with CONNECT, TLS", "http://" + a.Connect, "https"},
		{"SOCKS5 proxy, TLS", "socks5://" + a.Socks, "https"},
		{"HTTP proxy in absolute form, plain http", "http://" + a.Forward, "http"},
	}
}

// isAbsolute tells whether a proxy is asked to carry the requests out itself.
func (w way) isAbsolute() bool { return w.scheme == "http" && strings.HasPrefix(w.proxy, "http:") }

// plain is the way with the least on it, on which everything but the steady state is
// measured.
func (a addrs) plain() way { return a.ways()[0] }

// urls gives the URLs of the first endpoints, each with a path.
func (w way) urls(endpoints int, path string) []string {
	var urls []string
	for i := range endpoints {
		urls = append(urls, w.scheme+"://"+hostName(i)+"/"+strings.TrimPrefix(path, "/"))
	}
	return urls
}
