package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/internal/leaktest"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// No goroutine of the program outlives its tests.
func TestMain(m *testing.M) { os.Exit(leaktest.Run(m)) }

// inWorld runs a test in a bubble, with a world in memory and a proxy.
func inWorld(t *testing.T, test func(t *testing.T, w *rpcpooltest.World)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := rpcpooltest.New(t)
		w.Proxy("p1")
		test(t, w)
	})
}

// chainOf opens the chain 1 of a world as the program does.
func chainOf(t *testing.T, w *rpcpooltest.World, p plan) *rpcpool.Chain {
	t.Helper()
	config := w.Config()
	p.configure(&config)
	pool, err := rpcpool.New(config)
	require.NoError(t, err)
	t.Cleanup(func() { _ = pool.Close() })
	return pool.Chain("1", p.chainOptions()...)
}

func quiet(*measurement) {}

// heads is the usual plan: heads, every 10 s.
func heads(length time.Duration) plan {
	return plan{method: headMethod, every: 10 * time.Second, length: length}
}

// Every RPC is asked at every sample, wherever the cursor is, and what is said of one has
// nothing of another: its lag, its latency, its failures by class.
func TestEachRPCIsMeasured(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		evm := rpcpooltest.NewEVM(1, 1000)
		evm.SetBlockTime(12 * time.Second)
		limited := lastOf(3, 1, rpcpooltest.RateLimited(2*time.Second), evm, 0)
		w.List("1",
			w.Node("good", evm.Serve().Delay(100*time.Millisecond)),
			w.Node("behind", evm.Serve(rpcpooltest.Lagging(2)).Delay(300*time.Millisecond)),
			w.Node("stale", evm.Serve(rpcpooltest.Lagging(50))),
			w.Node("down", rpcpooltest.Status(500)),
			w.Node("away", rpcpooltest.Unreachable()),
			w.Node("limited", limited),
			w.Node("elsewhere", evm.Serve(rpcpooltest.OnChain(5))),
		)
		p := heads(10 * time.Minute)
		shown := 0
		began := time.Now()
		m, err := measure(t.Context(), chainOf(t, w, p), p, func(m *measurement) {
			shown++
			require.Equal(t, shown, m.samples)
		})
		require.NoError(t, err)
		require.NoError(t, m.verdict())
		assert.Equal(t, 60, m.samples)
		assert.Equal(t, 60, shown)
		assert.InDelta(t, 605, time.Since(began).Seconds(), 1)
		assert.Zero(t, m.silent)
		assert.Equal(t, evm.Head(), m.mark)
		require.Len(t, m.rows, 7)

		good, behind, stale, down, away, limits, elsewhere := m.rows[0], m.rows[1], m.rows[2], m.rows[3], m.rows[4], m.rows[5], m.rows[6]
		assert.GreaterOrEqual(t, good.said, uint64(60))
		assert.Zero(t, good.worstLag)
		assert.Zero(t, good.Transport+good.Protocol+good.Semantic+good.RateLimited+good.Ejections)
		assert.InDelta(t, 100, good.Mean.Milliseconds(), 5)

		assert.GreaterOrEqual(t, behind.said, uint64(60))
		assert.Equal(t, uint64(2), behind.worstLag)
		assert.InDelta(t, 2, float64(behind.lags)/float64(behind.said), 0.1)
		assert.InDelta(t, 300, behind.Mean.Milliseconds(), 5)
		assert.Zero(t, behind.Ejections+behind.Semantic, "two blocks are too few to eject for")

		// Cooldowns of 60, 120, 240 s and more: four trials in ten minutes.
		assert.Equal(t, uint64(50), stale.worstLag)
		for _, r := range []*row{stale, down, away} {
			assert.Equal(t, uint64(4), r.Ejections, r.RPC)
			assert.Equal(t, rpcpool.StateCooling, r.State, r.RPC)
		}
		assert.Equal(t, [3]uint64{0, 0, 4}, [3]uint64{stale.Transport, stale.Protocol, stale.Semantic})
		assert.Equal(t, [3]uint64{0, 4, 0}, [3]uint64{down.Transport, down.Protocol, down.Semantic})
		assert.Equal(t, [3]uint64{4, 0, 0}, [3]uint64{away.Transport, away.Protocol, away.Semantic})

		assert.GreaterOrEqual(t, limits.RateLimited, uint64(15), "every third answer")
		assert.Zero(t, limits.Ejections, "a rate limit is no reason to eject")
		assert.Equal(t, rpcpool.StateWrongChain, elsewhere.State)
		assert.Zero(t, elsewhere.said)
	})
}

// Where the RPCs can't be reached for a while, the samples without any answer are told.
func TestSilentSamplesAreTold(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		evm := rpcpooltest.NewEVM(1, 1000)
		nodes := []*rpcpooltest.Node{w.Node("r1", evm.Serve()), w.Node("r2", evm.Serve())}
		w.List("1", nodes...)
		p := heads(3 * time.Minute)
		m, err := measure(t.Context(), chainOf(t, w, p), p, func(m *measurement) {
			if m.samples == 6 {
				nodes[0].Script(rpcpooltest.Status(500))
				nodes[1].Script(rpcpooltest.Status(500))
			}
		})
		require.NoError(t, err)
		assert.Equal(t, 12, m.silent)
		assert.Contains(t, m.notes(), "In 12 of them no RPC answered")
	})
}

// Broken off, it gives what was measured until then, at once.
func TestMeasureBrokenOff(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		evm := rpcpooltest.NewEVM(1, 1000)
		w.List("1", w.Node("r1", evm.Serve()), w.Node("r2", evm.Serve()))
		p := heads(24 * time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), 47*time.Second)
		defer cancel()
		began := time.Now()
		m, err := measure(ctx, chainOf(t, w, p), p, quiet)
		require.NoError(t, err)
		assert.Equal(t, 47*time.Second, time.Since(began))
		assert.Equal(t, 4, m.samples)
		for _, r := range m.rows {
			assert.GreaterOrEqual(t, r.Served, uint64(4))
		}
	})
}

// Broken off before there is a list, it has measured nothing, and says so.
func TestMeasureBrokenOffAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.List("1", w.Node("r1"))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := measure(ctx, chainOf(t, w, heads(time.Hour)), heads(time.Hour), quiet)
		require.EqualError(t, err, "interrupted before anything was measured")
	})
}

// Another method is asked of every RPC at each sample, with its params, and no heads
// besides; an RPC that fails doesn't keep the others from being asked.
func TestAnotherMethod(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		right := rpcpooltest.Result("0x1").Method("eth_chainId").Delay(200 * time.Millisecond)
		nodes := []*rpcpooltest.Node{
			w.Node("r1", right, rpcpooltest.Result(7).Delay(200*time.Millisecond)),
			w.Node("r2", right, rpcpooltest.Status(503)),
			w.Node("r3", right, rpcpooltest.Result(7)),
			w.Node("r4", right, rpcpooltest.RateLimited(30*time.Second)),
		}
		w.List("1", nodes...)
		p := plan{method: "getSlot", params: []any{map[string]string{"commitment": "confirmed"}}, every: 10 * time.Second, length: 5 * time.Minute}
		m, err := measure(t.Context(), chainOf(t, w, p), p, quiet)
		require.NoError(t, err)
		assert.Equal(t, 30, m.samples)
		for _, i := range []int{0, 2} {
			n := 0
			for _, q := range nodes[i].Requests() {
				if q.Method == "getSlot" {
					require.JSONEq(t, `[{"commitment":"confirmed"}]`, string(q.Params))
					n++
				}
			}
			assert.InDelta(t, 30, n, 2, nodes[i].Name())
		}
		for _, line := range w.Requests() {
			require.NotContains(t, line, headMethod)
		}
		assert.InDelta(t, 200, m.rows[0].Mean.Milliseconds(), 5)
		assert.Equal(t, uint64(3), m.rows[1].Protocol, "once, and at the trials after 60 and 120 s")
		assert.Equal(t, uint64(3), m.rows[1].Ejections)
		assert.InDelta(t, 10, m.rows[3].RateLimited, 2, "it is asked again when it says so")
		assert.Zero(t, m.rows[3].Ejections, "a rate limit is no reason to eject")
	})
}

// A chain whose RPCs don't serve the method isn't measured for a day in vain.
func TestMethodThatNobodyServes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		no := rpcpooltest.Error(-32601, "Method not found")
		w.List("1", w.Node("r1", rpcpooltest.Result("0x1").Method("eth_chainId"), no), w.Node("r2", rpcpooltest.Result("0x1").Method("eth_chainId"), no))
		p := heads(24 * time.Hour)
		began := time.Now()
		_, err := measure(t.Context(), chainOf(t, w, p), p, quiet)
		require.ErrorContains(t, err, "no RPC serves eth_blockNumber; for a chain that isn't EVM give -method")
		assert.Less(t, time.Since(began), time.Minute)
	})
}

// RPCs of one host have the same label: each keeps its own row. One that isn't listed any
// more keeps what was measured of it.
func TestRowsOfAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := rpcpooltest.NewWorld(rpcpooltest.NewMemoryNetwork()) // not New, which minds requests for another path
		defer w.Close()
		w.Proxy("p1")
		host := w.NodeAt("host", "http://host.test/v2/a", rpcpooltest.Result(1))
		first, second := rpcpooltest.List(host), rpcpooltest.List(host)
		second.URL = "http://host.test/v2/b" // a 404
		other := w.Node("other", rpcpooltest.Result(1))
		w.Pool.Lists("1", rpcpooltest.PoolList("solana:mainnet", first, second, other))
		p := plan{method: "m", every: time.Second, length: time.Minute}
		config := w.Config()
		p.configure(&config)
		config.RefreshInterval = 10 * time.Second
		pool, err := rpcpool.New(config)
		require.NoError(t, err)
		defer pool.Close()
		m, err := measure(t.Context(), pool.Chain("1"), p, func(m *measurement) {
			if m.samples == 30 {
				w.Pool.Lists("1", rpcpooltest.PoolList("solana:mainnet", first, second))
			}
		})
		require.NoError(t, err)
		require.Len(t, m.rows, 3)
		assert.Equal(t, []string{"http://host.test/***", "http://host.test/***", "http://other.test/***"},
			[]string{m.rows[0].RPC, m.rows[1].RPC, m.rows[2].RPC})
		assert.Zero(t, m.rows[0].Protocol)
		assert.NotZero(t, m.rows[1].Protocol)
		assert.Equal(t, stateUnlisted, m.rows[2].State)
		assert.InDelta(t, 35, m.rows[2].Served, 6)
	})
}

// sample is a measurement with a row of each kind.
func sample() *measurement {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	return &measurement{
		heads: true, mark: 31_204_881, samples: 60, silent: 2, took: 605 * time.Second, at: now,
		rows: []*row{
			{said: 61, lags: 3, worstLag: 1, RPCStats: rpcpool.RPCStats{
				RPC: "https://good.test/***", State: rpcpool.StateReady, Head: 31_204_881, HeadAt: now, Attempts: 63, Served: 62, ProxyFailures: 1,
				Mean: 12_340 * time.Microsecond, P50: 10 * time.Millisecond, P95: 28 * time.Millisecond, P99: 1200 * time.Millisecond,
			}},
			{said: 4, lags: 160, worstLag: 41, RPCStats: rpcpool.RPCStats{
				RPC: "https://stale.test/***", State: rpcpool.StateCooling, Until: now.Add(52 * time.Second), Head: 31_204_837, HeadAt: now, Lag: 44,
				Attempts: 17, Served: 4, Transport: 1, Protocol: 2, Semantic: 4, RateLimited: 6, Ejections: 5,
				Mean: 42 * time.Millisecond, P50: 49 * time.Millisecond, P95: 49 * time.Millisecond, P99: 49 * time.Millisecond,
			}},
			{RPCStats: rpcpool.RPCStats{RPC: "https://elsewhere.test/***", State: rpcpool.StateWrongChain, Head: 1000, Attempts: 1, Semantic: 1}},
			{RPCStats: rpcpool.RPCStats{RPC: "https://gone.test/***", State: stateUnlisted, Until: now.Add(time.Hour)}},
		},
	}
}

const wantTable = `RPC                         HEAD      LAG   WORST  ANSWERS  TRANSPORT  PROTOCOL  SEMANTIC  429  MEAN MS  P95 MS  EJECTED  STATE
https://good.test/***       31204881  0.0   1      62       0          0         0         0    12.3     28.0    0        ready
https://stale.test/***      31204837  40.0  41     4        1          2         4         6    42.0     49.0    5        cooling 52s
https://elsewhere.test/***  -         -     -      0        0          0         1         0    -        -       0        wrong_chain
https://gone.test/***       -         -     -      0        0          0         0         0    -        -       0        unlisted

60 samples in 10m5s, up to block 31204881. LAG is the mean over the samples, in blocks.
In 2 of them no RPC answered: that may be a proxy's fault, or this machine's, not the RPCs'.
1 more attempts failed by the proxies' own fault.
`

// The table has all its columns, and says what isn't known by a dash.
func TestTable(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, sample().writeTable(&out))
	assert.Equal(t, wantTable, out.String())
}

const wantCSV = `position,rpc,head,lag_mean,lag_worst,attempts,answers,transport,protocol,semantic,rate_limited,proxy_failures,mean_ms,p50_ms,p95_ms,p99_ms,ejections,state
1,https://good.test/***,31204881,0.0,1,63,62,0,0,0,0,1,12.3,10.0,28.0,1200.0,0,ready
2,https://stale.test/***,31204837,40.0,41,17,4,1,2,4,6,0,42.0,49.0,49.0,49.0,5,cooling
3,https://elsewhere.test/***,,,,1,0,0,0,1,0,0,,,,,0,wrong_chain
4,https://gone.test/***,,,,0,0,0,0,0,0,0,,,,,0,unlisted
`

// The file has the latest measurement and nothing of an earlier one that was longer; what
// stood in it stays until there is something to write.
func TestCSV(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.csv")
	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("old\n", 1000)), 0o600))
	file, err := openCSV(path)
	require.NoError(t, err)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Len(t, text, 4000)
	for range 2 {
		require.NoError(t, file.write(sample()))
		text, err = os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, wantCSV, string(text))
	}
	file.close()
	require.Error(t, file.write(sample()), "what can't be written is an error")
}

// The demo measures what each of its RPCs does wrong, over real connections and in less
// than 15 s, writes the same as CSV, and shows no secret.
func TestDemo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.csv")
	var stdout, stderr bytes.Buffer
	began := time.Now()
	require.Equal(t, statusOK, run(t.Context(), []string{"-demo", "-csv", path}, &stdout, &stderr), stderr.String())
	assert.Less(t, time.Since(began), 15*time.Second)
	t.Logf("\n%s%s", stderr.String(), stdout.String())

	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	records, err := csv.NewReader(file).ReadAll()
	require.NoError(t, err)
	require.Equal(t, csvHeader, records[0])
	cell := map[string]map[string]string{}
	for _, record := range records[1:] {
		row := map[string]string{}
		for i, name := range csvHeader {
			row[name] = record[i]
		}
		cell[strings.TrimSuffix(strings.TrimPrefix(row["rpc"], "https://"), ".test/***")] = row
	}
	require.Len(t, cell, 8)
	assert.Equal(t, "ready", cell["good"]["state"])
	assert.Equal(t, []string{"0", "0"}, []string{cell["good"]["semantic"], cell["good"]["ejections"]})
	assert.Contains(t, []string{"1", "2"}, cell["behind"]["lag_worst"], "a block may come between two answers")
	for name, class := range map[string]string{"stale": "semantic", "moody": "protocol", "broken": "transport"} {
		assert.NotEqual(t, "0", cell[name][class], name)
		assert.NotEqual(t, "0", cell[name]["ejections"], name)
		assert.Equal(t, "cooling", cell[name]["state"], name)
	}
	assert.NotEqual(t, "0", cell["busy"]["rate_limited"])
	assert.Equal(t, "0", cell["busy"]["ejections"])
	assert.Equal(t, "wrong_chain", cell["elsewhere"]["state"])

	assert.Contains(t, stderr.String(), "sample 20 of 20: ")
	assert.NotContains(t, stderr.String(), "\r")
	for _, text := range []string{stdout.String(), stderr.String(), fmt.Sprint(records)} {
		for _, secret := range []string{"key-of-", "user-", "word-"} {
			assert.NotContains(t, text, secret)
		}
	}
}

// Ctrl-C ends the program early and well, with the table so far. The file has been
// written by then: who kills the program has it, too.
func TestCtrlC(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	path := filepath.Join(t.TempDir(), "m.csv")
	var stdout, written bytes.Buffer
	stderr := &until{line: "sample 1 of ", then: func() {
		text, err := os.ReadFile(path)
		assert.NoError(t, err)
		written.Write(text)
		cancel()
	}}
	began := time.Now()
	require.Equal(t, statusOK, run(ctx, []string{"-demo", "-every", "100ms", "-for", "1s", "-csv", path}, &stdout, stderr))
	assert.Equal(t, 9, strings.Count(written.String(), "\n"), "a line for each RPC")
	assert.Less(t, time.Since(began), 5*time.Second)
	assert.Contains(t, stdout.String(), "https://good.test/***")
	assert.Contains(t, stdout.String(), "\n1 samples in ")
}

// until calls a function when a line is written.
type until struct {
	line string
	then func()
}

func (u *until) Write(p []byte) (int, error) {
	if strings.Contains(string(p), u.line) {
		u.then()
	}
	return len(p), nil
}

// noEnvironment takes away what the environment may say.
func noEnvironment(t *testing.T) {
	for _, name := range []string{rpcpool.EnvAPIURL, rpcpool.EnvAPIKey, envProxies} {
		t.Setenv(name, "")
	}
	t.Setenv("HOME", t.TempDir()) // the cache of lists is the user's
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("LocalAppData", t.TempDir())
}

// What can't work is refused at once, with what to do, and never repeated: a login or key
// may stand anywhere in it.
func TestBadUsage(t *testing.T) {
	const secret = "hunter2-secret"
	list := filepath.Join(t.TempDir(), "rpcpool.json")
	require.NoError(t, os.WriteFile(list, []byte(`{"chain":{"key":"eip155:8453"},"rpcs":[{"url":"https://rpc.example.org/`+secret+`"}]}`), 0o600))
	good := []string{"-chain", "8453", "-file", list, "-proxy", "socks5://p.test:1080"}
	with := func(args ...string) []string { return append(append([]string{}, good...), args...) }
	for name, test := range map[string]struct {
		args   []string
		status int
		want   string
	}{
		"nothing":          {nil, statusUsage, "-chain is missing"},
		"unknown flag":     {with("-" + secret), statusUsage, "a flag isn't known"},
		"flag, no value":   {with("-csv"), statusUsage, "lacks its value"},
		"stray argument":   {with(secret), statusUsage, "belongs to no flag"},
		"bad time":         {with("-every", secret), statusUsage, "-every takes a positive duration"},
		"no time":          {with("-for", "0s"), statusUsage, "-for takes a positive duration"},
		"bad timeout":      {with("-timeout", "-1s"), statusUsage, "-timeout takes a positive duration"},
		"too often":        {with("-every", "1ms"), statusUsage, "-every takes at least 100ms"},
		"too short":        {with("-every", "10s", "-for", "9s"), statusUsage, "-for is shorter than -every"},
		"no method":        {with("-method", ""), statusUsage, "-method takes the name"},
		"demo and more":    {with("-demo"), statusUsage, "-demo has a chain, RPCs and proxies of its own"},
		"no proxies":       {[]string{"-chain", "8453", "-file", list}, statusUsage, "proxies are given by -proxy URL, or in RPCPOOL_PROXIES"},
		"bad proxy":        {with("-proxy", "nonsense://u:"+secret+"@h"), statusUsage, "Proxies[1]"},
		"no pool, no list": {[]string{"-chain", "8453", "-proxy", "socks5://p.test:1080"}, statusUsage, "give a list of your own by -file PATH"},
		"no such list":     {with("-config", filepath.Join(t.TempDir(), "none.json")), statusUsage, "none.json"},
		"no such folder":   {with("-csv", filepath.Join(t.TempDir(), "none", "m.csv")), statusUsage, "-csv: open "},
		"csv isn't a file": {with("-csv", os.DevNull), statusUsage, "-csv takes a file"},
		"unknown chain":    {with("-chain", "137"), statusTrouble, "check -chain, and the file"},
	} {
		t.Run(name, func(t *testing.T) {
			noEnvironment(t)
			var stdout, stderr bytes.Buffer
			assert.Equal(t, test.status, run(t.Context(), test.args, &stdout, &stderr))
			assert.Empty(t, stdout.String())
			assert.Contains(t, stderr.String(), test.want)
			assert.NotContains(t, stderr.String(), secret)
		})
	}
}

// Help goes to standard output, and names every flag.
func TestHelp(t *testing.T) {
	var stdout, stderr bytes.Buffer
	assert.Equal(t, statusOK, run(t.Context(), []string{"-h"}, &stdout, &stderr))
	assert.Empty(t, stderr.String())
	newFlags(&options{}).VisitAll(func(f *flag.Flag) {
		assert.Regexp(t, `(?m)^ +-`+f.Name+` `, stdout.String())
	})
}

// A list and a pool of the environment's are measured alike, through the proxies of the
// environment; nobody who answers is status 3, with the table all the same.
func TestByEnvironment(t *testing.T) {
	noEnvironment(t)
	w := rpcpooltest.NewWorld(rpcpooltest.NewLoopbackNetwork())
	defer w.Close()
	proxy := w.Proxy("p1")
	node := w.Node("r1", rpcpooltest.NewEVM(8453, 1000).Serve())
	w.List("8453", node)
	t.Setenv(rpcpool.EnvAPIURL, "http://"+w.Network.RealAddr(w.Pool.Addr()))
	t.Setenv(rpcpool.EnvAPIKey, w.Pool.Key())
	t.Setenv(envProxies, "socks5://user-p1:word-p1@"+w.Network.RealAddr(proxy.Addr())+", ")
	list := filepath.Join(t.TempDir(), "rpcpool.json")
	require.NoError(t, os.WriteFile(list, fmt.Appendf(nil, `{"chain":{"key":"eip155:8453"},"rpcs":[{"url":%q}]}`, node.URL()), 0o600))

	measured := func(args ...string) (int, string, string) {
		var stdout, stderr bytes.Buffer
		status := run(t.Context(), append(args, "-chain", "8453", "-every", "100ms", "-for", "200ms"), &stdout, &stderr)
		for _, secret := range w.Secrets() {
			assert.NotContains(t, stdout.String()+stderr.String(), secret)
		}
		return status, stdout.String(), stderr.String()
	}
	for _, args := range [][]string{nil, {"-file", list}, {"-config", list}} {
		status, table, said := measured(args...)
		require.Equal(t, statusOK, status, said)
		assert.Regexp(t, `(?m)^http://r1\.test/\*\*\* +1000 +0\.0 +0 +\d+ +0 +0 +0 +0 +.* ready$`, table)
	}
	assert.Len(t, w.Pool.Asked(), 1, "with a list of one's own the pool isn't asked")

	node.Script(rpcpooltest.Status(500))
	status, table, said := measured("-file", list)
	assert.Equal(t, statusTrouble, status)
	assert.Contains(t, table, "http://r1.test/***")
	assert.Contains(t, said, "no RPC answered")

	proxy.Kill()
	status, table, said = measured("-file", list)
	assert.Equal(t, statusTrouble, status)
	assert.Empty(t, table)
	assert.Contains(t, said, "check that the proxies run")
}

// On a terminal the line of progress is written over, and a warning of the library's gets
// a line of its own.
func TestDisplay(t *testing.T) {
	var out bytes.Buffer
	d := newDisplay(&out, "8453", plan{method: headMethod, every: time.Second, length: time.Minute})
	d.watched = true
	out.Reset()
	d.show(sample())
	d.show(sample())
	slog.New(slog.NewTextHandler(d, nil)).Warn("something")
	d.show(sample())
	d.end()
	const line = "\r\x1b[Ksample 60 of 60: 1 of 4 RPCs ready, block 31204881"
	before, after, found := strings.Cut(out.String(), "time=")
	require.True(t, found)
	assert.Equal(t, line+line+"\r\x1b[K", before)
	_, after, _ = strings.Cut(after, "\n")
	assert.Equal(t, line+"\n", after)
}
