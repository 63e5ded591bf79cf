package rpcpool

import (
	"maps"
	"slices"
	"time"
)

const (
	// headSlack is the number of blocks that one operator alone may be ahead of what
	// is plausible: blocks don't come by the clock.
	headSlack = 1

	// As long as the block time isn't known, a head may be as old as this before others
	// are asked whether there is a newer one.
	unknownOverdue = 15 * time.Second

	// An RPC that went back is taken to do so again for a while: a load balancer has
	// several nodes behind it.
	dipFor = 600 * time.Second

	// The longest that an RPC that stood still must be good before it is trusted again.
	maxProbation = 600 * time.Second

	// The chain itself went back where its RPCs say so for that long. Where only one
	// RPC can be asked, longer.
	rollbackAfter      = 60 * time.Second
	loneRollbackAfter  = 900 * time.Second
	rollbackOperators  = 2
	rememberedHashes   = 256
	rememberedSayers   = 16
	witnessesForAClaim = 3
)

// headState is what is known of one RPC's head. Guarded by chainState.mu.
type headState struct {
	listed   uint64 // what the list says
	listedAt time.Time

	seen uint64    // what it said itself, last
	at   time.Time // when that came in; zero: never
	rose time.Time // when it first said so, or less than before

	top      uint64    // the highest that it ever said and that was believed
	fellAt   time.Time // since when it says much less than that; zero: it doesn't
	dip      uint64    // how far it went back between two answers
	dipUntil time.Time

	steady  bool // two answers in a row agreed, since it was first asked or came back
	ejected bool // its cooldown is for its head

	doubtful  bool          // it lagged by more than a block, or stood still; one good answer isn't enough
	goodFrom  time.Time     // since when its answers are good again
	probation time.Duration // how long they must be
}

// claim is the head that the RPC has, as far as it is known.
func (h *headState) claim() uint64 {
	if h.at.IsZero() {
		return h.listed
	}
	return h.seen
}

func (h *headState) claimedAt() time.Time {
	if h.at.IsZero() {
		return h.listedAt
	}
	return h.at
}

// reachedAt is when the RPC is known to have had its head first.
func (h *headState) reachedAt() time.Time {
	if h.at.IsZero() {
		return h.listedAt
	}
	return h.rose
}

// recent tells whether the RPC said its head within the last block time.
func (h *headState) recent(now time.Time, blockTime time.Duration) bool {
	return !h.at.IsZero() && now.Sub(h.at) <= blockTime
}

// headView is what a handle knows of the chain's head. It is guarded by
// chainState.mu, does no I/O, and takes the time as an argument.
type headView struct {
	// mark is the high-water mark: the highest head that is believed (rule B2).
	mark uint64
	// anchor is the highest head that two operators have reached, and anchoredAt when
	// the second of them showed it: what is plausible is counted from there.
	anchor     uint64
	anchoredAt time.Time
	// alone: the mark is what one operator said when no other could be asked.
	alone       bool
	askedAround time.Time // when others were last asked whether there is a newer head

	pace   blockPace
	hashes map[uint64][]seenHash // by block
}

// seenHash is a block's hash, and who said it.
type seenHash struct {
	hash string
	by   *endpoint
}

// headNews is what is worth a log line about an observation.
type headNews struct {
	wentBack   uint64    // blocks that the RPC went back since its last answer
	rolledBack bool      // the chain itself went back
	conflict   *endpoint // another RPC has said another hash for the same block
	reorg      bool      // this one itself has
	block      uint64
}

func (n *headNews) any() bool { return n.wentBack > 0 || n.rolledBack || n.conflict != nil || n.reorg }

// listedHeads takes in the heights of a new list.
func (v *headView) listedHeads(r *ring, fetched time.Time) {
	for _, e := range r.endpoints {
		e.heads.listedAt = fetched
	}
	v.raise(r, nil, fetched)
}

// observe takes in a head that an RPC said in answer to a request that was sent at
// sent. exact is false for a block that the RPC has, whatever more it may have.
func (v *headView) observe(r *ring, e *endpoint, head uint64, exact bool, sent, now time.Time, p *Freshness) (news headNews) {
	e.sawHead(head)
	h := &e.heads
	if !exact {
		switch {
		case h.at.IsZero():
			h.listed = max(h.listed, head)
		case head > h.seen:
			h.seen, h.rose = head, now
			v.raise(r, e, now)
		}
		return news
	}
	late := !h.at.IsZero() && sent.Before(h.at) // it was overtaken by another answer
	if late && head < h.seen {
		return news
	}
	if now.After(h.dipUntil) {
		h.dip = 0
	}
	h.steady = h.steady || !h.at.IsZero() && head >= h.seen
	if !h.at.IsZero() && head < h.seen {
		news.wentBack = h.seen - head
		h.dip, h.dipUntil = max(h.dip, news.wentBack), now.Add(dipFor)
	}
	if h.at.IsZero() {
		h.top = min(h.listed, v.mark)
	}
	changed := head != h.claim() || h.at.IsZero()
	if head != h.seen || h.at.IsZero() {
		h.rose = now
	}
	h.seen, h.at = head, now
	if changed || head > v.mark { // what wasn't plausible before may be now
		v.raise(r, e, now)
	}
	v.follow(h, now, p)
	if v.wentBack(r, now, p) {
		v.rollBack(r, now)
		news.rolledBack = true
	}
	return news
}

// raise lifts the mark to the highest head that is believed: what two operators have
// reached, or what one, by, says now and is plausible. It never lowers it, but where it was one
// operator's word alone and two others have spoken since.
func (v *headView) raise(r *ring, by *endpoint, now time.Time) {
	if second, at, oldest := r.secondHead(v.pace.perBlock()); second > v.anchor {
		v.anchor, v.anchoredAt = second, at
		if v.alone {
			v.alone, v.mark = false, 0
		}
		v.mark = max(v.mark, second)
		// Of a head that was reached some time ago it isn't known when.
		if now.Sub(oldest) <= 2*v.pace.perBlock() {
			v.pace.grew(second, now)
		}
	}
	if by == nil || by.expelled {
		return
	}
	if head := by.heads.claim(); head <= v.plausible(now) {
		v.mark = max(v.mark, head)
	}
}

// plausible gives the highest head that is believed of one operator alone.
func (v *headView) plausible(now time.Time) uint64 {
	if v.anchor == 0 {
		return 0
	}
	return v.anchor + headSlack + v.pace.blocksIn(now.Sub(v.anchoredAt))
}

// believes tells whether an RPC's head counts. Whatever is believed has lifted the mark
// when it was said, so that what is handed out is the least for what comes after; what
// wasn't plausible then isn't now, until the RPC says it again or another agrees.
func (v *headView) believes(e *endpoint) bool { return e.heads.claim() <= v.mark }

// overdue tells whether a block newer than the RPC's should be there by now, going by the
// pace of the chain, so that others are to be asked: an RPC that stands still is its own
// high-water mark.
func (v *headView) overdue(r *ring, e *endpoint, now time.Time) bool {
	each, known := v.pace.known()
	since := e.heads.claimedAt().Sub(v.anchoredAt)
	if r.operators < 2 || now.Sub(v.askedAround) < each || v.anchor == 0 {
		return false
	}
	if !known {
		return since > unknownOverdue && now.Sub(v.askedAround) > unknownOverdue
	}
	return e.heads.claim() < v.anchor+v.pace.blocksIn(since)
}

// takeAlone believes the one RPC that can be asked. Not where its word contradicts
// what is known: a chain that has a pace doesn't jump.
func (v *headView) takeAlone(e *endpoint) bool {
	if _, known := v.pace.known(); known && v.anchor > 0 {
		return false
	}
	v.alone = true
	v.mark = max(v.mark, e.heads.claim())
	e.heads.top = max(e.heads.top, e.heads.claim())
	return true
}

// follow keeps how trustworthy an RPC's head has been.
func (v *headView) follow(h *headState, now time.Time, p *Freshness) {
	believed := h.seen <= v.mark
	switch {
	case h.top-min(h.top, h.seen) > p.ejectLag():
		if h.fellAt.IsZero() {
			h.fellAt = now
		}
	default:
		h.fellAt = time.Time{}
		if believed {
			h.top = max(h.top, h.seen)
		}
	}
	each, still := v.pace.perBlock(), now.Sub(h.rose)
	switch lag := v.lag(h.seen); {
	case lag > p.MaxLag && (lag-p.MaxLag > 1 || still >= 2*each):
		// A cache that kept the head for so long may keep other answers as long.
		h.doubtful, h.goodFrom, h.probation = true, time.Time{}, min(max(each, still), maxProbation)
	case lag > p.MaxLag || !h.doubtful:
		h.goodFrom = time.Time{}
	case h.goodFrom.IsZero():
		h.goodFrom = now
	case now.Sub(h.goodFrom) >= h.probation:
		h.doubtful, h.goodFrom = false, time.Time{}
	}
}

// lag gives how many blocks a head is under the mark.
func (v *headView) lag(head uint64) uint64 { return v.mark - min(v.mark, head) }

// wentBack tells whether the chain itself went back: enough operators have said for
// long enough less than they said before, and nobody has said otherwise since.
func (v *headView) wentBack(r *ring, now time.Time, p *Freshness) bool {
	needed, patience := min(rollbackOperators, r.operators), rollbackAfter
	fallen := map[string]bool{}
	var first time.Time
	for _, e := range r.endpoints {
		h := &e.heads
		if h.fellAt.IsZero() {
			continue
		}
		if first.IsZero() || h.fellAt.Before(first) {
			first = h.fellAt
		}
		if h.at.Sub(h.fellAt) >= patience {
			fallen[e.operator] = true
		}
	}
	if len(fallen) == 0 {
		return false
	}
	for _, e := range r.endpoints {
		if h := &e.heads; h.at.After(first) && v.lag(h.seen) <= p.ejectLag() && !e.expelled {
			return false
		}
	}
	return len(fallen) >= needed || now.Sub(first) >= loneRollbackAfter
}

// rollBack begins anew from what the RPCs say now.
func (v *headView) rollBack(r *ring, now time.Time) {
	fixed := v.pace.fixed
	*v = headView{pace: blockPace{fixed: fixed}}
	for _, e := range r.endpoints {
		h := &e.heads
		if !h.fellAt.IsZero() {
			e.health.reset() // it was left alone for no fault of its own
			h.listed = min(h.listed, h.seen)
		}
		*h = headState{listed: h.listed, listedAt: h.listedAt, seen: h.seen, at: h.at, rose: h.rose, top: h.seen}
		if h.at.IsZero() || now.Sub(h.at) > 2*rollbackAfter {
			h.listed, h.seen, h.at, h.top = 0, 0, time.Time{}, 0 // from before
		}
	}
	v.raise(r, nil, now)
	if v.anchor == 0 {
		for _, e := range r.endpoints {
			v.alone = true
			v.mark = max(v.mark, e.heads.seen)
		}
	}
}

// secondHead gives the highest head that two operators have reached, when that was, and
// when the older word was said: zero where only the list says it. A ring of one operator
// has nobody else to ask.
func (r *ring) secondHead(perBlock time.Duration) (head uint64, at, oldest time.Time) {
	type claim struct {
		operator string
		head     uint64
		at       time.Time
		said     time.Time // zero: only the list says it
	}
	var first, second claim
	for _, e := range r.endpoints {
		c := claim{e.operator, e.heads.claim(), e.heads.reachedAt(), e.heads.at}
		switch {
		case c.head == 0 || e.expelled:
		case c.operator == first.operator:
			if c.head > first.head {
				first = c
			}
		case c.head > first.head:
			first, second = c, first
		case c.head > second.head:
			second = c
		}
	}
	if r.operators == 1 {
		return first.head, first.at, first.said
	}
	oldest = first.said
	if second.said.Before(oldest) {
		oldest = second.said
	}
	// Either may be the one who lies: what counts is when the other one came there. The one
	// that is further was there some blocks ago.
	ahead := time.Duration(min(first.head-second.head, maxPaceBlocks)) * perBlock
	return second.head, later(second.at, first.at.Add(-ahead)), oldest
}

// noteHash remembers a block's hash, and notices where this RPC or another one has said
// another (rule B11).
func (v *headView) noteHash(e *endpoint, number uint64, hash string) (news headNews) {
	said := v.hashes[number]
	own := slices.IndexFunc(said, func(s seenHash) bool { return s.by == e })
	if own >= 0 && said[own].hash == hash {
		return news
	}
	for _, s := range said {
		if s.by != e && s.hash != hash {
			news.block, news.conflict = number, s.by
		}
	}
	if own >= 0 {
		said[own].hash = hash
		return headNews{block: number, reorg: true}
	}
	if v.hashes == nil {
		v.hashes = map[uint64][]seenHash{}
	}
	if len(said) == 0 && len(v.hashes) >= rememberedHashes {
		v.forgetHashes(number)
	}
	if len(said) < rememberedSayers {
		v.hashes[number] = append(said, seenHash{hash, e})
	}
	return news
}

// forgetHashes makes room: old blocks go first, and all where old ones are read.
func (v *headView) forgetHashes(number uint64) {
	maps.DeleteFunc(v.hashes, func(old uint64, _ []seenHash) bool { return old+rememberedHashes/2 < number })
	if len(v.hashes) >= rememberedHashes {
		clear(v.hashes)
	}
}
