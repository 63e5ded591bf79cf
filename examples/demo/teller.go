package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/bomzrpc/rpcpool"
)

// width is how many columns the story takes.
const width = 79

// teller prints the story as it happens. Its methods may be called from several
// goroutines: the library logs from its own.
type teller struct {
	colours bool

	mu  sync.Mutex // protects out
	out io.Writer
}

// The colours of a terminal.
const (
	plain  = "0"
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

func (t *teller) paint(colour, text string) string {
	if !t.colours || colour == plain {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

func (t *teller) printf(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(t.out, format, args...)
}

// paragraph prints text from a column on, as many lines as it takes.
func (t *teller) paragraph(colour string, column int, text string) {
	var b strings.Builder
	for _, line := range wrap(text, width-column) {
		b.WriteString(strings.Repeat(" ", column) + t.paint(colour, line) + "\n")
	}
	t.printf("%s", b.String())
}

func wrap(text string, columns int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case len([]rune(line))+1+len([]rune(word)) > columns:
			lines = append(lines, line)
			line = word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}

// act says what is about to happen.
func (t *teller) act(number int, title, about string) {
	t.printf("\n%s\n", t.paint(bold, fmt.Sprintf("%d. %s", number, title)))
	t.paragraph(plain, 3, about)
}

// why says in the end what was seen.
func (t *teller) why(text string) {
	t.printf("\n")
	t.paragraph(cyan, 3, "Why: "+text)
}

// request says what the bot asks for.
func (t *teller) request(who, what string) {
	t.printf("\n   %s %s\n", t.paint(dim, who+" asks:"), t.paint(bold, what))
}

// result says what the bot gets.
func (t *teller) result(text string) { t.paragraph(green, 5, "= "+text) }

// attempt prints one attempt as it ends.
func (t *teller) attempt(a *rpcpool.Attempt) {
	// Painted after padding: the escapes have no width.
	verdict := t.paint(verdictColour(a.Verdict), fmt.Sprintf("%-11s", a.Verdict))
	t.printf("%9s  %s  %s via %s\n", span(a.Duration), verdict, a.RPC, a.Proxy)
	if a.Detail != "" {
		t.paragraph(dim, 24, a.Detail)
	}
}

// span shows a duration in at most six characters.
func span(d time.Duration) string {
	ms := float64(d) / float64(time.Millisecond)
	switch {
	case d >= time.Second:
		return fmt.Sprintf("%.2f s", d.Seconds())
	case ms >= 10:
		return fmt.Sprintf("%.0f ms", ms)
	}
	return fmt.Sprintf("%.1f ms", ms)
}

func verdictColour(v rpcpool.Verdict) string {
	switch v {
	case rpcpool.VerdictOK:
		return green
	case rpcpool.VerdictCaller, rpcpool.VerdictUnsupported, rpcpool.VerdictRange, rpcpool.VerdictNoState:
		return yellow
	}
	return red
}

// warning prints what the library warns of.
func (t *teller) warning(text string) { t.paragraph(yellow, 5, "! "+text) }
