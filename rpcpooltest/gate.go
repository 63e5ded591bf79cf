package rpcpooltest

import (
	"context"
	"slices"
	"sync"
)

// Gate holds answers back until the test lets them go, so that an interleaving
// reads like a script. Put it on an entry of a script with its Hold method:
//
//	gate := rpcpooltest.NewGate()
//	node.Script(rpcpooltest.Result("0x1").Hold(gate))
//	go call()
//	held, _ := gate.Next(ctx) // the node has the request
//	held.Reply(rpcpooltest.Status(503))
type Gate struct {
	mu      sync.Mutex // protects what follows, and what Held says it does
	open    bool
	waiting []*Held       // arrived, not yet let go
	unseen  []*Held       // arrived, not yet given by Next
	news    chan struct{} // closed and replaced when something arrives
}

// NewGate gives a gate that is shut.
func NewGate() *Gate {
	return &Gate{news: make(chan struct{})}
}

// Held is a request whose answer waits at a [Gate].
type Held struct {
	// Request is what is held back. Of a request that waits at a proxy only
	// Node, Via and Time are known.
	Request Request

	gate    *Gate
	release chan *Reply // has room for one
	done    bool        // let go, or given up; protected by gate.mu
}

// Next waits for the next request that arrives at the gate, and gives it; in the
// order of their arrival, each once. It ends with ctx.
func (g *Gate) Next(ctx context.Context) (*Held, error) {
	for {
		g.mu.Lock()
		if len(g.unseen) > 0 {
			held := g.unseen[0]
			g.unseen = g.unseen[1:]
			g.mu.Unlock()
			return held, nil
		}
		news := g.news
		g.mu.Unlock()
		select {
		case <-news:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Waiting counts the requests that are held now. Those whose client gave up
// aren't among them.
func (g *Gate) Waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.waiting)
}

// Open lets everything go that is held, and holds nothing more.
func (g *Gate) Open() {
	g.mu.Lock()
	g.open = true
	waiting := slices.Clone(g.waiting)
	g.mu.Unlock()
	for _, held := range waiting {
		held.Release()
	}
}

// Release lets the request go: it is answered as the script says. Only the first
// of Release and Reply counts.
func (h *Held) Release() { h.let(nil) }

// Reply lets the request go with another answer. At a proxy or the pool API the
// answer stays what the script says.
func (h *Held) Reply(reply Reply) { h.let(&reply) }

func (h *Held) let(reply *Reply) {
	if h.gate.leave(h) {
		h.release <- reply
	}
}

// hold waits at the gate. It gives the answer that the test chose instead, if it
// did, and false when the peer went away.
func (g *Gate) hold(l *link, request Request) (*Reply, bool) {
	if g == nil {
		return nil, true
	}
	held, shut := g.arrive(request)
	if !shut {
		return nil, true
	}
	defer g.leave(held)
	l.watch()
	select {
	case reply := <-held.release:
		return reply, true
	case <-l.ctx.Done():
		return nil, false
	}
}

func (g *Gate) arrive(request Request) (*Held, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open {
		return nil, false
	}
	held := &Held{Request: request, gate: g, release: make(chan *Reply, 1)}
	g.waiting = append(g.waiting, held)
	g.unseen = append(g.unseen, held)
	close(g.news)
	g.news = make(chan struct{})
	return held, true
}

// leave ends the waiting of held, and tells whether it was waiting.
func (g *Gate) leave(held *Held) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if held.done {
		return false
	}
	held.done = true
	g.waiting = slices.DeleteFunc(g.waiting, func(other *Held) bool { return other == held })
	return true
}
