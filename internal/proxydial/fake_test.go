package proxydial_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"errors"
	"io"
	"math/big"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool/internal/proxydial"
)

// target is what most tests ask for: a name that exists nowhere.
const target = "rpc.nowhere.test:8545"

// fakeNet is an in-memory way to one proxy, which serve plays. It counts the
// client's connections.
type fakeNet struct {
	serve func(conn net.Conn)

	mu     sync.Mutex // protects the following
	dialed []string
	open   int
}

func (n *fakeNet) dial(_ context.Context, _, addr string) (net.Conn, error) {
	client, server := net.Pipe()
	n.mu.Lock()
	n.dialed = append(n.dialed, addr)
	n.open++
	n.mu.Unlock()
	go func() {
		defer func() { _ = server.Close() }()
		n.serve(server)
	}()
	return &countedConn{Conn: client, closed: func() {
		n.mu.Lock()
		n.open--
		n.mu.Unlock()
	}}, nil
}

func (n *fakeNet) openConns() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.open
}

func (n *fakeNet) dials() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dialed
}

type countedConn struct {
	net.Conn
	once   sync.Once
	closed func()
}

func (c *countedConn) Close() error {
	c.once.Do(c.closed)
	return c.Conn.Close()
}

// turn is one exchange, as the proxy sees it.
type turn struct {
	phase proxydial.Phase // in which the client waits for what is said
	hears string
	says  string
}

// conversation is a proxy that does everything right.
type conversation struct {
	name   string
	url    string
	target string
	turns  []turn
}

func (c conversation) said() string {
	var all strings.Builder
	for _, t := range c.turns {
		all.WriteString(t.says)
	}
	return all.String()
}

// phaseAfter is the client's phase when the proxy has said n bytes and no more.
func (c conversation) phaseAfter(n int) proxydial.Phase {
	for _, t := range c.turns {
		if n < len(t.says) {
			return t.phase
		}
		n -= len(t.says)
	}
	return proxydial.PhaseReady
}

// bytesOf reads hex with spaces.
func bytesOf(text string) string {
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		panic(err)
	}
	return string(b)
}

const (
	greeting = proxydial.PhaseGreeting
	asking   = proxydial.PhaseConnect
)

// request5 is a SOCKS5 request for target, request4 the one of SOCKS4A from its
// port on, requestHTTP the one of CONNECT up to its last header.
var (
	request5    = bytesOf("05 01 00 03 10") + "rpc.nowhere.test" + bytesOf("21 61")
	request4    = bytesOf("04 01 21 61 00 00 00 01")
	requestHTTP = "CONNECT rpc.nowhere.test:8545 HTTP/1.1\r\nHost: rpc.nowhere.test:8545\r\nUser-Agent: rpcpool\r\n"
	yes5        = bytesOf("05 00 00 01 7f000001 1234")
)

var conversations = []conversation{
	{"socks5, name", "socks5://p.test", target, []turn{
		{greeting, bytesOf("05 01 00"), bytesOf("05 00")},
		{asking, request5, yes5},
	}},
	{"socks5, login", "socks5://jo:%70w@p.test", target, []turn{
		{greeting, bytesOf("05 02 00 02"), bytesOf("05 02")},
		{greeting, bytesOf("01 02") + "jo" + bytesOf("02") + "pw", bytesOf("01 00")},
		{asking, request5, yes5},
	}},
	{"socks5, user without password", "socks5://jo@p.test", target, []turn{
		{greeting, bytesOf("05 02 00 02"), bytesOf("05 02")},
		{greeting, bytesOf("01 02") + "jo" + bytesOf("00"), bytesOf("01 00")},
		{asking, request5, yes5},
	}},
	{"socks5, login not wanted", "socks5://jo:pw@p.test", target, []turn{
		{greeting, bytesOf("05 02 00 02"), bytesOf("05 00")},
		{asking, request5, yes5},
	}},
	{"socks5h, IPv4, bound to a name", "socks5h://p.test", "192.0.2.7:80", []turn{
		{greeting, bytesOf("05 01 00"), bytesOf("05 00")},
		{asking, bytesOf("05 01 00 01 c0000207 0050"), bytesOf("05 00 00 03 04") + "exit" + bytesOf("1234")},
	}},
	{"socks5, IPv6, bound to IPv6", "socks5://p.test", "[2001:db8::1]:443", []turn{
		{greeting, bytesOf("05 01 00"), bytesOf("05 00")},
		{asking, bytesOf("05 01 00 04 20010db8000000000000000000000001 01bb"),
			bytesOf("05 00 00 04 20010db8000000000000000000000002 1234")},
	}},
	{"socks5, IPv4 as IPv6, bound to an empty name", "socks5://p.test", "[::ffff:192.0.2.7]:80", []turn{
		{greeting, bytesOf("05 01 00"), bytesOf("05 00")},
		{asking, bytesOf("05 01 00 01 c0000207 0050"), bytesOf("05 00 00 03 00 0000")},
	}},
	{"socks4, name", "socks4://p.test", target, []turn{
		{asking, request4 + "\x00rpc.nowhere.test\x00", bytesOf("00 5a 0000 00000000")},
	}},
	{"socks4a, name and user", "socks4a://jo@p.test", target, []turn{
		{asking, request4 + "jo\x00rpc.nowhere.test\x00", bytesOf("00 5a 1234 7f000001")},
	}},
	{"socks4, IPv4", "socks4://p.test", "192.0.2.7:80", []turn{
		{asking, bytesOf("04 01 0050 c0000207 00"), bytesOf("00 5a 1234 7f000001")},
	}},
	{"http", "http://p.test", target, []turn{
		{asking, requestHTTP + "\r\n", "HTTP/1.0 200\r\n\r\n"},
	}},
	{"http, login and interim answers", "http://jo:pw@p.test", target, []turn{
		{asking, requestHTTP + "Proxy-Authorization: Basic am86cHc=\r\n\r\n",
			"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: x\r\n\r\n" +
				"HTTP/1.1 299 Done\r\nContent-Length: 5\r\nTransfer-Encoding: odd\r\n\r\n"},
	}},
	{"http, IPv6, bare line ends", "http://p.test", "[2001:db8::1]:443", []turn{
		{asking, "CONNECT [2001:db8::1]:443 HTTP/1.1\r\nHost: [2001:db8::1]:443\r\nUser-Agent: rpcpool\r\n\r\n",
			"HTTP/1.1 200 OK\nVia: x\n\n"},
	}},
	{"https", "https://p.test", target, []turn{
		{asking, requestHTTP + "\r\n", "HTTP/1.1 200 OK\r\n\r\n"},
	}},
}

// speaker plays the proxy's side of a conversation.
type speaker struct {
	t     *testing.T
	conv  conversation
	after string // said in one write with the last words
	limit int    // how many bytes it says; negative: all
	slow  bool   // a byte a write
	then  func(conn net.Conn)
}

func (s speaker) serve(conn net.Conn) {
	if strings.HasPrefix(s.conv.url, "https:") {
		server := tls.Server(conn, serverTLS())
		if server.Handshake() != nil {
			return
		}
		assert.Equal(s.t, "http/1.1", server.ConnectionState().NegotiatedProtocol)
		assert.Equal(s.t, "p.test", server.ConnectionState().ServerName)
		conn = server
	}
	left := s.limit
	for i, turn := range s.conv.turns {
		heard := make([]byte, len(turn.hears))
		if _, err := io.ReadFull(conn, heard); err != nil {
			return // the client gave up
		}
		assert.Equal(s.t, turn.hears, string(heard))
		words := turn.says
		if i == len(s.conv.turns)-1 {
			words += s.after
		}
		if s.limit >= 0 && left < len(words) {
			s.say(conn, words[:left])
			break
		}
		left -= len(words)
		s.say(conn, words)
	}
	if s.then != nil {
		s.then(conn)
	}
}

func (s speaker) say(conn net.Conn, words string) {
	step := len(words)
	if s.slow {
		step = 1
	}
	for words != "" {
		if _, err := io.WriteString(conn, words[:step]); err != nil {
			return
		}
		words = words[step:]
	}
}

// silence keeps a connection open until the client closes it.
func silence(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }

// saying is a proxy that hears the client's first message, says words and ends
// with then.
func saying(words string, then func(net.Conn)) func(net.Conn) {
	return func(conn net.Conn) {
		if _, err := conn.Read(make([]byte, 16<<10)); err != nil {
			return
		}
		_, _ = io.WriteString(conn, words)
		if then != nil {
			then(conn)
		}
	}
}

func dialerTo(t *testing.T, url string, n *fakeNet) *proxydial.Dialer {
	t.Helper()
	proxy, err := proxydial.Parse(url)
	require.NoError(t, err)
	d := &proxydial.Dialer{Proxy: proxy, RootCAs: authority().pool}
	if n != nil {
		d.Dial = n.dial
	}
	return d
}

// wantError asserts that err is an *Error of the phase and reason given.
func wantError(t *testing.T, err error, phase proxydial.Phase, reason proxydial.Reason) *proxydial.Error {
	t.Helper()
	var own *proxydial.Error
	require.ErrorAs(t, err, &own)
	assert.Equal(t, phase, own.Phase, "phase of %v", err)
	assert.Equal(t, reason, own.Reason, "reason of %v", err)
	assert.Equal(t, reason == proxydial.Timeout, own.Timeout())
	return own
}

// testCA signs the certificates of fake proxies.
type testCA struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

// authority and serverTLS are valid in a bubble, where it is the year 2000, and today.
var (
	authority = sync.OnceValue(func() testCA {
		ca := testCA{pool: x509.NewCertPool()}
		ca.cert, ca.key = certify(nil, &x509.Certificate{
			NotAfter: farFuture, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		})
		ca.pool.AddCert(ca.cert)
		return ca
	})
	serverTLS = sync.OnceValue(func() *tls.Config { return serverTLSFor("p.test", farFuture) })
	farFuture = time.Date(2120, 1, 1, 0, 0, 0, 0, time.UTC)
)

func serverTLSFor(name string, notAfter time.Time) *tls.Config {
	ca := authority()
	template := &x509.Certificate{NotAfter: notAfter}
	if ip := net.ParseIP(name); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{name}
	}
	cert, key := certify(&ca, template)
	return &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{cert.Raw}, PrivateKey: key}},
		NextProtos:   []string{"h2", "http/1.1"},
		// A pipe has no buffer: tickets and the client's request would wait for each other.
		SessionTicketsDisabled: true,
	}
}

func certify(by *testCA, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	template.SerialNumber = big.NewInt(1)
	template.Subject = pkix.Name{CommonName: "test"}
	template.NotBefore = time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC)
	parent, signer := template, key
	if by != nil {
		parent, signer = by.cert, by.key
	}
	der, err2 := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	cert, err3 := x509.ParseCertificate(der)
	if err := errors.Join(err, err2, err3); err != nil {
		panic(err)
	}
	return cert, key
}
