package rpcpool

import (
	"maps"
	"slices"
	"time"
)

// lineup has the candidates of one walk as they were when it began: what changes meanwhile
// counts in the next (rule A4.2a). Nearly every walk ends at the first of them, so the
// others are only looked up when one is asked for; what a call costs doesn't grow with the
// list (rule F1). The RPCs that might be unfit then are few, and kept apart for it.
type lineup struct {
	ring   *ring
	cursor int
	want   *wanted
	step   int         // of the first candidate, from the cursor
	unfit  []*endpoint // of those that were marked when the walk began
	warned []*endpoint // likewise: fit, but others of a fleet warn of them; they come last

	list  []*endpoint // the first candidate at least, if there is one
	whole bool        // and all others
	lone  bool        // there is no other
	room  [1]*endpoint

	resort bool // those that cool are asked all the same
}

// lineUp takes the candidates of a walk that begins now; false where there is no list.
func (k *call) lineUp() bool {
	c := k.chain
	c.mu.Lock()
	defer c.mu.Unlock()
	c.restoreCursor()
	k.release()
	if c.ring == nil {
		return false
	}
	home := ""
	if k.caution != nil {
		home = k.demand.home
	}
	k.line.lineUp(c, &k.want, home, time.Now())
	if k.want.spread && len(k.line.list) > 0 {
		k.reserve(k.line.list[0])
	}
	return true
}

// lineUpTheRest is lineUp for the last resort.
func (k *call) lineUpTheRest() bool {
	c := k.chain
	c.mu.Lock()
	defer c.mu.Unlock()
	k.release()
	if c.ring == nil {
		return false
	}
	k.line.lineUpTheRest(c, &k.want, k.triedInEarnest(), time.Now())
	return true
}

// triedInEarnest are the URLs of the RPCs that the call has tried, but for those that only a
// dead proxy failed (rule A7.3).
func (k *call) triedInEarnest() map[string]bool {
	tried := maps.Clone(k.tried)
	for i := range k.failures {
		if f := &k.failures[i]; !f.failure.stands() {
			delete(tried, f.endpoint.url)
		}
	}
	return tried
}

// reserve counts the call in where calls are spread. The caller holds the chain's lock.
func (k *call) reserve(e *endpoint) {
	k.reserved = e
	e.reserved++
}

// release gives up what was reserved. The caller holds the chain's lock.
func (k *call) release() {
	if k.reserved != nil {
		k.reserved.reserved--
		k.reserved = nil
	}
}

// lineUp makes the candidates of a walk that begins now. home is the URL of the one to begin
// with; empty where that's the ring's business. The caller holds c.mu, and there is a ring.
func (l *lineup) lineUp(c *chainState, w *wanted, home string, now time.Time) {
	*l = lineup{ring: c.ring, cursor: c.cursor, want: w, list: l.room[:0]}
	if w.ranks() || home != "" {
		l.list, l.whole = candidates(c.ring, c.cursor, *w, now), true
		preferHome(l.list, home)
		if c.pool.sharing != nil {
			warnedLast(l.list, w.method, now)
		}
	} else {
		l.lookForFirst(c, now)
	}
	l.lone = l.whole && len(l.list) == 1
}

// lineUpTheRest makes the candidates of a call's last resort: those that cool and that it
// hasn't tried, the one that is back first at first (see [Config.LastResort]). The caller
// holds c.mu, and there is a ring.
func (l *lineup) lineUpTheRest(c *chainState, w *wanted, tried map[string]bool, now time.Time) {
	*l = lineup{ring: c.ring, cursor: c.cursor, want: w, list: l.room[:0], whole: true, resort: true}
	for step := range l.ring.endpoints {
		e := l.ring.from(l.cursor, step)
		if e.health.cooling(now) && !e.barred(now) && !tried[e.url] && w.suits(e, now) {
			l.list = append(l.list, e)
		}
	}
	slices.SortStableFunc(l.list, func(a, b *endpoint) int { return a.backAt(now).Compare(b.backAt(now)) })
	l.lone = len(l.list) == 1
}

func (l *lineup) lookForFirst(c *chainState, now time.Time) {
	w := l.want
	for step := range c.ring.endpoints {
		e := c.ring.from(c.cursor, step)
		if !w.fits(e, now) || e.peers.warn(w.method, now) {
			continue
		}
		if len(l.list) > 0 {
			l.unfit, l.warned = c.unfitNow(w, now)
			return
		}
		l.list, l.step = append(l.list, e), step
	}
	l.whole = true
	if c.pool.sharing != nil {
		l.addWarned(c, now)
	}
}

// addWarned adds those that others of a fleet warn of, where there are no further ones.
func (l *lineup) addWarned(c *chainState, now time.Time) {
	for step := range c.ring.endpoints {
		if e := c.ring.from(c.cursor, step); l.want.fits(e, now) && e.peers.warn(l.want.method, now) {
			l.list = append(l.list, e)
		}
	}
}

// leftAlone tells whether an RPC is left alone in this walk.
func (l *lineup) leftAlone(e *endpoint, now time.Time) bool {
	return e.barred(now) || !l.resort && e.health.cooling(now)
}

// unfitNow gives those of the marked RPCs that don't fit, and those that do but are warned
// of, and forgets those that nothing is held against any more.
func (c *chainState) unfitNow(w *wanted, now time.Time) (unfit, warned []*endpoint) {
	c.marked = slices.DeleteFunc(c.marked, func(e *endpoint) bool {
		e.marked = e.pos >= 0 && e.mayBeUnfit(now)
		return !e.marked
	})
	for _, e := range c.marked {
		switch {
		case !w.fits(e, now):
			unfit = append(unfit, e)
		case e.peers.warn(w.method, now):
			warned = append(warned, e)
		}
	}
	return unfit, warned
}

// markUnfit sees to it that an RPC is looked at by all walks to come, as long as something
// is held against it. The caller holds c.mu.
func (c *chainState) markUnfit(e *endpoint) {
	if !e.marked {
		e.marked = true
		c.marked = append(c.marked, e)
	}
}

// mayBeUnfit tells whether anything that was found out about the RPC may keep calls from
// it, now or later on.
func (e *endpoint) mayBeUnfit(now time.Time) bool {
	return e.expelled || e.backOff.lasts(now) || !e.health.clean() || now.Before(e.markedUntil) || e.peers.last(now)
}

// at gives the i-th candidate, nil behind the last one.
func (l *lineup) at(c *chainState, i int) *endpoint {
	if i >= len(l.list) {
		l.fill(c)
	}
	if i >= len(l.list) {
		return nil
	}
	return l.list[i]
}

// after gives the candidates behind the i-th one.
func (l *lineup) after(c *chainState, i int) []*endpoint {
	l.fill(c)
	return l.list[i+1:]
}

// fill adds the candidates behind the first one.
func (l *lineup) fill(c *chainState) {
	if l.whole {
		return
	}
	l.whole = true
	late := make(map[*endpoint]bool, len(l.unfit)+len(l.warned)) // false: not at all
	for _, e := range l.unfit {
		late[e] = false
	}
	for _, e := range l.warned {
		late[e] = true
	}
	c.mu.Lock() // for their caps, which a new list may change
	defer c.mu.Unlock()
	for step := l.step + 1; step < len(l.ring.endpoints); step++ {
		e := l.ring.from(l.cursor, step)
		if _, passed := late[e]; !passed && !l.want.exclude[e.url] && l.want.need.fits(&e.caps) {
			l.list = append(l.list, e)
		}
	}
	for step := 0; len(l.warned) > 0 && step < len(l.ring.endpoints); step++ {
		e := l.ring.from(l.cursor, step)
		if late[e] && !l.want.exclude[e.url] && l.want.need.fits(&e.caps) {
			l.list = append(l.list, e)
		}
	}
}
