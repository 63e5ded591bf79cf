package rpcpooltest

import (
	"sync"
	"time"
)

// when says for which requests an entry of a script serves. Its zero value
// serves all.
type when struct {
	method string // of the request; empty: any
	via    string // the proxy's name; empty: any
	times  int    // how often it serves; 0: always
	from   int    // the first step
	until  int    // one more than the last step; 0: no last one
	delay  time.Duration
	gate   *Gate
}

// question is what is known of a request when its entry is looked for.
type question struct {
	step        int
	method, via string
	early       bool // the method isn't known yet: entries for one method don't fit
}

func (w when) fits(q question) bool {
	return q.step >= w.from &&
		(w.until == 0 || q.step < w.until) &&
		(w.method == "" || !q.early && w.method == q.method) &&
		(w.via == "" || w.via == q.via)
}

// entry is what scripts are made of: [Reply], [ProxyReply], [PoolReply].
type entry interface{ conditions() when }

// script is a list of entries. For each request the first one whose conditions
// hold, and that isn't used up, is taken.
type script[E entry] struct {
	mu    sync.Mutex // protects lines and their counts
	lines []*line[E]
}

type line[E entry] struct {
	entry  E
	served int
}

// set replaces the script: nothing of it is used up.
func (s *script[E]) set(entries []E) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = nil
	s.addLocked(entries)
}

// add puts entries at the end.
func (s *script[E]) add(entries []E) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addLocked(entries)
}

func (s *script[E]) addLocked(entries []E) {
	for _, e := range entries {
		s.lines = append(s.lines, &line[E]{entry: e})
	}
}

// take gives the entry for q and counts it as used.
func (s *script[E]) take(q question) (e E, ok bool) {
	return s.takeIf(q, func(E) bool { return true })
}

// takeIf is take, but leaves the entry alone unless it is wanted.
func (s *script[E]) takeIf(q question, wanted func(E) bool) (e E, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.lines {
		w := l.entry.conditions()
		if !w.fits(q) || w.times > 0 && l.served >= w.times {
			continue
		}
		if !wanted(l.entry) {
			return e, false
		}
		l.served++
		return l.entry, true
	}
	return e, false
}
