package main

import (
	"context"
	"fmt"
)

// load is how many callers there are at once, and how many calls each makes in a pass.
type load struct {
	goroutines, calls int
}

var loads = []load{{1, 300}, {64, 40}, {1000, 3}}

// steady measures eth_blockNumber on one healthy endpoint.
func steady(ctx context.Context, b *bench) ([]table, error) {
	if err := b.control.set(); err != nil {
		return nil, err
	}
	var tables []table
	for _, w := range b.addrs.ways() {
		byLoad := make([]results, len(loads))
		for i, l := range loads {
			if l.goroutines >= 1000 && (w.scheme == "https" && b.quick || w.isAbsolute()) {
				continue // a thousand handshakes for each contender, or nothing new
			}
			r, err := steadyAt(ctx, b, w, l)
			if err != nil {
				return nil, fmt.Errorf("%s, %d goroutines: %w", w.name, l.goroutines, err)
			}
			byLoad[i] = r
		}
		tables = append(tables, steadyTable(w, byLoad))
		steadyFacts(b, w, byLoad)
	}
	return tables, nil
}

func steadyAt(ctx context.Context, b *bench, w way, l load) (results, error) {
	contenders := singles
	if l.goroutines >= 1000 {
		contenders = leave(singles, nameDefault) // it dials for nearly every call
	}
	clients, err := makeAll(contenders, setup{proxy: w.proxy, ca: b.addrs.CA, urls: w.urls(1, "")})
	if err != nil {
		return nil, err
	}
	defer clients.close()
	for name, c := range clients {
		if _, err := measure(ctx, c, l.goroutines, 2); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	r := results{}
	for range b.times(steadyPasses) {
		for _, c := range shuffled(contenders) {
			calls := pick(b, l.calls, max(1, l.calls/3))
			if c.name == nameDefault && l.goroutines > 1 {
				calls = max(1, calls/8) // it is that much slower
			}
			s, err := measure(ctx, clients[c.name], l.goroutines, calls)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
			r.add(c.name, "time", s.micros)
			r.add(c.name, "cpu", s.cpuMicros)
			r.add(c.name, "allocs", s.allocs)
			r.add(c.name, "bytes", s.bytes)
		}
	}
	return r, nil
}

func steadyTable(w way, byLoad []results) table {
	t := table{
		section: "Steady state",
		title:   "eth_blockNumber by " + w.name,
		notes: []string{
			"Time and the client's CPU time as multiples of " + nameTuned + ", allocations and bytes for one call.",
		},
		head: []string{"client", "1 caller ×", "64 ×", "1,000 ×", "CPU at 64 ×", "allocs at 1", "at 64", "bytes at 64"},
	}
	t.row(nameTuned+", µs", byLoad[0][nameTuned]["time"].single(0), byLoad[1][nameTuned]["time"].single(1), byLoad[2][nameTuned]["time"].single(1),
		byLoad[1][nameTuned]["cpu"].single(1), byLoad[0][nameTuned]["allocs"].single(1), byLoad[1][nameTuned]["allocs"].single(1), byLoad[1][nameTuned]["bytes"].single(0))
	for _, c := range singles[1:] {
		cells := []string{c.name}
		for i := range loads {
			cells = append(cells, byLoad[i].ratio(c.name, nameTuned, "time").cell(2))
		}
		t.row(append(cells, byLoad[1].ratio(c.name, nameTuned, "cpu").cell(2), byLoad[0][c.name]["allocs"].single(1),
			byLoad[1][c.name]["allocs"].single(1), byLoad[1][c.name]["bytes"].single(0))...)
	}
	return t
}

// steadyFacts are what the goals are about.
func steadyFacts(b *bench, w way, byLoad []results) {
	for i, l := range loads {
		if len(byLoad[i]) == 0 {
			continue
		}
		for _, c := range singles[1:] {
			b.facts[steadyFact(w.name, l.goroutines, c.name)] = byLoad[i].ratio(c.name, nameTuned, "time").median()
		}
		of := byLoad[i][nameOurs]
		b.facts[steadyFact(w.name, l.goroutines, "allocs")] = of["allocs"].median()
		b.facts[steadyFact(w.name, l.goroutines, "bytes")] = of["bytes"].median()
	}
}

func steadyFact(way string, goroutines int, what string) string {
	return fmt.Sprintf("steady, %s, %d, %s", way, goroutines, what)
}
