package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/bomzrpc/rpcpool"
)

// display shows how far the query has come: a bar on a terminal, else a line now and
// then. It counts in blocks from the first of the file, also when it goes on later.
type display struct {
	out   io.Writer
	first uint64 // the file's first block
	had   int    // logs that were in the file before
	every time.Duration
	last  time.Time
	bar   *progressbar.ProgressBar // nil until it begins, and where there is no terminal
	watch bool
}

func newDisplay(out io.Writer, first uint64, had int, every time.Duration) *display {
	d := &display{out: out, first: first, had: had, every: every}
	if f, ok := out.(*os.File); ok {
		d.watch = term.IsTerminal(int(f.Fd()))
	}
	return d
}

// show is called after each piece.
func (d *display) show(p rpcpool.LogProgress) {
	total, covered := p.To-d.first+1, p.Covered-d.first+1
	if d.watch {
		if d.bar == nil {
			d.bar = newBar(d.out, total)
		}
		d.bar.Describe(fmt.Sprintf("%d logs", d.had+p.Logs))
		_ = d.bar.Set64(int64(covered))
		return
	}
	if now := time.Now(); now.Sub(d.last) >= d.every {
		d.last = now
		fmt.Fprintf(d.out, "block %d of %d, %d %%, %d logs\n", p.Covered, p.To, 100*covered/total, d.had+p.Logs)
	}
}

func newBar(out io.Writer, blocks uint64) *progressbar.ProgressBar {
	return progressbar.NewOptions64(int64(blocks),
		progressbar.OptionSetWriter(out),
		progressbar.OptionSetWidth(30),
		progressbar.OptionShowCount(),
		progressbar.OptionShowIts(),
		progressbar.OptionSetItsString("blocks"),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionSetPredictTime(true),
	)
}

// end leaves the bar as it is, so that what follows has a line of its own.
func (d *display) end() {
	if d.bar != nil {
		_ = d.bar.Exit()
		fmt.Fprintln(d.out)
	}
}
