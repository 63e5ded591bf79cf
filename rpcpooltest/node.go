package rpcpooltest

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Node is an RPC endpoint behind the proxies. By default it answers every
// request with the result "0x1"; see [Node.Script].
type Node struct {
	name    string
	url     *url.URL
	network *Network
	server  service
	script  script[Reply]

	closing  atomic.Bool // after each answer
	anything atomic.Bool // requests that aren't JSON-RPC are welcome

	mu       sync.Mutex // protects requests
	requests []Request
}

// leg is the tag of a proxy's connection to a node.
type leg struct {
	via      string
	exchange *exchange
	reply    *Reply // what was chosen for the connection itself, if anything
}

// NewNode starts an RPC endpoint. Its name stands for it in records; its URL is
// what a list shows of it, such as http://r1.test/key-r1 or https://…; a path or
// query that a request lacks makes it a 404. It panics where the URL can't be
// used or is taken.
func NewNode(network *Network, name, rawURL string, script ...Reply) *Node {
	u := parseURL(rawURL, "http", "https")
	n := &Node{name: name, url: u, network: network}
	n.script.set(script)
	n.server = service{network: network, zone: farZone, addr: hostPort(u), serve: n.serve}
	n.server.start()
	network.mu.Lock()
	defer network.mu.Unlock()
	network.nodes[n.server.addr] = n
	return n
}

// Name is the name by which the node stands in records.
func (n *Node) Name() string { return n.name }

// URL is the node's URL, with everything that a bot must keep secret.
func (n *Node) URL() string { return n.url.String() }

// Script replaces what the node does: for each request the first entry whose
// conditions hold, and that isn't used up; the result "0x1" where none fits.
func (n *Node) Script(script ...Reply) { n.script.set(script) }

// Then adds entries at the end of the script.
func (n *Node) Then(script ...Reply) { n.script.add(script) }

// SetKeepAlive decides whether connections stay open after an answer. They do
// unless it is turned off.
func (n *Node) SetKeepAlive(on bool) { n.closing.Store(!on) }

// AllowREST has the node take requests that aren't JSON-RPC POSTs to its path:
// of any method, at any path under its own. The script sees them with a Method
// such as "GET /v1/accounts".
func (n *Node) AllowREST() { n.anything.Store(true) }

// Requests gives the requests that arrived, in order; those of a batch singly.
func (n *Node) Requests() []Request {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.requests)
}

// Kill takes the node off the network: its connections break, new ones are
// refused.
func (n *Node) Kill() { n.server.stop() }

// Revive brings a killed node back.
func (n *Node) Revive() {
	if !n.server.up() {
		n.server.start()
	}
}

// Client gives an http.Client that reaches the node without any proxy, as
// httptest.Server has it: to try a script out, or to compare.
func (n *Node) Client() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
				tag := &leg{exchange: n.network.trace.begin("")}
				n.network.trace.asked(tag.exchange, "", addr, n.name)
				return n.network.connectFar(ctx, addr, tag)
			},
			TLSClientConfig:   &tls.Config{RootCAs: n.network.RootCAs()},
			DisableKeepAlives: true,
		},
	}
}

// admit chooses what becomes of a connection, before any request is known.
func (n *Node) admit(via string) *Reply {
	q := question{step: n.network.currentStep(), via: via, early: true}
	if reply, ok := n.script.takeIf(q, Reply.atConnect); ok {
		return &reply
	}
	return nil
}

// serve serves one connection.
func (n *Node) serve(l *link) {
	tag, _ := l.tag.(*leg)
	if tag == nil { // a stranger's, on loopback
		tag = &leg{exchange: n.network.trace.begin("")}
	}
	if tag.via == "" {
		tag.reply = n.admit("")
	}
	if tag.reply != nil && tag.reply.act == unreachable {
		reset(l.raw)
		return
	}
	if n.url.Scheme == "https" && !n.secure(l, tag.reply) {
		return
	}
	for {
		l.settle()
		request, err := http.ReadRequest(l.br)
		if err != nil {
			return
		}
		body, err := io.ReadAll(request.Body)
		if err != nil || !n.handle(l, tag, request, body) {
			return
		}
	}
}

// secure does the TLS handshake, or spoils it.
func (n *Node) secure(l *link, reply *Reply) bool {
	config := n.network.ca.serverConfig(n.url.Hostname())
	if reply != nil {
		if !l.pause(reply.when.delay) {
			return false
		}
		l.settle()
		switch reply.act {
		case badTLS:
			_, _ = l.br.Peek(5) // the greeting has come
			_, _ = io.WriteString(l.Conn, "this server speaks something else\r\n")
			_ = closeWrite(l.Conn)
			_, _ = io.Copy(io.Discard, l.br)
			return false
		case hangTLS:
			_, _ = io.Copy(io.Discard, l.br)
			return false
		case badCertificate:
			config = newAuthority().serverConfig(n.url.Hostname())
		}
	}
	return l.secure(config) == nil
}

// handle serves one HTTP request, and tells whether the connection stays open.
func (n *Node) handle(l *link, tag *leg, r *http.Request, body []byte) bool {
	n.checkSecrets(tag, r.Header)
	request := Request{Node: n.name, Via: tag.via, Header: r.Header, Body: body, Time: time.Now(), ctx: l.ctx}
	w := &answer{link: l, request: r, closing: n.closing.Load() || r.Close}

	var envelopes []envelope
	batch := false
	f := checkHTTP(r, n.url.RequestURI())
	if f == nil {
		envelopes, batch, f = decode(body)
	}
	if f != nil {
		if !n.anything.Load() {
			n.network.trace.breach("node %s via %q: %s", n.name, tag.via, f.text)
			n.network.trace.reached(tag.exchange, r.Method+" "+r.URL.RequestURI(), nil)
			return w.give(Status(f.status).Text(f.text), request)
		}
		request.Method = r.Method + " " + r.URL.RequestURI()
		n.note(tag, request.Method, nil, request)
		return n.reply(w, request)
	}
	if !batch {
		e := envelopes[0]
		request.Method, request.Params, request.ID = e.Method, e.Params, e.ID
		n.note(tag, e.Method, e.Params, request)
		return n.reply(w, request)
	}
	requests := make([]Request, len(envelopes))
	for i, e := range envelopes {
		requests[i] = request
		requests[i].Method, requests[i].Params, requests[i].ID = e.Method, e.Params, e.ID
	}
	n.note(tag, "batch", body, requests...)
	return n.replyBatch(w, requests)
}

// checkSecrets notes what must never come to a node.
func (n *Node) checkSecrets(tag *leg, header http.Header) {
	for _, name := range []string{"X-Api-Key", "Proxy-Authorization"} {
		if header.Get(name) != "" {
			n.network.trace.breach("node %s via %q: it was sent the header %s", n.name, tag.via, name)
		}
	}
}

func (n *Node) note(tag *leg, method string, params json.RawMessage, requests ...Request) {
	n.network.trace.reached(tag.exchange, method, params)
	if !n.network.recording() {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.requests = append(n.requests, requests...)
}

// choose gives the reply to a request, and waits as it says. It gives false when
// the client went away meanwhile.
func (n *Node) choose(l *link, request Request) (Reply, bool) {
	q := question{step: n.network.currentStep(), method: request.Method, via: request.Via}
	reply, _ := n.script.take(q)
	for depth := 0; ; depth++ {
		if !l.pause(reply.when.delay) {
			return reply, false
		}
		other, there := reply.when.gate.hold(l, request)
		if !there {
			return reply, false
		}
		if other != nil {
			reply = *other
			continue
		}
		if reply.act != handleIt {
			return reply, true
		}
		if depth > 100 {
			return Error(-32603, fmt.Sprintf("rpcpooltest: the handler of %s gives handlers without end", n.name)), true
		}
		l.watch()
		reply = reply.handle(request)
	}
}

func (n *Node) reply(w *answer, request Request) bool {
	reply, there := n.choose(w.link, request)
	return there && w.give(reply, request)
}

// replyBatch answers a batch: each request by its own reply; or all of them by
// the first reply that isn't a JSON-RPC answer.
func (n *Node) replyBatch(w *answer, requests []Request) bool {
	parts := []byte{'['}
	for i, request := range requests {
		reply, there := n.choose(w.link, request)
		if !there {
			return false
		}
		if reply.page || reply.act != answerIt || reply.status >= 300 {
			return w.give(reply, request)
		}
		if i > 0 {
			parts = append(parts, ',')
		}
		parts = append(parts, reply.body(request)...)
	}
	parts = append(parts, ']')
	return w.give(Reply{build: func(Request) []byte { return parts }}, requests[0])
}
