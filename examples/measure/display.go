package main

import (
	"fmt"
	"io"
	"os"
	"sync"
)

// progressLines is how many lines of progress there are where nobody watches them.
const progressLines = 10

// display shows how far the measurement is: on a terminal a line that changes, else a
// line now and then. The library's warnings are written by it, too, so that they have
// lines of their own.
type display struct {
	plan    plan
	watched bool

	mu   sync.Mutex // protects what follows
	out  io.Writer
	open bool // the line that changes isn't ended
	told int  // of progressLines
}

func newDisplay(out io.Writer, chain string, p plan) *display {
	d := &display{out: out, plan: p}
	if f, ok := out.(*os.File); ok {
		info, err := f.Stat()
		d.watched = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	fmt.Fprintf(out, "measuring chain %s by %s every %s for %s; Ctrl-C ends it early\n", chain, p.method, p.every, p.length)
	return d
}

// show is called after each sample.
func (d *display) show(m *measurement) {
	fit := 0
	for _, r := range m.rows {
		if ready(r.State) {
			fit++
		}
	}
	text := fmt.Sprintf("sample %d of %d: %d of %d RPCs ready", m.samples, d.plan.samples(), fit, len(m.rows))
	if m.mark > 0 {
		text += fmt.Sprintf(", block %d", m.mark)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.watched {
		fmt.Fprintf(d.out, "\r\x1b[K%s", text)
		d.open = true
		return
	}
	if told := m.samples * progressLines / d.plan.samples(); told > d.told {
		d.told = told
		fmt.Fprintln(d.out, text)
	}
}

// Write writes a line of the library's.
func (d *display) Write(line []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open {
		fmt.Fprint(d.out, "\r\x1b[K")
		d.open = false
	}
	return d.out.Write(line)
}

// end leaves the line as it is, so that what follows has one of its own.
func (d *display) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open {
		fmt.Fprintln(d.out)
		d.open = false
	}
}
