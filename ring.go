package rpcpool

import (
	"net/url"
	"time"

	"github.com/bomzrpc/rpcpool/internal/redact"
)

// unsupportedFor is how long an RPC is passed over for a method that it doesn't
// serve, and for state that it has dropped.
const unsupportedFor = 600 * time.Second

// ring is a chain's list as it was fetched, best first. It doesn't change; a new
// list makes a new ring of the same endpoints.
type ring struct {
	key       string // the chain's key in the pool's answer, such as "eip155:8453"
	endpoints []*endpoint
	head      uint64 // the largest height in the list
}

// endpoint is one RPC of one handle. What isn't said to be fixed is guarded by
// chainState.mu.
type endpoint struct {
	url     string   // fixed
	target  *url.URL // fixed; not to be written to
	label   string   // fixed; masked
	secrets redact.Secrets

	caps   Caps
	pos    int // place in the current ring; -1 once it left the list
	health ledger

	unsupported map[string]time.Time // method → until when
	pruned      map[string]pruned    // kind of read → what is gone
}

// pruned says that an RPC has dropped the state at and below a block.
type pruned struct {
	block uint64
	until time.Time
}

// newRing makes a ring of a list, taking over the state of endpoints that were
// listed before. It gives the URLs that it dropped, masked: those that aren't
// http(s) with a host, and those that stand twice (rule A2.1).
func newRing(list *List, before *ring) (r *ring, dropped []string) {
	known := map[string]*endpoint{}
	if before != nil {
		for _, e := range before.endpoints {
			known[e.url] = e
			e.pos = -1
		}
	}
	r = &ring{key: list.Key, endpoints: make([]*endpoint, 0, len(list.RPCs))}
	seen := make(map[string]bool, len(list.RPCs))
	for i := range list.RPCs {
		listed := &list.RPCs[i]
		if seen[listed.URL] {
			dropped = append(dropped, redact.URL(listed.URL)+" (stands twice)")
			continue
		}
		e := known[listed.URL]
		if e == nil {
			e = newEndpoint(listed.URL)
		}
		if e == nil {
			dropped = append(dropped, redact.URL(listed.URL)+" (not an http URL with a host)")
			continue
		}
		seen[listed.URL] = true
		e.caps = listed.Caps
		e.pos = len(r.endpoints)
		r.endpoints = append(r.endpoints, e)
		r.head = max(r.head, listed.Height)
	}
	return r, dropped
}

func newEndpoint(raw string) *endpoint {
	target, err := url.Parse(raw)
	if err != nil || (target.Scheme != "http" && target.Scheme != "https") || target.Hostname() == "" {
		return nil
	}
	return &endpoint{
		url:     raw,
		target:  target,
		label:   redact.ParsedURL(target),
		secrets: redact.OfURL(target),
	}
}

// serves tells whether the RPC isn't marked as not serving the method.
func (e *endpoint) serves(method string, now time.Time) bool {
	if len(e.unsupported) == 0 {
		return true
	}
	return !now.Before(e.unsupported[method])
}

func (e *endpoint) markUnsupported(method string, now time.Time) {
	if e.unsupported == nil {
		e.unsupported = map[string]time.Time{}
	}
	e.unsupported[method] = now.Add(unsupportedFor)
}

// has tells whether the RPC isn't known to have dropped what a read is about.
func (e *endpoint) has(read blockRead, now time.Time) bool {
	if !read.numbered || len(e.pruned) == 0 {
		return true
	}
	mark, marked := e.pruned[read.kind]
	return !marked || read.block > mark.block || !now.Before(mark.until)
}

func (e *endpoint) markPruned(read blockRead, now time.Time) {
	if !read.numbered {
		return
	}
	if e.pruned == nil {
		e.pruned = map[string]pruned{}
	}
	mark := e.pruned[read.kind]
	if now.Before(mark.until) {
		read.block = max(read.block, mark.block)
	}
	e.pruned[read.kind] = pruned{block: read.block, until: now.Add(unsupportedFor)}
}

// blockRead is the block that a call reads from, where it names one by number.
// State and history are dropped apart, so a mark on one doesn't hold for the other.
type blockRead struct {
	kind     string // "state" or the method itself
	block    uint64
	numbered bool
}

// blockReadOf gives what a call reads.
func blockReadOf(method string, params []byte) blockRead {
	if block, ok := stateBlock(method, params); ok {
		return blockRead{kind: "state", block: block, numbered: true}
	}
	return blockRead{}
}

// wanted is what a walk looks for in the ring.
type wanted struct {
	method  string
	need    requirement
	read    blockRead
	exclude map[*endpoint]bool // out for this call: they refused the range, or lack the block
}

// candidates gives the RPCs to try at now, in order: from the cursor on, round
// the ring, without those that are cooling, don't serve the method, lack what is
// needed or are out for this call (rule A4.1). A wide log query has those that
// take wide ranges first, the order kept inside both groups (rule A3).
func candidates(r *ring, cursor int, w wanted, now time.Time) []*endpoint {
	var first, rest []*endpoint
	for step := range r.endpoints {
		e := r.endpoints[(cursor+step)%len(r.endpoints)]
		switch {
		case w.exclude[e],
			!w.need.fits(&e.caps),
			e.health.cooling(now),
			!e.serves(w.method, now),
			!e.has(w.read, now):
			continue
		}
		if w.need.preferWide && !w.need.wide(&e.caps) {
			rest = append(rest, e)
		} else {
			first = append(first, e)
		}
	}
	return append(first, rest...)
}

// capable tells whether any RPC of the ring has what is needed.
func (r *ring) capable(need requirement) bool {
	for _, e := range r.endpoints {
		if need.fits(&e.caps) {
			return true
		}
	}
	return false
}

// firstBack is when the first cooldown of an RPC with what is needed ends; zero
// where none of them is cooling.
func (r *ring) firstBack(need requirement, now time.Time) time.Time {
	var first time.Time
	for _, e := range r.endpoints {
		_, until := e.health.standing()
		if need.fits(&e.caps) && now.Before(until) && (first.IsZero() || until.Before(first)) {
			first = until
		}
	}
	return first
}
