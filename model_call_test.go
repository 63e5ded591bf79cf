package rpcpool_test

import (
	"slices"
	"time"

	"github.com/bomzrpc/rpcpool"
)

// modelCall is one call, and its own books.
type modelCall struct {
	*model
	method   string
	failures []*modelCallFailure
	refusals []modelRefusal
	tried    map[string]bool // RPCs that at least one attempt failed with
	refused  map[string]bool // RPCs that refused the range
	servedBy string
}

// modelCallFailure is a failure of an RPC that the call saw.
type modelCallFailure struct {
	*modelFailure
	rpc, proxy, report string
	cursor             string // the RPC that the cursor was on before
	open               bool   // a failed connection, as long as the proxy may be at fault
}

// modelRefusal is a proxy's refusal of an RPC that can be the RPC's doing.
type modelRefusal struct {
	*modelFailure
	rpc, proxy string
}

// modelStep is how a call goes on.
type modelStep int

const (
	nextRPC modelStep = iota
	sameRPC
	walkAnew
	callEnds
)

const (
	modelServed     = "a result"
	modelCallers    = "RPCError"
	modelNoProxy    = "ProxyError"
	modelNoHealthy  = "NoHealthyRPCError"
	modelNoCapable  = "NoCapableRPCError"
	modelRangeLarge = "LogsRangeTooLargeError"
)

// call carries out a call and gives what is to be seen of it.
func (m *model) call(method string) modelTrace {
	m.trace = modelTrace{}
	c := &modelCall{model: m, method: method, tried: map[string]bool{}, refused: map[string]bool{}}
	m.trace.outcome = c.run()
	c.sendReports()
	switch m.trace.outcome {
	case modelServed, modelCallers, modelNoCapable:
		m.trace.attempts = nil // there is no error that has them
	case modelNoProxy:
		m.trace.retryAt = m.firstBack(m.proxies, m.proxyFailed)
	case modelNoHealthy:
		m.trace.retryAt = m.firstBack(c.fitRPCs(), m.failed)
	}
	m.saw[m.trace.outcome]++
	m.trace.end = m.now
	return m.trace
}

// run: before the first round a list may be 600 s old, before the others 5 s (A2.2,
// A4.3). An RPC that has what the call needs must be listed, cooling or not (A3.2).
// Nobody answers: what is said depends on whether a range was refused (A4.4).
func (c *modelCall) run() string {
	for round := range c.maxRounds {
		if round == 0 {
			c.refresh(600 * time.Second)
			if len(c.fitRPCs()) == 0 {
				return modelNoCapable
			}
		} else {
			c.saw["A4.3 another round"]++
			c.refresh(5 * time.Second)
		}
		if c.round() == callEnds {
			return c.trace.outcome
		}
	}
	if len(c.refused) > 0 {
		return modelRangeLarge
	}
	return modelNoHealthy
}

func (c *modelCall) end(outcome string) modelStep {
	c.trace.outcome = outcome
	return callEnds
}

// fitRPCs gives the RPCs that can serve the method (A3).
func (c *modelCall) fitRPCs() (names []string) {
	for _, r := range c.ring {
		if r.logs || c.method != "eth_getLogs" {
			names = append(names, r.name)
		}
	}
	return names
}

// round: a walk, and as many more as dead proxies are found; the number is bounded
// against proxies that die faster than they are found.
func (c *modelCall) round() modelStep {
	for range 4 + 2*len(c.proxies) {
		step := c.walk()
		if step == nextRPC {
			step = c.checkSuspects()
		}
		if step != walkAnew {
			return step
		}
	}
	return nextRPC
}

func (c *modelCall) walk() modelStep {
	for _, rpc := range c.candidates() {
		if step := c.try(rpc); step != nextRPC {
			return step
		}
	}
	return nextRPC
}

// candidates: the ring from the cursor on, without RPCs that cool, don't fit, don't
// serve the method, or refused the range in this call (A4.1).
func (c *modelCall) candidates() (names []string) {
	fit := c.fitRPCs()
	for i := range c.ring {
		name := c.ring[(c.cursor+i)%len(c.ring)].name
		switch {
		case !slices.Contains(fit, name), c.cools(c.failed[name]), c.refused[name]:
		case c.now.Before(c.unsupported[modelMark{name, c.method}]):
			c.saw["A5 an RPC is passed over for a method"]++
		default:
			names = append(names, name)
		}
	}
	return names
}

// try makes attempts on one RPC until the verdict leads away from it (A5).
func (c *modelCall) try(rpc string) modelStep {
	proxy, triedOther := c.proxy(), false
	for proxy != "" {
		a := c.send(rpc, proxy, c.method)
		if a.verdict != rpcpool.VerdictOK && a.verdict != rpcpool.VerdictCaller {
			c.noteAttempt(rpc, proxy, a.verdict)
		}
		switch a.verdict {
		case rpcpool.VerdictOK:
			return c.serve(rpc, proxy)
		case rpcpool.VerdictCaller:
			return c.end(modelCallers)
		case rpcpool.VerdictProxyFail:
			if step := c.proxyFails(rpc, proxy, a); step != sameRPC {
				return step
			}
			proxy = c.proxy()
		case rpcpool.VerdictIPBlocked:
			other := ""
			if !triedOther {
				other = c.otherProxy(proxy)
			}
			if other == "" {
				c.fail(rpc, "", a.report)
				return nextRPC
			}
			c.saw["A5 a blocked address is tried through another proxy"]++
			proxy, triedOther = other, true
		case rpcpool.VerdictConnFail:
			return c.connFails(rpc, proxy, a.report)
		case rpcpool.VerdictUnsupported:
			c.unsupported[modelMark{rpc, c.method}] = c.now.Add(600 * time.Second)
			return nextRPC
		case rpcpool.VerdictRange:
			return c.refuseRange(rpc)
		default:
			c.fail(rpc, "", a.report)
			return nextRPC
		}
	}
	return c.end(modelNoProxy)
}

func (c *modelCall) noteAttempt(rpc, proxy string, verdict rpcpool.Verdict) {
	c.trace.attempts = append(c.trace.attempts, rpc+" "+proxy+" "+string(verdict))
	c.tried[rpc] = true
}

// serve: success resets RPC and proxy (A4.5); RoundRobin goes on to the next RPC
// (A4.2).
func (c *modelCall) serve(rpc, proxy string) modelStep {
	c.failed[rpc], c.proxyFailed[proxy] = nil, nil
	c.servedBy = rpc
	if !c.sticky {
		c.cursor = (c.place(rpc) + 1) % len(c.ring)
	}
	return c.end(modelServed)
}

// refuseRange: the third RPC that refuses ends the call (A5).
func (c *modelCall) refuseRange(rpc string) modelStep {
	c.refused[rpc] = true
	if len(c.refused) == 3 {
		return c.end(modelRangeLarge)
	}
	return nextRPC
}

// fail cools an RPC; in Sticky the cursor goes on if it is on that RPC (A4.2).
func (c *modelCall) fail(rpc, suspect, report string) {
	f := &modelFailure{at: c.now}
	c.failed[rpc] = append(c.failed[rpc], f)
	c.failures = append(c.failures, &modelCallFailure{
		modelFailure: f, rpc: rpc, proxy: suspect, report: report, cursor: c.atCursor(), open: suspect != "",
	})
	if c.sticky && c.atCursor() == rpc {
		c.cursor = (c.cursor + 1) % len(c.ring)
	}
}

// connFails: the RPC cools; the third RPC that wasn't reached through a proxy has
// that checked (A7.1).
func (c *modelCall) connFails(rpc, proxy, report string) modelStep {
	c.fail(rpc, proxy, report)
	if c.unreached(proxy) < 3 {
		return nextRPC
	}
	c.saw["A7.1 a check at the third RPC"]++
	return c.check(proxy)
}

// proxyFails: the proxy cools, what failed through it in this call is undone. But
// where every proxy cools or has refused the RPC in this call in a way that can be
// the RPC's doing, it is: what the proxies got for refusing it is taken back, and
// the RPC is at fault (A5.1).
func (c *modelCall) proxyFails(rpc, proxy string, a modelAnswer) modelStep {
	f := c.coolProxy(proxy)
	if a.targetMaybe {
		c.refusals = append(c.refusals, modelRefusal{f, rpc, proxy})
		if !slices.ContainsFunc(c.proxies, func(p string) bool { return c.mayReach(p, rpc) }) {
			c.saw["A5.1 all proxies refuse an RPC"]++
			for _, refusal := range c.refusals {
				refusal.undone = refusal.undone || refusal.rpc == rpc
			}
			c.trace.attempts[len(c.trace.attempts)-1] = rpc + " " + proxy + " " + string(rpcpool.VerdictConnFail)
			return c.connFails(rpc, proxy, a.report)
		}
	}
	if c.undo(proxy) {
		return walkAnew
	}
	return sameRPC
}

// mayReach tells whether a proxy is left to try an RPC through that proxies refused.
func (c *modelCall) mayReach(proxy, rpc string) bool {
	return !c.cools(c.proxyFailed[proxy]) &&
		!slices.ContainsFunc(c.refusals, func(r modelRefusal) bool { return r.proxy == proxy && r.rpc == rpc })
}

// checkSuspects: at the end of a walk, proxies through which none of the RPCs tried
// was reached, or three weren't, are checked (A7.1).
func (c *modelCall) checkSuspects() modelStep {
	step, enough := nextRPC, min(3, len(c.tried))
	for _, proxy := range c.proxies {
		if n := c.unreached(proxy); n > 0 && n >= enough {
			c.saw["A7.1 a check at the end of a walk"]++
			step = max(step, c.check(proxy))
		}
	}
	return step
}

// check: a dead proxy cools and its failures are undone; those through a living one
// stand for good, and its count begins at zero (A7.3).
func (c *modelCall) check(proxy string) modelStep {
	if !c.dead(proxy) {
		c.saw["A7.3 a suspect is alive"]++
		for _, f := range c.failures {
			if f.proxy == proxy {
				f.open = false
			}
		}
		return nextRPC
	}
	c.saw["A7.3 a suspect is dead"]++
	c.coolProxy(proxy)
	c.undo(proxy)
	return walkAnew
}

// unreached counts the RPCs that this call didn't reach through a proxy since it
// was last checked.
func (c *modelCall) unreached(proxy string) int {
	rpcs := map[string]bool{}
	for _, f := range c.failures {
		if f.open && f.proxy == proxy {
			rpcs[f.rpc] = true
		}
	}
	return len(rpcs)
}

// undo takes back the failed connections through a proxy; in Sticky the cursor goes
// back to where it was before the first of them, of those whose place is still
// listed (A7.3).
func (c *modelCall) undo(proxy string) (undone bool) {
	back := -1
	for _, f := range c.failures {
		if !f.open || f.proxy != proxy {
			continue
		}
		if back < 0 {
			back = c.place(f.cursor)
		}
		f.undone, f.open, undone = true, false, true
	}
	if c.sticky && back >= 0 {
		c.cursor = back
	}
	return undone
}

// sendReports: one for each RPC whose failure stands and that didn't answer later
// in the call; of several failures the last counts (A8).
func (c *modelCall) sendReports() {
	last := map[string]string{}
	for _, f := range c.failures {
		if !f.undone && f.rpc != c.servedBy {
			last[f.rpc] = f.report
		}
	}
	for rpc, report := range last {
		c.trace.reports = append(c.trace.reports, rpc+" "+report)
	}
	slices.Sort(c.trace.reports)
}
