package main

import (
	"time"

	"github.com/bomzrpc/rpcpool"
)

// state is what the page shows of the present. Times are in ms since 1970, and
// durations in ms; block numbers are strings, for they may be too large for a
// number of JavaScript's.
type state struct {
	Started  int64        `json:"started"`
	Demo     bool         `json:"demo"`
	Mode     string       `json:"mode"`
	InFlight int64        `json:"inFlight"`
	Served   uint64       `json:"served"`
	Refused  uint64       `json:"refused"`
	Chains   []chainState `json:"chains"`
	Proxies  []proxyState `json:"proxies"`
}

type chainState struct {
	Name    string     `json:"name"`
	Path    string     `json:"path"`
	Trouble string     `json:"trouble,omitempty"`
	RPCs    []rpcState `json:"rpcs"`
}

type rpcState struct {
	RPC           string   `json:"rpc"`
	Position      int      `json:"position"`
	Current       bool     `json:"current"`
	State         string   `json:"state"` // an rpcpool.RPCState
	Cooling       bool     `json:"cooling"`
	Until         int64    `json:"until"`
	FailuresInRow int      `json:"failuresInRow"`
	Unsupported   []string `json:"unsupported"`
	Head          uint64   `json:"head,string"`
	Lag           uint64   `json:"lag,string"`
	InFlight      int      `json:"inFlight"`
	Attempts      uint64   `json:"attempts"`
	Served        uint64   `json:"served"`
	Transport     uint64   `json:"transport"`
	Protocol      uint64   `json:"protocol"`
	Semantic      uint64   `json:"semantic"`
	RateLimited   uint64   `json:"rateLimited"`
	Ejections     uint64   `json:"ejections"`
	Mean          float64  `json:"mean"`
	P50           float64  `json:"p50"`
	P95           float64  `json:"p95"`
}

type proxyState struct {
	Proxy         string  `json:"proxy"`
	Current       bool    `json:"current"`
	State         string  `json:"state"` // "ready" or "cooling"
	Cooling       bool    `json:"cooling"`
	Until         int64   `json:"until"`
	FailuresInRow int     `json:"failuresInRow"`
	Deaths        uint64  `json:"deaths"`
	InFlight      int     `json:"inFlight"`
	Attempts      uint64  `json:"attempts"`
	Served        uint64  `json:"served"`
	Failures      uint64  `json:"failures"`
	Mean          float64 `json:"mean"`
	P50           float64 `json:"p50"`
	P95           float64 `json:"p95"`
}

// shownMethods is how many unsupported methods are shown of one RPC: programs may
// have asked for any number.
const shownMethods = 12

// state reads the present off the pool. It sends nothing.
func (g *gateway) state() state {
	s := state{
		Started: g.started.UnixMilli(), Demo: g.demo, Mode: g.mode.String(),
		InFlight: g.calls.inFlight.Load(), Served: g.calls.served.Load(), Refused: g.calls.refused.Load(),
		Chains: []chainState{}, Proxies: []proxyState{},
	}
	for _, r := range g.routes.all() {
		chain := chainState{Name: r.name, Path: r.path, RPCs: []rpcState{}}
		if why := r.trouble.Load(); why != nil {
			chain.Trouble = *why
		}
		for _, stats := range r.chain.Stats() {
			chain.RPCs = append(chain.RPCs, rpcStateOf(stats))
		}
		s.Chains = append(s.Chains, chain)
	}
	for _, stats := range g.pool.ProxyStats() {
		s.Proxies = append(s.Proxies, proxyStateOf(stats))
	}
	return s
}

func rpcStateOf(s rpcpool.RPCStats) rpcState {
	methods := []string{}
	for _, method := range s.Unsupported[:min(len(s.Unsupported), shownMethods)] {
		methods = append(methods, clip(method, longestName))
	}
	return rpcState{
		RPC: s.RPC, Position: s.Position, Current: s.Current, State: string(s.State),
		Cooling: s.Cooling, Until: unixMilli(s.Until), FailuresInRow: s.FailuresInRow, Unsupported: methods,
		Head: s.Head, Lag: s.Lag, InFlight: s.InFlight, Attempts: s.Attempts, Served: s.Served,
		Transport: s.Transport, Protocol: s.Protocol, Semantic: s.Semantic, RateLimited: s.RateLimited,
		Ejections: s.Ejections, Mean: milliseconds(s.Mean), P50: milliseconds(s.P50), P95: milliseconds(s.P95),
	}
}

func proxyStateOf(s rpcpool.ProxyStats) proxyState {
	return proxyState{
		Proxy: s.Proxy, Current: s.Current, State: string(s.State), Cooling: s.Cooling, Until: unixMilli(s.Until),
		FailuresInRow: s.FailuresInRow, Deaths: s.Deaths, InFlight: s.InFlight,
		Attempts: s.Attempts, Served: s.Served, Failures: s.Failures,
		Mean: milliseconds(s.Mean), P50: milliseconds(s.P50), P95: milliseconds(s.P95),
	}
}

func unixMilli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
