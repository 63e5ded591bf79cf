//go:build clients

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// The test of this file runs clients for JavaScript against the gateway;
// scripts/gateway-clients.sh installs them and runs it.

const (
	clientSeconds   = 25 // for which they call
	nodesOfARing    = 20 // one that fails is out for longer than the test lasts
	readyAtLeast    = 4  // of them
	strikeEvery     = 450 * time.Millisecond
	struckFor       = 3 // strikes, after which a node is well again
	proxyDiesEvery  = 12
	clientsLongest  = 80 * time.Second
	attemptOfClient = "3s"
	answerTravels   = 50 * time.Millisecond
)

// viem, ethers and web3.js work over the gateway as they do over a node, unchanged but
// for the URL, while RPCs and proxies die, hang, refuse and talk nonsense: every answer
// is there and right, and not one request fails that they would have to repeat.
func TestClients(t *testing.T) {
	folder := os.Getenv("RPCPOOL_CLIENTS")
	require.NotEmpty(t, folder, "run scripts/gateway-clients.sh")
	ctx, cancel := context.WithTimeout(t.Context(), clientsLongest)
	defer cancel()
	node := startAnvil(t, ctx)

	b := newBed(t)
	b.Network.SetRecording(false)
	s := &strikes{bed: b, node: node}
	for i := range 3 {
		s.proxies = append(s.proxies, b.proxy(fmt.Sprintf("p%d", i)))
	}
	for _, ref := range []string{"31337", "eip155:31337", "anvil"} {
		s.ring(ref)
	}
	b.start("-timeout", attemptOfClient)

	// Asked while all are well: an RPC that is out might serve it, for all that is known.
	require.Equal(t, -32601, errorOf(t, b.call("31337", "eth_noSuchMethod")).Code)

	clients := exec.CommandContext(ctx, "node", filepath.Join(folder, "clients.mjs"), b.url, node, fmt.Sprint(clientSeconds))
	clients.Dir = folder
	out, err := clients.StdoutPipe()
	require.NoError(t, err)
	clients.Stderr = os.Stderr
	require.NoError(t, clients.Start())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(os.Stdout, out)
	}()
	s.until(ended)
	assert.NoError(t, clients.Wait(), "an answer was wrong or missing")

	var status struct{ State state }
	require.NoError(t, json.Unmarshal([]byte(b.do(http.MethodGet, "/status.json", "").body), &status))
	var failed, ejected uint64
	for _, chain := range status.State.Chains {
		for _, rpc := range chain.RPCs {
			failed += rpc.Attempts - rpc.Served
			ejected += rpc.Ejections
		}
	}
	fmt.Printf("gateway: %d requests answered, %d failed; nodes struck %d times, proxies %d times; %d attempts failed, %d cooldowns\n",
		status.State.Served, status.State.Refused, s.nodes, s.deaths, failed, ejected)
	assert.Zero(t, status.State.Refused)
	assert.NotZero(t, status.State.Served)
	assert.GreaterOrEqual(t, s.nodes, 20, "too little went wrong for the test to mean anything")
	assert.GreaterOrEqual(t, int(ejected), s.nodes/2, "strikes that nobody noticed")
	assert.GreaterOrEqual(t, s.deaths, 2)
}

// startAnvil starts the node that all RPCs lead to, and gives its URL. It mines once a
// second, so that a transaction which is sent again is found waiting.
func startAnvil(t *testing.T, ctx context.Context) string {
	path := os.Getenv("RPCPOOL_ANVIL")
	require.NotEmpty(t, path, "run scripts/gateway-clients.sh")
	anvil := exec.CommandContext(ctx, path, "--host", "127.0.0.1", "--port", "0", "--block-time", "1")
	out, err := anvil.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, anvil.Start())
	lines := bufio.NewScanner(out)
	read := make(chan struct{})
	t.Cleanup(func() {
		_ = anvil.Process.Kill()
		<-read
		_ = anvil.Wait()
	})
	address := ""
	for address == "" && lines.Scan() {
		_, address, _ = strings.Cut(lines.Text(), "Listening on ")
	}
	go func() { // it mustn't stop because nobody reads
		defer close(read)
		for lines.Scan() {
		}
	}()
	require.NotEmpty(t, address, "anvil doesn't say where it listens")
	return "http://" + strings.TrimSpace(address)
}

// strikes has nodes and proxies fail, one after the other, and recover.
type strikes struct {
	*bed
	node    string // the URL of what is behind all RPCs
	client  http.Client
	rings   []map[string]*rpcpooltest.Node // by label
	refs    []string
	proxies []*rpcpooltest.Proxy

	nodes, deaths int
	heal          []func()

	sends sending
}

// ring lists RPCs for a chain that all lead to the node.
func (s *strikes) ring(ref string) {
	ring := map[string]*rpcpooltest.Node{}
	var nodes []any
	for i := range nodesOfARing {
		name := fmt.Sprintf("%s-%02d", strings.ReplaceAll(ref, ":", "-"), i)
		n := s.NodeAt(name, "http://"+name+".test/key-"+name, s.forward())
		ring["http://"+name+".test/***"] = n
		nodes = append(nodes, n)
	}
	s.rings, s.refs = append(s.rings, ring), append(s.refs, ref)
	s.Pool.Lists(ref, rpcpooltest.PoolList("eip155:31337", nodes...))
}

// forward has the node answer, whatever is asked, batches included.
func (s *strikes) forward() rpcpooltest.Reply {
	return rpcpooltest.Handle(func(q rpcpooltest.Request) rpcpooltest.Reply {
		if q.Method == "eth_sendRawTransaction" {
			s.sends.begin()
			defer func() { time.AfterFunc(answerTravels, s.sends.end) }()
		}
		req, err := http.NewRequestWithContext(q.Context(), http.MethodPost, s.node, bytes.NewReader(q.Body))
		if err != nil {
			return rpcpooltest.Status(http.StatusInternalServerError)
		}
		req.Header.Set("Content-Type", "application/json")
		res, err := s.client.Do(req)
		if err != nil {
			return rpcpooltest.Status(http.StatusBadGateway)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			return rpcpooltest.Status(http.StatusBadGateway)
		}
		return rpcpooltest.Body(string(body)).WithStatus(res.StatusCode).Header("Content-Type", "application/json")
	})
}

// until strikes until the clients have ended, and heals everything then.
func (s *strikes) until(ended <-chan struct{}) {
	tick := time.NewTicker(strikeEvery)
	defer tick.Stop()
	for turn := 1; ; turn++ {
		select {
		case <-ended:
			for _, heal := range s.heal {
				heal()
			}
			s.client.CloseIdleConnections()
			return
		case <-tick.C:
		}
		if len(s.heal) >= struckFor {
			s.heal[0]()
			s.heal = s.heal[1:]
		}
		if turn%proxyDiesEvery == 0 && s.deaths < len(s.proxies)-1 { // one stays
			p := s.proxies[s.deaths]
			s.sends.wait()
			p.Kill()
			s.deaths++
			s.heal = append(s.heal, p.Revive)
			continue
		}
		s.strike(turn)
	}
}

// strike hits the RPC at the cursor of a ring.
func (s *strikes) strike(turn int) {
	var status struct{ State state }
	if json.Unmarshal([]byte(s.do(http.MethodGet, "/status.json", "").body), &status) != nil {
		return
	}
	at := turn % len(s.refs)
	for _, chain := range status.State.Chains {
		ready, current := 0, ""
		for _, rpc := range chain.RPCs {
			if !rpc.Cooling {
				ready++
			}
			if rpc.Current && !rpc.Cooling {
				current = rpc.RPC
			}
		}
		n := s.rings[at][current]
		if chain.Name != s.refs[at] || n == nil || ready <= readyAtLeast {
			continue
		}
		faults := []rpcpooltest.Reply{
			rpcpooltest.Status(http.StatusInternalServerError), rpcpooltest.RateLimited(0), rpcpooltest.Garbage(),
			rpcpooltest.Truncated(), rpcpooltest.Hang(), rpcpooltest.Reset(), rpcpooltest.WrongID("0x1"),
		}
		var once sync.Once
		heal := func() { once.Do(func() { n.Revive(); n.Script(s.forward()) }) }
		if fault := rand.IntN(2 * len(faults)); fault < len(faults) {
			n.Script(faults[fault])
		} else {
			s.sends.wait()
			n.Kill()
		}
		s.nodes++
		s.heal = append(s.heal, heal)
	}
}

// sending counts the transactions that are on their way to the node, or whose answers
// are on their way back. Nothing is killed meanwhile: one that was mined, but whose
// answer was lost, is "nonce too low" at the next RPC, which is true, but not what can be
// counted on.
type sending struct {
	mu   sync.Mutex // protects what follows
	n    int
	none chan struct{} // closed when none is left; nil where nobody waits
}

func (s *sending) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
}

func (s *sending) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n--; s.n == 0 && s.none != nil {
		close(s.none)
		s.none = nil
	}
}

// wait waits for a moment without any.
func (s *sending) wait() {
	s.mu.Lock()
	if s.n == 0 {
		s.mu.Unlock()
		return
	}
	if s.none == nil {
		s.none = make(chan struct{})
	}
	none := s.none
	s.mu.Unlock()
	<-none
}
