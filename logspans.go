package rpcpool

import (
	"math"
	"time"
)

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

// take notes that the RPC took a piece. One that it refused before, or a larger
// one, it takes now: there are fewer results in it, or the limit has changed.
func (m *spanMemory) take(span uint64) {
	if m.limit == 0 {
		return
	}
	m.taken = max(m.taken, span)
	m.limit = max(m.limit, span)
	if span >= m.refused {
		m.named = 0
		m.refused = span
		if span < math.MaxUint64 {
			m.refused++
		}
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
