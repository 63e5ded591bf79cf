package rpcpool

import (
	"context"
	"log/slog"
	"time"
)

// This file has one attempt: a request to one RPC through one proxy.

// firstProxy gives the proxy to begin with at an RPC: the current one, or another where the
// other leg of a hedged read, or a hurried attempt before, goes through that.
func (k *call) firstProxy() *proxy {
	now, not := time.Now(), k.shunned
	if not == nil && k.leg != nil && k.leg.avoid != nil {
		not = k.leg.avoid.p
	}
	if not != nil {
		if other := k.pool.proxies.besides(not, now); other != nil {
			return other
		}
	}
	return k.pool.proxies.current(now)
}

// attempt sends a request once: the call's own, or a question to the RPC, and says in out
// what came of it. Where the caller or the pool ended it, k.err says so and the outcome is
// nobody's. deaths is the proxy's count at its start.
func (k *call) attempt(v *visit, req request, out *outcome) (deaths uint64) {
	e, p := v.e, v.proxy
	deaths = p.deaths.Load()
	if k.err = k.ended(); k.err != nil || !k.takeLeave() {
		return deaths
	}
	defer k.giveBack()
	within := k.ctx
	if k.watch != nil {
		within = k.watchAttempt(v, req)
	}
	start := time.Now()
	given := k.allot(start)
	ctx, cancel := context.WithTimeout(within, given)
	defer cancel()
	if k.leg != nil {
		k.leg.at.Store(&hedgePlace{e, p})
	}
	e.meter.begin()
	p.meter.begin()
	v.took = 0
	defer func() {
		if v.took == 0 { // the user's function panics
			v.took = time.Since(start)
		}
		e.meter.end(out, v.took)
		p.meter.end(out, v.took)
	}()
	*out = req.send(ctx, target{chain: k.key, endpoint: e, proxy: p, stays: k.line.resort})
	v.took = time.Since(start)
	k.arrived = k.arrived || req == k.req && out.before
	if out.verdict != VerdictOK && out.verdict != VerdictCaller && k.brokenOff(v, req, out, given) {
		*out = outcome{}
		return deaths
	}
	if k.caution != nil {
		k.inspect(v, req, out, start)
	}
	k.note(e, p, req.method(), out, v.took)
	return deaths
}

// brokenOff tells whether a failed attempt is nobody's, because the call has ended meanwhile
// or can't pay for another one; k.err says which.
func (k *call) brokenOff(v *visit, req request, out *outcome, given time.Duration) bool {
	if req == k.req {
		k.arrived = k.arrived || out.arrived && out.ranPerhaps(true)
	}
	if k.err = k.ended(); k.err != nil {
		k.leftOpen(v, out)
		return true
	}
	if out.unaffordable {
		k.err = k.unaffordable(out.err)
		return true
	}
	out.early = k.endedEarly(out, given, v.took)
	return false
}

// note keeps a failed attempt for the errors, and logs every one.
func (k *call) note(e *endpoint, p *proxy, method string, out *outcome, took time.Duration) {
	failed, logged := out.verdict != VerdictOK && out.verdict != VerdictCaller, k.pool.log.Enabled(k.ctx, slog.LevelDebug)
	if !failed && !logged {
		return
	}
	a := Attempt{RPC: e.label, Proxy: p.label, Verdict: out.verdict, Class: classOf(out), Detail: out.detail, Duration: took}
	if failed {
		k.attempts = append(k.attempts, a)
		if k.tried == nil {
			k.tried = map[string]bool{}
		}
		if !out.crowded {
			k.tried[e.url] = true
		}
	}
	if !logged {
		return
	}
	k.pool.log.LogAttrs(k.ctx, slog.LevelDebug, "rpcpool: attempt",
		slog.String(keyChain, k.chain.ref),
		slog.String(keyMethod, method),
		slog.String(keyRPC, a.RPC),
		slog.String(keyProxy, a.Proxy),
		slog.String(keyVerdict, string(a.Verdict)),
		slog.String(keyDetail, a.Detail),
		slog.Duration(keyDuration, took))
}
