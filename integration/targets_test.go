package integration

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// site is a web server of the test under a name that only proxies can resolve,
// by http and https.
type site struct {
	host  string
	ports map[string]int // by scheme
}

func (s site) url(scheme string) string {
	return fmt.Sprintf("%s://%s%s:%d/", scheme, s.host, rpcDomain, s.ports[scheme])
}

// healthy is an RPC that answers every method with "0x1"; denied is the same on
// the port that rulesets refuse, by https.
var healthy, denied site

func startHealthy() (err error) {
	if healthy, err = startSite("healthy", http.HandlerFunc(answerEverything)); err != nil {
		return err
	}
	var port int
	if _, err = fmt.Sscan(deniedPort, &port); err != nil {
		return fmt.Errorf("DENIED_PORT: %w", err)
	}
	listener, err := net.Listen("tcp", loopback(port))
	if err != nil {
		return err
	}
	denied = site{"denied", map[string]int{"http": port, "https": port}}
	go quietServer(http.HandlerFunc(answerEverything)).Serve(tls.NewListener(listener, serving(goodCert)))
	return nil
}

func answerEverything(w http.ResponseWriter, r *http.Request) {
	var request struct {
		ID json.RawMessage `json:"id"`
	}
	if json.NewDecoder(r.Body).Decode(&request) != nil {
		http.Error(w, "not JSON", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":"0x1"}`, request.ID)
}

// startSite serves the handler until the process ends, if its certificates are
// made.
func startSite(host string, handler http.Handler) (site, error) {
	s := site{host, map[string]int{}}
	for _, scheme := range []string{"http", "https"} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return site{}, err
		}
		s.ports[scheme] = listener.Addr().(*net.TCPAddr).Port
		if scheme == "https" {
			listener = tls.NewListener(listener, serving(goodCert))
		}
		go quietServer(handler).Serve(listener)
	}
	return s, nil
}

func quietServer(handler http.Handler) *http.Server {
	return &http.Server{Handler: handler, ErrorLog: silentLog}
}

// silentLog takes what servers say about clients that go away, which is what many
// tests are about.
var silentLog = log.New(io.Discard, "", 0)

// fronts are TLS servers before the nodes, made when first asked for.
var fronts = struct {
	sync.Mutex
	sites map[string]site
}{sites: map[string]site{}}

// secureURL gives the node's URL by https.
func (n node) secureURL(t *testing.T) string {
	t.Helper()
	fronts.Lock()
	defer fronts.Unlock()
	if _, made := fronts.sites[n.name]; !made {
		front, err := startSite(n.name, n.relay(t))
		require.NoError(t, err)
		fronts.sites[n.name] = front
	}
	return fronts.sites[n.name].url("https")
}

// relay hands requests on to the node.
func (n node) relay(t *testing.T) http.Handler {
	t.Helper()
	behind, err := url.Parse(n.directURL())
	require.NoError(t, err)
	return &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(behind) },
		Transport: &http.Transport{}, // obeys no environment
		ErrorLog:  silentLog,
	}
}

// Ports for those who must find nothing there, or who bind by number. They lie
// below the range from which the kernel picks.
var lastPort atomic.Int64

func unusedPort() int { return int(20000 + lastPort.Add(1)) }

// act is what a faulty target does on a connection. With https the act of a
// target that got a request comes after the TLS handshake.
type act func(conn net.Conn)

func closeNow(conn net.Conn) { conn.Close() }

func reset(conn net.Conn) {
	tcp := conn
	if secure, ok := conn.(*tls.Conn); ok {
		tcp = secure.NetConn()
	}
	_ = tcp.(*net.TCPConn).SetLinger(0)
	tcp.Close()
}

// stayMute reads and never answers, until the other end closes.
func stayMute(conn net.Conn) {
	_, _ = io.Copy(io.Discard, conn)
	conn.Close()
}

// afterRequest reads one request, writes the bytes and does the act.
func afterRequest(answer string, then act) act {
	return func(conn net.Conn) {
		request, err := http.ReadRequest(bufio.NewReader(conn))
		if err != nil {
			conn.Close()
			return
		}
		_, _ = io.Copy(io.Discard, request.Body)
		_, _ = io.WriteString(conn, answer)
		then(conn)
	}
}

const halfAnswer = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{\"jsonrpc\":\"2.0\","

// faultyTarget serves the act on each connection and gives the URL. A nil config
// means no TLS, whatever the scheme says.
func faultyTarget(t *testing.T, scheme string, config *tls.Config, do act) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			if config != nil {
				conn = tls.Server(conn, config)
			}
			go do(conn)
		}
	}()
	port := listener.Addr().(*net.TCPAddr).Port
	return fmt.Sprintf("%s://faulty%s:%d/", scheme, rpcDomain, port)
}

// blackHole is a port whose SYNs vanish: the backlog of a listener that accepts
// nobody is full.
var blackHole = sync.OnceValues(func() (int, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	port := unusedPort()
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, err
	}
	if err := syscall.Listen(fd, 0); err != nil {
		return 0, err
	}
	for range 10 {
		// The connections stay open to the process's end: they are the plug.
		if _, err := net.DialTimeout("tcp", loopback(port), 300*time.Millisecond); err != nil {
			return port, nil
		}
	}
	return 0, fmt.Errorf("the backlog of port %d doesn't fill", port)
})
