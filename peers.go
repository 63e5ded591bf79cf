package rpcpool

import (
	"maps"
	"time"
)

// This file has what a pool tells the others of a fleet, and what it makes of what they say.
// Their word is a hint with an end: an RPC that they warn of is a candidate all the same,
// behind all that nobody warns of. So whatever they say, and whoever says it, a call that
// would have had an answer without them has one.

const (
	// A proxy that another process found dead may be dead for that process alone.
	maxProxyWarning = 60 * time.Second
	// A head is old news after that.
	headHolds = 15 * time.Second
)

// peerMarks is what a fleet says of one RPC, or of one proxy, and what it was told. The lock
// of the RPC's or proxy's own state guards it.
type peerMarks struct {
	id         string
	until      time.Time            // the end of the warning; zero: there is none
	warnedAt   time.Time            // when what it is about was found out
	methods    map[string]time.Time // that it doesn't serve, until when
	lastUntil  time.Time            // when the last of all that ends
	answeredAt time.Time            // the last answer, as far as this process knows
	told       time.Time            // until when the others were told to leave it alone
}

// warn tells whether others say that it fails, or doesn't serve the method. Where nothing is
// shared there are no marks.
func (m *peerMarks) warn(method string, now time.Time) bool {
	if m == nil {
		return false
	}
	return now.Before(m.until) || len(m.methods) > 0 && now.Before(m.methods[method])
}

// last tells whether any of what others say holds at now.
func (m *peerMarks) last(now time.Time) bool { return m != nil && now.Before(m.lastUntil) }

// mark takes over that others found out at a moment that it is to be left alone until another.
// An answer that came since is later news. It tells whether a warning began.
func (m *peerMarks) mark(at, until, now time.Time) (began bool) {
	if at.Before(m.answeredAt) {
		return false
	}
	began = !now.Before(m.until)
	m.until, m.warnedAt = later(m.until, until), later(m.warnedAt, at)
	m.lastUntil = later(m.lastUntil, until)
	return began
}

// clear takes over that another had an answer at a moment: a warning from since then stands.
func (m *peerMarks) clear(at time.Time) {
	m.answeredAt = later(m.answeredAt, at)
	if !at.Before(m.warnedAt) {
		m.until = time.Time{}
	}
}

func (m *peerMarks) markMethod(method string, until, now time.Time) {
	m.methods = keepMark(m.methods, method, until, now)
	m.lastUntil = later(m.lastUntil, until)
}

// heard notes an answer, and tells whether the others should know of it: one of them, or
// this process, has said that it is to be left alone.
func (m *peerMarks) heard(now time.Time) (news bool) {
	news = now.Before(later(m.until, m.told))
	m.answeredAt, m.until, m.told = now, time.Time{}, time.Time{}
	return news
}

// warnedLast puts those that others warn of behind all others.
func warnedLast(list []*endpoint, method string, now time.Time) {
	var warned []*endpoint
	kept := list[:0]
	for _, e := range list {
		if e.peers.warn(method, now) {
			warned = append(warned, e)
		} else {
			kept = append(kept, e)
		}
	}
	copy(list[len(kept):], warned)
}

// unwarnedFirst gives RPCs that are to be asked in turn from an index on, with those last
// that others warn of.
func (c *chainState) unwarnedFirst(list []*endpoint, from int, method string) (turned []*endpoint, first int) {
	if c.pool.sharing == nil {
		return list, from
	}
	turned = append(append(turned, list[from:]...), list[:from]...)
	c.mu.Lock()
	defer c.mu.Unlock()
	warnedLast(turned, method, time.Now())
	return turned, 0
}

// passesOver tells whether the sampler leaves an RPC out for now.
func (c *chainState) passesOver(e *endpoint) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	return e.away(now) || e.peers.warn("", now)
}

// What is told. In all of these the caller holds c.mu, unless they say otherwise.

// fact begins a fact about an RPC; nil where nothing is shared.
func (c *chainState) fact(kind FactKind, e *endpoint, lasts time.Duration) *Fact {
	if c.pool.sharing == nil || c.ring == nil || e.peers == nil {
		return nil
	}
	return &Fact{Kind: kind, Chain: c.ring.key, ID: e.peers.id, Label: e.label, For: lasts}
}

// shareCooldown tells the others of a cooldown, as far as nobody can take it back: what hangs
// on a proxy that may be dead (rule A7.3) isn't told before its call has ended. That an RPC
// lags is for each to find out by a policy of its own.
func (c *chainState) shareCooldown(e *endpoint) {
	now := time.Now()
	until := e.health.settledUntil()
	f := c.fact(FactCooldown, e, until.Sub(now))
	if f != nil && !e.heads.ejected && now.Before(until) && until.After(e.peers.told) {
		e.peers.told = until
		c.pool.sharing.tell(f)
	}
}

// shareRest tells the others that an RPC wants to be asked less.
func (c *chainState) shareRest(e *endpoint, now time.Time) {
	until := e.backOff.until
	f := c.fact(FactRest, e, until.Sub(now))
	if f != nil && now.Before(until) && until.After(e.peers.told) {
		e.peers.told = until
		c.pool.sharing.tell(f)
	}
}

// shareHead tells the others of a head that has lifted the high-water mark, unless that is
// what one of them said.
func (c *chainState) shareHead(e *endpoint, before uint64) {
	mark := c.heads.mark
	if c.pool.sharing == nil || c.policy == nil || mark <= before || mark == c.heads.peers || e.heads.claim() != mark {
		return
	}
	if f := c.fact(FactHead, e, headHolds); f != nil {
		f.Head = mark
		c.pool.sharing.tell(f)
	}
}

// shareUnsupported tells the others of a method that an RPC doesn't serve. It takes c.mu.
func (c *chainState) shareUnsupported(e *endpoint, method string) {
	if c.pool.sharing == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.fact(FactUnsupported, e, unsupportedFor); f != nil {
		f.Method = method
		c.pool.sharing.tell(f)
	}
}

// heard ends what others say of an RPC that has answered this process, and tells them so.
func (c *chainState) heard(e *endpoint, method string) {
	if c.pool.sharing == nil {
		return
	}
	now := time.Now()
	if e.peers == nil || e.away(now) {
		return
	}
	delete(e.peers.methods, method)
	if e.peers.heard(now) {
		if f := c.fact(FactClear, e, 0); f != nil {
			c.pool.sharing.tell(f)
		}
	}
}

// shareDead tells the others that a proxy is dead. The caller holds r.mu.
func (r *proxyRing) shareDead(p *proxy, now time.Time) {
	if r.sharing == nil {
		return
	}
	p.peers.told = p.health.settledUntil()
	r.sharing.tell(&Fact{Kind: FactProxyDead, ID: p.peers.id, Label: p.label, For: p.peers.told.Sub(now)})
}

// heard ends what others say of a proxy that an answer came through, and tells them so. The
// caller holds r.mu.
func (r *proxyRing) heard(p *proxy) {
	if r.sharing != nil && p.peers.heard(time.Now()) {
		r.sharing.tell(&Fact{Kind: FactClear, ID: p.peers.id, Label: p.label})
	}
}

// What is taken over.

// take takes over what others say.
func (s *sharing) take(facts []Fact) {
	now := time.Now()
	held := s.sift(facts, now)
	if len(held) == 0 {
		return
	}
	for _, c := range s.pool.handles() {
		c.take(held, now)
	}
	s.pool.proxies.take(held, now)
}

// sift gives what others say that is valid, and keeps it for lists that are still to come. Of
// what the pool said itself only the good counts: that an RPC answered.
func (s *sharing) sift(facts []Fact, now time.Time) (held []heldFact) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range facts {
		f := &facts[i]
		switch {
		case !f.Valid():
			s.counts.Refused++
			continue
		case f.From == s.from && f.Kind != FactClear:
			continue
		case f.From != s.from:
			s.counts.Taken++
		}
		h := heldFact{*f, now.Add(-f.Age), now.Add(min(f.For, maxCooldown))}
		held = append(held, h)
		s.keep(&h, now)
	}
	return held
}

// keep remembers a fact about an RPC. The caller holds s.mu.
func (s *sharing) keep(h *heldFact, now time.Time) {
	if h.Chain == "" || h.Kind == FactHead {
		return
	}
	key := h.key()
	if h.Kind == FactClear {
		if !h.at.Before(s.known[key].at) {
			delete(s.known, key)
		}
		return
	}
	if _, there := s.known[key]; !there && len(s.known) >= maxKnownFacts {
		maps.DeleteFunc(s.known, func(_ factKey, old heldFact) bool { return !now.Before(old.until) })
		for old := range s.known { // some other one goes, if all still hold
			if len(s.known) < maxKnownFacts {
				break
			}
			delete(s.known, old)
		}
	}
	s.known[key] = *h
}

// about gives what is known of a chain's RPCs, by their ids.
func (s *sharing) about(chain string, now time.Time) map[string][]heldFact {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := map[string][]heldFact{}
	for key, h := range s.known {
		if key.chain == chain && now.Before(h.until) {
			known[key.id] = append(known[key.id], h)
		}
	}
	return known
}

// meetPeers has the RPCs of a new list known by their ids, and takes over what others said of
// those that are new. The caller holds c.mu.
func (c *chainState) meetPeers(now time.Time) {
	s := c.pool.sharing
	if s == nil {
		return
	}
	known := s.about(c.ring.key, now)
	c.ring.byID = make(map[string]*endpoint, len(c.ring.endpoints))
	for _, e := range c.ring.endpoints {
		if e.peers == nil {
			e.peers = &peerMarks{id: s.idOfRPC(e.url)}
			for _, h := range known[e.peers.id] {
				c.takeOne(e, &h, now)
			}
		}
		c.ring.byID[e.peers.id] = e
	}
}

// take takes over what others say of this handle's RPCs.
func (c *chainState) take(held []heldFact, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ring == nil {
		return
	}
	for i := range held {
		if e := c.ring.byID[held[i].ID]; e != nil && held[i].Chain == c.ring.key {
			c.takeOne(e, &held[i], now)
		}
	}
}

// takeOne takes over a fact about an RPC. It is no failure of this process's: neither the
// failures in a row nor the reports know of it. The caller holds c.mu.
func (c *chainState) takeOne(e *endpoint, h *heldFact, now time.Time) {
	m := e.peers
	switch h.Kind {
	case FactCooldown, FactRest:
		if m.mark(h.at, h.until, now) {
			c.stepOff(e) // as after a failure: it would come back each time a warning ends
		}
	case FactUnsupported:
		m.markMethod(h.Method, h.until, now)
	case FactClear:
		m.clear(h.at)
	case FactHead:
		if c.policy != nil {
			c.heads.outdate(&e.heads, h.Head, now)
		}
	}
	if m.last(now) {
		c.markUnfit(e)
	}
}

// outdate has an RPC asked for its head again that others have heard a higher one from. What
// they say is never believed by itself: who writes to the view would else decide what is
// fresh. So all that it can cost is a question more, twice a block time at most.
func (v *headView) outdate(h *headState, head uint64, now time.Time) {
	v.peers = head
	if !h.at.IsZero() && head > h.seen && now.Sub(h.datedAt) >= v.sampleAge()/2 {
		h.dated, h.datedAt = true, now
	}
}

// add adds a proxy.
func (r *proxyRing) add(p *proxy) {
	if r.sharing != nil {
		p.peers.id = r.sharing.idOfProxy(p.dial)
	}
	r.proxies = append(r.proxies, p)
}

// take takes over what others say of the proxies. It undoes nothing: only what this process
// found out itself does.
func (r *proxyRing) take(held []heldFact, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range held {
		h := &held[i]
		for _, p := range r.proxies {
			if p.peers.id != h.ID {
				continue
			}
			switch h.Kind {
			case FactProxyDead:
				_ = p.peers.mark(h.at, now.Add(min(h.until.Sub(now), maxProxyWarning)), now)
			case FactClear:
				p.peers.clear(h.at)
			}
		}
	}
}
