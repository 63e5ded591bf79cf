package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/internal/leaktest"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// No goroutine of the gateway outlives its tests.
func TestMain(m *testing.M) { os.Exit(leaktest.Run(m)) }

// bed is a world of real connections, and the program in it.
type bed struct {
	*rpcpooltest.World
	t       testing.TB
	pool    []string // the arguments that say where lists come from
	proxies []string
	url     string // the gateway's
	client  *http.Client
	stdout  *output
	stderr  *output
	status  chan int
	stop    context.CancelFunc
}

func newBed(t testing.TB) *bed {
	for _, name := range []string{rpcpool.EnvAPIURL, rpcpool.EnvAPIKey, envProxies} {
		t.Setenv(name, "")
	}
	t.Setenv("HOME", t.TempDir()) // the cache of lists is the user's
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("LocalAppData", t.TempDir())
	w := rpcpooltest.NewWorld(rpcpooltest.NewLoopbackNetwork())
	t.Cleanup(func() { assert.NoError(t, w.Close()) })
	b := &bed{World: w, t: t, stdout: newOutput(), stderr: newOutput(), status: make(chan int, 1)}
	b.pool = []string{"-pool", "http://" + w.Network.RealAddr(w.Pool.Addr()), "-key", w.Pool.Key()}
	b.client = &http.Client{Transport: &http.Transport{}, Timeout: 30 * time.Second}
	t.Cleanup(b.client.CloseIdleConnections)
	return b
}

// proxy adds a proxy and gives it with its URL on loopback.
func (b *bed) proxy(name string) *rpcpooltest.Proxy {
	p := b.World.Proxy(name)
	b.proxies = append(b.proxies, fmt.Sprintf("socks5://user-%s:word-%s@%s", name, name, b.Network.RealAddr(p.Addr())))
	return p
}

// args are the program's arguments for this world.
func (b *bed) args(more ...string) []string {
	args := append([]string{"-listen", "127.0.0.1:0"}, b.pool...)
	for _, proxy := range b.proxies {
		args = append(args, "-proxy", proxy)
	}
	return append(args, more...)
}

// start runs the program until the test ends. It sees to it that it ends well and
// has shown no secret.
func (b *bed) start(more ...string) *bed {
	b.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	b.stop = stop
	go func() { b.status <- run(ctx, b.args(more...), b.stdout, b.stderr) }()
	b.t.Cleanup(func() { b.end() })
	line := b.stdout.wait(b.t, "status page: ")
	b.url = strings.TrimSuffix(strings.TrimSpace(strings.TrimPrefix(line, "status page: ")), "/")
	return b
}

// end has the program end, as a signal does, and gives its status.
func (b *bed) end() {
	if b.stop == nil {
		return
	}
	b.stop()
	b.stop = nil
	b.client.CloseIdleConnections()
	assert.Equal(b.t, statusOK, <-b.status)
	b.noSecretIn(b.stdout.String())
	b.noSecretIn(b.stderr.String())
}

func (b *bed) noSecretIn(text string) {
	b.t.Helper()
	for _, secret := range b.Secrets() {
		assert.NotContains(b.t, text, secret)
	}
}

// answer is what the gateway answered.
type answer struct {
	status int
	header http.Header
	body   string
}

// do sends a request to the gateway, and sees to it that no secret comes back.
func (b *bed) do(method, path, body string, headers ...string) answer {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), method, b.url+path, strings.NewReader(body))
	require.NoError(b.t, err)
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		if req.Header.Set(headers[i], headers[i+1]); headers[i] == "Host" {
			req.Host = headers[i+1]
		}
	}
	res, err := b.client.Do(req)
	require.NoError(b.t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(b.t, err)
	b.noSecretIn(string(text))
	b.noSecretIn(fmt.Sprint(res.Header))
	return answer{res.StatusCode, res.Header, string(text)}
}

// call sends a JSON-RPC request to a chain.
func (b *bed) call(chain, method string) answer {
	b.t.Helper()
	return b.do(http.MethodPost, "/"+chain, request(1, method))
}

func request(id int, method string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":[]}`, id, method)
}

// output collects what the program prints, and lets a test wait for a line.
type output struct {
	mu    sync.Mutex // protects text
	text  bytes.Buffer
	lines chan struct{} // has a value when there may be a new line
}

func newOutput() *output { return &output{lines: make(chan struct{}, 1)} }

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case o.lines <- struct{}{}:
	default:
	}
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// wait gives the first line that begins so.
func (o *output) wait(t testing.TB, prefix string) string {
	t.Helper()
	for {
		for line := range strings.Lines(o.String()) {
			if strings.HasPrefix(line, prefix) && strings.HasSuffix(line, "\n") {
				return line
			}
		}
		select {
		case <-o.lines:
		case <-time.After(20 * time.Second):
			require.FailNow(t, "the program printed no such line", "%q in %q", prefix, o.String())
		}
	}
}

func writeFile(t testing.TB, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}
