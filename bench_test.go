package rpcpool_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
)

// The benchmarks compare a call with the same call by hand: a well-tuned net/http
// client and encoding/json, through the same proxy to the same node (rule F1).
//
//	make benchmarks                             all of it
//	make benchmarks BENCH=CallAgainstBare       the ratio, in one run
//	go test -run '^$' -bench Call -cpuprofile … where the time goes
//
// CallAgainstBare has both take turns and reports the median of the passes' ratios as
// x-bare: 1.00 is as fast as by hand. Times under a loaded machine are worth little;
// allocs/call are exact to a hundredth.

// benchWay is a way to the node.
type benchWay struct {
	name, proxy, url string
	roots            *x509.CertPool
}

func (a benchAddrs) ways() []benchWay {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(a.CA)
	return []benchWay{
		{"http proxy, absolute form", "http://" + a.Forward, "http://" + benchHost + "/key", roots},
		{"http proxy, CONNECT, TLS", "http://" + a.Connect, "https://" + benchHost + "/key", roots},
		{"SOCKS5 proxy, TLS", "socks5://" + a.Socks, "https://" + benchHost + "/key", roots},
	}
}

// benchClient makes one call.
type benchClient func(ctx context.Context) (json.RawMessage, error)

// clients gives a client by hand and one of the library's, with so many RPCs in its
// list. They end with the test.
func (w benchWay) clients(t testing.TB, rpcs int) map[string]benchClient {
	return map[string]benchClient{"bare": w.bare(t), "rpcpool": w.pooled(t, rpcs)}
}

// bareRequest and bareAnswer are the envelope, as one writes it by hand.
type bareRequest struct {
	Version string `json:"jsonrpc"`
	ID      uint64 `json:"id"`
	Method  string `json:"method"`
	Params  []any  `json:"params"`
}

type bareAnswer struct {
	ID     uint64          `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// bare is the client by hand. Its transport is set as the library's is.
func (w benchWay) bare(t testing.TB) benchClient {
	proxy, err := url.Parse(w.proxy)
	require.NoError(t, err)
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	transport := &http.Transport{
		Proxy:               http.ProxyURL(proxy),
		TLSClientConfig:     &tls.Config{RootCAs: w.roots, MinVersion: tls.VersionTLS12},
		Protocols:           protocols,
		MaxIdleConnsPerHost: 256,
		IdleConnTimeout:     30 * time.Second,
	}
	t.Cleanup(transport.CloseIdleConnections)
	return bareOn(transport, w.url)
}

// bareOn is the client by hand on a transport.
func bareOn(transport http.RoundTripper, url string) benchClient {
	client := &http.Client{Transport: transport}
	return func(ctx context.Context) (json.RawMessage, error) {
		body, err := json.Marshal(bareRequest{"2.0", 1, "eth_blockNumber", []any{}})
		if err != nil {
			return nil, err
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		req.Header.Set("Content-Type", "application/json")
		res, err := client.Do(req)
		if err != nil {
			return nil, err
		}
		defer res.Body.Close()
		raw, err := io.ReadAll(res.Body)
		if err != nil {
			return nil, err
		}
		var answer bareAnswer
		if err := json.Unmarshal(raw, &answer); err != nil {
			return nil, err
		}
		return answer.Result, nil
	}
}

// oneNode is a Directory that lists the node, and names that nobody asks for behind it.
type oneNode struct {
	url  string
	rpcs int
}

func (d oneNode) RPCs(context.Context, string) (*rpcpool.List, error) {
	list := &rpcpool.List{Key: "eip155:1", RPCs: []rpcpool.RPC{{URL: d.url}}}
	for i := 1; i < d.rpcs; i++ {
		list.RPCs = append(list.RPCs, rpcpool.RPC{URL: fmt.Sprintf("https://r%d.bench.test/key", i)})
	}
	return list, nil
}

func (oneNode) Report(context.Context, rpcpool.Report) error { return nil }

func (w benchWay) pooled(t testing.TB, rpcs int) benchClient {
	chain := w.pool(t, rpcs).Chain("1")
	return func(ctx context.Context) (json.RawMessage, error) { return chain.Call(ctx, "eth_blockNumber") }
}

// pool lists the node and so many others behind it.
func (w benchWay) pool(t testing.TB, rpcs int) *rpcpool.Pool {
	pool, err := rpcpool.New(rpcpool.Config{
		Proxies: []string{w.proxy}, Directory: oneNode{w.url, rpcs}, CacheDir: t.TempDir(),
		RootCAs: w.roots, Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = pool.Close() })
	return pool
}

// call makes a call and fails the benchmark where it fails.
func (c benchClient) call(b *testing.B) {
	if _, err := c(b.Context()); err != nil {
		b.Error(err)
	}
}

// pass makes calls by so many goroutines at once, and gives what one call took.
func (c benchClient) pass(b *testing.B, goroutines, calls int) (perCall, mallocs float64) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			for range calls {
				c.call(b)
			}
		})
	}
	all.Wait()
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	n := float64(goroutines * calls)
	return float64(took.Nanoseconds()) / n, float64(after.Mallocs-before.Mallocs) / n
}

// BenchmarkCall is one call, by one goroutine and by 64 at once.
func BenchmarkCall(b *testing.B) {
	for _, way := range benchProcess(b).ways() {
		for _, name := range []string{"bare", "rpcpool"} {
			b.Run(way.name+"/"+name+"/g1", func(b *testing.B) {
				client := way.clients(b, 5)[name]
				client.call(b)
				b.ReportAllocs()
				for b.Loop() {
					client.call(b)
				}
			})
			b.Run(way.name+"/"+name+"/g64", func(b *testing.B) {
				client := way.clients(b, 5)[name]
				client.pass(b, 64, 2)
				b.ReportAllocs()
				b.SetParallelism((64 + runtime.GOMAXPROCS(0) - 1) / runtime.GOMAXPROCS(0))
				b.ResetTimer()
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						client.call(b)
					}
				})
			})
		}
	}
}

// BenchmarkCallAgainstBare has the library and the client by hand take turns, so that
// whatever else the machine does meets both alike.
func BenchmarkCallAgainstBare(b *testing.B) {
	for _, way := range benchProcess(b).ways() {
		for _, goroutines := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/g%d", way.name, goroutines), func(b *testing.B) {
				calls := 512 / goroutines
				bare, pooled := way.bare(b), way.pooled(b, 5)
				bare.pass(b, goroutines, 2)
				pooled.pass(b, goroutines, 2)
				var ratios, bareTimes, pooledTimes, bareAllocs, pooledAllocs []float64
				for i := 0; b.Loop(); i++ {
					first, second := bare, pooled
					if i%2 == 1 {
						first, second = pooled, bare
					}
					t1, m1 := first.pass(b, goroutines, calls)
					t2, m2 := second.pass(b, goroutines, calls)
					if i%2 == 1 {
						t1, m1, t2, m2 = t2, m2, t1, m1
					}
					ratios = append(ratios, t2/t1)
					bareTimes, pooledTimes = append(bareTimes, t1), append(pooledTimes, t2)
					bareAllocs, pooledAllocs = append(bareAllocs, m1), append(pooledAllocs, m2)
				}
				b.ReportMetric(median(ratios), "x-bare")
				b.ReportMetric(median(bareTimes)/1e3, "bare-µs/call")
				b.ReportMetric(median(pooledTimes)/1e3, "µs/call")
				b.ReportMetric(median(bareAllocs), "bare-allocs/call")
				b.ReportMetric(median(pooledAllocs), "allocs/call")
				b.ReportMetric(0, "ns/op") // of two passes, as B/op and allocs/op are: of no use
			})
		}
	}
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// BenchmarkCallOnARingOf shows that a call doesn't cost more on a longer list, as long
// as the RPC at the cursor answers (rule F1).
func BenchmarkCallOnARingOf(b *testing.B) {
	way := benchProcess(b).ways()[0]
	for _, rpcs := range []int{1, 5, 1000} {
		b.Run(fmt.Sprint(rpcs), func(b *testing.B) {
			client := way.pooled(b, rpcs)
			client.call(b)
			b.ReportAllocs()
			for b.Loop() {
				client.call(b)
			}
		})
	}
}
