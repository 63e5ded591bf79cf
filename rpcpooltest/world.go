package rpcpooltest

import (
	"fmt"
	"os"
	"strings"
	"sync"
)

// TB is what [New] needs of a *testing.T, *testing.B or *testing.F.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Cleanup(func())
	TempDir() string
}

// World is a network with a pool API, proxies and nodes, and the configuration
// for a bot that lives in it. See the package's example.
type World struct {
	// Network is what everything below lives on.
	Network *Network
	// Pool is the pool API.
	Pool *PoolAPI

	mu        sync.Mutex // protects what follows
	proxies   []*Proxy
	nodes     []*Node
	closing   bool // servers close after each answer
	cacheDir  string
	ownsCache bool
}

// New makes a world in memory for one test. It may be made inside a
// testing/synctest bubble; then all of it lives there. When the test ends the
// world is closed, and what the client did against the rules
// ([Network.Breaches]) fails the test.
func New(t TB) *World {
	t.Helper()
	w := NewWorld(NewMemoryNetwork())
	w.cacheDir = t.TempDir()
	t.Cleanup(func() {
		t.Helper()
		_ = w.Close()
		for _, breach := range w.Network.Breaches() {
			t.Errorf("rpcpooltest: the client broke a rule: %s", breach)
		}
	})
	return w
}

// NewWorld makes a world on a network, for programs that aren't tests, or tests
// with real connections. Close it in the end.
func NewWorld(network *Network) *World {
	return &World{Network: network, Pool: NewPoolAPI(network, "http://pool.test", "key-of-the-pool-api")}
}

// Proxy adds a SOCKS5 proxy with a login, by name. Proxies stand in the
// configuration in the order in which they were added.
func (w *World) Proxy(name string, script ...ProxyReply) *Proxy {
	return w.ProxyAt(name, fmt.Sprintf("socks5://user-%s:word-%s@%s.test:1080", name, name, name), script...)
}

// ProxyAt adds a proxy with a URL of your own, see [NewProxy].
func (w *World) ProxyAt(name, url string, script ...ProxyReply) *Proxy {
	p := NewProxy(w.Network, name, url, script...)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.proxies = append(w.proxies, p)
	return p
}

// Node adds an RPC node by name, at http://NAME.test/key-NAME.
func (w *World) Node(name string, script ...Reply) *Node {
	return w.NodeAt(name, fmt.Sprintf("http://%s.test/key-%s", name, name), script...)
}

// NodeAt adds a node with a URL of your own, see [NewNode].
func (w *World) NodeAt(name, url string, script ...Reply) *Node {
	n := NewNode(w.Network, name, url, script...)
	w.mu.Lock()
	defer w.mu.Unlock()
	n.SetKeepAlive(!w.closing)
	w.nodes = append(w.nodes, n)
	return n
}

// List has the pool list these nodes for a reference, best first, each able to
// do everything. The chain's key is the reference, with "eip155:" before a plain
// number. For more, such as capabilities, failures or lists that change, use
// [PoolAPI.Lists].
func (w *World) List(ref string, nodes ...*Node) {
	entries := make([]any, len(nodes))
	for i, node := range nodes {
		entries[i] = node
	}
	w.Pool.Lists(ref, PoolList(chainKey(ref), entries...))
}

func chainKey(ref string) string {
	if strings.Trim(ref, "0123456789") == "" {
		return "eip155:" + ref
	}
	return ref
}

// SetKeepAlive decides for all nodes and the pool, those to come included,
// whether connections stay open after an answer.
func (w *World) SetKeepAlive(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closing = !on
	w.Pool.SetKeepAlive(on)
	for _, node := range w.nodes {
		node.SetKeepAlive(on)
	}
}

// Requests gives the client's tries in order, each as "NODE PROXY METHOD", such
// as "r1 p1 eth_blockNumber"; "-" stands for what the try didn't get to.
func (w *World) Requests() []string {
	var lines []string
	for _, e := range w.Network.Exchanges() {
		lines = append(lines, orDash(e.Node)+" "+orDash(e.Proxy)+" "+orDash(e.Method))
	}
	return lines
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// Secrets gives what a bot must never show: the API key, the logins of the
// proxies, the paths and queries of the nodes.
func (w *World) Secrets() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	secrets := []string{w.Pool.Key()}
	for _, p := range w.proxies {
		if p.url.User != nil {
			password, _ := p.url.User.Password()
			secrets = append(secrets, p.url.User.Username(), password)
		}
	}
	for _, n := range w.nodes {
		secrets = append(secrets, strings.Trim(n.url.Path, "/"), n.url.RawQuery)
		for _, values := range n.url.Query() {
			secrets = append(secrets, values...)
		}
	}
	return notEmpty(secrets)
}

func notEmpty(texts []string) []string {
	var kept []string
	for _, text := range texts {
		if text != "" {
			kept = append(kept, text)
		}
	}
	return kept
}

// Close ends everything: servers, connections, and the cache folder where the
// world made it.
func (w *World) Close() error {
	err := w.Network.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ownsCache {
		w.ownsCache = false
		err = os.RemoveAll(w.cacheDir)
	}
	return err
}
