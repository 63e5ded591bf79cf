package rpcpool

import "time"

// This file has how it is found out that the chain itself went back (a rollback), rather
// than some of its RPCs.

// wentBack tells whether the chain itself went back: enough operators have said for
// long enough less than they said before, and nobody has said otherwise since.
func (v *headView) wentBack(r *ring, now time.Time, p *Freshness) bool {
	needed, patience := min(rollbackOperators, r.sources), rollbackAfter
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
			fallen[r.source(e)] = true
		}
	}
	if len(fallen) == 0 {
		return false
	}
	for _, e := range r.endpoints {
		// One that stands still at the old head doesn't speak for the old chain.
		if h := &e.heads; h.at.After(first) && h.rose.After(first) && v.lag(h.seen) <= p.ejectLag() && !e.expelled {
			return false
		}
	}
	return len(fallen) >= needed || now.Sub(first) >= loneRollbackAfter
}

// rollBack begins anew from what the RPCs say now. It gives those that were left alone for
// what was no fault of theirs.
func (v *headView) rollBack(r *ring, now time.Time) (freed []*endpoint) {
	*v = headView{pace: blockPace{fixed: v.pace.fixed}, listedAt: v.listedAt}
	for _, e := range r.endpoints {
		h := &e.heads
		if !h.fellAt.IsZero() {
			if e.health.stands() {
				freed = append(freed, e)
			}
			e.health.reset()
			h.listed = min(h.listed, h.seen)
		}
		*h = headState{listed: h.listed, seen: h.seen, at: h.at, rose: h.rose, top: h.seen, topAt: h.at, spoke: true}
		if h.at.IsZero() || now.Sub(h.at) > 2*rollbackAfter {
			h.listed, h.seen, h.at, h.top = 0, 0, time.Time{}, 0 // from before
		}
	}
	v.raise(r, nil, now)
	if v.anchor == 0 {
		v.alone = true
		for _, e := range r.endpoints {
			v.mark = max(v.mark, e.heads.seen)
		}
	}
	return freed
}
