package rpcpool

import (
	"errors"
	"time"
)

// This file has what is done upon each verdict (the table of rule A5).

// answered goes on after a good answer: to a question, to the request, or one that others
// are asked about before it is handed out.
func (k *call) answered(v *visit, req request, out outcome) step {
	switch {
	case req != k.req:
		k.pool.proxies.served(v.proxy)
		return sameRPC
	case out.doubtful:
		k.pool.proxies.served(v.proxy)
		k.held = &heldAnswer{e: v.e, proxy: v.proxy, out: out, took: v.took}
		return unconfirmed
	}
	return k.succeed(v.e, v.proxy, out)
}

// succeed hands the result out: the RPC and the proxy are as good as new, and
// what this call had against the RPC is forgotten.
func (k *call) succeed(e *endpoint, p *proxy, out outcome) step {
	if k.chain.served(e, k.want.method, k.want.span) {
		k.tellBack(e)
	}
	k.pool.proxies.served(p)
	for i := range k.failures {
		if k.failures[i].endpoint.url == e.url {
			k.failures[i].served = true
		}
	}
	k.chain.noteWrites(e, k.want.method, out.result)
	k.result = out.result
	return finished
}

// refused hands the caller's error out as it is. One about a raw transaction that an
// attempt before may have brought to the network is doubtful: "nonce too low" then
// most likely says that it was mined.
func (k *call) refused(out outcome) step {
	k.err = out.err
	k.doubtful = k.arrived && isRawSend(k.want.method)
	return finished
}

// rpcFailed cools an RPC that answered and is at fault, or leaves it alone for as long
// as it asks for.
func (k *call) rpcFailed(e *endpoint, out outcome) step {
	if k.restsInstead(&out) {
		return k.rest(e, out)
	}
	k.fail(e, &failure{at: time.Now(), final: true, echo: out.batch.echoesRPC()}, out)
	return next
}

// connFailed cools an RPC that couldn't be reached, as long as the proxy isn't
// found dead. The third in a call has the proxy checked.
func (k *call) connFailed(e *endpoint, p *proxy, out outcome, deaths uint64) step {
	f := &failure{at: time.Now(), proxy: p, deaths: deaths, echo: out.batch.echoesRPC()}
	k.fail(e, f, out)
	if !f.stands() {
		return next // the proxy died under this attempt, which noticeUndone sees
	}
	if k.unreached(p) < checkProxyAfter {
		return next
	}
	return k.check(p)
}

// fail notes a failure of an RPC.
func (k *call) fail(e *endpoint, f *failure, out outcome) {
	k.failures = append(k.failures, callFailure{
		endpoint: e, failure: f, report: out.report, detail: out.detail, verdict: out.verdict, class: classOf(&out),
	})
	if inRow, until := k.chain.failed(e, f); inRow > 0 {
		k.tellFailure(&k.failures[len(k.failures)-1], inRow, until)
	}
}

// stale ejects an RPC that lags far behind, and passes over one that lags a little.
func (k *call) stale(e *endpoint, out outcome) step {
	k.sawStale = true
	k.tellStale(e, out.eject)
	if out.eject {
		k.chain.mark(func(time.Time) { e.heads.ejected = true })
		k.fail(e, &failure{at: time.Now(), final: true, echo: out.batch.echoesRPC()}, out)
	}
	return next
}

// passOver leaves an RPC out that is fine but can't serve this request.
func (k *call) passOver(e *endpoint, req request, out outcome) step {
	switch out.verdict {
	case VerdictUnsupported:
		if method := req.method(); method != "" { // in Run there is no telling which method it was
			k.chain.markUnsupported(e, method)
			k.chain.shareUnsupported(e, method)
			if req == k.req {
				return next
			}
		}
	case VerdictNoState:
		if out.pruned {
			k.chain.mark(func(now time.Time) {
				e.markPruned(k.want.read, now)
				k.chain.markUnfit(e)
			})
		}
	case VerdictRange:
		k.rangeRefusals++
		// A limit that a piece keeps is no hint for it, and must not hide another's.
		if named := out.suggestedSpan(); k.want.span == 0 || named < k.want.span {
			k.named = max(k.named, named)
		}
		if k.want.span > 0 {
			k.chain.mark(func(now time.Time) { e.spans.refuse(k.want.span, out.suggestedSpan(), now) })
		}
		if k.rangeRefusals >= maxRangeRefusals {
			k.err = k.exhausted()
			return finished
		}
	}
	if k.want.exclude == nil {
		k.want.exclude = map[string]bool{}
	}
	k.want.exclude[e.url] = true
	return next
}

// mark changes what is known of an endpoint.
func (c *chainState) mark(change func(now time.Time)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(time.Now())
}

// markUnsupported has an RPC passed over for a method for a while.
func (c *chainState) markUnsupported(e *endpoint, method string) {
	c.mark(func(now time.Time) {
		e.markUnsupported(method, now)
		c.markUnfit(e)
	})
}

// otherProxy gives the proxy to ask an RPC through that blocked p's address; nil
// where that was tried, or there is none. Which address is blocked is only the
// RPC's business, so p doesn't cool.
func (k *call) otherProxy(p *proxy, tried bool) *proxy {
	if tried {
		return nil
	}
	return k.pool.proxies.other(p, time.Now())
}

// proxyFailed cools a proxy. Where failures that came of it are undone, the walk
// begins anew; else the same RPC is tried through the next proxy.
func (k *call) proxyFailed(e *endpoint, p *proxy, out outcome, deaths uint64) step {
	now := time.Now()
	if !out.refusedTarget {
		k.pool.proxies.bury(p, now, out.batch, false)
		if k.noticeUndone() {
			return anew
		}
		return sameRPC
	}
	var earlier []proxyFailure
	for _, refusal := range k.proxyFailures {
		if refusal.endpoint.url == e.url {
			earlier = append(earlier, refusal)
		}
	}
	f, byAll := k.pool.proxies.refuse(p, now, out.batch, earlier)
	k.proxyFailures = append(k.proxyFailures, proxyFailure{e, p, f})
	if byAll {
		return k.refusedByAll(e, p, out, deaths)
	}
	if k.undoThrough(p) {
		return anew
	}
	return sameRPC
}

// refusedByAll blames the RPC that every proxy which wasn't cooling refused: one
// dead host name must not take all proxies down (rule A5.1).
func (k *call) refusedByAll(e *endpoint, p *proxy, out outcome, deaths uint64) step {
	out.verdict, out.report = VerdictConnFail, reportConn
	k.attempts[len(k.attempts)-1].Verdict = VerdictConnFail
	return k.connFailed(e, p, out, deaths)
}

// undoThrough takes back this call's failed connections through a proxy.
func (k *call) undoThrough(p *proxy) (undone bool) {
	var taken []*callFailure
	c := k.chain
	c.mu.Lock()
	for i := range k.failures {
		f := k.failures[i].failure
		if f.proxy == p && !f.confirmed && f.stands() {
			k.failures[i].endpoint.health.undo(f)
			k.failures[i].noticed = true
			taken = append(taken, &k.failures[i])
		}
	}
	c.mu.Unlock()
	for _, f := range taken {
		k.tellUndone(f)
	}
	return len(taken) > 0
}

// noticeUndone tells whether failures of this call have come not to stand since
// it was last asked: a proxy was found dead, by this call or by another one.
func (k *call) noticeUndone() (news bool) {
	for i := range k.failures {
		if !k.failures[i].noticed && !k.failures[i].failure.stands() {
			k.failures[i].noticed = true
			news = true
			k.tellUndone(&k.failures[i])
		}
	}
	return news
}

// unreached counts the different RPCs that this call couldn't reach through a
// proxy since the proxy last passed a check.
func (k *call) unreached(p *proxy) int {
	seen := map[string]bool{}
	for i := range k.failures {
		f := k.failures[i].failure
		if f.proxy == p && !f.confirmed && f.stands() {
			seen[k.failures[i].endpoint.url] = true
		}
	}
	return len(seen)
}

// checkSuspects checks, at the end of a walk without an answer, every proxy that
// reached none of the RPCs tried, where those are fewer than three (rule A7.1).
func (k *call) checkSuspects() step {
	enough := min(checkProxyAfter, len(k.tried))
	result := next
	for _, p := range k.pool.proxies.proxies {
		if n := k.unreached(p); n == 0 || n < enough {
			continue
		}
		if s := k.check(p); s != next {
			result = s
		}
		if result == finished {
			return finished
		}
	}
	return result
}

// check finds out whether a proxy is dead. If it is, the failures through it no
// longer stand; if not, they stand for good and the count begins from zero.
func (k *call) check(p *proxy) step {
	dead, err := k.pool.checks.isDead(k.ctx, p)
	_, unaffordable := errors.AsType[*BudgetError](err)
	switch {
	case unaffordable, errors.Is(err, errNoPatience):
		return next // nothing is known: the failures stand for now, and may yet be undone
	case err != nil:
		k.err = k.interrupted(err)
		return finished
	case dead:
		k.noticeUndone()
		return anew
	}
	c := k.chain
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range k.failures {
		if f := k.failures[i].failure; f.proxy == p && f.stands() {
			f.confirmed = true
			k.failures[i].endpoint.health.settle(f)
			c.shareCooldown(k.failures[i].endpoint)
		}
	}
	return next
}

// settle ends the call's part in what is common: its failures are final, those of
// RPCs that stand become reports.
func (k *call) settle() {
	for _, refusal := range k.proxyFailures {
		k.pool.proxies.settle(refusal.proxy, refusal.failure)
	}
	if k.reserved != nil {
		k.chain.mark(func(time.Time) { k.release() })
	}
	if len(k.failures) == 0 {
		return
	}
	k.noticeUndone() // for the hooks: what died meanwhile
	k.chain.settle(k.failures)
	k.pool.reports.add(k.dueReports())
}

// dueReports gives one report for each RPC whose failure stands and that didn't
// answer later in the call; of several failures the last counts (rule A8).
func (k *call) dueReports() []Report {
	var reports []Report
	index := map[string]int{}
	for _, f := range k.failures {
		if f.served || !f.failure.stands() || f.failure.echo {
			continue
		}
		report := Report{
			Chain: k.key, URL: f.endpoint.url, Error: f.report, Detail: clip(f.detail, maxReportDetail),
		}
		if i, again := index[f.endpoint.url]; again {
			reports[i] = report
			continue
		}
		index[f.endpoint.url] = len(reports)
		reports = append(reports, report)
	}
	return reports
}
