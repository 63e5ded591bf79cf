package rpcpool

import (
	"maps"
	"slices"
	"strings"
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

	// RPCs that go back within so many block times of each other do so together.
	togetherBlocks = 3

	// How far the only RPC that can be asked may jump, beyond twice the chain's pace.
	aloneSlack = 3

	maxStampAhead = time.Minute // of a block's timestamp

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
	listed uint64 // what the list says

	seen uint64    // what it said itself, last
	at   time.Time // when that came in; zero: never
	rose time.Time // when it began to say so, going up or down

	dated   bool      // others of a fleet have heard more from it since: it is to be asked again
	datedAt time.Time // when that was last so

	top      uint64    // the highest that it ever said and that was believed
	topAt    time.Time // when it last said so
	spoke    bool      // it did, rather than the list
	fellAt   time.Time // since when it says much less than that; zero: it doesn't
	dip      uint64    // how far it went back between two answers
	dipUntil time.Time

	wentDownAt time.Time // when it last did
	wentDownBy uint64    // and by how many blocks

	answers int  // in a row that didn't go back, since it was first asked or came back
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

// dipAt is how far under its head an RPC may answer from.
func (h *headState) dipAt(now time.Time) uint64 {
	if now.After(h.dipUntil) {
		return 0
	}
	return h.dip
}

// recent tells whether the RPC said its head within the last block time.
func (h *headState) recent(now time.Time, blockTime time.Duration) bool {
	return !h.at.IsZero() && !h.dated && now.Sub(h.at) <= blockTime
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
	agreed     bool // two did, rather than the list
	// alone: the mark is what one operator said when no other could be asked.
	alone       bool
	askedAround time.Time // when others were last asked whether there is a newer head

	pace   blockPace
	hashes map[uint64][]seenHash // by block

	listedAt time.Time // when the list came

	peers uint64 // the head that others of a fleet spoke of last; it lifts no mark
}

// seenHash is a block's hash, and who said it.
type seenHash struct {
	hash string
	by   *endpoint
}

// headNews is what is worth a log line about an observation.
type headNews struct {
	wentBack   uint64      // blocks that the RPC went back since its last answer
	rolledBack bool        // the chain itself went back
	freed      []*endpoint // and with it these RPCs are blamed no more
	conflict   *endpoint   // another RPC has said another hash for the same block
	reorg      bool        // this one itself has
	block      uint64
}

func (n *headNews) any() bool { return n.wentBack > 0 || n.rolledBack || n.conflict != nil || n.reorg }

// listedHeads takes in the heights of a new list.
func (v *headView) listedHeads(r *ring, fetched time.Time) {
	v.listedAt = fetched
	if height := r.medianHeight(); v.anchor == 0 && height > 0 {
		v.anchor, v.anchoredAt = height, fetched
		v.mark = max(v.mark, height)
	}
}

// medianHeight gives what the list says of the chain's head, as far as half of it agrees;
// 0 where it says nothing.
func (r *ring) medianHeight() uint64 {
	var heights []uint64
	for _, e := range r.endpoints {
		if e.heads.listed > 0 {
			heights = append(heights, e.heads.listed)
		}
	}
	if len(heights) == 0 {
		return 0
	}
	slices.Sort(heights)
	return heights[(len(heights)-1)/2]
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
	h.answers++
	if !h.at.IsZero() && head < h.seen {
		news.wentBack = h.seen - head
		v.wentDown(r, e, news.wentBack, now)
		h.answers = 1
	}
	if h.at.IsZero() {
		h.top, h.topAt = min(h.listed, v.mark), now
	}
	changed := h.at.IsZero() || head != h.seen
	h.seen, h.at, h.dated = head, now, false
	if changed {
		h.rose = now
	}
	if changed || head > v.mark { // what wasn't plausible before may be now
		v.raise(r, e, now)
	}
	v.follow(h, now, p)
	if v.wentBack(r, now, p) {
		news.freed = v.rollBack(r, now)
		news.rolledBack = true
	}
	return news
}

// raise lifts the mark to the highest head that is believed: what two operators have
// reached, or what one, by (nil: none), says now and is plausible. It never lowers it, but
// where it was one operator's word alone and two others have spoken since.
func (v *headView) raise(r *ring, by *endpoint, now time.Time) {
	if second := r.secondHead(v.pace.perBlock()); second.head > v.anchor {
		if v.alone {
			v.alone, v.mark, v.anchor = false, 0, 0
		}
		v.mark = max(v.mark, second.head)
		// One that has stopped doesn't make the other's head less plausible: counting goes
		// on from before, unless the two are at about the same block.
		if v.anchor == 0 || second.gap <= headSlack || second.head >= v.anchor+v.pace.blocksIn(second.at.Sub(v.anchoredAt)) {
			v.anchor, v.anchoredAt, v.agreed = second.head, second.at, true
		}
		// Of a head that was reached some time ago it isn't known when.
		if now.Sub(second.oldest) <= 2*v.pace.perBlock() {
			v.pace.grew(second.head, now)
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

// steady tells whether two answers in a row agreed, since the RPC was first asked or came
// back.
func (h *headState) steady() bool { return h.answers > 1 }

// wentDown notes that an RPC's head went back. Where another's did, too, and about as far, it
// is the chain that did; where there is nobody else, it makes no difference.
func (v *headView) wentDown(r *ring, e *endpoint, blocks uint64, now time.Time) {
	e.heads.wentDownAt, e.heads.wentDownBy = now, blocks
	if r.sources < 2 {
		return
	}
	together := false
	for _, other := range r.endpoints { // all of them: an operator may have several
		by := other.heads.wentDownBy
		if r.source(other) != r.source(e) && by <= 2*blocks && blocks <= 2*by && now.Sub(other.heads.wentDownAt) <= togetherBlocks*v.pace.perBlock() {
			other.heads.dip, together = 0, true
		}
	}
	if together {
		e.heads.dip = 0
		return
	}
	e.heads.dip, e.heads.dipUntil = max(e.heads.dipAt(now), blocks), now.Add(dipFor)
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
	claimed := e.heads.at
	if claimed.IsZero() {
		claimed = v.listedAt
	}
	since := claimed.Sub(v.anchoredAt)
	if r.sources < 2 || now.Sub(v.askedAround) < each || v.anchor == 0 {
		return false
	}
	if !known {
		return since > unknownOverdue && now.Sub(v.askedAround) > unknownOverdue
	}
	return e.heads.claim() < v.anchor+v.pace.blocksIn(since)
}

// takeAlone believes the one RPC that can be asked. Not where it contradicts what it said
// before and was believed, or else what others said: a chain that has a pace doesn't jump.
// What counts is when it said so: a boast doesn't come true by waiting.
func (v *headView) takeAlone(e *endpoint) bool {
	h := &e.heads
	said := later(h.at, h.rose) // a block that it has tells of its head, too, and isn't its word on it
	if said.IsZero() {
		said = v.listedAt
	}
	_, known := v.pace.known()
	switch {
	case !known:
	case h.spoke && !h.topAt.Before(v.anchoredAt): // it goes on from where others saw it
		if h.claim() > h.top+aloneSlack+2*v.pace.blocksIn(said.Sub(h.topAt)) {
			return false
		}
	case v.agreed:
		if drift := v.pace.blocksIn(said.Sub(v.anchoredAt)) / 20; h.claim() > v.plausible(said)+drift {
			return false
		}
	}
	v.alone = true
	v.mark = max(v.mark, h.claim())
	h.top, h.topAt, h.spoke = max(h.top, h.claim()), said, true
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
		if believed && h.seen >= h.top {
			h.top, h.topAt, h.spoke = h.seen, now, true
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

// agreedHead is what two operators say.
type agreedHead struct {
	head   uint64    // the highest that both have reached
	at     time.Time // when that was
	gap    uint64    // how far one of them is ahead of it
	oldest time.Time // when the older word was said
}

// secondHead gives the highest head that two operators say that they have reached. A ring
// of one RPC has nobody else to ask.
func (r *ring) secondHead(perBlock time.Duration) agreedHead {
	type claim struct {
		source string
		head   uint64
		at     time.Time
		said   time.Time
	}
	var first, second claim
	for _, e := range r.endpoints {
		c := claim{r.source(e), e.heads.seen, e.heads.rose, e.heads.at}
		switch {
		case c.head == 0 || e.expelled:
		case c.source == first.source:
			if c.head > first.head {
				first = c
			}
		case c.head > first.head:
			first, second = c, first
		case c.head > second.head:
			second = c
		}
	}
	if r.sources == 1 {
		return agreedHead{head: first.head, at: first.at, oldest: first.said}
	}
	oldest := first.said
	if second.said.Before(oldest) {
		oldest = second.said
	}
	// Either may be the one who lies: what counts is when the other one came there. The one
	// that is further was there some blocks ago.
	gap := first.head - second.head
	ahead := time.Duration(min(gap, maxPaceBlocks)) * perBlock
	return agreedHead{second.head, later(second.at, first.at.Add(-ahead)), gap, oldest}
}

// noteHash remembers a block's hash, and notices where this RPC or another one has said
// another (rule B11).
func (v *headView) noteHash(e *endpoint, number uint64, hash string) (news headNews) {
	hash = strings.ToLower(hash)
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
