package rpcpool_test

import (
	"bufio"
	"bytes"
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
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// benchServing, in the environment, has this binary serve the benchmarks: the other
// side is another process, so that its work isn't counted as the client's.
const benchServing = "RPCPOOL_TEST_BENCH_SERVERS"

// benchHost is the RPC's name. Nobody resolves it: each proxy is the node, too.
const benchHost = "rpc.bench.test"

// benchAddrs is where the servers are.
type benchAddrs struct {
	Forward, Connect, Socks string // proxies on 127.0.0.1
	CA                      []byte // of the node behind Connect and Socks, as PEM
}

// benchServers are proxies that answer in the place of the node behind them, as cheap
// as can be.
type benchServers struct {
	benchAddrs
	listeners []net.Listener
	tls       *tls.Config

	mu     sync.Mutex // protects what follows
	open   map[net.Conn]struct{}
	closed bool
	serves sync.WaitGroup
}

func startBenchServers(t testing.TB) *benchServers {
	s := &benchServers{open: map[net.Conn]struct{}{}}
	s.CA, s.tls = benchCertificate(t)
	s.Forward = s.listen(t, func(net.Conn, *bufio.Reader) error { return nil }, false)
	s.Connect = s.listen(t, takeConnect, true)
	s.Socks = s.listen(t, takeSocks, true)
	return s
}

func (s *benchServers) listen(t testing.TB, greet func(net.Conn, *bufio.Reader) error, secure bool) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.listeners = append(s.listeners, listener)
	s.serves.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil || !s.keep(conn) {
				return
			}
			s.serves.Go(func() {
				defer conn.Close()
				br := bufio.NewReader(conn)
				if greet(conn, br) != nil {
					return
				}
				if !secure {
					answerCalls(conn, br)
					return
				}
				secured := tls.Server(conn, s.tls)
				answerCalls(secured, bufio.NewReader(secured))
			})
		}
	})
	return listener.Addr().String()
}

func (s *benchServers) keep(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[conn] = struct{}{}
	if s.closed {
		_ = conn.Close()
	}
	return !s.closed
}

func (s *benchServers) stop() {
	for _, listener := range s.listeners {
		_ = listener.Close()
	}
	s.mu.Lock()
	s.closed = true
	for conn := range s.open {
		_ = conn.Close()
	}
	s.mu.Unlock()
	s.serves.Wait()
}

func benchCertificate(t testing.TB) ([]byte, *tls.Config) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: benchHost}, DNSNames: []string{benchHost},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		&tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}
}

// takeConnect grants a CONNECT request.
func takeConnect(conn net.Conn, br *bufio.Reader) error {
	if _, err := readHead(br); err != nil {
		return err
	}
	_, err := io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n")
	return err
}

// takeSocks grants a SOCKS5 request without a login.
func takeSocks(conn net.Conn, br *bufio.Reader) error {
	read := func(n int) ([]byte, error) {
		b := make([]byte, n)
		_, err := io.ReadFull(br, b)
		return b, err
	}
	greeting, err := read(2)
	if err != nil {
		return err
	}
	if _, err = read(int(greeting[1])); err != nil {
		return err
	}
	if _, err = conn.Write([]byte{5, 0}); err != nil {
		return err
	}
	request, err := read(5) // version, command, reserved, address type (a name), its length
	if err != nil {
		return err
	}
	if _, err = read(int(request[4]) + 2); err != nil {
		return err
	}
	_, err = conn.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
	return err
}

// readHead reads a request's head and gives its Content-Length.
func readHead(br *bufio.Reader) (length int, err error) {
	for {
		line, err := br.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		if len(line) <= 2 {
			return length, nil
		}
		if value, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return 0, err
			}
		}
	}
}

// answerCalls answers JSON-RPC requests with a block number and their own id.
func answerCalls(conn net.Conn, br *bufio.Reader) {
	var body, answer []byte
	for {
		length, err := readHead(br)
		if err != nil {
			return
		}
		body = append(body[:0], make([]byte, length)...)
		if _, err := io.ReadFull(br, body); err != nil {
			return
		}
		_, rest, _ := bytes.Cut(body, []byte(`"id":`))
		id, _, _ := bytes.Cut(rest, []byte(","))
		result := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":"0x13f2a5b"}`, id)
		answer = fmt.Appendf(answer[:0], "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(result), result)
		if _, err := conn.Write(answer); err != nil {
			return
		}
	}
}

// The benchmark's two clients get the same answer from its servers on every way. In
// the benchmark's other process the same servers run until their input ends.
func TestServersOfTheBenchmarks(t *testing.T) {
	s := startBenchServers(t)
	defer s.stop()
	if os.Getenv(benchServing) != "" {
		require.NoError(t, json.NewEncoder(os.Stdout).Encode(s.benchAddrs))
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	for _, way := range s.benchAddrs.ways() {
		for name, client := range way.clients(t, 5) {
			result, err := client(t.Context())
			require.NoError(t, err, "%s, %s", way.name, name)
			require.Equal(t, `"0x13f2a5b"`, string(result))
		}
	}
}

// benchProcess starts the servers in a process of their own.
func benchProcess(b *testing.B) (addrs benchAddrs) {
	b.Helper()
	self, err := os.Executable()
	require.NoError(b, err)
	child := exec.Command(self, "-test.run", "^TestServersOfTheBenchmarks$")
	child.Env = append(os.Environ(), benchServing+"=1")
	input, err := child.StdinPipe()
	require.NoError(b, err)
	output, err := child.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, child.Start())
	b.Cleanup(func() {
		_ = input.Close()
		_ = child.Wait()
	})
	for lines := bufio.NewScanner(output); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "{") {
			require.NoError(b, json.Unmarshal(lines.Bytes(), &addrs))
			return addrs
		}
	}
	b.Fatal("the servers' process ended without an address")
	return addrs
}
