package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

const (
	blackholeCalls = 4                     // one after the other
	holeStagger    = 50 * time.Millisecond // between the contenders, so that their later calls don't meet
)

// holeRings are those that meet the blackhole.
var holeRings = append(slices.Clip(rings), contender{nameHedging, newHedging})

// blackhole measures calls to five endpoints, of which the first takes requests and
// never answers. Nearly all of that is waiting, so the contenders wait at once.
func blackhole(ctx context.Context, b *bench) ([]table, error) {
	attempt := pick(b, time.Second, 300*time.Millisecond)
	r := results{}
	for range b.times(blackholePasses) {
		if err := blackholePass(ctx, b, attempt, r); err != nil {
			return nil, err
		}
	}
	t := table{
		section: "A blackhole",
		title:   fmt.Sprintf("The first of five endpoints never answers; at most %v for an attempt", attempt),
		notes:   []string{fmt.Sprintf("Milliseconds of each call, one after the other, and of one before. %s asks a second endpoint after %v.", nameHedging, hedgeDelay)},
		head:    []string{"client", "healthy"},
	}
	for i := range blackholeCalls {
		t.head = append(t.head, fmt.Sprintf("call %d", i+1))
	}
	for _, c := range holeRings {
		cells := []string{c.name, r[c.name]["healthy"].cell(2)}
		for i := range blackholeCalls {
			cells = append(cells, r[c.name][callName(i)].cell(2))
		}
		t.row(cells...)
	}
	blackholeFacts(b, attempt, r)
	return []table{t}, b.control.set()
}

func callName(i int) string { return fmt.Sprintf("call %d", i) }

func blackholePass(ctx context.Context, b *bench, attempt time.Duration, r results) error {
	if err := b.control.set(); err != nil {
		return err
	}
	w := b.addrs.plain()
	clients, err := makeAll(holeRings, setup{proxy: w.proxy, ca: b.addrs.CA, urls: w.urls(endpointCount, ""), attempt: attempt})
	if err != nil {
		return err
	}
	defer clients.close()
	for name, c := range clients {
		healthy, err := oneByOne(ctx, c, 20)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		r.add(name, "healthy", healthy[3:].median()/1e3)
	}
	if err := b.control.set(modeBlackhole); err != nil {
		return err
	}
	var mu sync.Mutex // protects what follows
	var failed error
	var all sync.WaitGroup
	var late time.Duration
	for name, c := range clients {
		late += holeStagger
		all.Go(func() {
			time.Sleep(late)
			took, err := oneByOne(ctx, c, blackholeCalls)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = fmt.Errorf("%s: %w", name, err)
			}
			for i, t := range took {
				r.add(name, callName(i), t/1e3)
			}
		})
	}
	all.Wait()
	return failed
}

// blackholeFacts are what the goals are about. A call that ends with an error ends the run.
func blackholeFacts(b *bench, attempt time.Duration, r results) {
	for name, wait := range map[string]time.Duration{nameOurs: attempt, nameHedging: hedgeDelay} {
		of := r[name]
		later := of[callName(1)]
		for i := 2; i < blackholeCalls; i++ {
			later = append(slices.Clip(later), of[callName(i)]...)
		}
		b.facts["blackhole, "+name+", first"] = of[callName(0)].median() - millis(wait)
		b.facts["blackhole, "+name+", over loop"] = b.facts["blackhole, "+name+", first"] - (r[nameLoop][callName(0)].median() - millis(attempt))
		b.facts["blackhole, "+name+", later"] = later.median() / of["healthy"].median()
	}
}
