package integration

import (
	"bufio"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/bomzrpc/rpcpool"
	"github.com/stretchr/testify/require"
)

// deniedPort is the port that the rulesets of danted, tinyproxy, squid and
// privoxy refuse; inside.sh sets it.
var deniedPort = os.Getenv("DENIED_PORT")

// started has the port of every proxy and node that runs.
var started = map[string]int{}

// readStarted reads the list of inside.sh: "KIND PORT PID" a line.
func readStarted() error {
	file, err := os.Open(filepath.Join(os.Getenv("RUN"), "started"))
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var kind string
		var port, pid int
		if _, err := fmt.Sscan(lines.Text(), &kind, &port, &pid); err != nil {
			return fmt.Errorf("%s: %q: %w", file.Name(), lines.Text(), err)
		}
		started[kind] = port
	}
	return lines.Err()
}

// need skips the test where a part that one of the kinds belongs to is missing ("squid" of
// "squid-auth"), by what run.sh found; the end of the run lists what was skipped.
func need(t *testing.T, kinds ...string) {
	t.Helper()
	missing := strings.Fields(os.Getenv("RPCPOOL_INTEGRATION_MISSING"))
	for _, kind := range kinds {
		if part, _, _ := strings.Cut(kind, "-"); slices.Contains(missing, part) {
			skips.add(part, t.Name())
			t.Skipf("%s isn't there", part)
		}
	}
}

// proxyKind is a way to reach RPCs: a real proxy and how it is spoken to.
type proxyKind struct {
	name   string
	runs   string // the kind in inside.sh
	scheme string
	login  bool
}

var proxyKinds = []proxyKind{
	{"danted", "danted", "socks5", false},
	{"danted-auth", "danted-auth", "socks5h", true},
	{"microsocks", "microsocks", "socks5", false},
	{"microsocks-auth", "microsocks-auth", "socks5", true},
	{"ssh-D", "ssh-D", "socks5", false},
	{"ssh-D-socks4a", "ssh-D", "socks4a", false}, // dante's SOCKS4 takes addresses only
	{"tinyproxy", "tinyproxy", "http", false},
	{"tinyproxy-auth", "tinyproxy-auth", "http", true},
	{"squid", "squid", "http", false},
	{"squid-auth", "squid-auth", "http", true},
	{"squid-tls", "squid-tls", "https", true},
	{"privoxy", "privoxy", "http", false},
}

// url is the proxy's URL, with its login where it needs one.
func (p proxyKind) url() string {
	login := ""
	if p.login {
		login = os.Getenv("LOGIN") + ":" + os.Getenv("PASSWORD") + "@"
	}
	return p.urlWith(login)
}

func (p proxyKind) urlWith(login string) string {
	return p.scheme + "://" + login + loopback(started[p.runs])
}

// relays tells whether requests for targets of the scheme pass through the proxy
// as they are, instead of being read by it (absolute-form).
func (p proxyKind) relays(targetScheme string) bool {
	return strings.HasPrefix(p.scheme, "socks") || targetScheme == "https"
}

// program is the proxy's implementation: danted, squid …
func (p proxyKind) program() string { return strings.SplitN(p.runs, "-", 2)[0] }

func kind(name string) proxyKind {
	i := slices.IndexFunc(proxyKinds, func(p proxyKind) bool { return p.name == name })
	return proxyKinds[i]
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// node is a real node under a name that only the proxies can resolve.
type node struct {
	name    string
	chainID uint64
}

var nodes = []node{{"anvil", 31337}, {"hardhat", 31337}, {"geth", 1337}}

func (n node) ref() string { return strconv.FormatUint(n.chainID, 10) }

// url is how RPCs are listed by the pool. geth serves no other name than this.
func (n node) url() string { return fmt.Sprintf("http://%s%s:%d/", n.name, rpcDomain, started[n.name]) }

// directURL is for what the test itself does at the node.
func (n node) directURL() string { return "http://" + loopback(started[n.name]) }

// bed is one pool of the library with the pool API that serves it.
type bed struct {
	*rpcpool.Pool
	api *poolAPI
	log *attemptLog
}

// timeout is far more than a healthy attempt takes here; tests that wait for one
// set their own.
const timeout = 20 * time.Second

// newBed makes a pool of the proxies and lists. Proxies are checked by a healthy
// RPC, unless the test changes that.
func newBed(t *testing.T, proxies []string, lists map[string][]string, changes ...func(*rpcpool.Config)) *bed {
	t.Helper()
	api := newPoolAPI(t, lists)
	log := &attemptLog{}
	cfg := rpcpool.Config{
		Proxies:       proxies,
		APIURL:        api.url,
		APIKey:        apiKey,
		Timeout:       timeout,
		MaxRounds:     1,
		ProxyCheckURL: healthy.url("http"),
		CacheDir:      t.TempDir(),
		RootCAs:       trusted,
		Logger:        log.logger(),
	}
	for _, change := range changes {
		change(&cfg)
	}
	pool, err := rpcpool.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { pool.Close() })
	return &bed{pool, api, log}
}

// complaints closes the pool, so that every report is there, and gives them.
func (b *bed) complaints() []string {
	b.Close()
	return b.api.complaints()
}

func withTimeout(d time.Duration) func(*rpcpool.Config) {
	return func(c *rpcpool.Config) { c.Timeout = d }
}

func withMode(mode rpcpool.Mode) func(*rpcpool.Config) {
	return func(c *rpcpool.Config) { c.Mode = mode }
}

// bounded is a context for a call that must end by itself: where it doesn't, the
// test fails instead of hanging.
func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeoutCause(t.Context(), 45*time.Second, errors.New("the call didn't end by itself"))
	t.Cleanup(cancel)
	return ctx
}

// trusted are the roots of the test's own certificates and of the https:// proxy.
var trusted *x509.CertPool

// victim is a proxy or node of the test's own, to be killed or stopped.
type victim struct {
	t    *testing.T
	cmd  *exec.Cmd
	port int
	done chan struct{}
}

// startVictim starts one more proxy or node of the kind and waits until it
// listens.
func startVictim(t *testing.T, kind string) *victim {
	t.Helper()
	return startVictimOn(t, kind, unusedPort())
}

// startVictimOn starts it on a port where one was killed.
func startVictimOn(t *testing.T, kind string, port int) *victim {
	t.Helper()
	v := &victim{t: t, port: port, done: make(chan struct{})}
	v.cmd = exec.Command(os.Getenv("START_SH"), kind, strconv.Itoa(v.port))
	v.cmd.Env = slices.DeleteFunc(os.Environ(), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return slices.Contains(hostileVariables, name)
	})
	// A group of its own: danted is several processes.
	v.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, v.cmd.Start())
	go func() {
		defer close(v.done)
		_ = v.cmd.Wait()
	}()
	t.Cleanup(v.kill)
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", loopback(v.port))
		if err != nil {
			return false
		}
		conn.Close()
		return true
	}, 20*time.Second, 20*time.Millisecond, "%s doesn't come up", kind)
	return v
}

func (v *victim) signal(sig syscall.Signal) { _ = syscall.Kill(-v.cmd.Process.Pid, sig) }

// stop halts it, and waits until all its threads stand still: it accepts
// connections, as the kernel does that, and says nothing any more.
func (v *victim) stop() {
	v.t.Helper()
	v.signal(syscall.SIGSTOP)
	require.Eventually(v.t, func() bool {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", v.cmd.Process.Pid))
		for _, thread := range threads {
			stat, _ := os.ReadFile(thread)
			// "pid (name) state ...", where the name may hold anything.
			if _, state, _ := strings.Cut(string(stat), ") "); !strings.HasPrefix(state, "T") {
				return false
			}
		}
		return err == nil && len(threads) > 0
	}, 5*time.Second, 5*time.Millisecond, "it doesn't stop")
}

// kill ends it at once and waits until it is gone.
func (v *victim) kill() {
	v.signal(syscall.SIGKILL)
	<-v.done
}

// tattletale is the proxy that the environment names: whoever obeys the
// environment is seen here.
var tattletale teller

type teller struct {
	listener    net.Listener
	connections atomic.Int64
}

func startTattletale() (err error) {
	tattletale.listener, err = net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() {
		for {
			conn, err := tattletale.listener.Accept()
			if err != nil {
				return
			}
			tattletale.connections.Add(1)
			conn.Close()
		}
	}()
	return nil
}

func (t *teller) url() string { return "http://" + t.listener.Addr().String() }
