package rpcpool

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
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
	chainID   string // of a key such as "eip155:8453" the number; empty for others
	operators int    // that run the RPCs
	sources   int    // whose words count by themselves, see source

	byID map[string]*endpoint // by the ids that a fleet has; nil where nothing is shared
}

// endpoint is one RPC of one handle. What isn't said to be fixed is guarded by
// chainState.mu.
type endpoint struct {
	url     string        // fixed
	target  *url.URL      // fixed; not to be written to
	post    *http.Request // fixed; the pattern of requests to it
	label   string        // fixed; masked
	secrets redact.Secrets

	operator string // fixed; who runs it

	caps   Caps
	pos    int // place in the current ring; -1 once it left the list
	health ledger

	// marked is set as long as anything below may keep calls from the RPC: it is among
	// chainState.marked then.
	marked      bool
	markedUntil time.Time            // until when unsupported or pruned keep calls from it
	unsupported map[string]time.Time // method → until when
	pruned      map[string]pruned    // kind of read → what is gone
	spans       spanMemory           // the log ranges that it takes
	reserved    int                  // calls that are at it, where these are spread

	heads    headState
	verified bool   // it has said that it is on the right chain, since it last failed
	expelled bool   // it is on another chain; until the list changes
	probe    *probe // what a call is finding out about it; nil if nothing
	backOff  backOff
	peers    *peerMarks // what others of a fleet say of it; nil where nothing is shared

	hesitated time.Time // when a hurried attempt got no answer from it
	outrun    int       // times in a row that it was outrun by the second RPC of a hedged read

	busy atomic.Int64 // calls that are at it, where these are limited; needs no lock

	head  atomic.Uint64 // the highest block that it is known to have; needs no lock
	meter meter         // needs no lock
	size  sizeHint      // needs no lock
	conns *connLine     // fixed once the endpoint is in a ring
}

// sawHead notes a block that the RPC has.
func (e *endpoint) sawHead(number uint64) {
	for {
		known := e.head.Load()
		if number <= known || e.head.CompareAndSwap(known, number) {
			return
		}
	}
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
	if id, found := strings.CutPrefix(list.Key, "eip155:"); found {
		r.chainID = id
	}
	seen := make(map[string]bool, len(list.RPCs))
	operators := map[string]bool{}
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
		e.sawHead(listed.Height)
		e.heads.listed = listed.Height
		operators[e.operator] = true
		e.pos = len(r.endpoints)
		r.endpoints = append(r.endpoints, e)
		r.head = max(r.head, listed.Height)
	}
	r.operators, r.sources = len(operators), len(operators)
	if r.operators == 1 {
		r.sources = len(r.endpoints)
	}
	if before != nil && !slices.Equal(r.endpoints, before.endpoints) {
		for _, e := range r.endpoints {
			e.expelled = false // it may be another list's entry by now
		}
	}
	return r, dropped
}

// source says who an RPC's word counts for: its operator, or the URL itself where all are
// of one operator and there is nobody else to ask.
func (r *ring) source(e *endpoint) string {
	if r.operators == 1 {
		return e.url
	}
	return e.operator
}

// away tells whether the RPC is left alone for now: it cools, wants to be asked less,
// or is on another chain.
func (e *endpoint) away(now time.Time) bool {
	return e.barred(now) || e.health.cooling(now)
}

// barred tells whether it is left alone for another reason than a cooldown.
func (e *endpoint) barred(now time.Time) bool { return e.expelled || e.backOff.lasts(now) }

// backAt is when the RPC may be asked again; zero where it may be now, or where only
// another list brings it back.
func (e *endpoint) backAt(now time.Time) time.Time {
	_, until := e.health.standing()
	until = later(until, e.backOff.until)
	if e.expelled || !now.Before(until) {
		return time.Time{}
	}
	return until
}

func newEndpoint(raw string) *endpoint {
	target, err := url.Parse(raw)
	if err != nil || (target.Scheme != "http" && target.Scheme != "https") || target.Hostname() == "" {
		return nil
	}
	return &endpoint{
		url:     raw,
		target:  target,
		post:    newPost(target),
		label:   redact.ParsedURL(target),
		secrets: redact.OfURL(target),

		operator: operatorOf(target),
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
	e.markedUntil = now.Add(unsupportedFor)
	e.unsupported = keepMark(e.unsupported, method, e.markedUntil, now)
}

// keepMark keeps until when an RPC is passed over for a method. Where there are too many
// marks, those go that are over, and others.
func keepMark(marks map[string]time.Time, method string, until, now time.Time) map[string]time.Time {
	if marks == nil || len(marks) >= maxMarks {
		kept := map[string]time.Time{}
		for known, end := range marks {
			if now.Before(end) && len(kept) < maxMarks/2 {
				kept[known] = end
			}
		}
		marks = kept
	}
	marks[method] = until
	return marks
}

// slowFor is how long an RPC that a hurried attempt got no answer from comes after others
// where calls are spread; in the other modes the cursor has left it.
const slowFor = 15 * time.Second

// maxMarks bounds the methods that an RPC is marked for: a program that passes on
// what others ask may be asked for any name.
const maxMarks = 512

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
	e.markedUntil = now.Add(unsupportedFor)
}

// wanted is what a walk looks for in the ring.
type wanted struct {
	*shape  // what the request says of itself
	need    requirement
	exclude map[string]bool // URLs out for this call: they refused the range, or lack the block
	logPieceNeeds
}

// logPieceNeeds is what a piece of a chunked log query prefers an RPC by.
type logPieceNeeds struct {
	span   uint64 // blocks of the piece; 0 for a call that isn't one
	spread bool   // calls under way go to different RPCs where several are fit
	upTo   uint64 // a block that the RPC should be known to have; 0: none
}

// fits tells whether the RPC may be tried at now: it isn't left alone, serves the method,
// has what is needed and isn't out for this call (rule A4.1).
func (w *wanted) fits(e *endpoint, now time.Time) bool { return !e.away(now) && w.suits(e, now) }

// suits tells whether it would do if it weren't left alone.
func (w *wanted) suits(e *endpoint, now time.Time) bool {
	return !w.exclude[e.url] && w.need.fits(&e.caps) && e.serves(w.method, now) && e.has(w.read, now)
}

// ranks tells whether some RPCs go before others, whatever their place in the ring.
func (w *wanted) ranks() bool { return w.need.preferWide || w.span > 0 || w.spread }

// candidates gives the RPCs to try at now, in order: from the cursor on, round the ring,
// those that fit. Some go before others, the order kept among equals: see rank.
func candidates(r *ring, cursor int, w wanted, now time.Time) []*endpoint {
	fit := make([]*endpoint, 0, len(r.endpoints)) // nearly all fit
	for step := range r.endpoints {
		if e := r.from(cursor, step); w.fits(e, now) {
			fit = append(fit, e)
		}
	}
	if w.ranks() {
		slices.SortStableFunc(fit, func(a, b *endpoint) int { return w.rank(a, now) - w.rank(b, now) })
	}
	return fit
}

// from gives the RPC that is so many steps round the ring from the cursor.
func (r *ring) from(cursor, step int) *endpoint {
	return r.endpoints[(cursor+step)%len(r.endpoints)]
}

// rank orders the RPCs for log queries, smaller first: those that aren't known to
// refuse as many blocks (rule A9.5), then those that are known to have the last
// block, where that matters, then those that take wide ranges where the range is
// wide (rule A3), then those that weren't slow just now and, for calls that are spread,
// those with fewest.
func (w *wanted) rank(e *endpoint, now time.Time) int {
	const refuses, behind, narrow, slow = 1 << 30, 1 << 29, 1 << 28, 1 << 27
	rank := 0
	if now.Sub(e.hesitated) < slowFor {
		rank += slow
	}
	if w.span > 0 && e.spans.believed(w.span, now) < w.span {
		rank += refuses
	}
	if head := e.head.Load(); head > 0 && head < w.upTo {
		rank += behind
	}
	if w.need.preferWide && !w.need.wide(&e.caps) {
		rank += narrow
	}
	if w.spread {
		rank += e.reserved
	}
	return rank
}

// pieceSize gives the number of blocks to begin a chunked log query with, at most
// chunk: the most that any RPC with what is needed is believed to take.
func (r *ring) pieceSize(chunk uint64, need requirement, now time.Time) uint64 {
	size := uint64(0)
	for _, e := range r.endpoints {
		if need.fits(&e.caps) && !e.away(now) && e.serves(methodLogs, now) {
			e.spans.grow()
			size = max(size, e.spans.believed(chunk, now))
		}
	}
	if size == 0 {
		return chunk
	}
	return size
}

// position gives the place of a URL in the list; -1 where it isn't listed.
func (r *ring) position(url string) int {
	if r == nil {
		return -1
	}
	return slices.IndexFunc(r.endpoints, func(e *endpoint) bool { return e.url == url })
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
		until := e.backAt(now)
		if need.fits(&e.caps) && !until.IsZero() && (first.IsZero() || until.Before(first)) {
			first = until
		}
	}
	return first
}
