package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/bomzrpc/rpcpool"
)

// How much of the past is kept for the page.
const (
	keptAttempts = 200
	keptNotices  = 20
	longestName  = 80 // of a method: programs may send any
)

// attempt is one attempt as the page shows it.
type attempt struct {
	Seq     uint64  `json:"seq"`
	Time    int64   `json:"time"` // ms since 1970
	Chain   string  `json:"chain"`
	Method  string  `json:"method"`
	RPC     string  `json:"rpc"`
	Proxy   string  `json:"proxy"`
	Verdict string  `json:"verdict"`
	Detail  string  `json:"detail"`
	Ms      float64 `json:"ms"`
}

// notice is a warning of the library's.
type notice struct {
	Seq  uint64 `json:"seq"`
	Time int64  `json:"time"`
	Text string `json:"text"`
}

// journal is the handler behind the pool's logger. The library writes a debug
// record for every attempt and a warning for what the operator should know, with
// all secrets masked; the journal keeps the last ones, and tells who waits for
// more. Warnings are printed, too, and with -v attempts.
type journal struct {
	verbose bool

	mu       sync.Mutex // protects what follows, and keeps lines of out whole
	out      io.Writer
	seq      uint64
	attempts []attempt
	notices  []notice
	news     chan struct{} // closed with the next entry
}

func newJournal(out io.Writer, verbose bool) *journal {
	return &journal{out: out, verbose: verbose, news: make(chan struct{})}
}

// Enabled is part of slog.Handler: debug records are wanted.
func (*journal) Enabled(context.Context, slog.Level) bool { return true }

// WithAttrs is part of slog.Handler; the library doesn't use it.
func (j *journal) WithAttrs([]slog.Attr) slog.Handler { return j }

// WithGroup is part of slog.Handler; the library doesn't use it.
func (j *journal) WithGroup(string) slog.Handler { return j }

// Handle is part of slog.Handler.
func (j *journal) Handle(_ context.Context, record slog.Record) error {
	attrs := map[string]slog.Value{}
	var shown []string
	record.Attrs(func(a slog.Attr) bool {
		attrs[a.Key] = a.Value
		shown = append(shown, fmt.Sprintf("%s %s", a.Key, a.Value))
		return true
	})
	text := strings.TrimPrefix(record.Message, "rpcpool: ")
	switch {
	case text == "attempt":
		took, _ := attrs["duration"].Any().(time.Duration)
		j.noteAttempt(attempt{
			Time:    record.Time.UnixMilli(),
			Chain:   attrs["chain"].String(),
			Method:  clip(attrs["method"].String(), longestName),
			RPC:     attrs["rpc"].String(),
			Proxy:   attrs["proxy"].String(),
			Verdict: attrs["verdict"].String(),
			Detail:  attrs["detail"].String(),
			Ms:      milliseconds(took),
		})
	case record.Level >= slog.LevelWarn:
		j.noteWarning(record.Time, fmt.Sprintf("%s (%s)", text, strings.Join(shown, ", ")))
	}
	return nil
}

func (j *journal) noteAttempt(a attempt) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.seq++
	a.Seq = j.seq
	j.attempts = appendBounded(j.attempts, a, keptAttempts)
	j.tellLocked()
	if j.verbose {
		line := rpcpool.Attempt{RPC: a.RPC, Proxy: a.Proxy, Verdict: rpcpool.Verdict(a.Verdict), Detail: a.Detail}
		fmt.Fprintln(j.out, printable(a.Chain+" "+a.Method+" "+line.String()))
	}
}

func (j *journal) noteWarning(at time.Time, text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.seq++
	j.notices = appendBounded(j.notices, notice{j.seq, at.UnixMilli(), text}, keptNotices)
	j.tellLocked()
	fmt.Fprintln(j.out, "gateway: warning: "+printable(text))
}

// appendBounded adds an entry and drops the oldest where there are too many.
func appendBounded[E any](list []E, entry E, limit int) []E {
	if len(list) >= limit {
		list = slices.Delete(list, 0, len(list)-limit+1)
	}
	return append(list, entry)
}

// tellLocked wakes whoever waits for news.
func (j *journal) tellLocked() {
	close(j.news)
	j.news = make(chan struct{})
}

// next gives a channel that is closed with the next entry.
func (j *journal) next() <-chan struct{} {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.news
}

// since gives the attempts that came after one, oldest first, and all notices.
func (j *journal) since(seq uint64) ([]attempt, []notice) {
	j.mu.Lock()
	defer j.mu.Unlock()
	from := len(j.attempts)
	for from > 0 && j.attempts[from-1].Seq > seq {
		from--
	}
	return slices.Clone(j.attempts[from:]), slices.Clone(j.notices)
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// clip shortens a text to at most so many characters.
func clip(text string, limit int) string {
	n := 0
	for i := range text {
		if n == limit {
			return text[:i] + "…"
		}
		n++
	}
	return text
}

// printable shows control characters as escapes: what a node says must not write
// to the terminal as it likes.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '�'
	}, text)
}
