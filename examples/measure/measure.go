package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/bomzrpc/rpcpool"
)

// headMethod asks for the head of an EVM chain.
const headMethod = "eth_blockNumber"

// plan is what is measured, and how long.
type plan struct {
	method string
	params []any
	every  time.Duration
	length time.Duration
}

// samplesHeads tells whether it is heads that are measured. Then the library does the
// asking: of every RPC, wherever the cursor is.
func (p plan) samplesHeads() bool { return p.method == headMethod }

// samples is how many there are, if nothing takes too long.
func (p plan) samples() int { return max(int(p.length/p.every), 1) }

// configure sets what measuring needs. The list is fetched once: all RPCs are measured
// over the same time. One that is on another chain isn't measured.
func (p plan) configure(config *rpcpool.Config) {
	config.RefreshInterval = p.length + time.Hour
	config.VerifyChainID = true
	if !p.samplesHeads() {
		config.Mode = rpcpool.RoundRobin
		config.MaxWait = time.Millisecond // hardly a wait; with any, who says 429 rests instead of cooling
	}
}

// staleLag is how far behind an RPC may be before it counts as a semantic failure and is
// left alone: three block times, as the library ejects by itself. A stricter MaxLag would
// hold a block that came between two answers against the RPC that was asked first.
const staleLag = 3

// chainOptions are those of the handle. Lags and stale heads are told by the policy of
// fresh reads, which also asks for the samples.
func (p plan) chainOptions() []rpcpool.ChainOption {
	if !p.samplesHeads() {
		return nil
	}
	return []rpcpool.ChainOption{rpcpool.WithFreshness(rpcpool.Freshness{SampleEvery: p.every, MaxLag: staleLag})}
}

// measurement is what was found out. It begins with the first answer.
type measurement struct {
	rows    []*row // in the order of the list; behind them what isn't listed any more
	samples int
	silent  int           // samples that no RPC answered
	heads   bool          // they are asked for
	mark    uint64        // the high-water mark; 0 where they aren't
	took    time.Duration // until the last look
	at      time.Time     // of the last look
}

// row is an RPC.
type row struct {
	rpcpool.RPCStats // as of the last look

	said     uint64 // samples in which it said its head
	lags     uint64 // the sum of its lags in them
	worstLag uint64
}

// measure samples the RPCs of a chain until the plan is done or ctx ends, which isn't an
// error, and calls show after each sample. An RPC that cools isn't asked, as a bot
// wouldn't ask it.
func measure(ctx context.Context, chain *rpcpool.Chain, p plan, show func(*measurement)) (*measurement, error) {
	began := time.Now()
	_, err := chain.Call(ctx, p.method, p.params...) // fetches the list; from now on the library samples heads
	if ctx.Err() != nil && len(chain.Stats()) == 0 {
		return nil, errors.New("interrupted before anything was measured")
	}
	var proxies *rpcpool.ProxyError
	if err != nil && ctx.Err() == nil && (errors.As(err, &proxies) || len(chain.Stats()) == 0) {
		return nil, err
	}
	if unserved(chain.Stats(), p.method) {
		return nil, fmt.Errorf("no RPC serves %s; for a chain that isn't EVM give -method, such as getSlot", p.method)
	}
	m := &measurement{heads: p.samplesHeads()}
	m.look(chain, began)
	// Heads are looked at half way between two samples, when the answers have come.
	next := time.Now().Add(p.every)
	if m.heads {
		next = next.Add(p.every / 2)
	}
	deadline := next.Add(p.length)
	wait := time.NewTimer(0)
	defer wait.Stop()
	for m.samples < p.samples() && time.Now().Before(deadline) {
		wait.Reset(time.Until(next))
		select {
		case <-wait.C:
		case <-ctx.Done():
		}
		next = next.Add(p.every)
		if !m.heads {
			askAll(ctx, chain, p)
		}
		answered := m.answers()
		m.look(chain, began)
		if ctx.Err() != nil {
			break // what was answered since the last sample counts, but it is none
		}
		m.samples++
		if m.answers() == answered {
			m.silent++
		}
		show(m)
	}
	return m, nil
}

// askAll asks the RPCs one after another. The mode is RoundRobin, so each call begins at
// the next one; what fails is the statistics' business.
func askAll(ctx context.Context, chain *rpcpool.Chain, p plan) {
	before := chain.Stats()
	for range before {
		if ctx.Err() != nil || askedAll(before, chain.Stats()) {
			return
		}
		_, _ = chain.Call(ctx, p.method, p.params...)
	}
}

// askedAll tells whether each RPC has been asked since, or isn't to be asked now.
func askedAll(before, now []rpcpool.RPCStats) bool {
	for i, s := range now {
		asked := i < len(before) && s.Attempts != before[i].Attempts
		if !asked && ready(s.State) {
			return false
		}
	}
	return true
}

// look takes in what is known now. RPCs are told apart by their label and, where several
// have the same, their order.
func (m *measurement) look(chain *rpcpool.Chain, began time.Time) {
	m.at, m.mark = time.Now(), chain.HighWater()
	m.took = m.at.Sub(began)
	before := m.rows
	m.rows = nil
	for _, s := range chain.Stats() {
		r := &row{}
		for i, old := range before {
			if old != nil && old.RPC == s.RPC {
				r, before[i] = old, nil
				break
			}
		}
		r.take(s)
		m.rows = append(m.rows, r)
	}
	for _, old := range before {
		if old != nil {
			old.State = stateUnlisted
			m.rows = append(m.rows, old)
		}
	}
}

// take brings a row up to date. A lag counts once for each time the RPC said its head:
// of one that cools only the others' heads move.
func (r *row) take(s rpcpool.RPCStats) {
	if s.HeadAt.After(r.HeadAt) {
		r.said++
		r.lags += s.Lag
		r.worstLag = max(r.worstLag, s.Lag)
	}
	r.RPCStats = s
}

// answers is the number of answers of all RPCs.
func (m *measurement) answers() (n uint64) {
	for _, r := range m.rows {
		n += r.Served
	}
	return n
}

// proxyFailures is the number of attempts that say nothing of the RPCs.
func (m *measurement) proxyFailures() (n uint64) {
	for _, r := range m.rows {
		n += r.ProxyFailures
	}
	return n
}

// verdict is an error where nothing came of it all.
func (m *measurement) verdict() error {
	if m.answers() == 0 {
		return errors.New("no RPC answered; check that the proxies carry anything, and that the RPCs are of this chain")
	}
	return nil
}

// unserved tells whether there is no RPC that serves the method: there is nothing to
// measure then.
func unserved(rpcs []rpcpool.RPCStats, method string) bool {
	for _, s := range rpcs {
		if !slices.Contains(s.Unsupported, method) {
			return false
		}
	}
	return len(rpcs) > 0
}

// stateUnlisted is that of an RPC which isn't listed any more.
const stateUnlisted rpcpool.RPCState = "unlisted"

// ready tells whether the RPC is asked now.
func ready(state rpcpool.RPCState) bool {
	return state == rpcpool.StateReady || state == rpcpool.StateTrial
}
