package rpcpool

import "time"

// spanMemory is what is known of the log ranges that one RPC takes (rule A9.5). It
// is learned from the pieces of chunked queries and used for the next ones. The
// lock of its owner guards it.
type spanMemory struct {
	limit   uint64 // blocks that the RPC is believed to take; 0: nothing speaks against any number
	refused uint64 // the smallest number of blocks that it refused; 0: none
	proven  bool   // the RPC took as many as limit says since limit was set
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
// as its limit; 0 where it named none.
func (m *spanMemory) refuse(span, named uint64, now time.Time) {
	if !now.Before(m.until) {
		*m = spanMemory{}
	}
	m.refused = min(span, orDefault(m.refused, span))
	m.limit = min(cutTo(span, named), orDefault(m.limit, span))
	m.proven = false
	m.until = now.Add(spanMemoryFor)
}

// take notes that the RPC took a piece. One that it refused before, or a larger
// one, it takes now: there are fewer results in it, or the limit has changed.
func (m *spanMemory) take(span uint64) {
	if m.limit == 0 {
		return
	}
	if span >= m.limit {
		m.limit, m.proven = span, true
	}
	if span >= m.refused {
		m.refused = span + 1
	}
}

// grow raises a limit that was proven, half the way to what was refused, until the
// two are close. It never comes to what was refused. Queries do this as they begin:
// within a query the smaller size is kept (rule A9.2).
func (m *spanMemory) grow() {
	if !m.proven {
		return
	}
	if gap := m.refused - m.limit; gap > max(1, m.limit/8) {
		m.limit += gap / 2
		m.proven = false
	}
}
