package rpcpooltest

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Exchange is one try of the client as the network saw it: a connection to a
// proxy, or a request over one.
type Exchange struct {
	// Proxy is the proxy's name; empty for a node's own [Node.Client].
	Proxy string
	// How tells in what way the proxy was asked: "socks5", "socks4", "socks4a",
	// "connect", or "forward" (a plain request in absolute form); empty where
	// the try ended before that.
	How string
	// Target is the "name:port" that the proxy was asked for.
	Target string
	// Node is the name of the node that Target leads to; empty where there is
	// none such.
	Node string
	// Method is the method that reached the node: of JSON-RPC, "batch", or "GET
	// /path" for other requests; empty where none did.
	Method string
	// Params are the request's params, as they came.
	Params json.RawMessage
	// Time is when the try began.
	Time time.Time
}

// trace is the network's record of what the client did.
type trace struct {
	mu        sync.Mutex // protects what follows, the exchanges included
	off       bool
	exchanges []*exchange
	breaches  []string
}

// exchange is an Exchange that is still being filled in.
type exchange struct {
	Exchange
	used bool // by a request that reached a node: the next one needs another
}

func (t *trace) begin(proxy string) *exchange {
	e := &exchange{Exchange: Exchange{Proxy: proxy, Time: time.Now()}}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.off {
		t.exchanges = append(t.exchanges, e)
	}
	return e
}

func (t *trace) asked(e *exchange, how, target, node string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e.How, e.Target, e.Node = how, target, node
}

// reached notes a request that arrived at a node over e's connection.
func (t *trace) reached(e *exchange, method string, params json.RawMessage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.used {
		next := &exchange{Exchange: e.Exchange}
		next.Time = time.Now()
		if !t.off {
			t.exchanges = append(t.exchanges, next)
		}
		e = next
	} else {
		e.used = true
	}
	e.Method, e.Params = method, params
}

func (t *trace) breach(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.breaches = append(t.breaches, fmt.Sprintf(format, args...))
}

// Exchanges gives the client's tries in the order of their beginning.
func (n *Network) Exchanges() []Exchange {
	n.trace.mu.Lock()
	defer n.trace.mu.Unlock()
	list := make([]Exchange, len(n.trace.exchanges))
	for i, e := range n.trace.exchanges {
		list[i] = e.Exchange
	}
	return list
}

// Breaches gives what the client did against the rules, in words: a SOCKS proxy
// was given an address instead of a name, a node got the API key or a proxy's
// login, a request that is no JSON-RPC POST, a malformed report. Empty for a
// client that behaves.
func (n *Network) Breaches() []string {
	n.trace.mu.Lock()
	defer n.trace.mu.Unlock()
	return slices.Clone(n.trace.breaches)
}

// SetRecording turns the records of exchanges and requests off or on again: a
// benchmark would fill the memory with them. It is on at first.
func (n *Network) SetRecording(on bool) {
	n.trace.mu.Lock()
	defer n.trace.mu.Unlock()
	n.trace.off = !on
}

func (n *Network) recording() bool {
	n.trace.mu.Lock()
	defer n.trace.mu.Unlock()
	return !n.trace.off
}
