package main

import (
	"context"
	"fmt"
	"time"
)

// fault is how some of the endpoints fail.
type fault struct {
	mode  mode
	first int // so many endpoints, from the first of the list
}

var faults = []fault{
	{modeRefused, 1}, {modeRefused, 4}, {mode500, 1}, {mode500, 4}, {mode429, 1}, {mode429, 4},
}

// failover measures calls to five endpoints, of which the first fail after a warm-up:
// the first call that meets it, and those after.
func failover(ctx context.Context, b *bench) ([]table, error) {
	var tables []table
	for _, f := range faults {
		r := results{}
		for range b.times(failoverPasses) {
			for _, c := range shuffled(rings) {
				if err := failoverOnce(ctx, b, c, f, r); err != nil {
					return nil, fmt.Errorf("%s, %d %s: %w", c.name, f.first, f.mode, err)
				}
			}
		}
		tables = append(tables, failoverTable(f, r))
		failoverFacts(b, f, r)
	}
	return tables, b.control.set()
}

// failoverOnce measures one contender, from its first connection on.
func failoverOnce(ctx context.Context, b *bench, c contender, f fault, r results) error {
	if err := b.control.set(); err != nil {
		return err
	}
	w := b.addrs.plain()
	client, err := c.make(setup{proxy: w.proxy, ca: b.addrs.CA, urls: w.urls(endpointCount, "")})
	if err != nil {
		return err
	}
	defer client.close()
	later := pick(b, 40, 20)
	if _, err := oneByOne(ctx, client, 3); err != nil {
		return err
	}
	healthy, err := oneByOne(ctx, client, later)
	if err != nil {
		return err
	}
	modes := make([]mode, f.first)
	for i := range modes {
		modes[i] = f.mode
	}
	if err := b.control.set(modes...); err != nil {
		return err
	}
	first, err := oneByOne(ctx, client, 1)
	if err != nil {
		return err
	}
	before, err := b.control.count()
	if err != nil {
		return err
	}
	after, err := oneByOne(ctx, client, later)
	if err != nil {
		return err
	}
	counted, err := b.control.count()
	if err != nil {
		return err
	}
	spent := counted.since(before)
	r.add(c.name, "first", first.median())
	r.add(c.name, "later", after.median())
	r.add(c.name, "healthy", healthy.median())
	r.add(c.name, "requests", float64(spent.Requests)/float64(later))
	r.add(c.name, "dials", float64(spent.Dials)/float64(later))
	return nil
}

// oneByOne makes calls one after the other and gives how many µs each took.
func oneByOne(ctx context.Context, c *client, calls int) (values, error) {
	var took values
	for range calls {
		began := time.Now()
		if _, err := c.call(ctx, "eth_blockNumber"); err != nil {
			return nil, err
		}
		took = append(took, micros(time.Since(began)))
	}
	return took, nil
}

func failoverTable(f fault, r results) table {
	how := map[mode]string{modeRefused: "refuse connections", mode500: "answer 500", mode429: "answer 429"}
	t := table{
		section: "Failover",
		title:   fmt.Sprintf("The first %d of five endpoints %s", f.first, how[f.mode]),
		notes: []string{
			"The first call after the fault, in µs and × " + nameLoop + "; later calls in µs and × the same client's calls before the fault; " +
				"what a later call costs in requests and dials (a refused connection is a dial without a request).",
		},
		head: []string{"client", "first, µs", "first × loop", "later, µs", "later × healthy", "requests", "dials"},
	}
	for _, c := range rings {
		of := r[c.name]
		t.row(c.name, of["first"].cell(0), r.ratio(c.name, nameLoop, "first").cell(2), of["later"].cell(0),
			of["later"].over(of["healthy"]).cell(2), of["requests"].single(2), of["dials"].single(2))
	}
	return t
}

// failoverFacts are what the goals are about.
func failoverFacts(b *bench, f fault, r results) {
	of := r[nameOurs]
	b.facts[f.fact("first, ms")] = of["first"].median() / 1e3
	b.facts[f.fact("first")] = r.ratio(nameOurs, nameLoop, "first").median()
	b.facts[f.fact("later")] = of["later"].over(of["healthy"]).median()
	b.facts[f.fact("requests")] = of["requests"].median()
	b.facts[f.fact("dials")] = of["dials"].median()
}

func (f fault) fact(what string) string {
	return fmt.Sprintf("failover, %s, %d, %s", f.mode, f.first, what)
}
