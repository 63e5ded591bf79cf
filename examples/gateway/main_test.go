package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// A command line that can't work is refused with what to do, and never repeated: a
// login or key may stand anywhere in it.
func TestRunBadUsage(t *testing.T) {
	const secret = "hunter2-secret"
	good := []string{"-listen", "127.0.0.1:0", "-pool", "http://pool.test", "-key", "k", "-proxy", "socks5://p.test:1080"}
	with := func(args ...string) []string { return append(append([]string{}, good...), args...) }
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"nothing":           {nil, "proxies are given by -proxy URL, or in RPCPOOL_PROXIES"},
		"unknown flag":      {[]string{"-" + secret}, "a flag isn't known"},
		"flag, no value":    {[]string{"-key"}, "lacks its value"},
		"stray argument":    {with(secret), "belongs to no flag"},
		"bad proxy":         {with("-proxy", "nonsense://u:"+secret+"@h"), "Proxies[1]"},
		"no pool":           {[]string{"-proxy", "socks5://p.test:1080"}, "the pool is given by -pool URL"},
		"no key":            {[]string{"-proxy", "socks5://p.test:1080", "-pool", "http://pool.test"}, "the key is given by -key KEY"},
		"bad mode":          {with("-mode", secret), "-mode takes sticky or round_robin"},
		"bad timeout":       {with("-timeout", "-1s"), "-timeout takes a positive duration"},
		"bad limit":         {with("-limit", secret), "-limit takes a positive duration"},
		"bad size":          {with("-max-body", "1MB"), "-max-body takes a positive number"},
		"bad address":       {with("-listen", secret), "-listen takes a host and a port"},
		"bad chain":         {with("-chains", "8453,a/b"), "-chains takes references"},
		"bad host":          {with("-host", "http://h/"), "-host takes a name alone"},
		"bad origin":        {with("-cors", "http://h/path"), "-cors takes an origin"},
		"origin, user":      {with("-cors", "http://u:"+secret+"@h"), "-cors takes an origin"},
		"demo and pool":     {with("-demo"), "-demo has a pool and proxies of its own"},
		"file and pool":     {with("-file", "rpcpool.json"), "-file is instead of the pool API"},
		"file that's away":  {[]string{"-proxy", "socks5://p.test:1080", "-file", t.TempDir() + "/none.json"}, "none.json"},
		"address not to be": {with("-listen", "192.0.2.1:1"), "it can't listen"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, name := range []string{rpcpool.EnvAPIURL, rpcpool.EnvAPIKey, envProxies} {
				t.Setenv(name, "")
			}
			stdout, stderr := newOutput(), newOutput()
			status := run(t.Context(), test.args, stdout, stderr)
			assert.Contains(t, []int{statusUsage, statusListen}, status)
			assert.Equal(t, name == "address not to be", status == statusListen)
			assert.Empty(t, stdout.String())
			assert.Contains(t, stderr.String(), test.want)
			assert.NotContains(t, stderr.String(), secret)
		})
	}
}

// Help goes to standard output, and names every flag.
func TestRunHelp(t *testing.T) {
	stdout, stderr := newOutput(), newOutput()
	assert.Equal(t, statusOK, run(t.Context(), []string{"-h"}, stdout, stderr))
	assert.Empty(t, stderr.String())
	for flag := range strings.FieldsSeq("proxy pool key file mode timeout limit max-body chains listen host cors demo v") {
		assert.Contains(t, stdout.String(), "\n  -"+flag+" ")
	}
}

// What isn't given by flags is taken from the environment; -v prints every attempt,
// and warnings are printed without it.
func TestRunByEnvironment(t *testing.T) {
	b := newBed(t)
	b.proxy("p1")
	b.List("8453", b.Node("r1", rpcpooltest.Status(500)), b.Node("r2"))
	t.Setenv(rpcpool.EnvAPIURL, b.pool[1])
	t.Setenv(rpcpool.EnvAPIKey, b.pool[3])
	t.Setenv(envProxies, b.proxies[0]+", ")
	b.pool, b.proxies = nil, nil
	b.start("-v")
	require.Equal(t, http.StatusOK, b.call("8453", "eth_blockNumber").status)
	assert.Contains(t, b.stderr.wait(t, "8453 eth_blockNumber http://r1.test/***"), ": rpc_fail (HTTP status 500 Internal Server Error)\n")
	assert.Contains(t, b.stderr.wait(t, "8453 eth_blockNumber http://r2.test/***"), ": ok\n")
	b.Pool.Kill()
}

// The journal keeps the last attempts and warnings, no more; what programs and nodes
// send is cut short and can't write to the terminal as it likes.
func TestJournalIsBounded(t *testing.T) {
	out := newOutput()
	j := newJournal(out, true)
	log := slog.New(j)
	for i := range keptAttempts + 50 {
		log.Debug("rpcpool: attempt", "chain", "8453", "method", fmt.Sprintf("eth_%d", i), "rpc", "r", "proxy", "p",
			"verdict", "ok", "detail", "", "duration", 1500*time.Microsecond)
	}
	log.Debug("rpcpool: attempt", "chain", "8453", "method", strings.Repeat("é", 5000), "rpc", "r", "proxy", "p", "verdict", "rpc_fail", "detail", "a\x1b[2J\nb")
	for i := range keptNotices + 5 {
		log.Warn("rpcpool: pool is away", "try", i)
	}
	log.Info("somebody else's")
	attempts, notices := j.since(0)
	require.Len(t, attempts, keptAttempts)
	assert.Equal(t, "eth_51", attempts[0].Method)
	assert.Equal(t, uint64(52), attempts[0].Seq)
	assert.InDelta(t, 1.5, attempts[0].Ms, 0.001)
	assert.Equal(t, strings.Repeat("é", longestName)+"…", attempts[keptAttempts-1].Method)
	require.Len(t, notices, keptNotices)
	assert.Equal(t, "pool is away (try 5)", notices[0].Text)
	since, _ := j.since(attempts[keptAttempts-1].Seq - 1)
	assert.Len(t, since, 1)
	assert.NotContains(t, out.String(), "\x1b")
	assert.Contains(t, out.String(), "rpc_fail (a�[2J�b)\n")
	assert.Contains(t, out.String(), "gateway: warning: pool is away (try 24)\n")
}

// The demo serves two chains of its own, whatever fails in it, and shows no secret of
// them.
func TestDemo(t *testing.T) {
	b := newBed(t)
	show := newDemo()
	secrets := show.world.Secrets()
	show.close()
	b.pool = []string{"-demo"}
	b.start()
	for _, chain := range []string{"8453", "1"} {
		got := b.call(chain, "eth_chainId")
		assert.Equal(t, http.StatusOK, got.status)
		assert.Contains(t, got.body, `"result":"0x`)
	}
	for _, path := range []string{"/status.json", "/"} {
		got := b.do(http.MethodGet, path, "")
		for _, secret := range secrets {
			assert.NotContains(t, got.body, secret)
		}
	}
	assert.Contains(t, b.do(http.MethodGet, "/status.json", "").body, `"demo":true`)
}

// Every misfortune of the demo strikes what is in use, hurts no request, and heals.
func TestDemoMisfortunes(t *testing.T) {
	show := newDemo()
	defer show.close()
	config := show.config(rpcpool.Config{Timeout: time.Second})
	config.Logger = slog.New(slog.DiscardHandler)
	pool, err := rpcpool.New(config)
	require.NoError(t, err)
	defer pool.Close()
	call := func(ref string) {
		_, err := pool.Chain(ref).Call(t.Context(), "eth_blockNumber")
		require.NoError(t, err)
	}
	call("8453")
	call("1")
	for range 12 {
		heal := show.strike(pool)
		call("8453")
		call("1")
		heal()
	}
	cooling := 0
	for _, c := range show.chains {
		for _, rpc := range pool.Chain(c.ref).Stats() {
			if rpc.Cooling {
				cooling++
			}
		}
	}
	assert.GreaterOrEqual(t, cooling, 5, "the misfortunes are seen")
	deaths := 0
	for _, proxy := range pool.ProxyStats() {
		if proxy.Failures > 0 {
			deaths++
		}
	}
	assert.Equal(t, 2, deaths)
}

// Where nothing can be accepted any more the program ends instead of hanging.
func TestServeWithoutListener(t *testing.T) {
	b := newBed(t)
	b.proxy("p1")
	pool, err := rpcpool.New(b.Config())
	require.NoError(t, err)
	defer pool.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	serve(context.Background(), newGateway(&options{}, pool, newJournal(newOutput(), false)), listener)
}
