package main

import (
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

// startTestServers serves in this process until the test ends.
func startTestServers(t *testing.T) (addrs, *control) {
	t.Helper()
	input, quit := io.Pipe()
	output, told := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- serve(t.Context(), input, told) }()
	var at addrs
	if err := json.NewDecoder(output).Decode(&at); err != nil {
		t.Fatal(err)
	}
	c, err := dialControl(t.Context(), at.Control)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.close()
		quit.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return at, c
}

// Every contender gets the right answer on every way, and the same large one.
func TestContendersAnswerAlike(t *testing.T) {
	at, _ := startTestServers(t)
	all := slices.Concat(singles, rings[:2], crowdRings[len(rings):], holeRings[len(rings):])
	for _, w := range at.ways() {
		for _, path := range []string{"", pathKnown + "?100000", pathChunked + "?100000"} {
			clients, err := makeAll(all, setup{proxy: w.proxy, ca: at.CA, urls: w.urls(1, path)})
			if err != nil {
				t.Fatal(err)
			}
			for name, c := range clients {
				result, err := c.call(t.Context(), "eth_blockNumber")
				if err != nil || string(result) != `"0x13f2a5b"` {
					t.Errorf("%s by %s: %s, %v", name, w.name, result, err)
				}
				if path == "" {
					continue
				}
				result, err = c.call(t.Context(), "eth_getLogs", map[string]string{"fromBlock": "0x1"})
				if err != nil || string(result) != string(largeResult(100000)) {
					t.Errorf("%s by %s: %d bytes, %v", name, w.name, len(result), err)
				}
			}
			clients.close()
		}
	}
}

// The rings answer whatever befalls the endpoints before the last, and each attempt is
// counted.
func TestRingsGoOn(t *testing.T) {
	at, c := startTestServers(t)
	w := at.plain()
	for _, m := range []mode{modeRefused, mode500, mode429, modeBlackhole} {
		for _, contender := range rings {
			if err := c.set(m, m, m, m); err != nil {
				t.Fatal(err)
			}
			before, err := c.count()
			if err != nil {
				t.Fatal(err)
			}
			client, err := contender.make(setup{proxy: w.proxy, ca: at.CA, urls: w.urls(endpointCount, ""), attempt: 50 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			result, err := client.call(t.Context(), "eth_blockNumber")
			if err != nil || string(result) != `"0x13f2a5b"` {
				t.Errorf("%s, %s: %s, %v", contender.name, m, result, err)
			}
			client.close()
			after, err := c.count()
			if err != nil {
				t.Fatal(err)
			}
			if spent := after.since(before); spent.Dials < endpointCount {
				t.Errorf("%s, %s: %d dials", contender.name, m, spent.Dials)
			}
		}
	}
}

// Logs in pieces come whole and in order from those that do it by hand and from those
// that have it built in.
func TestLogsComeInOrder(t *testing.T) {
	at, _ := startTestServers(t)
	w := at.plain()
	clients, err := makeAll(singles, setup{proxy: w.proxy, ca: at.CA, urls: w.urls(1, pathLogs)})
	if err != nil {
		t.Fatal(err)
	}
	defer clients.close()
	var want []string
	for name, c := range clients {
		ask := c.logs
		if ask == nil {
			ask = c.logsByHand
		}
		found, err := ask(t.Context(), 0, 4*pieceBlocks-1, pieceBlocks, 3)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var got []string
		for _, log := range found {
			got = append(got, string(log))
		}
		if want == nil {
			want = got
		}
		if len(got) != 4*logsPerPiece || !slices.Equal(got, want) {
			t.Errorf("%s found %d logs, others %d", name, len(got), len(want))
		}
	}
}

// Medians and ratios are formed as the page says, and numbers written as it writes them.
func TestNumbers(t *testing.T) {
	r := results{}
	for _, pass := range [][2]float64{{100, 110}, {1000, 900}, {10, 13}} {
		r.add("a", "time", pass[0])
		r.add("b", "time", pass[1])
	}
	for got, want := range map[string]string{
		r.ratio("b", "a", "time").cell(2):  "1.10 (1.00–1.20)",
		r["a"]["time"].single(0):           "100",
		values(nil).cell(1):                none,
		number(1234567.891, 2):             "1,234,567.89",
		number(-1234, 0) + number(-123, 0): "-1,234-123",
		number(999, 0) + number(0.5, 1):    "9990.5",
	} {
		if got != want {
			t.Errorf("%q instead of %q", got, want)
		}
	}
}

// The page is Markdown with a section for each kind of load, and names no machine's
// address or path.
func TestPage(t *testing.T) {
	one := table{section: "S", title: "T", notes: []string{"N"}, head: []string{"client", "ms"}}
	one.row("a", "1")
	page := string((&report{machine: thisMachine(), tables: []table{one, one}}).markdown())
	if strings.Count(page, "## S\n") != 1 || strings.Count(page, "### T\n") != 2 || !strings.Contains(page, "| a      |  1 |\n") {
		t.Errorf("not as it should be:\n%s", page)
	}
	if strings.Contains(page, "127.0.0.1:") {
		t.Error("it names an address")
	}
}
