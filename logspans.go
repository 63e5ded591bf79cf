package rpcpool

import "time"

// spanMemory is what is known of the log ranges that one RPC takes (rule A9.5). It
// is learned from the pieces of chunked queries and used for the next ones. The
// lock of its owner guards it.
//
// What was taken is under what was refused, and the limit is neither under the one
// nor at the other.
type spanMemory struct {
	limit   uint64 // blocks that the RPC is believed to take; 0: nothing speaks against any number
	taken   uint64 // the most that it took
	refused uint64 // the fewest that it is known to refuse
	named   uint64 // what it said last that it takes; 0: nothing
	until   time.Time
}

// spanMemoryFor is how long a refusal is remembered: an RPC's limits change, and a
// number of results that is too large says more of some blocks than of the RPC.
const spanMemoryFor = 600 * time.Second

// believed gives the number of blocks to ask the RPC for, at most wanted.
func (m *spanMemory) believed(wanted uint64, now time.Time) uint64 {
	if m.limit == 0 || !now.Before(m.until) {
		return wanted
	}
	return min(wanted, m.limit)
}

// refuse notes that the RPC refused a piece, and the number of blocks that it named
// as its limit; 0 where it named none. A number that is named twice isn't one that
// does for some blocks only, so more isn't tried again.
func (m *spanMemory) refuse(span, named uint64, now time.Time) {
	if !now.Before(m.until) {
		*m = spanMemory{}
	}
	m.refused = min(span, orDefault(m.refused, span))
	if named < span {
		if named > 0 && named == m.named {
			m.refused = min(m.refused, named+1)
		}
		m.named = named
	}
	if m.taken >= m.refused {
		m.taken = 0 // there are more results in these blocks than there were in those
	}
	m.limit = max(m.taken, min(cutTo(span, named), orDefault(m.limit, span)))
	m.until = now.Add(spanMemoryFor)
}

// take notes that the RPC took a piece. Where it refused as many blocks a while ago,
// there are fewer results in these: the refusal counts until it is old all the same,
// for the next piece may be like the other one again.
func (m *spanMemory) take(span uint64) {
	if m.limit == 0 {
		return
	}
	m.taken = max(m.taken, min(span, m.refused-1))
	m.limit = max(m.limit, m.taken)
	if span > m.named {
		m.named = 0
	}
}

// grow raises a limit that was reached, half the way to what was refused, until the
// two are close. It never comes to what was refused. Queries do this as they begin:
// within a query the smaller size is kept (rule A9.2).
func (m *spanMemory) grow() {
	if m.taken < m.limit {
		return
	}
	if gap := m.refused - m.limit; gap > max(1, m.limit/8) {
		m.limit += gap / 2
	}
}

// pieceSize gives the number of blocks to begin a query with.
func (c *chainState) pieceSize(chunk uint64) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ring == nil {
		return chunk
	}
	return c.ring.pieceSize(chunk, c.logNeeds(), time.Now())
}

// takenBelow gives the most blocks, fewer than a span that was refused, that an RPC
// took a short while ago; 0 where none did.
func (c *chainState) takenBelow(span uint64) (most uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ring == nil {
		return 0
	}
	now, need := time.Now(), c.logNeeds()
	for _, e := range c.ring.endpoints {
		if m := &e.spans; m.taken < span && now.Before(m.until) && need.fits(&e.caps) && !e.health.cooling(now) {
			most = max(most, m.taken)
		}
	}
	return most
}

func (c *chainState) logNeeds() requirement { return requirement{logs: true, archive: c.archive} }
