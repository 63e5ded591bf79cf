package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/bomzrpc/rpcpool"
)

// journal is the handler behind a bot's logger. The library writes a debug record
// for every attempt and a warning for what the operator should know; the journal
// has them told at once and keeps count.
type journal struct {
	tell *teller

	mu     sync.Mutex // protects what follows
	recent []rpcpool.Attempt
	rpcs   map[string]*account
}

// account is what happened with one RPC.
type account struct {
	attempts int
	verdicts map[rpcpool.Verdict]int
	undone   int // failed connections that were a dead proxy's doing
	standing []rpcpool.Attempt
}

func newJournal(t *teller) *journal { return &journal{tell: t, rpcs: map[string]*account{}} }

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
		a := rpcpool.Attempt{
			RPC:      attrs["rpc"].String(),
			Proxy:    attrs["proxy"].String(),
			Verdict:  rpcpool.Verdict(attrs["verdict"].String()),
			Detail:   attrs["detail"].String(),
			Duration: attrs["duration"].Duration(),
		}
		j.note(a)
		j.tell.attempt(&a)
	case record.Level >= slog.LevelWarn:
		if proxy, about := attrs["proxy"]; about { // the one warning about a proxy: it is dead
			j.undo(proxy.String())
		}
		j.tell.warning(text + " (" + strings.Join(shown, ", ") + ")")
	}
	return nil
}

// note counts an attempt.
func (j *journal) note(a rpcpool.Attempt) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.recent = append(j.recent, a)
	of := j.rpcs[a.RPC]
	if of == nil {
		of = &account{verdicts: map[rpcpool.Verdict]int{}}
		j.rpcs[a.RPC] = of
	}
	of.attempts++
	of.verdicts[a.Verdict]++
	switch a.Verdict {
	case rpcpool.VerdictOK:
		of.standing = nil // a success ends the cooldown
	case rpcpool.VerdictConnFail, rpcpool.VerdictRPCFail, rpcpool.VerdictIPBlocked:
		of.standing = append(of.standing, a)
	}
}

// undo takes back the failed connections through a proxy that was found dead.
func (j *journal) undo(proxy string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, of := range j.rpcs {
		var kept []rpcpool.Attempt
		for _, a := range of.standing {
			if a.Proxy == proxy && a.Verdict == rpcpool.VerdictConnFail {
				of.verdicts[a.Verdict]--
				of.undone++
				continue
			}
			kept = append(kept, a)
		}
		of.standing = kept
	}
}

// take gives the attempts since it was last asked, in short: "alpha paris ok".
func (j *journal) take() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var short []string
	for _, a := range j.recent {
		short = append(short, nickname(a.RPC)+" "+nickname(a.Proxy)+" "+string(a.Verdict))
	}
	j.recent = nil
	return short
}

// cooling names the RPCs that are left alone now.
func (j *journal) cooling() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var names []string
	for rpc, of := range j.rpcs {
		if len(of.standing) > 0 {
			names = append(names, nickname(rpc))
		}
	}
	slices.Sort(names)
	return names
}

// nickname is the first part of a URL's host name.
func nickname(shown string) string {
	u, err := url.Parse(shown)
	if err != nil {
		return shown
	}
	name, _, _ := strings.Cut(u.Hostname(), ".")
	return name
}
