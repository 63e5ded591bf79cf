package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// facts are single figures of a run, by name: what the goals are checked against.
type facts map[string]float64

// goal is what the library is to reach.
type goal struct {
	key    string // of its reason, in reasons
	area   string
	text   string
	checks []check
	other  string // what there is to say where no figure shows it
}

// check compares one fact with a bound.
type check struct {
	fact     string
	bound    float64
	least    bool   // the bound is a lower one
	decimals int    // that are shown and compared
	unit     string // behind the value
}

// measured is a goal that figures of a run show.
func measured(key, area, text string, checks ...[]check) goal {
	return goal{key: key, area: area, text: text, checks: slices.Concat(checks...)}
}

// stated is a goal that none shows, with what there is to say of it.
func stated(key, area, text, other string) goal {
	return goal{key: key, area: area, text: text, other: other}
}

func atMost(bound float64, decimals int, unit string, names ...string) []check {
	return checksOf(check{bound: bound, decimals: decimals, unit: unit}, names)
}

func atLeast(bound float64, decimals int, unit string, names ...string) []check {
	return checksOf(check{bound: bound, least: true, decimals: decimals, unit: unit}, names)
}

func checksOf(like check, names []string) []check {
	var all []check
	for _, name := range names {
		like.fact = name
		all = append(all, like)
	}
	return all
}

// met compares as it is shown: 1.004 is 1.00.
func (c check) met(value float64) bool {
	scale := math.Pow(10, float64(c.decimals))
	value = math.Round(value*scale) / scale
	if c.least {
		return value >= c.bound
	}
	return value <= c.bound
}

// reached gives the values of a goal's checks, and whether all are met; known is false
// where one wasn't measured.
func (g *goal) reached(f facts) (text string, met, known bool) {
	var shown []string
	met = true
	for _, c := range g.checks {
		value, found := f[c.fact]
		if !found || math.IsNaN(value) {
			return none, false, false
		}
		shown = append(shown, number(value, c.decimals)+c.unit)
		met = met && c.met(value)
	}
	return strings.Join(shown, ", "), met, len(g.checks) > 0
}

// The ways of the steady state, by what the goals call them.
var (
	waySocks    = addrs{}.ways()[0].name
	wayConnect  = addrs{}.ways()[1].name
	waySocksTLS = addrs{}.ways()[2].name
	wayAbsolute = addrs{}.ways()[3].name
)

func steadyAll(goroutines int, what string, ways ...string) []string {
	var names []string
	for _, w := range ways {
		names = append(names, steadyFact(w, goroutines, what))
	}
	return names
}

func failoverAll(what string, first ...int) []string {
	var names []string
	for _, f := range faults {
		if len(first) == 0 || slices.Contains(first, f.first) {
			names = append(names, f.fact(what))
		}
	}
	return names
}

const allFaults = "refused, 500, 429; 1 and 4 of 5 endpoints each"

// goals are in the order of the page.
var goals = slices.Concat(callGoals(), failoverGoals(), largeGoals(), logsGoals(), crowdGoals())

func callGoals() []goal {
	threeWays := []string{waySocks, wayConnect, waySocksTLS}
	proxyWays := []string{wayConnect, waySocksTLS, wayAbsolute}
	return []goal{
		measured("overhead", "64 callers", "time ≤ 1.00 × bare-tuned by plain SOCKS5, CONNECT with TLS, SOCKS5 with TLS; a deadline for each attempt, health and statistics on",
			atMost(1, 2, " ×", steadyAll(64, nameOurs, threeWays...)...)),
		measured("throughput", "64 callers", "at least 95 % of the calls that bare-tuned makes in the same time: time ≤ 1.05 ×, by the same ways",
			atMost(1.05, 2, " ×", steadyAll(64, nameOurs, threeWays...)...)),
		measured("allocs", "64 callers", "≤ 60 allocations and ≤ 5,000 bytes for a call, by the same ways",
			atMost(60, 1, "", steadyAll(64, "allocs", threeWays...)...), atMost(5000, 0, " B", steadyAll(64, "bytes", threeWays...)...)),
		measured("stretch", "64 callers", "a stretch: time ≤ 0.85 × and ≤ 50 allocations, by the same ways",
			atMost(0.85, 2, " ×", steadyAll(64, nameOurs, threeWays...)...), atMost(50, 1, "", steadyAll(64, "allocs", threeWays...)...)),
		measured("own work", "own work", "≤ 1,200 ns and ≤ 8 allocations above bare-lean on a transport that answers at once, with a deadline",
			atMost(1200, 0, " ns", "stub, ns"), atMost(8, 0, "", "stub, allocs")),
		stated("no deadline", "own work", "≤ 600 ns and ≤ 3 allocations above bare-lean without a deadline", "doesn't apply: each attempt has a deadline"),
		measured("thousand", "1,000 callers", "time ≤ 1.05 × bare-tuned by plain SOCKS5, CONNECT with TLS, SOCKS5 with TLS",
			atMost(1.05, 2, " ×", steadyAll(1000, nameOurs, threeWays...)...)),
		measured("small call", "1 caller", "time ≤ 0.97 × bare-tuned by CONNECT with TLS, SOCKS5 with TLS, absolute form",
			atMost(0.97, 2, " ×", steadyAll(1, nameOurs, proxyWays...)...)),
		measured("peers", "1 caller", "every library is slower: time ≤ 1 × that of the quickest, by the same ways",
			atMost(1, 2, " ×", peersFact(wayConnect), peersFact(waySocksTLS), peersFact(wayAbsolute))),
		measured("rings", "engine alone", "the same for 5 RPCs and for 1,000: time within a tenth (the median over all rows of the table, by 1 caller and by 64), allocations equal in all",
			atMost(1.1, 2, " ×", "engine, ratio"), atMost(0, 0, " more", "engine, allocs")),
	}
}

func failoverGoals() []goal {
	ours, hedging := "blackhole, "+nameOurs+", ", "blackhole, "+nameHedging+", "
	return []goal{
		measured("first call", "failover", "the first call ≤ 1.2 × bare-loop ("+allFaults+")", atMost(1.2, 2, " ×", failoverAll("first")...)),
		measured("first call, ms", "failover", "the first call ≤ 1 ms with 1 endpoint at fault (refused, 500, 429), ≤ 2 ms with 4",
			atMost(1, 2, " ms", failoverAll("first, ms", 1)...), atMost(2, 2, " ms", failoverAll("first, ms", 4)...)),
		measured("later calls", "failover", "later calls ≤ 1.05 × healthy ("+allFaults+")", atMost(1.05, 2, " ×", failoverAll("later")...)),
		measured("later requests", "failover", "later calls ≤ 1.02 requests and no dials each ("+allFaults+")",
			atMost(1.02, 2, "", failoverAll("requests")...), atMost(0, 2, " dials", failoverAll("dials")...)),
		stated("no sleep", "failover", "no sleep between endpoints; a failed answer is read to its end, so that its connection stays", "the rows above would show either"),
		measured("blackhole", "blackhole", "the first call ≤ the attempt's bound + 5 ms, no errors", atMost(5, 1, " ms above", ours+"first")),
		measured("hung", "blackhole", "over a failing attempt itself ≤ 1 ms where the endpoint hangs: the first call ≤ that of bare-loop + 1 ms", atMost(1, 1, " ms above", ours+"over loop")),
		measured("blackhole, hedged", "blackhole", "with hedging the first call ≤ the hedge's delay + 5 ms", atMost(5, 1, " ms above", hedging+"first")),
		measured("blackhole, later", "blackhole", "every later call ≤ 1.1 × healthy", atMost(1.1, 2, " ×", ours+"later")),
		measured("blackhole, later, hedged", "blackhole", "with hedging every later call ≤ 1.1 × healthy", atMost(1.1, 2, " ×", hedging+"later")),
		stated("probes", "blackhole", "no caller pays for a probe of an RPC that comes back",
			"not so by design: the request that an RPC gets after its cooldown is a caller's own, who goes on to the next RPC where it fails"),
	}
}

func largeGoals() []goal {
	three := func(what string) []string {
		return []string{largeFact(pathKnown, "first"+what), largeFact(pathKnown, "later"+what), largeFact(pathChunked, "later"+what)}
	}
	return []goal{
		measured("large", "large answers", "≥ 3 × bare-tuned, all of the body checked as JSON, of known length (first, later) and in chunks (later)", atLeast(3, 2, " ×", three("")...)),
		measured("large, stretch", "large answers", "a stretch: ≥ 5 × bare-tuned, likewise", atLeast(5, 2, " ×", three("")...)),
		measured("large, geth", "large answers", "≥ 8 × go-ethereum, likewise", atLeast(8, 2, " ×", three(", geth")...)),
		measured("large, memory", "large answers", "memory ≤ 1.1 × the answer of known length (first, later), ≤ 1.15 × in chunks (later), ≤ 2.5 × in chunks (first)",
			atMost(1.1, 2, " ×", three(", memory")[:2]...), atMost(1.15, 2, " ×", three(", memory")[2]), atMost(2.5, 2, " ×", largeFact(pathChunked, "first, memory"))),
		stated("large, cap", "large answers", "the size of an answer is bounded", "MaxResponseBytes, 256 MiB where nothing else is said"),
	}
}

func logsGoals() []goal {
	return []goal{
		measured("logs", "logs in pieces", "time ≤ 1.12 × the ideal with 1, 8, 16, 32 workers", atMost(1.12, 2, " ×", logsAll("ideal", logsWorkers...)...)),
		measured("logs, speed", "logs in pieces", "≥ 13 × as fast with 16 workers, ≥ 22 × with 32",
			atLeast(13, 1, " ×", logsAll("speed", 16)...), atLeast(22, 1, " ×", logsAll("speed", 32)...)),
		stated("logs, order", "logs in pieces", "the order is kept, no more pieces are held than workers, a slow RPC delays its own piece only", "the library's tests hold it"),
	}
}

// crowdGoals are reached with LastResort: without it a call ends at once while all cool.
func crowdGoals() []goal {
	fact := func(what string) string { return "crowd, " + nameResort + ", " + what }
	return []goal{
		measured("crowd", "crowd", "while all endpoints flap every call is answered; with LastResort", atLeast(100, 1, " %", fact("ok"))),
		measured("crowd, time", "crowd", "wall ≤ 1.2 × and p99 ≤ 1.5 × bare-loop on as many connections; with LastResort",
			atMost(1.2, 2, " ×", fact("wall")), atMost(1.5, 2, " ×", fact("p99"))),
		measured("crowd, size", "crowd", "≤ 1.1 goroutines and ≤ 25 kB for a waiting caller; with LastResort",
			atMost(1.1, 2, "", fact("goroutines")), atMost(25, 1, " kB", fact("kB"))),
		measured("crowd, memory", "crowd", "memory comes back: after Close ≤ 2 MB more of the heap in use than with bare-loop, a third crowd leaves ≤ 1 MB more than a second; with LastResort",
			atMost(2, 1, " MB", fact("closed")), atMost(1, 1, " MB", fact("more"))),
		measured("crowd, dials", "crowd", "dials ≤ 2 × bare-loop; with LastResort", atMost(2, 2, " ×", fact("dials"))),
		stated("crowd, bound", "crowd", "connections are bounded where nothing is said", "MaxConns, 256 to one RPC"),
		stated("crowd, locked out", "crowd", "cooldowns never lock all RPCs out",
			"only with LastResort: without it a call fails at once while all RPCs cool, so that its bot hears of it"),
	}
}

func logsAll(what string, workers ...int) []string {
	var names []string
	for _, n := range workers {
		names = append(names, logsFact(what, n))
	}
	return names
}

// reasons say why a goal isn't met, by its key. They are looked up only where it isn't.
var reasons = map[string]string{
	"overhead": "What rpcpool does beside, a deadline for each attempt and the choice of an RPC with its statistics, costs about what " +
		"encoding/json and http.Client cost bare-tuned, so that the ratios are as near to 1 as a run can tell (the spread is in the tables).",
	"throughput": "As in the row above: the spread between passes is ±0.1.",
	"allocs": "Of the bytes 704 are the state of the call, made in one piece so that a failover allocates little; 240 the request with its " +
		"body; 240 the record of what was written to which connection, by which a dead connection and a lost answer are told apart; 270 " +
		"the deadline. bare-tuned itself needs more than 5,000 here.",
	"stretch": "net/http's transport alone allocates 41 times for a request, and its two goroutines for a connection are most of the time. " +
		"Less takes a pool of connections of one's own.",
	"own work": "By the profile of BenchmarkStub a fifth of it is the attempt's deadline (context.WithTimeout and its end) and another fifth " +
		"the garbage collector's, for 1.4 kB more than bare-lean leaves; the state of the call, the choice of RPC and proxy, and the record " +
		"of what was written take about a tenth each, and the answer's envelope, which bare-lean doesn't check, a little less.",
	"thousand": "As in the first row. With so many callers the ratios of all clients move by a tenth from pass to pass.",
	"small call": "One caller leaves the machine idle between packets, and how long that takes to wake up is most of the time: it differs " +
		"more from pass to pass than the clients do (the spread is in the tables).",
	"peers": "As in the row above: these differences are within the spread of the passes. By allocations rpcpool is below all of them.",
	"rings": "A microsecond's work takes a tenth more or less from one run to the next (the spread is in the table), and RoundRobin touches " +
		"the memory of another of the 1,000 RPCs each time. That nothing is done for each RPC of the list shows in the allocations and " +
		"bytes, which a test holds.",
	"first call": "Where four endpoints refuse connections, the third one has the proxy checked before more are blamed: one request more " +
		"than bare-loop makes. Elsewhere the ratio is within the spread.",
	"first call, ms": "Where four endpoints refuse connections, the third one has the proxy checked before more are blamed: one request more.",
	"later calls":    "One caller at a time; the differences are within the spread of the passes.",
	"blackhole, later": "These calls come after a wait in which the machine slept: bare-sticky, which does nothing but skip the endpoint, pays " +
		"about the same.",
	"blackhole, later, hedged": "As in the row above. Besides, the second call pays the delay once more, which isn't counted here: one slow " +
		"answer isn't held against an RPC, two are.",
	"crowd": "A call asks each endpoint once. Where each of them is in a bad step just when its turn comes, the call fails.",
	"crowd, size": "A caller in line holds a stack of 4 or 8 kB, the state and the request of its call (1 kB) and, after a failure, what its " +
		"error would tell of it; the rest is connections and what the garbage collector hasn't given back yet.",
	"crowd, memory": "What stays is connections, about 9 kB each, which are kept for 30 s; how many there are in the end differs from crowd " +
		"to crowd. Over eight crowds in a row what is left goes up and down with them, between 12 and 19 MB.",
}

func peersFact(way string) string { return "peers, " + way }

// peersBehind compares with the quickest library of those that are measured.
func peersBehind(f facts) {
	for _, w := range []string{wayConnect, waySocksTLS, wayAbsolute} {
		quickest := math.Inf(1)
		for _, name := range []string{nameGeth, nameRetryable, nameFailsafe, nameHedged} {
			if value, found := f[steadyFact(w, 1, name)]; found {
				quickest = min(quickest, value)
			}
		}
		if ours, found := f[steadyFact(w, 1, nameOurs)]; found && !math.IsInf(quickest, 1) {
			f[peersFact(w)] = ours / quickest
		}
	}
}

// goalsTable checks the goals against what a run found.
func goalsTable(f facts) table {
	peersBehind(f)
	t := table{section: "Goals", prose: true, head: []string{"of", "goal", "reached", "met"}}
	var why []string
	for _, g := range goals {
		text, met, known := g.reached(f)
		switch {
		case g.other != "":
			t.row(g.area, g.text, g.other, none)
		case !known:
			t.row(g.area, g.text, "not measured in this run", none)
		case met:
			t.row(g.area, g.text, text, "yes")
		default:
			t.row(g.area, g.text, text, "**no**")
			reason := reasons[g.key]
			if reason == "" {
				reason = "no reason is known yet."
			}
			why = append(why, fmt.Sprintf("- %s, %s: %s", g.area, g.text, reason))
		}
	}
	if len(why) > 0 {
		t.after = "Why not:\n\n" + strings.Join(why, "\n")
	}
	return t
}

// printGoals writes the goals for a terminal, which has no room for their text in columns.
func printGoals(w io.Writer, t *table) {
	fmt.Fprintf(w, "\n%s\n", t.section)
	for _, row := range t.rows {
		fmt.Fprintf(w, "%-4s %s: %s\n       %s\n", strings.Trim(row[3], "*"), row[0], row[1], row[2])
	}
}
