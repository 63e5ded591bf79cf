package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const jsSection = "Clients of JavaScript"

// The clients, as clients.mjs names them.
const (
	jsFetch         = "fetch of Node"
	jsViem          = "viem http"
	jsViemRing      = "viem fallback"
	jsEthers        = "ethers JsonRpcProvider"
	jsEthersLone    = "ethers, no batches"
	jsEthersRing    = "ethers FallbackProvider"
	jsEthersRingOne = "ethers Fallback, quorum 1"
)

// javaScript measures clients of JavaScript, which know no SOCKS proxy: they go straight to
// the endpoints, and so do those in Go beside them. Where they can't be had the page says
// so, and the run goes on.
func javaScript(ctx context.Context, b *bench) ([]table, error) {
	tables, err := measureJS(ctx, b)
	if err == nil || ctx.Err() != nil {
		return tables, err
	}
	fmt.Fprintln(b.log, "         the clients of JavaScript weren't measured:", err)
	missing, ok := errors.AsType[*jsMissingError](err)
	if !ok {
		missing = &jsMissingError{"one of them failed; the run's own output says how"}
	}
	return []table{{section: jsSection, notes: []string{"**Not measured in this run**: " + missing.why + "."}}}, b.control.set()
}

func measureJS(ctx context.Context, b *bench) ([]table, error) {
	folder, err := installJS(ctx, b.log)
	if err != nil {
		return nil, err
	}
	if b.versions, err = jsVersions(ctx); err != nil {
		return nil, err
	}
	if err := b.control.set(); err != nil {
		return nil, err
	}
	doors, err := b.control.doors()
	if err != nil {
		return nil, err
	}
	j := &jsBench{bench: b, folder: folder, doors: doors}
	var tables []table
	for _, part := range []func(context.Context) (table, error){j.steady, j.failover, j.large} {
		t, err := part(ctx)
		if err != nil {
			return nil, err
		}
		tables = append(tables, t)
	}
	return tables, b.control.set()
}

type jsBench struct {
	*bench
	folder string
	doors  []string
}

// urls gives the first endpoints' own URLs.
func (j *jsBench) urls(endpoints int, path string) []string {
	var urls []string
	for _, addr := range j.doors[:endpoints] {
		urls = append(urls, "http://"+addr+path)
	}
	return urls
}

var (
	jsDirect  = []contender{{nameTuned, newTuned}, {nameLean, newLean}, {nameGeth, newGeth}}
	jsSingles = []string{jsFetch, jsViem, jsEthersLone, jsEthers}
)

// turn is one contender's turn in a pass.
type turn struct {
	name string
	take func() error
}

func takeTurns(turns []turn) error {
	for _, t := range shuffled(turns) {
		if err := t.take(); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
	return nil
}

// steady measures eth_blockNumber on one healthy endpoint.
func (j *jsBench) steady(ctx context.Context) (table, error) {
	clients, err := makeAll(jsDirect, setup{urls: j.urls(1, "/")})
	if err != nil {
		return table{}, err
	}
	defer clients.close()
	r := results{}
	var turns []turn
	add := func(name string, measure func(callers, calls int) (sample, error)) {
		turns = append(turns, turn{name, func() error {
			for _, l := range loads[:2] {
				s, err := measure(l.goroutines, pick(j.bench, l.calls, max(1, l.calls/6)))
				if err != nil {
					return err
				}
				r.add(name, fmt.Sprint("time ", l.goroutines), s.micros)
				r.add(name, fmt.Sprint("cpu ", l.goroutines), s.cpuMicros)
			}
			return nil
		}})
	}
	for _, c := range jsDirect {
		add(c.name, func(callers, calls int) (sample, error) { return measure(ctx, clients[c.name], callers, calls) })
	}
	var stops []func()
	defer func() {
		for _, stop := range stops {
			stop()
		}
	}()
	for _, name := range jsSingles {
		c, err := startJS(ctx, j.folder, name, j.urls(1, "/"))
		if err != nil {
			return table{}, err
		}
		stops = append(stops, c.stop)
		add(name, func(callers, calls int) (sample, error) {
			if name == jsEthers && callers == 1 {
				calls = max(1, calls/10) // it waits 10 ms for others to join a call
			}
			answer, err := c.do(jsCommand{Do: "pass", Callers: callers, Calls: calls})
			return sample{micros: answer.Micros, cpuMicros: answer.CPUMicros}, err
		})
	}
	if err := takeTurns(turns); err != nil { // connections are made, code is compiled
		return table{}, err
	}
	clear(r)
	for range j.times(jsSteadyPasses) {
		if err := takeTurns(turns); err != nil {
			return table{}, err
		}
	}
	return jsSteadyTable(r), nil
}

func jsSteadyTable(r results) table {
	t := table{
		section: jsSection,
		title:   "eth_blockNumber, without a proxy",
		notes: []string{
			"These clients can't go through SOCKS, so they go straight to the endpoint; beside them, likewise, what is written by hand in Go and go-ethereum. " +
				"rpcpool sends nothing without a proxy; its rows are in the tables above, against the same " + nameTuned + ". " +
				nameEthersNote + " Time and CPU time of a call, and × " + nameTuned + ".",
		},
		head: []string{"client", "1 caller, µs", "×", "64, µs", "×", "CPU at 64, µs", "×"},
	}
	for _, name := range append([]string{nameTuned, nameLean, nameGeth}, jsSingles...) {
		of := r[name]
		t.row(name, of["time 1"].cell(0), r.ratio(name, nameTuned, "time 1").single(2), of["time 64"].cell(1), r.ratio(name, nameTuned, "time 64").single(2),
			of["cpu 64"].cell(1), r.ratio(name, nameTuned, "cpu 64").single(2))
	}
	return t
}

const nameEthersNote = "A provider of ethers waits 10 ms for other calls to send with the first in one batch, unless it is told to send no batches."

var jsFaults = []fault{{modeRefused, 1}, {mode500, 1}}

// failover measures calls to five endpoints, the first of which fails after a warm-up.
func (j *jsBench) failover(ctx context.Context) (table, error) {
	r := results{}
	rings := []contender{{nameLoop, newLoop}, {nameSticky, newSticky}}
	names := []string{jsFetch, jsViemRing, jsEthersRingOne, jsEthersRing}
	for range j.times(jsFailoverPasses) {
		for _, f := range jsFaults {
			var turns []turn
			for _, c := range rings {
				turns = append(turns, turn{c.name, func() error { return j.failoverOfGo(ctx, c, f, r) }})
			}
			for _, name := range names {
				turns = append(turns, turn{name, func() error { return j.failoverOfJS(ctx, name, f, r) }})
			}
			if err := takeTurns(turns); err != nil {
				return table{}, err
			}
		}
	}
	t := table{
		section: jsSection,
		title:   "The first of five endpoints fails, without a proxy",
		notes: []string{"Milliseconds of the first call after the fault and of later ones, and how many of all calls got an answer within 5 s. " +
			"Of ethers' FallbackProvider, whose providers have priorities in their order, it is the balance of an account: " +
			"its block number is drawn from several answers, and fails where one of them is an error."},
		head: []string{"client"},
	}
	for _, f := range jsFaults {
		t.head = append(t.head, string(f.mode)+": first, ms", "later, ms", "ok %")
	}
	for _, name := range append([]string{nameLoop, nameSticky}, names...) {
		cells := []string{name}
		for _, f := range jsFaults {
			of := r[name]
			cells = append(cells, of[f.fact("first")].cell(2), of[f.fact("later")].cell(2), of[f.fact("ok")].single(0))
		}
		t.row(cells...)
	}
	return t, nil
}

const (
	jsLater   = 5 // calls after the first: some of them wait for timers
	jsLongest = 5 * time.Second
)

func (j *jsBench) failoverOfGo(ctx context.Context, c contender, f fault, r results) error {
	if err := j.control.set(); err != nil {
		return err
	}
	client, err := c.make(setup{urls: j.urls(endpointCount, "/")})
	if err != nil {
		return err
	}
	defer client.close()
	if _, err := oneByOne(ctx, client, 20); err != nil {
		return err
	}
	if err := j.control.set(f.mode); err != nil {
		return err
	}
	took, err := oneByOne(ctx, client, 1+jsLater)
	if err != nil {
		return err
	}
	for i := range took {
		took[i] /= 1e3
	}
	f.note(r, c.name, took, 0)
	return nil
}

func (j *jsBench) failoverOfJS(ctx context.Context, name string, f fault, r results) error {
	if err := j.control.set(); err != nil {
		return err
	}
	c, err := startJS(ctx, j.folder, name, j.urls(endpointCount, "/"))
	if err != nil {
		return err
	}
	defer c.stop()
	order := jsCommand{Do: "calls", Calls: 20, Longest: jsLongest.Milliseconds()}
	warm, err := c.do(order)
	if err != nil {
		return err
	}
	if warm.Failed > 0 {
		return fmt.Errorf("%d of %d calls to healthy endpoints failed", warm.Failed, order.Calls)
	}
	if err := j.control.set(f.mode); err != nil {
		return err
	}
	order.Calls = 1 + jsLater
	answer, err := c.do(order)
	if err != nil {
		return err
	}
	f.note(r, name, answer.Took, answer.Failed)
	return nil
}

// note takes in the calls after a fault, the first one at first.
func (f fault) note(r results, name string, took values, failed int) {
	r.add(name, f.fact("first"), took[0])
	r.add(name, f.fact("later"), took[1:].median())
	r.add(name, f.fact("ok"), 100*float64(len(took)-failed)/float64(len(took)))
}

// large measures a large answer to eth_getLogs, each time in a fresh process.
func (j *jsBench) large(ctx context.Context) (table, error) {
	if err := j.control.set(); err != nil {
		return table{}, err
	}
	size := pick(j.bench, 31_500_000, 8_000_000)
	urls := j.urls(1, fmt.Sprintf("%s?%d", pathKnown, size))
	r := results{}
	goNames, jsNames := []string{nameTuned, nameGeth}, []string{jsFetch, jsViem, jsEthersLone}
	for range j.times(jsLargePasses) {
		var turns []turn
		for _, name := range goNames {
			turns = append(turns, turn{name, func() error {
				numbers, err := errand{Workload: "large", Contender: name, Direct: urls, Calls: 2}.run(ctx)
				r.add(name, "speed", numbers["first"])
				r.add(name, "peak", numbers["first peak"])
				return err
			}})
		}
		for _, name := range jsNames {
			turns = append(turns, turn{name, func() error { return j.largeOfJS(ctx, name, urls, size, r) }})
		}
		if err := takeTurns(turns); err != nil {
			return table{}, err
		}
	}
	t := table{
		section: jsSection,
		title:   fmt.Sprintf("eth_getLogs with a result of %s MB, without a proxy", number(float64(size)/1e6, 1)),
		notes: []string{
			"The first answer of a process: MB/s, and the most memory above an idle process, × the result. The clients in Go give raw JSON, those of JavaScript values; viem's bound on answers of 10 MB is lifted.",
		},
		head: []string{"client", "MB/s", "×", "memory ×"},
	}
	for _, name := range append(goNames, jsNames...) {
		t.row(name, r[name]["speed"].cell(0), r.ratio(name, nameTuned, "speed").single(2), r[name]["peak"].cell(2))
	}
	return t, nil
}

func (j *jsBench) largeOfJS(ctx context.Context, name string, urls []string, size int, r results) error {
	c, err := startJS(ctx, j.folder, name, urls)
	if err != nil {
		return err
	}
	defer c.stop()
	if _, err := c.do(jsCommand{Do: "calls", Calls: 20, Longest: jsLongest.Milliseconds()}); err != nil {
		return err
	}
	answer, err := c.do(jsCommand{Do: "logs"})
	if err != nil {
		return err
	}
	r.add(name, "speed", float64(size)/1e3/answer.Millis)
	r.add(name, "peak", answer.Peak/float64(size))
	return nil
}
