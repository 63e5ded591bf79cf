package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

// engineFeatures are those that the library's own benchmark has, with what the page calls
// them.
var engineFeatures = []struct{ name, shown string }{
	{"none", "a plain call"},
	{"head_known", "WithFreshness, the head known"},
	{"budget", "a budget for the call"},
	{"hedging", "WithHedge"},
	{"MaxInFlight", "MaxInFlight"},
	{"debug_log_off", "a logger above debug"},
	{"hooks", "a hook that does nothing"},
}

var engineModes = []struct{ name, shown string }{{"sticky", "Sticky"}, {"round_robin", "RoundRobin"}}

// engine has Go's benchmarks measure the library without a network: its engine without a
// transport, and a whole call on a transport that answers at once.
func engine(ctx context.Context, b *bench) ([]table, error) {
	where, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/bomzrpc/rpcpool").Output()
	if err != nil {
		return nil, fmt.Errorf("looking for the library: %w", err)
	}
	test := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "^Benchmark(Engine|Stub)$", "-benchmem",
		"-count", strconv.Itoa(b.times(enginePasses)), "-benchtime", pick(b, "50ms", "5ms"), ".")
	test.Dir = strings.TrimSpace(string(where))
	test.Stderr = os.Stderr
	output, err := test.Output()
	if err != nil {
		_, _ = b.log.Write(output)
		return nil, fmt.Errorf("the library's benchmarks: %w", err)
	}
	r, err := benchmarks(output)
	if err != nil {
		return nil, err
	}
	engineFacts(b, r)
	return []table{engineTable(r), stubTable(r)}, nil
}

// benchmarkLine is a result as go test writes it.
var benchmarkLine = regexp.MustCompile(`^Benchmark(\S+?)(?:-\d+)?\s+\d+\s+([\d.]+) ns/op\s+([\d.]+) B/op\s+([\d.]+) allocs/op`)

// benchmarks reads what go test wrote.
func benchmarks(output []byte) (results, error) {
	r := results{}
	for line := range bytes.Lines(output) {
		found := benchmarkLine.FindSubmatch(line)
		if found == nil {
			continue
		}
		for i, what := range []string{"ns", "bytes", "allocs"} {
			value, err := strconv.ParseFloat(string(found[i+2]), 64)
			if err != nil {
				return nil, err
			}
			r.add(string(found[1]), what, value)
		}
	}
	if len(r) == 0 {
		return nil, errors.New("the library's benchmarks wrote no results")
	}
	return r, nil
}

func engineName(feature, mode string, rpcs, goroutines int) string {
	return fmt.Sprintf("Engine/%s/%s/%d/g%d", feature, mode, rpcs, goroutines)
}

func engineTable(r results) table {
	t := table{
		section: "The engine alone",
		title:   "A call without its transport, on lists of 5 and of 1,000 RPCs",
		notes: []string{
			"Nanoseconds for a call by 1 caller, by 64 and by 1,000 at once, allocations and bytes for a call of one caller. Each feature is measured on its own. " +
				"The deadline of the attempt is a part of all of them. What is counted is counted without a lock; the handle's lock is taken for the choice of an " +
				"RPC and after the answer, and many callers on two cores pay for that and for the garbage of all with what the second core gains.",
		},
		head: []string{
			"feature, mode", "1 caller, 5 RPCs", "1,000 RPCs", "1,000 ÷ 5", "64 callers, 5 RPCs", "1,000 RPCs", "1,000 ÷ 5", "1,000 callers, 5 RPCs",
			"allocs, 5 RPCs", "1,000 RPCs", "bytes, 5 RPCs", "1,000 RPCs",
		},
	}
	for _, feature := range engineFeatures {
		for _, mode := range engineModes {
			cells := []string{feature.shown + ", " + mode.shown}
			for _, goroutines := range []int{1, 64} {
				short, long := engineName(feature.name, mode.name, 5, goroutines), engineName(feature.name, mode.name, 1000, goroutines)
				cells = append(cells, r[short]["ns"].cell(0), r[long]["ns"].cell(0), r.ratio(long, short, "ns").single(2))
			}
			short, long := r[engineName(feature.name, mode.name, 5, 1)], r[engineName(feature.name, mode.name, 1000, 1)]
			t.row(append(cells, r[engineName(feature.name, mode.name, 5, 1000)]["ns"].cell(0), short["allocs"].single(0), long["allocs"].single(0), short["bytes"].single(0), long["bytes"].single(0))...)
		}
	}
	return t
}

func stubTable(r results) table {
	t := table{
		section: "The engine alone",
		title:   "A whole call on a transport that answers at once, in memory",
		notes: []string{
			"What a client costs beside its transport, free of the network's noise; one caller. The transport's own part is the same for all, " +
				"so the differences count. " + nameLean + " sets no deadline, rpcpool sets one for each attempt.",
		},
		head: []string{"client", "ns", "ns above lean", "allocs", "above lean", "bytes", "above lean"},
	}
	lean := r["Stub/"+nameLean]
	for _, name := range []string{nameLean, nameTuned, nameOurs} {
		of := r["Stub/"+name]
		cells := []string{name}
		for _, what := range []string{"ns", "allocs", "bytes"} {
			value := of[what].single(0)
			if what == "ns" {
				value = of[what].cell(0)
			}
			cells = append(cells, value, number(of[what].median()-lean[what].median(), 0))
		}
		t.row(cells...)
	}
	return t
}

// engineFacts are what the goals are about.
func engineFacts(b *bench, r results) {
	lean, ours := r["Stub/"+nameLean], r["Stub/"+nameOurs]
	b.facts["stub, ns"] = ours["ns"].median() - lean["ns"].median()
	b.facts["stub, allocs"] = ours["allocs"].median() - lean["allocs"].median()
	var ratios, allocs values
	for _, feature := range engineFeatures {
		for _, mode := range engineModes {
			for _, goroutines := range []int{1, 64} {
				short, long := engineName(feature.name, mode.name, 5, goroutines), engineName(feature.name, mode.name, 1000, goroutines)
				ratios = append(ratios, r.ratio(long, short, "ns").median())
				if goroutines == 1 {
					allocs = append(allocs, r[long]["allocs"].median()-r[short]["allocs"].median())
				}
			}
		}
	}
	b.facts["engine, ratio"], b.facts["engine, allocs"] = ratios.median(), allocs.quantile(1)
}
