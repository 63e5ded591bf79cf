package rpcpool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Chain is a handle on a chain: its list of RPCs, the cursor in it and the
// cooldowns. It is safe for concurrent use and costs nothing to ask for again.
type Chain struct {
	s *chainState
}

// chainState is what the handles on one (reference, archive level) share.
type chainState struct {
	pool    *poolState
	ref     string
	archive Archive

	policyName string // see Chain.Policy

	cache   cacheFile
	policy  *Freshness // nil: reads may be stale
	hedge   *hedging   // nil: reads aren't hedged
	invalid error      // why the handle can't be used; nil where it can

	sampling atomic.Bool // the background sampler was started

	mu        sync.Mutex // protects what follows, and what endpoint says
	ring      *ring      // nil before the first list
	cursor    int
	moves     []cursorMove
	marked    []*endpoint // RPCs of the ring that may be unfit, see lineup
	fetchedAt time.Time   // the end of the last fetch
	fetch     *listFetch  // the fetch that is running; nil if none
	heads     headView
	writes    writes
	turns     turns // who waits for an RPC that has as many calls as it may

	calibrateFrom time.Time // when the block time may be found out next
}

// cursorMove is a step of the cursor off an RPC that failed. It is kept as long
// as the failure may be taken back.
type cursorMove struct {
	from  *endpoint
	cause *failure
}

func newChainState(p *poolState, key chainKey) *chainState {
	c := &chainState{
		pool:    p,
		ref:     key.ref,
		archive: key.archive,
		cache:   newCacheFile(p.cacheDir, key.ref, key.archive),
	}
	if key.fresh {
		policy := key.freshness
		c.policy = &policy
		c.heads.pace.fixed = policy.BlockTime
		c.invalid = policy.check()
	}
	if key.hedged {
		c.hedge = newHedging(p, key.hedge)
		if c.invalid == nil {
			c.invalid = key.hedge.check()
		}
	}
	switch {
	case key.ref == "":
		c.invalid = &ConfigError{"chain", `the reference is empty; give a chain id such as "8453" or a key such as "eip155:8453"`}
	case key.archive < ArchiveNone || key.archive > ArchiveFull:
		c.invalid = &ConfigError{"WithArchive", key.archive.String() + " is unknown; use ArchiveNone, ArchiveRecent or ArchiveFull"}
	}
	return c
}

// Ref gives the reference that the handle was made with.
func (c *Chain) Ref() string { return c.s.ref }

// Policy names what the handle has beyond its reference: "" where it has nothing, else of
// "archive_recent" or "archive_full" ([WithArchive]), "fresh" ([WithFreshness]) and "hedged"
// ([WithHedge]) those that apply, joined by "+". A second handle of one reference with the
// same words has "#2" behind them, in the order in which they were made, and so on. So
// reference and policy together are a handle's alone: together they may label a metric.
func (c *Chain) Policy() string { return c.s.policyName }

func (c *chainState) labels() ChainLabels { return ChainLabels{c.ref, c.policyName} }

// String gives the reference that the handle was made with.
func (c Chain) String() string {
	if c.s == nil {
		return "rpcpool.Chain(not made by Pool.Chain)"
	}
	return "rpcpool.Chain(" + strconv.Quote(c.s.ref) + ")"
}

// Format prints String under every verb, so that none reaches a handle's secrets.
func (c Chain) Format(s fmt.State, verb rune) { formatText(s, verb, c.String()) }

// Call sends a JSON-RPC request round the ring until an RPC answers, and gives
// the result's bytes as they came. The params are the request's, in order, as
// encoding/json writes them ([json.RawMessage] as it is); one param of type
// [NamedParams] is sent as a JSON object.
//
// ctx bounds everything. The errors are those of this package: an *[RPCError] or
// *[HTTPError] is the answer to this very request, which another RPC would give as
// well; see docs/FAILOVER.md for the others.
func (c *Chain) Call(ctx context.Context, method string, params ...any) (json.RawMessage, error) {
	return c.s.call(ctx, method, params)
}

// CallContext is Call for code that is written against go-ethereum's rpc.Client:
// the result is decoded into the value that result points to. A nil result drops it.
func (c *Chain) CallContext(ctx context.Context, result any, method string, args ...any) error {
	raw, err := c.s.call(ctx, method, args)
	if err != nil || result == nil {
		return err
	}
	return decodeResult(method, raw, result)
}

func decodeResult(method string, raw json.RawMessage, into any) error {
	if err := json.Unmarshal(raw, into); err != nil {
		return &MalformedResponseError{Method: method, Reason: whyNotDecoded(err, into)}
	}
	return nil
}

// whyNotDecoded says what didn't fit, by types alone: the texts of decoders quote
// what the node sent.
func whyNotDecoded(err error, result any) string {
	reason := fmt.Sprintf("the result can't be decoded into a %T", result)
	if mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		kind, _, _ := strings.Cut(mismatch.Value, " ")
		reason += fmt.Sprintf(": a JSON %s is no %s", kind, mismatch.Type)
		if mismatch.Field != "" {
			reason += " (in " + mismatch.Field + ")"
		}
	}
	return reason
}

// CallAs is [Chain.Call] with the result decoded from JSON.
func CallAs[T any](ctx context.Context, c *Chain, method string, params ...any) (T, error) {
	var value T
	err := c.CallContext(ctx, &value, method, params...)
	return value, err
}

func (c *chainState) call(ctx context.Context, method string, params []any) (json.RawMessage, error) {
	req, err := newCallRequest(c.pool, method, params)
	if err != nil {
		return nil, err
	}
	return c.do(ctx, req)
}

// replaceRing takes over a new list: the cursor stays on its RPC if that is still
// listed, else it goes to the best (rule A2.3). It gives the entries that were
// dropped. The caller holds c.mu.
func (c *chainState) replaceRing(list *List) (dropped []string) {
	var at *endpoint
	if c.ring != nil && len(c.ring.endpoints) > 0 {
		at = c.ring.endpoints[c.cursor]
	}
	c.ring, dropped = newRing(list, c.ring)
	for _, e := range c.ring.endpoints {
		if e.conns == nil {
			e.conns = newConnLine(c.pool.maxConns)
		}
	}
	c.heads.listedHeads(c.ring, time.Now())
	c.cursor = 0
	if at != nil && at.pos >= 0 {
		c.cursor = at.pos
	}
	c.meetPeers(time.Now())
	return dropped
}

// hasRPCs tells whether there is a list in memory with an RPC in it.
func (c *chainState) hasRPCs() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ring != nil && len(c.ring.endpoints) > 0
}

// failed notes a failure of an RPC, and gives how many in a row there are now and until when
// it cools; 0 where this one changes nothing. In Sticky the cursor goes on when the RPC is
// the one that it stands on (rule A4.2).
func (c *chainState) failed(e *endpoint, f *failure) (inRow int, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.echo {
		return 0, time.Time{}
	}
	c.restoreCursor()
	e.health.record(f)
	c.markUnfit(e)
	e.conns.turnAway()
	e.verified, e.heads.answers = false, 0
	e.meter.ejections.Add(1)
	c.shareCooldown(e)
	if c.stepOff(e) && !f.final {
		c.moves = append(c.moves, cursorMove{from: e, cause: f})
	}
	if !f.stands() {
		return 0, time.Time{}
	}
	return e.health.standing()
}

// stepOff moves the cursor one on from an RPC that it stands on, in Sticky, and tells
// whether it did. The caller holds c.mu.
func (c *chainState) stepOff(e *endpoint) bool {
	if c.pool.mode != Sticky || c.ring == nil || e.pos < 0 || c.cursor != e.pos {
		return false
	}
	c.cursor = (e.pos + 1) % len(c.ring.endpoints)
	return true
}

// served notes that an RPC answered, and took a piece of so many blocks where the
// request was one. It tells whether it is back, after failures or a rest.
func (c *chainState) served(e *endpoint, method string, span uint64) (back bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !e.health.clean() {
		back = e.health.stands()
		e.health.reset()
		e.heads.ejected = false
	}
	if e.backOff.inRow > 0 && !e.backOff.lasts(time.Now()) { // one sent before may yet succeed
		e.backOff = backOff{}
		back = true
	}
	e.outrun = 0
	if span > 0 {
		e.spans.take(span)
	}
	if c.pool.mode == RoundRobin && e.pos >= 0 {
		c.cursor = (e.pos + 1) % len(c.ring.endpoints)
	}
	c.heard(e, method)
	return back
}

// restoreCursor puts the cursor back where it stood before the first step whose
// cause no longer stands, and whose RPC is still listed (rule A7.3). The caller holds
// c.mu.
func (c *chainState) restoreCursor() {
	for i, move := range c.moves {
		if move.cause.stands() {
			continue
		}
		if at := c.ring.position(move.from.url); at >= 0 {
			c.cursor = at
			c.moves = c.moves[:i]
			return
		}
	}
}

// settle makes the failures of a call that has ended final.
func (c *chainState) settle(records []callFailure) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.restoreCursor()
	for _, record := range records {
		if !record.failure.final {
			record.endpoint.health.settle(record.failure)
			c.shareCooldown(record.endpoint)
		}
	}
	c.moves = slices.DeleteFunc(c.moves, func(move cursorMove) bool { return causedBy(move, records) })
}

func causedBy(move cursorMove, records []callFailure) bool {
	for _, record := range records {
		if record.failure == move.cause {
			return true
		}
	}
	return false
}
