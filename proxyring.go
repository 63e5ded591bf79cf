package rpcpool

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bomzrpc/rpcpool/internal/proxydial"
)

// proxy is one of the user's proxies.
type proxy struct {
	dial  *proxydial.Proxy
	label string // masked
	links *links // connections through it

	// deaths counts how often the proxy was found dead. A failed connection
	// through it stands as long as this doesn't change (see failure.stands).
	deaths atomic.Uint64

	// hurried counts attempts in a row that got no answer in the little time that their
	// callers had.
	hurried atomic.Int32

	meter meter // needs no lock

	health ledger    // guarded by proxyRing.mu
	peers  peerMarks // guarded by proxyRing.mu; what others of a fleet say of it
}

// proxyRing has the user's proxies, which all chains of the pool share. The
// current one is used until it cools (section "Proxies" of docs/FAILOVER.md).
type proxyRing struct {
	proxies []*proxy
	hooks   *hookSet
	sharing *sharing // nil where nothing is shared

	mu  sync.Mutex // protects cur and every proxy's health and peers
	cur int
}

// current gives the proxy to use at now; nil where all are cooling.
func (r *proxyRing) current(now time.Time) *proxy {
	r.mu.Lock()
	from := r.cur
	p := r.pick(from, now)
	to := r.cur
	r.mu.Unlock()
	r.tellSwitch(from, to)
	return p
}

// other gives a proxy that isn't cooling and isn't p, and makes it the current
// one; nil where there is none.
func (r *proxyRing) other(p *proxy, now time.Time) *proxy {
	r.mu.Lock()
	from := r.cur
	other := r.switchFrom(p, now)
	to := r.cur
	r.mu.Unlock()
	r.tellSwitch(from, to)
	return other
}

// switchFrom is other. The caller holds r.mu.
func (r *proxyRing) switchFrom(p *proxy, now time.Time) *proxy {
	for i := range r.proxies {
		if r.proxies[i] != p {
			continue
		}
		if next := r.find(i+1, p, now); next >= 0 {
			r.cur = next
			return r.proxies[next]
		}
	}
	return nil
}

// find gives the index of the first proxy from i on that isn't cooling and isn't to be left
// out, those last that others of a fleet have found dead; -1 where there is none.
func (r *proxyRing) find(i int, not *proxy, now time.Time) int {
	warned := -1
	for step := range r.proxies {
		at := (i + step) % len(r.proxies)
		switch p := r.proxies[at]; {
		case p == not || p.health.cooling(now):
		case !now.Before(p.peers.until):
			return at
		case warned < 0:
			warned = at
		}
	}
	return warned
}

// besides gives a proxy that isn't cooling and isn't p, and leaves the current one as it
// is; nil where there is none.
func (r *proxyRing) besides(p *proxy, now time.Time) *proxy {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at := r.find(0, p, now); at >= 0 {
		return r.proxies[at]
	}
	return nil
}

// pick makes the first proxy from index i on that isn't cooling the current one.
// Where all are cooling it gives nil, and the one whose cooldown ends first is
// the current one from then on (rule A4.2a).
func (r *proxyRing) pick(i int, now time.Time) *proxy {
	if at := r.find(i, nil, now); at >= 0 {
		r.cur = at
		return r.proxies[at]
	}
	r.cur = r.soonest()
	return nil
}

// soonest gives the proxy whose cooldown ends first, of several the first listed.
func (r *proxyRing) soonest() (first int) {
	var end time.Time
	for i, p := range r.proxies {
		if _, until := p.health.standing(); i == 0 || until.Before(end) {
			first, end = i, until
		}
	}
	return first
}

// firstBack is when the first of the cooling proxies may be used again; zero
// where none is cooling.
func (r *proxyRing) firstBack(now time.Time) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	var first time.Time
	for _, p := range r.proxies {
		_, until := p.health.standing()
		if now.Before(until) && (first.IsZero() || until.Before(first)) {
			first = until
		}
	}
	return first
}

// refuse notes that the proxy refused an RPC in a way that can be the RPC's doing.
// Where every other one cools, or has refused the RPC in this call too, it is: this
// refusal and the RPC's earlier ones in the call are taken back (rule A5.1). That is
// one step, so that no other call sees all proxies cooling meanwhile.
func (r *proxyRing) refuse(p *proxy, now time.Time, batch *batchBlame, earlier []proxyFailure) (f *failure, byAll bool) {
	var events []ProxyEvent
	defer func() { // when the lock is free
		for _, event := range events {
			r.tellProxy(event)
		}
	}()
	r.mu.Lock()
	defer r.mu.Unlock()
	f = &failure{at: now, echo: batch.echoesProxy()}
	if !f.echo {
		p.health.record(f)
		events = append(events, p.event(ProxyCooled))
	}
	for _, other := range r.proxies {
		// One that refused may not be cooling any more: other calls get answers
		// through it.
		refused := other == p || slices.ContainsFunc(earlier, func(e proxyFailure) bool { return e.proxy == other })
		if !refused && !other.health.cooling(now) {
			return f, false
		}
	}
	for _, refusal := range append(earlier, proxyFailure{proxy: p, failure: f}) {
		if refusal.proxy.health.undo(refusal.failure) {
			events = append(events, refusal.proxy.event(ProxyUndone))
		}
	}
	return f, true
}

// settle makes the failure of a proxy final.
func (r *proxyRing) settle(p *proxy, f *failure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.health.settle(f)
}

// bury cools a proxy that is dead beyond doubt: every failed connection through
// it, of whichever call, no longer stands. Who acts upon it first, of the requests of a
// batch, is decided under the lock: the others find the proxy cooling.
func (r *proxyRing) bury(p *proxy, now time.Time, batch *batchBlame, checked bool) {
	r.mu.Lock()
	if batch.echoesProxy() {
		r.mu.Unlock()
		return
	}
	p.health.record(&failure{at: now, final: true})
	p.deaths.Add(1)
	event := p.event(ProxyDead)
	r.shareDead(p, now)
	r.mu.Unlock()
	event.Checked = checked
	r.tellProxy(event)
}

// served resets the proxy after an answer came through it.
func (r *proxyRing) served(p *proxy) {
	if p.hurried.Load() != 0 {
		p.hurried.Store(0)
	}
	r.mu.Lock()
	back := !p.health.clean()
	if back {
		p.health.reset()
	}
	r.heard(p)
	r.mu.Unlock()
	if back {
		r.tellProxy(ProxyEvent{Proxy: p.label, Change: ProxyBack, Deaths: p.deaths.Load()})
	}
}

// closeLinks closes every connection through every proxy.
func (r *proxyRing) closeLinks() {
	for _, p := range r.proxies {
		p.links.close()
	}
}
