// Command testsum reads the events of `go test -json` from standard input and
// prints them for people: a line per package, the output of what failed, every
// skipped test with its reason, and the counts at the end, alone on the last
// line:
//
//	812 passed, 0 failed, 3 skipped
//
// Subtests, examples and fuzz seeds count as go test counts them: each is one.
// It exits with 1 where something failed, and where no test ran at all.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

func main() {
	countsFile := flag.String("counts", "", "also write the last line to this `file`")
	flag.Parse()
	s := newSummary(os.Stdout)
	if err := s.read(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "testsum:", err)
		os.Exit(1)
	}
	line := s.counts.String()
	fmt.Println(line)
	if *countsFile != "" {
		if err := os.WriteFile(*countsFile, []byte(line+"\n"), 0o600); err != nil {
			fmt.Fprintln(os.Stderr, "testsum:", err)
			os.Exit(1)
		}
	}
	if !s.counts.ok() {
		os.Exit(1)
	}
}

// event is one line of `go test -json`; see `go doc test2json`.
type event struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Output     string
	Elapsed    float64
}

type counts struct{ passed, failed, skipped int }

func (c counts) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", c.passed, c.failed, c.skipped)
}

// ok tells whether the run may count as a success: one that ran nothing may not.
func (c counts) ok() bool { return c.failed == 0 && c.passed > 0 }

// summary takes events one by one and prints what is worth reading.
type summary struct {
	out    io.Writer
	counts counts
	// output holds what each test that is still running has printed. The
	// package itself stands under an empty test name.
	output map[testID][]string
	// failedTests is the number of failed tests of each package.
	failedTests map[string]int
}

type testID struct{ pkg, test string }

func newSummary(out io.Writer) *summary {
	return &summary{out: out, output: map[testID][]string{}, failedTests: map[string]int{}}
}

func (s *summary) read(r io.Reader) error {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			s.takeLine(line)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// takeLine prints a line that isn't an event as it is: go test writes some of
// its own complaints between the events.
func (s *summary) takeLine(line []byte) {
	var e event
	if line[0] != '{' || json.Unmarshal(line, &e) != nil {
		s.print(string(line))
		return
	}
	s.take(e)
}

func (s *summary) take(e event) {
	id := testID{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		s.print(e.Output)
	case "output":
		s.output[id] = append(s.output[id], e.Output)
	case "pass", "fail", "skip":
		if e.Test == "" {
			s.endPackage(e)
		} else {
			s.endTest(id, e.Action)
		}
		delete(s.output, id)
	}
}

func (s *summary) endTest(id testID, action string) {
	switch action {
	case "pass":
		s.counts.passed++
		return
	case "fail":
		s.counts.failed++
		s.failedTests[id.pkg]++
	case "skip":
		s.counts.skipped++
	}
	s.print(s.output[id]...)
}

// endPackage counts a package that failed without a failed test (it doesn't
// build, or its TestMain gave up) as one failure, and prints what its unfinished
// tests had to say: a panic or a time-out ends a package so.
func (s *summary) endPackage(e event) {
	switch e.Action {
	case "pass":
		_, _ = fmt.Fprintf(s.out, "ok    %s  %.1fs\n", e.Package, e.Elapsed)
	case "skip":
		_, _ = fmt.Fprintf(s.out, "-     %s  has no tests\n", e.Package)
	case "fail":
		if s.failedTests[e.Package] == 0 {
			s.counts.failed++
		}
		for id, lines := range s.output {
			if id.pkg == e.Package {
				s.print(withoutVerdicts(lines)...)
				delete(s.output, id)
			}
		}
		_, _ = fmt.Fprintf(s.out, "FAIL  %s  %.1fs\n", e.Package, e.Elapsed)
	}
}

// withoutVerdicts drops go test's own FAIL lines, as endPackage writes one.
func withoutVerdicts(lines []string) []string {
	return slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, "FAIL") })
}

func (s *summary) print(lines ...string) {
	for _, line := range lines {
		_, _ = io.WriteString(s.out, line)
	}
}
