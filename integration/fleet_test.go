package integration

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/plugins/redis"
)

// The variables that hand a bot of the fleet its task.
const (
	botVariable      = "RPCPOOL_INTEGRATION_BOT" // the address of Redis
	botCallTimeLimit = 5 * time.Second
)

// fleetNode is an RPC that answers, or says 503, and counts who asks.
type fleetNode struct {
	*httptest.Server
	dead  atomic.Bool
	asked atomic.Int64
}

func startFleetNode(t *testing.T) *fleetNode {
	n := &fleetNode{}
	n.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.asked.Add(1)
		body, _ := io.ReadAll(r.Body)
		if n.dead.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, rest, _ := strings.Cut(string(body), `"id":`)
		id := rest[:strings.IndexAny(rest, ",}")]
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":"0x1"}`, id)
	}))
	t.Cleanup(n.Close)
	return n
}

// bot is a process of the fleet that does what it is told by lines.
type bot struct {
	t      *testing.T
	input  io.Writer
	output *bufio.Scanner
}

func startBot(t *testing.T, redisAddr, poolURL string) *bot {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	child := exec.CommandContext(ctx, os.Args[0])
	child.Env = []string{
		botVariable + "=" + redisAddr, "RUN=" + os.Getenv("RUN"), "START_SH=" + os.Getenv("START_SH"),
		childProxyVariable + "=" + kind("microsocks").url(), childPoolVariable + "=" + poolURL, childCacheVariable + "=" + t.TempDir(),
	}
	child.Stderr = os.Stderr
	input, err := child.StdinPipe()
	require.NoError(t, err)
	output, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	t.Cleanup(func() {
		_ = input.Close()
		_ = child.Wait()
		cancel()
	})
	return &bot{t, input, bufio.NewScanner(output)}
}

// do has the bot do something and gives its answer.
func (b *bot) do(what string) string {
	_, err := fmt.Fprintln(b.input, what)
	require.NoError(b.t, err)
	require.True(b.t, b.output.Scan(), "the bot has ended")
	return b.output.Text()
}

func (b *bot) call() {
	b.t.Helper()
	require.Equal(b.t, "0x1", b.do("call"))
}

func (b *bot) connected() bool { return b.do("connected") == "true" }

// Three processes share a Redis. What one finds dead the others don't ask a second later, not
// once. When the server is killed no call fails, and when it is back sharing goes on.
func TestFleetOverRedis(t *testing.T) {
	need(t, "microsocks", "redis")
	t.Parallel()
	server := startVictim(t, "redis")
	first, second, third := startFleetNode(t), startFleetNode(t), startFleetNode(t)
	api := newPoolAPI(t, map[string][]string{childChain: {first.URL + "/key-1", second.URL + "/key-2", third.URL + "/key-3"}})
	var bots []*bot
	for range 3 {
		bots = append(bots, startBot(t, loopback(server.port), api.url))
	}
	allConnected := func() bool {
		for _, b := range bots {
			if !b.connected() {
				return false
			}
		}
		return true
	}
	for _, b := range bots {
		b.call()
	}
	require.Equal(t, int64(3), first.asked.Load(), "all begin with the best")
	require.Eventually(t, allConnected, 10*time.Second, 20*time.Millisecond)

	isSkippedByAll := func(n *fleetNode, finder *bot) {
		t.Helper()
		n.dead.Store(true)
		before := n.asked.Load()
		finder.call()
		require.Equal(t, before+1, n.asked.Load(), "the finder asked it")
		pause(t, time.Second)
		for range 20 {
			for _, b := range bots {
				b.call()
			}
		}
		require.Equal(t, before+1, n.asked.Load(), "somebody asked it although all should know")
	}
	isSkippedByAll(first, bots[0])
	showNoSecret(t, server.port)

	server.kill()
	for range 50 {
		for _, b := range bots {
			b.call()
		}
		pause(t, 20*time.Millisecond)
	}
	require.Eventually(t, func() bool { return !bots[0].connected() && !bots[1].connected() && !bots[2].connected() }, 10*time.Second, 20*time.Millisecond)
	startVictimOn(t, "redis", server.port)
	require.Eventually(t, allConnected, 30*time.Second, 50*time.Millisecond)
	isSkippedByAll(second, bots[1])

	// One that begins now learns it from what the server kept.
	late := startBot(t, loopback(server.port), api.url)
	late.call()
	require.Eventually(t, late.connected, 10*time.Second, 20*time.Millisecond)
	before := second.asked.Load()
	for range 20 {
		late.call()
	}
	require.Equal(t, before, second.asked.Load())
}

// showNoSecret looks through all that is in the server.
func showNoSecret(t *testing.T, port int) {
	t.Helper()
	client := goredis.NewClient(&goredis.Options{Addr: loopback(port)})
	defer client.Close()
	entries, err := client.XRange(t.Context(), "{rpcpool}:facts", "-", "+").Result()
	require.NoError(t, err)
	require.NotEmpty(t, entries)
	require.Contains(t, fmt.Sprint(entries), "cooldown")
	require.NotContains(t, fmt.Sprint(entries), "key-")
}

// fleetBot is a bot: a pool with a shared view, and calls as it is told.
func fleetBot() int {
	client := goredis.NewClient(&goredis.Options{
		Addr: os.Getenv(botVariable),
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return (&net.Dialer{Timeout: time.Second}).DialContext(ctx, network, addr)
		},
	})
	defer client.Close()
	pool, err := rpcpool.New(rpcpool.Config{
		Proxies:  []string{os.Getenv(childProxyVariable)},
		APIURL:   os.Getenv(childPoolVariable),
		APIKey:   apiKey,
		Timeout:  botCallTimeLimit,
		CacheDir: os.Getenv(childCacheVariable),
		Shared:   redis.New(client),
	})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer pool.Close()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		switch lines.Text() {
		case "call":
			ctx, cancel := context.WithTimeout(context.Background(), 2*botCallTimeLimit)
			result, err := rpcpool.CallAs[string](ctx, pool.Chain(childChain), "eth_blockNumber")
			cancel()
			if err != nil {
				result = err.Error()
			}
			fmt.Println(result)
		case "connected":
			fmt.Println(pool.SharedStats().Connected)
		}
	}
	return 0
}

// pause waits in real time, as other processes do, or until the test ends.
func pause(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}
