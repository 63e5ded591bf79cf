package rpcpoolprom_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
	rpcpoolprom "github.com/bomzrpc/rpcpool/plugins/prometheus"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// BenchmarkScrape is a scrape of 50 chains with 200 RPCs each, all of which have been asked
// and have failed in every way; the text that Prometheus reads included.
func BenchmarkScrape(b *testing.B) {
	m := rpcpoolprom.New()
	pool := bigPool(b, m, 50, 200)
	useAll(b, m, pool)
	registry := prometheus.NewRegistry()
	require.NoError(b, registry.Register(m))
	b.ReportAllocs()
	for b.Loop() {
		families, err := registry.Gather()
		if err != nil {
			b.Fatal(err)
		}
		encoder := expfmt.NewEncoder(io.Discard, expfmt.NewFormat(expfmt.TypeTextPlain))
		for _, family := range families {
			if err := encoder.Encode(family); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(testutil.CollectAndCount(m)), "metrics")
}

// BenchmarkEvents is what the metrics themselves add to a call of one attempt.
func BenchmarkEvents(b *testing.B) {
	m := rpcpoolprom.New()
	ctx := context.Background()
	labels := rpcpool.ChainLabels{Chain: "8453", Policy: "fresh"}
	start := rpcpool.CallStart{ChainLabels: labels, Kind: rpcpool.KindCall, Method: "eth_call"}
	attempt := rpcpool.AttemptStart{
		ChainLabels: labels, Kind: rpcpool.KindCall, Method: "eth_call",
		RPC: "https://rpc.example.org/***", Proxy: "socks5://***@proxy-a.example.com:1080", Number: 1,
	}
	b.ReportAllocs()
	for b.Loop() {
		of := m.CallStarted(ctx, start)
		m.AttemptEnded(m.AttemptStarted(of, attempt), rpcpool.AttemptEnd{
			AttemptStart: attempt, Verdict: rpcpool.VerdictOK, Bytes: 100, Duration: 40 * time.Millisecond,
		})
		m.CallEnded(of, rpcpool.CallEnd{CallStart: start, Result: rpcpool.ResultOK, Attempts: 1, Duration: 40 * time.Millisecond})
	}
}

// benchServing, in the environment, has this binary serve the benchmark: the other side is
// another process, so that its work isn't counted as the client's.
const benchServing = "RPCPOOL_TEST_BENCH_WORLD"

// TestServerOfTheBenchmark is a SOCKS5 proxy on 127.0.0.1 and a node behind it that answers at
// once. In the benchmark's other process they run until its input ends.
func TestServerOfTheBenchmark(t *testing.T) {
	w := rpcpooltest.NewWorld(rpcpooltest.NewLoopbackNetwork())
	defer w.Close()
	w.Network.SetRecording(false)
	addr := w.Network.RealAddr(w.ProxyAt("p1", "socks5://p1.test:1080").Addr())
	w.Node("r1")
	if os.Getenv(benchServing) != "" {
		fmt.Println("at " + addr)
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	callOf(t, addr)()
}

// BenchmarkCallAgainstNone is what the metrics add to a call over loopback, through a proxy:
// calls of a pool with them and of one without take turns, so that whatever else the machine
// does meets both alike, and the medians are compared. It needs some thousand of each.
func BenchmarkCallAgainstNone(b *testing.B) {
	addr := otherProcess(b)
	calls := []func(){callOf(b, addr), callOf(b, addr, rpcpoolprom.New())}
	calls[0]()
	calls[1]()
	var took [2][]float64
	for i := 0; b.Loop(); i++ {
		for j := range calls {
			turn := (i + j) % 2
			began := time.Now()
			calls[turn]()
			took[turn] = append(took[turn], float64(time.Since(began).Nanoseconds()))
		}
	}
	without, with := median(took[0]), median(took[1])
	b.ReportMetric(100*(with/without-1), "%-more")
	b.ReportMetric(without/1e3, "µs/call-without")
	b.ReportMetric(0, "ns/op") // of two calls: of no use
}

// otherProcess starts the servers in a process of their own, and gives where the proxy is.
func otherProcess(b *testing.B) (addr string) {
	b.Helper()
	self, err := os.Executable()
	require.NoError(b, err)
	child := exec.Command(self, "-test.run", "^TestServerOfTheBenchmark$")
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
		if addr, ok := strings.CutPrefix(lines.Text(), "at "); ok {
			return addr
		}
	}
	b.Fatal("the servers' process ended without an address")
	return ""
}

// callOf gives a call through the proxy, on a pool of its own that has the hooks.
func callOf(t testing.TB, proxyAddr string, hooks ...rpcpool.Hook) func() {
	t.Helper()
	directory, err := rpcpool.NewStaticDirectory(rpcpool.List{Key: "eip155:1", RPCs: []rpcpool.RPC{{URL: "http://r1.test/key-r1"}}})
	require.NoError(t, err)
	pool, err := rpcpool.New(rpcpool.Config{
		Proxies: []string{"socks5://" + proxyAddr}, Directory: directory, CacheDir: t.TempDir(),
		Logger: slog.New(slog.DiscardHandler), Hooks: hooks,
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = pool.Close() })
	chain := pool.Chain("1")
	return func() {
		if _, err := chain.Call(t.Context(), "eth_chainId"); err != nil {
			t.Error(err)
		}
	}
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
