package rpcpool

import (
	"slices"
	"time"
)

// RPCStats is what a handle knows of one RPC at a moment. Everything in it may be
// shown. Counters begin when the RPC is first listed.
type RPCStats struct {
	// RPC is the masked URL. Two RPCs of one host may have the same.
	RPC string
	// Position is the RPC's place in the list, 0 for the best.
	Position int
	// Current tells whether the cursor stands on it.
	Current bool
	// State says in a word whether it is asked.
	State RPCState
	// Cooling tells whether it is left alone for now, until Until.
	Cooling bool
	// Until is when the cooldown, or the rest that it asked for, ends; zero where there is
	// none.
	Until time.Time
	// WarnedUntil is until when it is asked after all others, because another bot of the fleet
	// found it failing; zero where none did. See [Config.Shared].
	WarnedUntil time.Time
	// FailuresInRow is the number of failures since it last answered.
	FailuresInRow int
	// Unsupported are the methods that it is passed over for.
	Unsupported []string
	// Head is the highest block that it is known to have; with [WithFreshness] the block
	// that it said last, or the list says. 0 where unknown.
	Head uint64
	// HeadAt is when it said so; zero without [WithFreshness] or where only the list says.
	HeadAt time.Time
	// Lag is the number of blocks that Head is under the highest of all; with
	// [WithFreshness] under the high-water mark.
	Lag uint64
	// Doubt says why its head isn't taken at its word; empty where it is.
	Doubt string

	// InFlight is the number of attempts under way.
	InFlight int
	// Attempts is the number of attempts that ended, Served those with an answer.
	Attempts, Served uint64
	// Transport, Protocol, Semantic and RateLimited are failures by class (rule B1).
	Transport, Protocol, Semantic, RateLimited uint64
	// ProxyFailures is the number of attempts that failed by the proxy's fault.
	ProxyFailures uint64
	// Ejections is the number of cooldowns, those that were undone included.
	Ejections uint64
	// Forks is how often it and another RPC had different hashes for a block (rule B11);
	// only with [WithFreshness].
	Forks uint64
	// Bytes is the number of bytes of the results.
	Bytes uint64
	// Mean, P50, P95 and P99 are the latency of attempts with an answer; 0 where
	// there is none. The quantiles are right within 13 %.
	Mean, P50, P95, P99 time.Duration
}

// RPCState is whether an RPC is asked.
type RPCState string

// The states.
const (
	StateReady      RPCState = "ready"       // it is asked
	StateCooling    RPCState = "cooling"     // it failed, and is left alone until RPCStats.Until
	StateTrial      RPCState = "trial"       // its cooldown is over, and it hasn't answered a request since
	StateResting    RPCState = "resting"     // it asked to be left alone (a rate limit), until RPCStats.Until
	StateWrongChain RPCState = "wrong_chain" // it is on another chain, and is left out until the list changes
)

// HighWater is the high-water mark of a handle with [WithFreshness]: the highest head
// that is believed, 0 before the first. It never goes down, unless the chain does.
func (c *Chain) HighWater() uint64 {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if c.s.policy == nil {
		return 0
	}
	return c.s.heads.mark
}

// Stats tells what the handle knows of its RPCs, in the order of the list. It sends
// nothing and is cheap to call; before the first call of the handle it is empty.
func (c *Chain) Stats() []RPCStats { return c.s.stats(time.Now()) }

func (c *chainState) stats(now time.Time) []RPCStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ring == nil {
		return nil
	}
	c.restoreCursor()
	all := make([]RPCStats, len(c.ring.endpoints))
	highest := uint64(0)
	for i, e := range c.ring.endpoints {
		all[i] = e.stats(now)
		all[i].Current = i == c.cursor
		highest = max(highest, all[i].Head)
	}
	if c.policy != nil {
		c.heads.describe(c.ring, all, now)
		return all
	}
	for i := range all {
		if all[i].Head > 0 {
			all[i].Lag = highest - all[i].Head
		}
	}
	return all
}

// describe puts what is known of heads into the statistics.
func (v *headView) describe(r *ring, all []RPCStats, now time.Time) {
	for i, e := range r.endpoints {
		all[i].Head, all[i].HeadAt = e.heads.claim(), e.heads.at
		all[i].Lag = v.lag(e.heads.claim())
		all[i].Doubt = v.doubt(e, now)
	}
}

// state says in a word whether the RPC is asked.
func (e *endpoint) state(now time.Time) RPCState {
	switch {
	case e.expelled:
		return StateWrongChain
	case e.health.cooling(now):
		return StateCooling
	case e.backOff.lasts(now):
		return StateResting
	case e.health.stands():
		return StateTrial
	}
	return StateReady
}

// stats is called with the chain's lock held.
func (e *endpoint) stats(now time.Time) RPCStats {
	n, until := e.health.standing()
	s := RPCStats{RPC: e.label, Position: e.pos, State: e.state(now), FailuresInRow: n, Head: e.head.Load()}
	s.Cooling = now.Before(until)
	if until = later(until, e.backOff.until); now.Before(until) {
		s.Until = until
	}
	if e.peers != nil && now.Before(e.peers.until) {
		s.WarnedUntil = e.peers.until
	}
	for method, end := range e.unsupported {
		if now.Before(end) {
			s.Unsupported = append(s.Unsupported, method)
		}
	}
	slices.Sort(s.Unsupported)
	m := &e.meter
	s.InFlight = int(m.inFlight.Load())
	s.Attempts, s.Served, s.ProxyFailures = m.attempts.Load(), m.served.Load(), m.refused.Load()
	s.Transport, s.Protocol = m.failures[TransportFailure].Load(), m.failures[ProtocolFailure].Load()
	s.Semantic, s.RateLimited = m.failures[SemanticFailure].Load(), m.failures[RateLimitFailure].Load()
	s.Ejections, s.Forks, s.Bytes = m.ejections.Load(), m.forks.Load(), m.bytes.Load()
	s.Mean = m.latency.mean()
	s.P50, s.P95, s.P99 = m.latency.quantiles()
	return s
}

// ProxyStats is what a pool knows of one proxy at a moment. Everything in it may
// be shown.
type ProxyStats struct {
	// Proxy is the masked URL.
	Proxy string
	// Current tells whether it is the one in use.
	Current bool
	// State says in a word whether it is used.
	State ProxyState
	// Cooling tells whether it is left alone for now, until Until.
	Cooling bool
	// Until is when the cooldown ends; zero where there is none.
	Until time.Time
	// FailuresInRow is the number of failures since it last carried an answer.
	FailuresInRow int
	// WarnedUntil is until when it is used after all others, because another bot of the fleet
	// found it dead; zero where none did. See [Config.Shared].
	WarnedUntil time.Time
	// Deaths is how often it was found dead.
	Deaths uint64
	// InFlight is the number of attempts under way.
	InFlight int
	// Attempts is the number of attempts that ended, Served those with an answer,
	// Failures those that failed by the proxy's own fault.
	Attempts, Served, Failures uint64
	// Transport, Protocol, Semantic and RateLimited are failures of RPCs that were asked
	// through it, by class (rule B1). Many of Transport or RateLimited that another proxy
	// doesn't have speak against the proxy, or its address.
	Transport, Protocol, Semantic, RateLimited uint64
	// Bytes is the number of bytes of the results.
	Bytes uint64
	// Mean, P50, P95 and P99 are the latency of attempts with an answer.
	Mean, P50, P95, P99 time.Duration
}

// ProxyState is whether a proxy is used.
type ProxyState string

// The states.
const (
	ProxyReady   ProxyState = "ready"   // it is used, or stands by
	ProxyCooling ProxyState = "cooling" // it failed, and is left alone until ProxyStats.Until
	ProxyTrial   ProxyState = "trial"   // its cooldown is over, and no answer has come through it since
)

// ProxyStats tells what the pool knows of its proxies, in the order of
// [Config.Proxies]. It sends nothing and is cheap to call.
func (p *Pool) ProxyStats() []ProxyStats { return p.s.proxies.stats(time.Now()) }

func (r *proxyRing) stats(now time.Time) []ProxyStats {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]ProxyStats, len(r.proxies))
	for i, p := range r.proxies {
		n, until := p.health.standing()
		m := &p.meter
		all[i] = ProxyStats{
			Proxy: p.label, Current: i == r.cur, FailuresInRow: n, Deaths: p.deaths.Load(),
			InFlight: int(m.inFlight.Load()),
			Attempts: m.attempts.Load(), Served: m.served.Load(), Failures: m.refused.Load(),
			Transport: m.failures[TransportFailure].Load(), Protocol: m.failures[ProtocolFailure].Load(),
			Semantic: m.failures[SemanticFailure].Load(), RateLimited: m.failures[RateLimitFailure].Load(),
			Bytes: m.bytes.Load(),
			Mean:  m.latency.mean(),
		}
		all[i].P50, all[i].P95, all[i].P99 = m.latency.quantiles()
		switch {
		case now.Before(until):
			all[i].State, all[i].Cooling, all[i].Until = ProxyCooling, true, until
		case n > 0:
			all[i].State = ProxyTrial
		default:
			all[i].State = ProxyReady
		}
		if now.Before(p.peers.until) {
			all[i].WarnedUntil = p.peers.until
		}
	}
	return all
}
