package main

import (
	"math"
	"strings"
	"testing"
	"time"
)

// filled are the facts of a run whose workloads have all measured something.
func filled() facts {
	b := &bench{facts: facts{}}
	some := results{"x": {}}
	engineFacts(b, some)
	for _, w := range (addrs{}).ways() {
		byLoad := make([]results, len(loads))
		for i := range byLoad {
			byLoad[i] = some
		}
		steadyFacts(b, w, byLoad)
	}
	for _, f := range faults {
		failoverFacts(b, f, some)
	}
	blackholeFacts(b, time.Second, some)
	for _, path := range []string{pathKnown, pathChunked} {
		largeFacts(b, path, some)
	}
	logsFacts(b, 100, some)
	crowdFacts(b, 1000, some)
	peersBehind(b.facts)
	return b.facts
}

// The workloads find every fact that a goal is checked against; no value is no fact. Each
// reason belongs to a goal.
func TestGoalsHaveFacts(t *testing.T) {
	found := filled()
	keys := map[string]bool{}
	for _, g := range goals {
		if keys[g.key] {
			t.Errorf("two goals are called %q", g.key)
		}
		keys[g.key] = true
		if (len(g.checks) == 0) == (g.other == "") {
			t.Errorf("%q has to have checks, or else something to say", g.key)
		}
		for _, c := range g.checks {
			if _, known := found[c.fact]; !known {
				t.Errorf("%q needs %q, which no workload finds", g.key, c.fact)
			}
		}
		if _, _, known := g.reached(found); known && len(g.checks) > 0 {
			t.Errorf("%q is judged without a value", g.key)
		}
	}
	for key := range reasons {
		if !keys[key] {
			t.Errorf("a reason is about %q, which is no goal", key)
		}
	}
}

// A goal is met when all its values are, as they are shown; where one isn't, the reason
// stands below the table.
func TestGoalsTable(t *testing.T) {
	old, oldReasons := goals, reasons
	defer func() { goals, reasons = old, oldReasons }()
	goals = []goal{
		measured("a", "A", "low", atMost(1, 2, " ×", "one", "two")),
		measured("b", "B", "high", atLeast(3, 1, "", "three")),
		stated("c", "C", "told", "so it is"),
	}
	reasons = map[string]string{"b": "it can't."}
	for _, c := range []struct {
		facts
		want []string
		not  string
	}{
		{facts{"one": 1.004, "two": 0.5, "three": 2.96}, []string{"| A  | low  | 1.00 ×, 0.50 × | yes |", "| 3.0 | yes |", "so it is"}, "Why not"},
		{facts{"one": 1.006, "two": 0.5, "three": 2.94}, []string{"1.01 ×, 0.50 × | **no** |", "2.9 | **no** |", "\n- A, low: no reason is known yet.\n- B, high: it can't.\n"}, "yes"},
		{facts{"one": 1, "three": math.NaN()}, []string{"not measured in this run"}, "yes"},
	} {
		table := goalsTable(c.facts)
		var page strings.Builder
		table.markdown(&page)
		squeezed := page.String()
		for strings.Contains(squeezed, "  ") {
			squeezed = strings.ReplaceAll(squeezed, "  ", " ")
		}
		for _, want := range c.want {
			if !strings.Contains(squeezed, strings.ReplaceAll(want, "  ", " ")) {
				t.Errorf("no %q in:\n%s", want, squeezed)
			}
		}
		if strings.Contains(squeezed, c.not) {
			t.Errorf("%q in:\n%s", c.not, squeezed)
		}
	}
}

// What go test writes is read, however it aligns it, and nothing else.
func TestBenchmarkOutput(t *testing.T) {
	r, err := benchmarks([]byte(`goos: linux
BenchmarkEngine/none/sticky/5/g1-2         	  117548	       967.5 ns/op	    1168 B/op	       5 allocs/op
BenchmarkEngine/none/sticky/5/g1-2         	  117548	      1032.5 ns/op	    1170 B/op	       5 allocs/op
BenchmarkStub/bare-lean 	       7	      9 ns/op	    1 B/op	       2 allocs/op
PASS
`))
	if err != nil {
		t.Fatal(err)
	}
	if got := r[engineName("none", "sticky", 5, 1)]; got["ns"].single(0) != "1,000" || got["bytes"].single(0) != "1,169" || got["allocs"].single(0) != "5" {
		t.Errorf("%v", got)
	}
	if got := r["Stub/"+nameLean]; got["ns"].single(0) != "9" || len(r) != 2 {
		t.Errorf("%v", r)
	}
	if _, err := benchmarks([]byte("PASS\n")); err == nil {
		t.Error("no results are no error")
	}
}
