package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// none stands in a cell without a value.
const none = "–"

// table is what was measured of one thing.
type table struct {
	section string // tables of one section stand under one heading
	title   string
	notes   []string
	head    []string
	rows    [][]string
	after   string // what stands below it
	prose   bool   // its cells are text, of any width
}

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

// number writes a number with so many decimals, and a comma at the thousands.
func number(value float64, decimals int) string {
	text := strconv.FormatFloat(value, 'f', decimals, 64)
	whole, fraction, found := strings.Cut(text, ".")
	for i := len(whole) - 3; i > 0 && whole[i-1] != '-'; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if found {
		return whole + "." + fraction
	}
	return whole
}

// widths gives how wide each column has to be.
func (t *table) widths() []int {
	widths := make([]int, len(t.head))
	for _, row := range append([][]string{t.head}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	return widths
}

// padded gives a row's cells at their columns' widths, numbers at the right.
func padded(row []string, widths []int) []string {
	cells := make([]string, len(row))
	for i, cell := range row {
		space := strings.Repeat(" ", max(0, widths[i]-utf8.RuneCountInString(cell)))
		cells[i] = space + cell
		if i == 0 {
			cells[i] = cell + space
		}
	}
	return cells
}

// print writes the table for a terminal.
func (t *table) print(w io.Writer) {
	fmt.Fprintf(w, "\n%s\n", strings.TrimSuffix(t.section+": "+t.title, ": "))
	if len(t.head) == 0 {
		fmt.Fprintln(w, strings.Join(t.notes, "\n"))
		return
	}
	widths := t.widths()
	fmt.Fprintln(w, strings.Join(padded(t.head, widths), "  "))
	for _, row := range t.rows {
		fmt.Fprintln(w, strings.Join(padded(row, widths), "  "))
	}
}

// markdown writes the table for a page.
func (t *table) markdown(w *strings.Builder) {
	if t.title != "" {
		fmt.Fprintf(w, "### %s\n\n", t.title)
	}
	for _, note := range t.notes {
		fmt.Fprintf(w, "%s\n\n", note)
	}
	if len(t.head) == 0 {
		return // nothing was measured, and a note says why
	}
	widths := t.widths()
	if t.prose {
		widths = make([]int, len(t.head))
	}
	line := func(row []string) { fmt.Fprintf(w, "| %s |\n", strings.Join(padded(row, widths), " | ")) }
	line(t.head)
	rules := make([]string, len(widths))
	for i, width := range widths {
		rules[i] = strings.Repeat("-", max(width-1, 2)) + ":"
		if i == 0 || t.prose {
			rules[i] = strings.Repeat("-", max(width, 3))
		}
	}
	line(rules)
	for _, row := range t.rows {
		line(row)
	}
	w.WriteString("\n")
	if t.after != "" {
		w.WriteString(t.after + "\n\n")
	}
}

// report is all that a run found.
type report struct {
	machine machine
	goals   table
	tables  []table
	quick   bool
	took    time.Duration
}

// printFoot writes for a terminal what the tables were measured on.
func (r *report) printFoot(w io.Writer) {
	fmt.Fprintf(w, "\n%s; %s\n", r.machine.text(), strings.Join(r.machine.versions, ", "))
	fmt.Fprintf(w, "Medians (25th–75th percentile of the passes), %.0f s in all.\n", r.took.Seconds())
}

// markdown gives the page.
func (r *report) markdown() []byte {
	var w strings.Builder
	w.WriteString(pageHead)
	fmt.Fprintf(&w, "## The machine\n\n%s. Measured on %s in %.0f s.\n\n", r.machine.text(), r.machine.date, r.took.Seconds())
	fmt.Fprintf(&w, "Versions: %s.\n\n%s\n\n", strings.Join(r.machine.versions, ", "), passesText())
	if r.quick {
		w.WriteString("**A quick run: fewer and shorter passes, not for comparing.**\n\n")
	}
	w.WriteString(goalsHead)
	r.goals.markdown(&w)
	section := ""
	for i := range r.tables {
		t := &r.tables[i]
		if t.section != section {
			section = t.section
			fmt.Fprintf(&w, "## %s\n\n", section)
		}
		t.markdown(&w)
	}
	w.WriteString("## Rows not rerun here\n\n" + quotedHead)
	for i := range quoted {
		quoted[i].markdown(&w)
	}
	return []byte(strings.TrimRight(w.String(), "\n") + "\n")
}
