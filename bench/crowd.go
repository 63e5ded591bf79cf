package main

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

const (
	crowdCalls = 3   // of each caller
	crowdConns = 128 // the most connections to one endpoint
)

// crowdStep is how long an endpoint stays in one mode: a fraction of what the crowd
// takes on healthy endpoints.
func crowdStep(b *bench) time.Duration { return pick(b, 250*time.Millisecond, 50*time.Millisecond) }

// crowd measures many callers at once while all endpoints step through faults, each
// time in a fresh process.
func crowd(ctx context.Context, b *bench) ([]table, error) {
	callers := pick(b, 10_000, 2_000)
	r := results{}
	for range b.times(crowdPasses) {
		for _, c := range shuffled(crowdRings) {
			if err := crowdPass(ctx, b, c.name, callers, r); err != nil {
				return nil, err
			}
		}
	}
	for range b.times(crowdsPasses) { // of three crowds, one after the other
		e := crowdErrand(b, nameResort, callers)
		e.Crowds = 3
		numbers, err := e.run(ctx)
		if err != nil {
			return nil, err
		}
		r.add(nameResort, "more of a third", numbers["more"])
	}
	crowdFacts(b, callers, r)
	return []table{crowdTable(callers, crowdStep(b), r)}, b.control.set()
}

func crowdPass(ctx context.Context, b *bench, name string, callers int, r results) error {
	if err := b.control.flap(crowdStep(b)); err != nil {
		return err
	}
	before, err := b.control.count()
	if err != nil {
		return err
	}
	numbers, err := crowdErrand(b, name, callers).run(ctx)
	if err != nil {
		return err
	}
	after, err := b.control.count()
	if err != nil {
		return err
	}
	spent := after.since(before)
	for what, value := range numbers {
		r.add(name, what, value)
	}
	r.add(name, "requests", float64(spent.Requests)/float64(callers*crowdCalls))
	r.add(name, "dials", float64(spent.Dials))
	return nil
}

func crowdErrand(b *bench, name string, callers int) errand {
	return errand{Workload: "crowd", Contender: name, Addrs: b.addrs, Callers: callers, Calls: crowdCalls, Conns: crowdConns, Longest: pick(b, 6*time.Second, 2*time.Second)}
}

// crowdOnce lets the callers loose, and looks at what they leave.
func crowdOnce(ctx context.Context, e errand) (map[string]float64, error) {
	start := liveHeap()
	c, err := e.client(crowdRings, e.Addrs.plain().urls(endpointCount, ""))
	if err != nil {
		return nil, err
	}
	numbers := loose(ctx, e, c)
	for crowd := range max(1, e.Crowds) {
		if crowd > 0 {
			loose(ctx, e, c)
		}
		left := max(0, liveHeap()-start) / 1e6
		numbers["more"] = left - numbers["left"]
		numbers["left"] = left
	}
	c.close()
	numbers["closed"] = max(0, liveHeap()-start) / 1e6
	return numbers, nil
}

// loose has the callers make their calls.
func loose(ctx context.Context, e errand, c *client) map[string]float64 {
	ctx, cancel := context.WithTimeout(ctx, e.Longest)
	defer cancel()
	memory := watchMemory()
	goroutines := watchGoroutines()
	took := make([]time.Duration, e.Callers*e.Calls)
	var ok atomic.Int64
	began := time.Now()
	var all sync.WaitGroup
	for caller := range e.Callers {
		all.Go(func() {
			for i := range e.Calls {
				asked := time.Now()
				if _, err := c.call(ctx, "eth_blockNumber"); err == nil {
					ok.Add(1)
				}
				took[caller*e.Calls+i] = time.Since(asked)
			}
		})
	}
	all.Wait()
	wall := time.Since(began)
	times := make(values, len(took))
	for i, t := range took {
		times[i] = millis(t)
	}
	return map[string]float64{
		"ok": 100 * float64(ok.Load()) / float64(len(took)), "wall": millis(wall), "p50": times.median(), "p99": times.quantile(0.99),
		"memory": memory.bytes() / 1e6, "goroutines": goroutines(),
	}
}

// liveHeap is how much of the heap is in use, when all that isn't is given back.
func liveHeap() float64 {
	for range 2 { // what has a finalizer goes in the second
		runtime.GC()
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc)
}

// watchGoroutines gives a function that says how many there were at most.
func watchGoroutines() (most func() float64) {
	quit, ended := make(chan struct{}), make(chan struct{})
	highest := 0
	go func() {
		defer close(ended)
		ticker := time.NewTicker(2 * time.Millisecond)
		defer ticker.Stop()
		for {
			highest = max(highest, runtime.NumGoroutine())
			select {
			case <-ticker.C:
			case <-quit:
				return
			}
		}
	}()
	return func() float64 {
		close(quit)
		<-ended
		return float64(highest)
	}
}

func crowdTable(callers int, step time.Duration, r results) table {
	t := table{
		section: "A crowd",
		title:   fmt.Sprintf("%s callers × %d calls while all endpoints go through ok, 500, ok, 429, ok, refused", number(float64(callers), 0), crowdCalls),
		notes: []string{
			fmt.Sprintf("Each step lasts %v; at any time some endpoints are well. At most %d connections to one endpoint, where nothing else is said.", step, crowdConns),
			"Memory is the most above the start. Left is what of the heap is in use when all calls have ended, connections that are kept included; closed, after Close.",
			"By default a call of rpcpool fails at once while all endpoints cool down; with LastResort it asks them all the same.",
		},
		head: []string{"client", "ok %", "wall, ms", "wall × loop", "p50, ms", "p99, ms", "p99 × loop", "requests/call", "dials", "memory, MB", "goroutines", "left, MB", "closed, MB"},
	}
	for _, row := range crowdRings {
		name := row.name
		of := r[name]
		t.row(name, of["ok"].single(1), of["wall"].cell(0), r.ratio(name, nameLoop, "wall").single(2), of["p50"].single(0), of["p99"].cell(0),
			r.ratio(name, nameLoop, "p99").single(2), of["requests"].single(2), of["dials"].single(0), of["memory"].single(0), of["goroutines"].single(0),
			of["left"].single(1), of["closed"].single(1))
	}
	return t
}

// crowdFacts are what the goals are about.
func crowdFacts(b *bench, callers int, r results) {
	for _, name := range []string{nameOurs, nameResort} {
		of, prefix := r[name], "crowd, "+name+", "
		b.facts[prefix+"ok"] = of["ok"].median()
		b.facts[prefix+"wall"] = r.ratio(name, nameLoop, "wall").median()
		b.facts[prefix+"p99"] = r.ratio(name, nameLoop, "p99").median()
		b.facts[prefix+"dials"] = r.ratio(name, nameLoop, "dials").median()
		b.facts[prefix+"goroutines"] = of["goroutines"].median() / float64(callers)
		b.facts[prefix+"more"] = of["more of a third"].median()
		b.facts[prefix+"closed"] = of["closed"].median() - r[nameLoop]["closed"].median()
		b.facts[prefix+"kB"] = of["memory"].median() * 1e3 / float64(callers)
	}
}
