package rpcpool_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// This file has the scenarios that TestCallsAgreeWithTheModel plays: what everybody
// does, in the words of the test kit and in those of the rules.

// modelAct is something that an RPC does: in the world, and by the rules.
type modelAct struct {
	name   string
	often  int // how likely it is
	does   rpcpooltest.Reply
	answer modelAnswer
	// logsOnly says that the rules say so of log queries alone; to other methods
	// it is an error of the caller's.
	logsOnly bool
}

const modelTimeout = 15 * time.Second // of an attempt

var modelActs = []modelAct{
	{name: "answers", often: 3, does: rpcpooltest.Result("0x1"), answer: modelAnswer{verdict: rpcpool.VerdictOK}},
	{name: "says 500", often: 1, does: rpcpooltest.Status(500), answer: modelRPCFault("rpc_error")},
	{
		name: "says 500 late", often: 3, does: rpcpooltest.Status(500).Delay(7 * time.Second),
		answer: modelAnswer{verdict: rpcpool.VerdictRPCFail, report: "rpc_error", takes: 7 * time.Second},
	},
	{
		name: "says 503", often: 1, does: rpcpooltest.Status(503),
		answer: modelAnswer{verdict: rpcpool.VerdictRPCFail, report: "rpc_error", gateway: true},
	},
	{name: "says 408", often: 1, does: rpcpooltest.Status(408), answer: modelRPCFault("timeout")},
	{name: "says nonsense", often: 1, does: rpcpooltest.Garbage(), answer: modelRPCFault("rpc_error")},
	{
		name: "says 403", often: 1, does: rpcpooltest.Status(403),
		answer: modelAnswer{verdict: rpcpool.VerdictIPBlocked, report: "http_403"},
	},
	{
		name: "says 429", often: 1, does: rpcpooltest.Status(429),
		answer: modelAnswer{verdict: rpcpool.VerdictIPBlocked, report: "http_429"},
	},
	{
		name: "resets", often: 2, does: rpcpooltest.Reset(),
		answer: modelAnswer{verdict: rpcpool.VerdictConnFail, report: "conn"},
	},
	{
		name: "hangs", often: 3, does: rpcpooltest.Hang(),
		answer: modelAnswer{verdict: rpcpool.VerdictConnFail, report: "timeout", takes: modelTimeout},
	},
	{
		name: "doesn't serve the method", often: 1, does: rpcpooltest.Error(-32601, "the method does not exist"),
		answer: modelAnswer{verdict: rpcpool.VerdictUnsupported},
	},
	{
		name: "reverts", often: 1, does: rpcpooltest.Error(3, "execution reverted"),
		answer: modelAnswer{verdict: rpcpool.VerdictCaller},
	},
	{
		name: "refuses the range", often: 3, does: rpcpooltest.Error(-32000, "block range is too wide"), logsOnly: true,
		answer: modelAnswer{verdict: rpcpool.VerdictRange},
	},
	{
		name: "is down", often: 2, does: rpcpooltest.Unreachable().Code(5),
		answer: modelAnswer{verdict: rpcpool.VerdictConnFail, report: "conn", reaches: reachesProxy},
	},
	{
		name: "has no name", often: 1, does: rpcpooltest.Unreachable().Code(1),
		answer: modelAnswer{verdict: rpcpool.VerdictProxyFail, report: "conn", reaches: reachesProxy, targetMaybe: true},
	},
}

// modelRPCFault is what the rules say where the RPC answered, and is at fault.
func modelRPCFault(report string) modelAnswer {
	return modelAnswer{verdict: rpcpool.VerdictRPCFail, report: report}
}

// modelProxyAct is something that a proxy does. The zero answer means that what
// the RPC does decides.
type modelProxyAct struct {
	name   string
	often  int
	does   rpcpooltest.ProxyReply
	answer modelAnswer
}

var modelProxyActs = []modelProxyAct{
	{name: "carries", often: 30, does: rpcpooltest.ProxyCarry()},
	{
		name: "is down", often: 1, does: rpcpooltest.ProxyRefuse(),
		answer: modelAnswer{verdict: rpcpool.VerdictProxyFail, reaches: reachesNobody},
	},
	{
		name: "refuses the login", often: 1, does: rpcpooltest.ProxyRefuseLogin(),
		answer: modelAnswer{verdict: rpcpool.VerdictProxyFail, reaches: reachesNobody},
	},
	{name: "says 1", often: 1, does: rpcpooltest.ProxyCode(1), answer: modelTargetRefused()},
	{name: "says 2", often: 1, does: rpcpooltest.ProxyCode(2), answer: modelTargetRefused()},
	{
		name: "says 5", often: 2, does: rpcpooltest.ProxyCode(5),
		answer: modelAnswer{verdict: rpcpool.VerdictConnFail, report: "conn", reaches: reachesProxy},
	},
	{
		name: "says 7", often: 1, does: rpcpooltest.ProxyCode(7),
		answer: modelAnswer{verdict: rpcpool.VerdictProxyFail, reaches: reachesProxy},
	},
	{
		name: "swallows", often: 1, does: rpcpooltest.ProxyBlackHole(),
		answer: modelAnswer{verdict: rpcpool.VerdictConnFail, report: "timeout", takes: modelTimeout, reaches: reachesProxy},
	},
}

// modelTargetRefused is what the rules say of a proxy's refusal that can be the target's
// doing.
func modelTargetRefused() modelAnswer {
	return modelAnswer{verdict: rpcpool.VerdictProxyFail, report: "conn", reaches: reachesProxy, targetMaybe: true}
}

// modelScenario is a world's story: what everybody does at each step. A step is a
// wait and a call.
type modelScenario struct {
	seed      uint64
	random    *rand.Rand
	mode      rpcpool.Mode
	maxRounds int
	proxies   []string
	rpcs      []string
	rpcDoes   map[string][]modelDoing // by step
	proxyDoes map[string][]modelProxyAct
	lists     []modelList // one for each time that the pool is asked
	waits     []time.Duration
	methods   []string

	step int // that is played
	nth  int // list that the model is given next
}

// modelDoing is what an RPC does at a step: something to requests through one proxy,
// and to the rest something else or the same.
type modelDoing struct {
	via       string
	does, not modelAct // through that proxy, and not through it
}

// modelList is what the pool answers.
type modelList struct {
	down bool
	rpcs []modelRPC
}

const (
	modelSteps  = 14
	modelRounds = 5 // at most
)

func newModelScenario(seed uint64) *modelScenario {
	r := rand.New(rand.NewPCG(seed, 77))
	s := &modelScenario{
		seed: seed, random: r,
		mode: pick(r, rpcpool.Sticky, rpcpool.Sticky, rpcpool.RoundRobin), maxRounds: pick(r, 1, 2, 3, modelRounds),
		rpcDoes: map[string][]modelDoing{}, proxyDoes: map[string][]modelProxyAct{},
	}
	for i := range 1 + r.IntN(3) {
		s.proxies = append(s.proxies, fmt.Sprintf("p%d", i+1))
	}
	for i := range 1 + r.IntN(6) {
		s.rpcs = append(s.rpcs, fmt.Sprintf("r%d", i+1))
	}
	for range modelSteps {
		for _, name := range s.proxies {
			s.proxyDoes[name] = append(s.proxyDoes[name], pickOften(r, modelProxyActs, func(a modelProxyAct) int { return a.often }))
		}
		for _, name := range append(slices.Clone(s.rpcs), modelCheckTarget) {
			s.rpcDoes[name] = append(s.rpcDoes[name], s.randomDoing(name))
		}
		s.waits = append(s.waits, seconds(pick(r, 0, 0, 3, 6, 61, 61, 125, 601, 601, 901)).duration())
		s.methods = append(s.methods, pick(r, "eth_blockNumber", "eth_getLogs"))
	}
	for nth := range modelRounds * modelSteps {
		s.lists = append(s.lists, s.randomList(nth))
	}
	return s
}

// randomDoing gives what an RPC does at a step. It is often the same through all
// proxies; the target of checks is mostly well.
func (s *modelScenario) randomDoing(name string) modelDoing {
	r, often := s.random, func(a modelAct) int { return a.often }
	doing := modelDoing{via: pick(r, s.proxies...), does: pickOften(r, modelActs, often)}
	doing.not = doing.does
	answers := modelActs[0]
	if name == modelCheckTarget && r.IntN(2) == 0 {
		doing.does, doing.not = answers, answers
		return doing
	}
	switch r.IntN(16) {
	case 0, 1, 2, 3:
		doing.not = pickOften(r, modelActs, often)
	case 4, 5, 6:
		doing.not = answers
	}
	return doing
}

// randomList gives the RPCs in a random order, some left out, or no list. The first
// one has an RPC.
func (s *modelScenario) randomList(nth int) modelList {
	r := s.random
	if nth > 0 {
		switch r.IntN(8) {
		case 0:
			return modelList{down: true}
		case 1:
			return modelList{}
		}
	}
	count := len(s.rpcs)
	if nth == 0 || r.IntN(2) == 0 {
		count = 1 + r.IntN(count)
	}
	var list modelList
	for _, i := range r.Perm(len(s.rpcs))[:count] {
		list.rpcs = append(list.rpcs, modelRPC{name: s.rpcs[i], logs: r.IntN(10) > 0})
	}
	return list
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// pickOften picks what is often more likely.
func pickOften[T any](r *rand.Rand, from []T, often func(T) int) T {
	total := 0
	for _, each := range from {
		total += often(each)
	}
	n := r.IntN(total)
	for _, each := range from {
		if n -= often(each); n < 0 {
			return each
		}
	}
	panic("unreachable")
}

// ask says by the rules what comes of a request at this step.
func (s *modelScenario) ask(rpc, proxy, method string) modelAnswer {
	if does := s.proxyDoes[proxy][s.step]; does.answer != (modelAnswer{}) {
		return does.answer
	}
	doing := s.rpcDoes[rpc][s.step]
	act := doing.not
	if doing.via == proxy {
		act = doing.does
	}
	if act.logsOnly && method != "eth_getLogs" {
		return modelAnswer{verdict: rpcpool.VerdictCaller}
	}
	return act.answer
}

func (s *modelScenario) model(saw map[string]int) *model {
	return &model{
		sticky: s.mode == rpcpool.Sticky, maxRounds: s.maxRounds, proxies: s.proxies,
		ask:         s.ask,
		list:        func() []modelRPC { s.nth++; return s.lists[s.nth-1].rpcs },
		now:         time.Now(),
		failed:      map[string][]*modelFailure{},
		unsupported: map[modelMark]time.Time{},
		proxyFailed: map[string][]*modelFailure{},
		saw:         saw,
	}
}

// world builds the world of the scenario, and gives the URL of the RPC that proxies
// are checked by.
func (s *modelScenario) world(t *testing.T) (w *rpcpooltest.World, checkURL string) {
	w = rpcpooltest.New(t)
	w.SetKeepAlive(false)
	for _, name := range s.proxies {
		var script []rpcpooltest.ProxyReply
		for step, act := range s.proxyDoes[name] {
			script = append(script, act.does.FromStep(step).ToStep(step))
		}
		w.Proxy(name, script...)
	}
	nodes := map[string]*rpcpooltest.Node{}
	for _, name := range append(slices.Clone(s.rpcs), modelCheckTarget) {
		var script []rpcpooltest.Reply
		for step, doing := range s.rpcDoes[name] {
			script = append(script,
				doing.does.does.FromStep(step).ToStep(step).Via(doing.via),
				doing.not.does.FromStep(step).ToStep(step))
		}
		nodes[name] = w.Node(name, script...)
	}
	var answers []rpcpooltest.PoolReply
	for _, list := range s.lists {
		answers = append(answers, list.reply(nodes).Times(1))
	}
	w.Pool.Lists("1", answers...)
	return w, nodes[modelCheckTarget].URL()
}

func (l modelList) reply(nodes map[string]*rpcpooltest.Node) rpcpooltest.PoolReply {
	if l.down {
		return rpcpooltest.PoolStatus(503)
	}
	var entries []any
	for _, rpc := range l.rpcs {
		listed := rpcpooltest.List(nodes[rpc.name])
		if !rpc.logs {
			listed.Caps.Logs = nil
		}
		entries = append(entries, listed)
	}
	return rpcpooltest.PoolList("eip155:1", entries...)
}
