package rpcpool_test

import (
	"slices"
	"time"

	"github.com/bomzrpc/rpcpool"
)

// This file is a second, independent implementation of part A of the rules, for
// calls that come one after the other. It is slow and simple: everything is held
// by the RPC's or the proxy's name, no failure is ever dropped from the books, and
// each cooldown is counted from them when it is asked for. It touches no network:
// scenarios say what comes of a request, and TestCallsAgreeWithTheModel compares.

// model is a handle on a chain, and the proxies.
type model struct {
	sticky    bool
	maxRounds int
	proxies   []string
	ask       func(rpc, proxy, method string) modelAnswer
	list      func() []modelRPC // the pool's next answer; empty where it lists nothing or fails

	now         time.Time
	ring        []modelRPC
	cursor      int
	fetchedAt   time.Time
	failed      map[string][]*modelFailure // by RPC: those since it last answered
	unsupported map[modelMark]time.Time    // until when
	proxyFailed map[string][]*modelFailure // by proxy, likewise
	current     int                        // the proxy in use

	trace modelTrace     // of the call that is running
	saw   map[string]int // how often each rule decided something
}

// modelRPC is an entry of the pool's list.
type modelRPC struct {
	name string
	logs bool // serves eth_getLogs
}

// modelAnswer is what comes of a request.
type modelAnswer struct {
	verdict rpcpool.Verdict
	report  string        // what the pool is told if the RPC is at fault
	takes   time.Duration // until it is known
	reaches modelReach
	// targetMaybe says that the proxy's refusal can be the target's doing (A5.1).
	targetMaybe bool
	// gateway says that the answer has a status that proxies give as well, when
	// the target is on plain http (A7.2).
	gateway bool
}

// modelReach is how far a request gets.
type modelReach int

const (
	reachesRPC modelReach = iota
	reachesProxy
	reachesNobody
)

// modelFailure is a failure in the books of an RPC or a proxy.
type modelFailure struct {
	at     time.Time
	undone bool
}

type modelMark struct{ rpc, method string }

// modelTrace is what can be seen of a call from outside.
type modelTrace struct {
	outcome  string
	requests []string // "RPC PROXY METHOD", in order, those of checks included
	attempts []string // "RPC PROXY VERDICT", where the error has them
	reports  []string // "RPC ERROR", sorted
	lists    int      // that the pool was asked for
	retryAt  time.Time
	end      time.Time
}

// cooldownEnd: 60 s, doubled with each failure in a row that stands, at most 900 s,
// from the last of them on (A4.5). Zero where none stands.
func cooldownEnd(failures []*modelFailure) time.Time {
	n, last := 0, time.Time{}
	for _, f := range failures {
		if !f.undone {
			n++
			last = f.at
		}
	}
	if n == 0 {
		return time.Time{}
	}
	return last.Add(min(60*time.Second<<min(n-1, 4), 900*time.Second))
}

func (m *model) cools(failures []*modelFailure) bool { return m.now.Before(cooldownEnd(failures)) }

// firstBack gives when the first cooldown ends of those that last.
func (m *model) firstBack(names []string, books map[string][]*modelFailure) (first time.Time) {
	for _, name := range names {
		if end := cooldownEnd(books[name]); m.now.Before(end) && (first.IsZero() || end.Before(first)) {
			first = end
		}
	}
	return first
}

// refresh: a list that is younger than maxAge will do; ages count from the last
// fetch, whatever came of it (A2.2). A list without RPCs, or none, leaves the one
// in memory (A2.4). A new one keeps the cursor on its RPC, or else puts it on the
// best, and what is known of RPCs that left is forgotten (A2.3).
func (m *model) refresh(maxAge time.Duration) {
	if m.ring != nil && m.now.Sub(m.fetchedAt) < maxAge {
		return
	}
	m.trace.lists++
	m.fetchedAt = m.now
	listed := m.list()
	if len(listed) == 0 {
		m.saw["A2.4 the list in memory is kept"]++
		return
	}
	at := ""
	if m.ring != nil {
		at = m.atCursor()
	}
	m.ring, m.cursor = listed, 0
	if i := m.place(at); i >= 0 {
		m.cursor = i
	} else if at != "" {
		m.saw["A2.3 the cursor goes to the best"]++
	}
	for name := range m.failed {
		if m.place(name) < 0 {
			delete(m.failed, name)
		}
	}
	for mark := range m.unsupported {
		if m.place(mark.rpc) < 0 {
			delete(m.unsupported, mark)
		}
	}
}

// place gives where in the list an RPC stands; -1 where it doesn't.
func (m *model) place(name string) int {
	return slices.IndexFunc(m.ring, func(r modelRPC) bool { return r.name == name })
}

func (m *model) atCursor() string { return m.ring[m.cursor].name }

// proxy gives the current proxy, which is used until it cools; then it is the next
// in the ring. Where all cool there is none, and the one whose cooldown ends first,
// of equals the first listed, is the current one from then on (A4.2a).
func (m *model) proxy() string {
	for i := range m.proxies {
		at := (m.current + i) % len(m.proxies)
		if !m.cools(m.proxyFailed[m.proxies[at]]) {
			m.current = at
			return m.proxies[at]
		}
	}
	soonest := slices.MinFunc(m.proxies, func(a, b string) int {
		return cooldownEnd(m.proxyFailed[a]).Compare(cooldownEnd(m.proxyFailed[b]))
	})
	m.current = slices.Index(m.proxies, soonest)
	return ""
}

// otherProxy makes the next proxy after this one that doesn't cool the current one
// (A5, ip_blocked).
func (m *model) otherProxy(than string) string {
	i := slices.Index(m.proxies, than)
	for step := 1; step < len(m.proxies); step++ {
		at := (i + step) % len(m.proxies)
		if !m.cools(m.proxyFailed[m.proxies[at]]) {
			m.current = at
			return m.proxies[at]
		}
	}
	return ""
}

func (m *model) coolProxy(proxy string) *modelFailure {
	f := &modelFailure{at: m.now}
	m.proxyFailed[proxy] = append(m.proxyFailed[proxy], f)
	return f
}

// send makes one request.
func (m *model) send(rpc, proxy, method string) modelAnswer {
	a := m.ask(rpc, proxy, method)
	m.now = m.now.Add(a.takes)
	switch a.reaches {
	case reachesNobody:
		rpc, method = "-", "-"
	case reachesProxy:
		method = "-"
	}
	m.trace.requests = append(m.trace.requests, rpc+" "+proxy+" "+method)
	return a
}

// dead: a proxy is dead where the check's target gives no answer through it; any
// answer will do, but over plain http 502, 503, 504 count as the proxy's (A7.2).
func (m *model) dead(proxy string) bool {
	a := m.send(modelCheckTarget, proxy, "eth_chainId")
	return a.verdict == rpcpool.VerdictProxyFail || a.verdict == rpcpool.VerdictConnFail || a.gateway
}

// modelCheckTarget is the name of the RPC that proxies are checked by.
const modelCheckTarget = "check"
