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
	"slices"
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

// fleet is bots that share a Redis of their own.
type fleet struct {
	t      *testing.T
	server *victim
	api    *poolAPI
	bots   []*bot
}

// startFleet has bots share a Redis, and ask the RPCs in this order.
func startFleet(t *testing.T, bots int, rpcs ...*fleetNode) *fleet {
	t.Helper()
	var urls []string
	for i, n := range rpcs {
		urls = append(urls, fmt.Sprintf("%s/key-%d", n.URL, i+1))
	}
	f := &fleet{t: t, server: startVictim(t, "redis"), api: newPoolAPI(t, map[string][]string{childChain: urls})}
	for range bots {
		f.add().call()
	}
	require.Equal(t, int64(bots), rpcs[0].asked.Load(), "all begin with the best")
	require.Eventually(t, f.connected, 10*time.Second, 20*time.Millisecond)
	return f
}

func (f *fleet) add() *bot {
	f.t.Helper()
	f.bots = append(f.bots, startBot(f.t, loopback(f.server.port), f.api.url))
	return f.bots[len(f.bots)-1]
}

// connected tells whether all are.
func (f *fleet) connected() bool {
	return !slices.ContainsFunc(f.bots, func(b *bot) bool { return !b.connected() })
}

// skips has an RPC die, one bot find that out, and from a second later no other ask it once.
func (f *fleet) skips(n *fleetNode, finder *bot) {
	f.t.Helper()
	n.dead.Store(true)
	before := n.asked.Load()
	finder.call()
	require.Equal(f.t, before+1, n.asked.Load(), "the finder asked it")
	pause(f.t, time.Second)
	for range 20 {
		for _, b := range f.bots {
			b.call()
		}
	}
	require.Equal(f.t, before+1, n.asked.Load(), "somebody asked it although all should know")
}

// addLate has one bot more, which learns from what the server kept that an RPC is dead.
func (f *fleet) addLate(dead *fleetNode) {
	f.t.Helper()
	late := f.add()
	late.call()
	require.Eventually(f.t, late.connected, 10*time.Second, 20*time.Millisecond)
	before := dead.asked.Load()
	for range 20 {
		late.call()
	}
	require.Equal(f.t, before, dead.asked.Load())
}

// Three processes share a Redis. What one finds dead the others don't ask a second later, not
// once. When the server is killed no call fails, and when it is back sharing goes on.
func TestFleetOverRedis(t *testing.T) {
	need(t, "microsocks", "redis")
	t.Parallel()
	first, second, third := startFleetNode(t), startFleetNode(t), startFleetNode(t)
	f := startFleet(t, 3, first, second, third)
	f.skips(first, f.bots[0])
	showNoSecret(t, f.server.port)

	f.server.kill()
	for range 50 {
		for _, b := range f.bots {
			b.call()
		}
		pause(t, 20*time.Millisecond)
	}
	require.Eventually(t, func() bool { return !slices.ContainsFunc(f.bots, (*bot).connected) }, 10*time.Second, 20*time.Millisecond)
	startVictimOn(t, "redis", f.server.port)
	require.Eventually(t, f.connected, 30*time.Second, 50*time.Millisecond)
	f.skips(second, f.bots[1])
	f.addLate(second)
}

// Somebody writes garbage into the streams. The bots go on without losing the server, and take
// what is good after it; so does one that begins with all of it.
func TestFleetPassesOverHostileEntries(t *testing.T) {
	need(t, "microsocks", "redis")
	t.Parallel()
	first, second := startFleetNode(t), startFleetNode(t)
	f := startFleet(t, 2, first, second)
	client := goredis.NewClient(&goredis.Options{Addr: loopback(f.server.port)})
	defer client.Close()
	for _, stream := range []string{"{rpcpool}:facts", "{rpcpool}:heads"} {
		for _, values := range [][]string{
			{"facts", strings.Repeat("x", 1<<20)},
			{"other", "[]"}, // without the field
			{"facts", `[{"kind":"cooldown",`},
			{"facts", `{"kind":"cooldown"}`},
			{"facts", `[{"kind":7,"for_ms":"long"}]`},
			{"facts", `[null,{},{"kind":"cooldown","for_ms":-1,"age_ms":9223372036854775807}]`},
			{"facts", ""},
			{"facts", "[" + strings.Repeat(`{"kind":"clear"},`, 5000) + `{"kind":"clear"}]`},
			{"\x00\xff", "\x00\xff", "facts", "\xff"},
		} {
			require.NoError(t, client.XAdd(t.Context(), &goredis.XAddArgs{Stream: stream, Values: values}).Err())
		}
	}
	f.skips(first, f.bots[0])
	f.addLate(first)
	for _, b := range f.bots {
		require.Equal(t, "0", b.do("outages"))
	}
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
		case "outages":
			fmt.Println(pool.SharedStats().Outages)
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
