package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// blackholeCalls is how many calls are made one after the other.
const blackholeCalls = 4

// blackhole measures calls to five endpoints, of which the first takes requests and
// never answers. Nearly all of that is waiting, so the contenders wait at once.
func blackhole(ctx context.Context, b *bench) ([]table, error) {
	attempt := pick(b, time.Second, 300*time.Millisecond)
	r := results{}
	for range pick(b, 7, 3) {
		if err := blackholePass(ctx, b, attempt, r); err != nil {
			return nil, err
		}
	}
	t := table{
		section: "A blackhole",
		title:   fmt.Sprintf("The first of five endpoints never answers; at most %v for an attempt", attempt),
		notes:   []string{"Milliseconds of each call, one after the other."},
		head:    []string{"client"},
	}
	for i := range blackholeCalls {
		t.head = append(t.head, fmt.Sprintf("call %d", i+1))
	}
	for _, c := range rings {
		cells := []string{c.name}
		for i := range blackholeCalls {
			cells = append(cells, r[c.name][callName(i)].cell(1))
		}
		t.row(cells...)
	}
	return []table{t}, b.control.set()
}

func callName(i int) string { return fmt.Sprintf("call %d", i) }

func blackholePass(ctx context.Context, b *bench, attempt time.Duration, r results) error {
	if err := b.control.set(); err != nil {
		return err
	}
	w := b.addrs.plain()
	clients, err := makeAll(rings, setup{proxy: w.proxy, ca: b.addrs.CA, urls: w.urls(endpointCount, ""), attempt: attempt})
	if err != nil {
		return err
	}
	defer clients.close()
	for name, c := range clients {
		if _, err := oneByOne(ctx, c, 3); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := b.control.set(modeBlackhole); err != nil {
		return err
	}
	var mu sync.Mutex // protects what follows
	var failed error
	var all sync.WaitGroup
	for name, c := range clients {
		all.Go(func() {
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
