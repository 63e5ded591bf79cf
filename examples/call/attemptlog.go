package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"

	"github.com/bomzrpc/rpcpool"
)

// attemptLog is the handler behind the pool's logger: it prints warnings, and with
// -v every attempt. The library has masked all secrets in both.
type attemptLog struct {
	verbose bool
	out     io.Writer // may be written to by several goroutines at once
}

// Enabled is part of slog.Handler.
func (l *attemptLog) Enabled(_ context.Context, level slog.Level) bool {
	return l.verbose || level >= slog.LevelWarn
}

// WithAttrs is part of slog.Handler; the library doesn't use it.
func (l *attemptLog) WithAttrs([]slog.Attr) slog.Handler { return l }

// WithGroup is part of slog.Handler; the library doesn't use it.
func (l *attemptLog) WithGroup(string) slog.Handler { return l }

// Handle is part of slog.Handler.
func (l *attemptLog) Handle(_ context.Context, record slog.Record) error {
	attrs := map[string]string{}
	var shown []string
	record.Attrs(func(a slog.Attr) bool {
		attrs[a.Key] = a.Value.String()
		shown = append(shown, a.Key+" "+a.Value.String())
		return true
	})
	text := strings.TrimPrefix(record.Message, "rpcpool: ")
	switch {
	case text == "attempt":
		a := rpcpool.Attempt{
			RPC:     attrs["rpc"],
			Proxy:   attrs["proxy"],
			Verdict: rpcpool.Verdict(attrs["verdict"]),
			Detail:  attrs["detail"],
		}
		text = a.String()
	case record.Level >= slog.LevelWarn:
		text = fmt.Sprintf("call: warning: %s (%s)", text, strings.Join(shown, ", "))
	default:
		text = fmt.Sprintf("%s (%s)", text, strings.Join(shown, ", "))
	}
	_, err := fmt.Fprintln(l.out, printable(text))
	return err
}

// lockedWriter lets several goroutines write lines: the library logs from its own.
type lockedWriter struct {
	mu  sync.Mutex // protects out
	out io.Writer
}

func (w *lockedWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(line)
}
