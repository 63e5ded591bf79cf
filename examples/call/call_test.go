package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// bed is a world of real connections, and the program's arguments for it.
type bed struct {
	*rpcpooltest.World
	t       *testing.T
	pool    string
	proxies []string
}

func newBed(t *testing.T) *bed {
	for _, name := range []string{rpcpool.EnvAPIURL, rpcpool.EnvAPIKey, envProxies} {
		t.Setenv(name, "")
	}
	t.Setenv("HOME", t.TempDir()) // the cache of lists is the user's
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("LocalAppData", t.TempDir())
	w := rpcpooltest.NewWorld(rpcpooltest.NewLoopbackNetwork())
	t.Cleanup(func() { assert.NoError(t, w.Close()) })
	b := &bed{World: w, t: t}
	b.pool = "http://" + w.Network.RealAddr(w.Pool.Addr())
	return b
}

// proxy adds a proxy and gives it with its URL on loopback.
func (b *bed) proxy(name string) *rpcpooltest.Proxy {
	p := b.World.Proxy(name)
	b.proxies = append(b.proxies, fmt.Sprintf("socks5://user-%s:word-%s@%s", name, name, b.Network.RealAddr(p.Addr())))
	return p
}

// outcome is how a run of the program ended.
type outcome struct {
	status         int
	stdout, stderr string
}

// call runs the program with the world's pool, key and proxies, and sees to it
// that it shows no secret, however it ends.
func (b *bed) call(args ...string) outcome {
	b.t.Helper()
	common := []string{"-pool", b.pool, "-key", b.Pool.Key(), "-chain", "8453"}
	for _, proxy := range b.proxies {
		common = append(common, "-proxy", proxy)
	}
	return b.run(b.t.Context(), append(common, args...)...)
}

func (b *bed) run(ctx context.Context, args ...string) outcome {
	b.t.Helper()
	var stdout, stderr bytes.Buffer
	status := run(ctx, args, &stdout, &stderr)
	for _, secret := range b.Secrets() {
		assert.NotContains(b.t, stdout.String()+stderr.String(), secret)
	}
	return outcome{status, stdout.String(), stderr.String()}
}

// A result is one line of JSON, and nothing else is printed; the params arrive as
// JSON where they are JSON, else as strings.
func TestCallPrintsTheResult(t *testing.T) {
	b := newBed(t)
	b.proxy("p1")
	node := b.Node("r1", rpcpooltest.Handle(func(q rpcpooltest.Request) rpcpooltest.Reply {
		return rpcpooltest.Body("{\"jsonrpc\":\"2.0\",\"id\":" + string(q.ID) + ",\n \"result\": {\n  \"n\": 1.50,\n  \"s\": \"<a> b\"\n}}")
	}))
	b.List("8453", node)

	got := b.call("eth_any", "0x1f", `{"to": "0xab"}`, "true", "latest", "17", `"17"`)
	assert.Equal(t, outcome{statusOK, "{\"n\":1.50,\"s\":\"<a> b\"}\n", ""}, got)
	require.Len(t, node.Requests(), 1)
	assert.Equal(t, "eth_any", node.Requests()[0].Method)
	assert.JSONEq(t, `["0x1f", {"to": "0xab"}, true, "latest", 17, "17"]`, string(node.Requests()[0].Params))
}

// With -v every attempt is a line on stderr, the successful one included, and
// stdout stays what it was.
func TestCallVerbose(t *testing.T) {
	b := newBed(t)
	b.proxy("p1")
	b.List("8453", b.Node("r1", rpcpooltest.Status(503)), b.Node("r2", rpcpooltest.Result("0x2a")))
	shown := "socks5://***@" + strings.SplitAfter(b.proxies[0], "@")[1]

	got := b.call("-v", "eth_blockNumber")
	assert.Equal(t, outcome{statusOK, "\"0x2a\"\n", "" +
		"http://r1.test/*** via " + shown + ": rpc_fail (HTTP status 503 Service Unavailable)\n" +
		"http://r2.test/*** via " + shown + ": ok\n"}, got)
}

// What isn't given by flags is taken from the environment.
func TestCallByEnvironment(t *testing.T) {
	b := newBed(t)
	b.proxy("p1")
	b.proxy("p2")
	b.List("base", b.Node("r1", rpcpooltest.RateLimited(0).Via("p1"), rpcpooltest.Result("0x2a").Via("p2")))
	t.Setenv(rpcpool.EnvAPIURL, b.pool)
	t.Setenv(rpcpool.EnvAPIKey, b.Pool.Key())
	t.Setenv(envProxies, b.proxies[0]+", "+b.proxies[1]+",")

	got := b.run(t.Context(), "-chain", "base", "eth_blockNumber")
	assert.Equal(t, outcome{statusOK, "\"0x2a\"\n", ""}, got)
}

// file writes a list with these nodes of chain 8453, and gives the arguments by which
// it is used instead of the pool.
func (b *bed) file(nodes ...*rpcpooltest.Node) []string {
	b.t.Helper()
	var rpcs []string
	for _, node := range nodes {
		rpcs = append(rpcs, fmt.Sprintf(`{"url": %q}`, node.URL()))
	}
	return b.fileWith(`{"chain": {"key": "eip155:8453"}, "rpcs": [` + strings.Join(rpcs, ", ") + `]}`)
}

func (b *bed) fileWith(text string) []string {
	b.t.Helper()
	path := filepath.Join(b.t.TempDir(), "rpcpool.json")
	require.NoError(b.t, os.WriteFile(path, []byte(text), 0o600))
	return []string{"-file", path, "-proxy", b.proxies[0], "-chain"}
}

// With -file the RPCs are those of the file, and no pool is asked: the environment
// may name one.
func TestCallWithAFile(t *testing.T) {
	b := newBed(t)
	b.proxy("p1")
	t.Setenv(rpcpool.EnvAPIURL, b.pool)
	t.Setenv(rpcpool.EnvAPIKey, b.Pool.Key())
	args := b.file(b.Node("r1", rpcpooltest.Status(503)), b.Node("r2", rpcpooltest.Result("0x2a")))
	got := b.run(t.Context(), append(args, "8453", "eth_blockNumber")...)
	assert.Equal(t, outcome{statusOK, "\"0x2a\"\n", ""}, got)
	assert.Empty(t, b.Pool.Asked())
}

// What is wrong with a file, or isn't in it, is told without a word of a pool.
func TestCallTroubleWithAFile(t *testing.T) {
	b := newBed(t)
	b.proxy("p1")
	args := b.file(b.Node("r1"))

	got := b.run(t.Context(), append(args, "77", "eth_blockNumber")...)
	assert.Equal(t, outcome{statusTrouble, "", "call: no list of RPCs for chain \"77\": " + args[1] +
		" has no such chain; it has eip155:8453\ncheck -chain, and the file\n"}, got)

	got = b.run(t.Context(), append(args, "8453", "-archive", "full", "eth_blockNumber")...)
	assert.Equal(t, statusTrouble, got.status)
	assert.Contains(t, got.stderr, "needed: archive full\nask for something else, or say in the file which RPC can: \"caps\"\n")

	args = b.fileWith("{\n  \"chain\": {\"key\": \"8453\"},\n  \"rpcs\": [{\"url\": \"wss://r1.test/key-r1\"}]\n}")
	got = b.run(t.Context(), append(args, "8453", "eth_blockNumber")...)
	assert.Equal(t, outcome{statusUsage, "", "call: " + args[1] + ":3:20: rpcs[0].url: it is a WebSocket URL, which isn't used here; " +
		"give the RPC's https:// or http:// URL\ndocs/DIRECTORY.md has the form of -file\n"}, got)

	got = b.run(t.Context(), "-file", args[1]+"x", "-proxy", b.proxies[0], "-chain", "8453", "eth_blockNumber")
	assert.Equal(t, statusUsage, got.status)
	assert.Contains(t, got.stderr, args[1]+"x: the list can't be read")
}

// The node's own error is told whole, with its data; the status says that it is
// the node's.
func TestCallRevert(t *testing.T) {
	b := newBed(t)
	b.proxy("p1")
	b.List("8453", b.Node("r1", rpcpooltest.ErrorData(3, "execution reverted: no\x1b[2J money", "0x08c379a0")))

	got := b.call("eth_call", `{"to":"0xab"}`, "latest")
	assert.Equal(t, statusNode, got.status)
	assert.Empty(t, got.stdout)
	assert.Equal(t, "call: the node's answer is an error\n"+
		"  code:    3\n"+
		`  message: execution reverted: no\x1b[2J money`+"\n"+
		`  data:    "0x08c379a0"`+"\n"+
		"another RPC would say the same: change the request\n", got.stderr)
}

// An HTTP status about the request is the node's own error, too; the page under it
// isn't shown, for it may repeat the key.
func TestCallRefusedByStatus(t *testing.T) {
	b := newBed(t)
	b.proxy("p1")
	b.List("8453", b.Node("r1", rpcpooltest.Status(413).Text("POST /key-r1 is too large")))

	got := b.call("eth_call")
	assert.Equal(t, statusNode, got.status)
	assert.Contains(t, got.stderr, "HTTP status 413 Request Entity Too Large")
	assert.NotContains(t, got.stderr, "is too large")
}

// With all proxies dead nothing reaches a node; every proxy is named, and what to
// do is said.
func TestCallDeadProxies(t *testing.T) {
	b := newBed(t)
	p1, p2 := b.proxy("p1"), b.proxy("p2")
	node := b.Node("r1")
	b.List("8453", node)
	p1.Kill()
	p2.Kill()

	got := b.call("eth_blockNumber")
	assert.Equal(t, statusTrouble, got.status)
	assert.Empty(t, got.stdout)
	assert.Contains(t, got.stderr, "call: no proxy works, and nothing is sent without one\n")
	assert.Equal(t, 2, strings.Count(got.stderr, ": proxy_fail ("), got.stderr)
	assert.Contains(t, got.stderr, "check that the proxies run")
	assert.Empty(t, node.Requests())
}

// No RPC that answers, none that can do it, none at all, a refused range, a wrong
// key, an unknown chain and a dead pool are told apart, with what to do.
func TestCallTrouble(t *testing.T) {
	tests := []struct {
		name   string
		script func(b *bed)
		args   []string
		status int
		want   []string
	}{
		{
			name: "no RPC answers",
			script: func(b *bed) {
				b.List("8453", b.Node("r1", rpcpooltest.Status(500)), b.Node("r2", rpcpooltest.Garbage()))
			},
			args: []string{"eth_blockNumber"}, status: statusTrouble,
			want: []string{`no RPC of chain "8453" answered (2 listed)`, "http://r1.test/*** via", "http://r2.test/*** via", "try again later"},
		},
		{
			name: "no RPC can do it",
			script: func(b *bed) {
				b.Pool.Lists("8453", rpcpooltest.PoolList("eip155:8453", rpcpooltest.Listed{URL: b.Node("r1").URL()}))
			},
			args: []string{"-archive", "full", "eth_blockNumber"}, status: statusTrouble,
			want: []string{`no RPC of chain "8453" can do this (1 listed)`, "needed: archive full"},
		},
		{
			name:   "no RPC listed",
			script: func(b *bed) { b.List("8453") },
			args:   []string{"eth_blockNumber"}, status: statusTrouble,
			want: []string{`the pool lists no RPC for chain "8453"`},
		},
		{
			name: "refused range",
			script: func(b *bed) {
				b.List("8453", b.Node("r1", rpcpooltest.Error(-32602, "exceed maximum block range: 500")))
			},
			args: []string{"eth_getLogs", `{"fromBlock":"0x1","toBlock":"0x1000"}`}, status: statusNode,
			want: []string{"refuse the range of blocks", "http://r1.test/*** via", "the widest span that an RPC named is 500"},
		},
		{
			name:   "wrong key",
			script: func(b *bed) { b.List("8453", b.Node("r1")) },
			args:   []string{"-key", "another-secret-key", "eth_blockNumber"}, status: statusTrouble,
			want: []string{"the pool API refuses the key", "check -key, or RPC_POOL_API_KEY"},
		},
		{
			name:   "unknown chain",
			script: func(*bed) {},
			args:   []string{"-chain", "77", "eth_blockNumber"}, status: statusTrouble,
			want: []string{`the pool API doesn't know chain "77"`, "check -chain"},
		},
		{
			name:   "dead pool",
			script: func(b *bed) { b.Pool.Kill() },
			args:   []string{"eth_blockNumber"}, status: statusTrouble,
			want: []string{"unreachable and no cache", "check -pool"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := newBed(t)
			b.proxy("p1")
			test.script(b)
			got := b.call(test.args...)
			assert.Equal(t, test.status, got.status)
			assert.Empty(t, got.stdout)
			for _, part := range test.want {
				assert.Contains(t, got.stderr, part)
			}
			assert.NotContains(t, got.stderr, "another-secret-key")
		})
	}
}

// Attempts that -v has printed aren't printed again with the error.
func TestCallVerboseErrorRepeatsNothing(t *testing.T) {
	b := newBed(t)
	b.proxy("p1")
	b.List("8453", b.Node("r1", rpcpooltest.Status(500)))
	got := b.call("-v", "eth_blockNumber")
	assert.Equal(t, statusTrouble, got.status)
	assert.Equal(t, 1, strings.Count(got.stderr, "http://r1.test/*** via"), got.stderr)
}

// A user's interrupt ends the call and says so.
func TestCallInterrupted(t *testing.T) {
	b := newBed(t)
	b.proxy("p1")
	ctx, cancel := context.WithCancel(t.Context())
	b.List("8453", b.Node("r1", rpcpooltest.Handle(func(rpcpooltest.Request) rpcpooltest.Reply {
		cancel()
		return rpcpooltest.Hang()
	})))
	got := b.run(ctx, "-pool", b.pool, "-key", b.Pool.Key(), "-chain", "8453", "-proxy", b.proxies[0], "eth_blockNumber")
	assert.Equal(t, statusTrouble, got.status)
	assert.Equal(t, "call: interrupted\n", got.stderr)
}

// A command line that can't work is refused with what to do, and never repeated:
// a login or key may stand anywhere in it.
func TestCallBadUsage(t *testing.T) {
	const secret = "hunter2-secret"
	good := []string{"-chain", "8453", "-pool", "http://pool.test", "-key", "k", "-proxy", "socks5://p.test:1080"}
	with := func(args ...string) []string { return append(append([]string{}, good...), args...) }
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"nothing":              {nil, "-chain is missing"},
		"no method":            {good, "no METHOD given"},
		"empty method":         {with(""), "no METHOD given"},
		"unknown flag":         {[]string{"-" + secret}, "a flag isn't known"},
		"unknown flag, value":  {[]string{"-proxi=socks5://u:" + secret + "@h:1"}, "a flag isn't known"},
		"flag without value":   {[]string{"-key"}, "lacks its value"},
		"bad bool":             {with("-v="+secret, "m"), "a flag isn't known, or lacks its value"},
		"flag behind METHOD":   {with("eth_call", "-key="+secret), "-key stands behind METHOD"},
		"archive":              {with("-archive", secret, "m"), "-archive takes recent or full"},
		"mode":                 {with("-mode", secret, "m"), "-mode takes sticky or round_robin"},
		"timeout":              {with("-timeout", secret, "m"), "-timeout takes a positive duration"},
		"timeout not positive": {with("-timeout", "0s", "m"), "-timeout takes a positive duration"},
		"no proxy":             {[]string{"-chain", "1", "-pool", "http://pool.test", "-key", secret, "m"}, "-proxy URL, or in RPCPOOL_PROXIES"},
		"bad proxy":            {with("-proxy", "ftp://u:"+secret+"@h:1", "m"), "Proxies[1]: "},
		"unparsable proxy":     {with("-proxy", "socks5://u:"+secret+"%zz@h:1", "m"), "Proxies[1]: "},
		"bad pool":             {with("-pool", "pool/"+secret, "m"), "-pool URL, or in RPC_POOL_URL"},
		"no pool":              {[]string{"-chain", "1", "-proxy", "socks5://p.test:1080", "-key", secret, "m"}, "-pool URL, or in RPC_POOL_URL"},
		"no key":               {[]string{"-chain", "1", "-proxy", "socks5://p.test:1080", "-pool", "http://pool.test", "m"}, "-key KEY, or in RPC_POOL_API_KEY"},
		"file and pool":        {with("-file", "rpcpool.json", "m"), "-file stands instead of -pool and -key"},
		"bad key":              {with("-key", secret+"\n", "m"), "-key KEY, or in RPC_POOL_API_KEY"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			got := b.run(t.Context(), test.args...)
			assert.Equal(t, statusUsage, got.status)
			assert.Empty(t, got.stdout)
			assert.Contains(t, got.stderr, test.want)
			assert.NotContains(t, got.stderr, secret)
		})
	}
}

// -h is no mistake.
func TestCallHelp(t *testing.T) {
	got := newBed(t).run(t.Context(), "-h")
	assert.Equal(t, outcome{statusOK, usage, ""}, got)
}
