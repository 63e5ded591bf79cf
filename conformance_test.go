package rpcpool_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// The library does what every scenario of testdata/conformance says, each in a
// small world and on virtual time of its own, whatever proxy variables are in the
// environment (rule A1.3).
func TestConformance(t *testing.T) {
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		t.Setenv(name, "http://user-env:word-env@env-proxy.test:3128")
		t.Setenv(strings.ToLower(name), "http://user-env:word-env@env-proxy.test:3128")
	}
	t.Setenv("NO_PROXY", "*")
	t.Setenv("no_proxy", "*")

	files, err := filepath.Glob("testdata/conformance/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			s, err := readScenario(file)
			require.NoError(t, err)
			cacheDir := filepath.Join(t.TempDir(), "cache")
			// A library that hangs shows as a deadlock of the bubble, which panics.
			defer func() {
				if p := recover(); p != nil {
					t.Errorf("the bubble panicked: %v", p)
				}
			}()
			synctest.Test(t, func(t *testing.T) { play(t, s, cacheDir) })
		})
	}
}

// player carries out a scenario.
type player struct {
	t        *testing.T
	scenario *scenario
	world    *rpcpooltest.World
	proxies  map[string]*rpcpooltest.Proxy
	nodes    map[string]*rpcpooltest.Node
	names    map[string]string // of RPCs, by URL
	config   rpcpool.Config
	log      *recorder
	secrets  []string
	begin    time.Time

	pool    *rpcpool.Pool
	poolErr error // of New
	chains  map[string]*rpcpool.Chain

	runaway  context.CancelFunc // ends all calls
	calls    context.Context
	label    string // of the step, for messages
	reports  reportLedger
	previous mark
}

func play(t *testing.T, s *scenario, cacheDir string) {
	p := newPlayer(t, s, cacheDir)
	p.open()
	defer func() {
		if p.pool != nil {
			_ = p.pool.Close()
		}
	}()
	for i := range s.Steps {
		p.world.Network.SetStep(i)
		p.label = fmt.Sprintf("step %d (%s)", i, describe(s.Steps[i]))
		p.play(&s.Steps[i])
		if t.Failed() {
			t.Fatalf("%s failed; %s: %s", p.label, s.Name, s.About)
		}
	}
	p.label = "at the end"
	p.close()
	p.checkNothingIsLeft()
}

func newPlayer(t *testing.T, s *scenario, cacheDir string) *player {
	world := rpcpooltest.New(t)
	world.SetKeepAlive(false)
	p := &player{
		t: t, scenario: s, world: world, begin: time.Now(), log: newRecorder(),
		proxies: map[string]*rpcpooltest.Proxy{},
		nodes:   map[string]*rpcpooltest.Node{},
		names:   map[string]string{},
	}
	urls := map[string]string{}
	for _, rpc := range s.RPCs {
		script, err := nodeScript(rpc.Script)
		require.NoError(t, err)
		p.nodes[rpc.Name] = world.NodeAt(rpc.Name, rpc.URL, script...)
		p.names[rpc.URL], urls[rpc.Name] = rpc.Name, rpc.URL
	}
	for _, proxy := range s.Proxies {
		script, err := proxyScript(proxy.Script)
		require.NoError(t, err)
		p.proxies[proxy.Name] = world.ProxyAt(proxy.Name, proxy.URL, script...)
	}
	for _, e := range s.Pool.Lists {
		reply, err := poolReply(e, urls)
		require.NoError(t, err)
		world.Pool.ListsThen(e.Chain, reply)
	}
	var reports []rpcpooltest.PoolReply
	for _, e := range s.Pool.Reports {
		reply, err := poolReply(e, urls)
		require.NoError(t, err)
		reports = append(reports, reply)
	}
	world.Pool.ScriptReports(reports...)
	p.secrets = secretsOf(world, s)
	p.calls, p.runaway = context.WithCancel(t.Context())
	t.Cleanup(p.runaway)
	p.configure(cacheDir)
	return p
}

func (p *player) configure(cacheDir string) {
	p.config = p.world.Config()
	p.config.CacheDir = cacheDir
	p.config.Logger = slog.New(p.log)
	p.config.DialContext = p.dial
	c := p.scenario.Config
	switch c.Mode {
	case "", "sticky":
	case "round_robin":
		p.config.Mode = rpcpool.RoundRobin
	default:
		require.FailNow(p.t, "an unknown mode: "+c.Mode)
	}
	p.config.MaxRounds = c.MaxRounds
	p.config.Timeout = c.Timeout.duration()
	p.config.RefreshInterval = c.Refresh.duration()
	p.config.ProxyCheckURL = c.ProxyCheckURL
	p.config.MaxResponseBytes = c.MaxResponseBytes
}

// dial ends the calls of a client that tries without end, which virtual time
// doesn't.
func (p *player) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if len(p.world.Network.Dials()) > 300 {
		p.runaway()
	}
	return p.world.Network.DialContext(ctx, network, addr)
}

// open makes a pool. An error is the outcome of the steps that would use it.
func (p *player) open() {
	p.pool, p.poolErr = rpcpool.New(p.config)
	p.chains = map[string]*rpcpool.Chain{}
}

// close ends the pool. By then every report must have come.
func (p *player) close() {
	if p.pool == nil {
		return
	}
	assert.NoError(p.t, p.pool.Close(), "%s: Close", p.label)
	synctest.Wait()
	p.takeReports(nil)
	for _, missing := range p.reports.outstanding {
		assert.Fail(p.t, "a report never came", "%s: %s", p.label, missing)
	}
	p.reports = reportLedger{}
}

// play carries out one step in the scenario's bubble, and checks it.
func (p *player) play(s *step) {
	p.previous = p.mark()
	begin := time.Now()
	var got outcome
	var parallel []outcome
	switch {
	case s.Parallel != nil:
		parallel = p.parallel(s.Parallel)
	case s.Advance != nil:
		time.Sleep(s.Advance.duration())
	case s.Restart:
		p.close()
		p.open()
	case s.Close:
		p.close()
	case s.CacheFile != nil:
		p.spoilCache(s)
	default:
		got = p.act(s)
	}
	elapsed := time.Since(begin)
	synctest.Wait()

	p.checkAlways(s)
	for _, o := range append(parallel, got) {
		p.checkErrorHides(o.err)
	}
	p.checkOutcome(s.Expect, got)
	p.checkParallel(s.Expect, parallel)
	p.checkTraffic(s)
	p.checkTime(s.Expect, elapsed)
	p.checkFiles(s.Expect)
}

func describe(s step) string {
	switch {
	case s.Call != nil:
		return "call " + s.Call.Method + " on " + s.Call.Chain
	case s.Run != nil:
		return "run " + s.Run.Method + " on " + s.Run.Chain + ", then " + s.Run.Then
	case s.GetLogs != nil:
		return "get_logs"
	case s.LogChunks != nil:
		return "log_chunks"
	case s.Parallel != nil:
		return fmt.Sprintf("%d in parallel", len(s.Parallel))
	case s.Advance != nil:
		return fmt.Sprintf("advance %v", s.Advance.duration())
	case s.Restart:
		return "restart"
	case s.Close:
		return "close"
	case s.CacheFile != nil:
		return s.CacheFile.Do + " " + s.CacheFile.File
	}
	return "nothing"
}

// spoilCache does to a file of the cache folder what the step says.
func (p *player) spoilCache(s *step) {
	path := filepath.Join(p.config.CacheDir, s.CacheFile.File)
	raw, err := os.ReadFile(path)
	require.NoError(p.t, err, p.label)
	switch s.CacheFile.Do {
	case "delete":
		err = os.Remove(path)
	case "truncate":
		err = os.WriteFile(path, raw[:len(raw)/2], 0o600)
	case "corrupt":
		err = os.WriteFile(path, []byte("this is not JSON"), 0o600)
	case "copy":
		err = os.WriteFile(filepath.Join(p.config.CacheDir, fileOf(s.CacheFile.ToRef, s.CacheFile.File)), raw, 0o600)
	default:
		require.FailNow(p.t, "an unknown act: "+s.CacheFile.Do)
	}
	require.NoError(p.t, err, p.label)
}

// fileOf gives the name that another reference's file has (rule A2.5).
func fileOf(ref, file string) string {
	_, rest, _ := strings.Cut(file, "__")
	safe := strings.Map(func(r rune) rune {
		if r < 128 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-') {
			return r
		}
		return '_'
	}, ref)
	return safe + "__" + rest
}

func (p *player) proxyAddrs() []string {
	var addrs []string
	for _, name := range slices.Sorted(maps.Keys(p.proxies)) {
		addrs = append(addrs, p.proxies[name].Addr())
	}
	return addrs
}
