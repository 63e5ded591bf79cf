package rpcpool

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bomzrpc/rpcpool/internal/proxydial"
)

// This file has how a pool publishes facts and follows those of others, in the background.
// What is made of them is in peers.go.

const (
	publishEvery   = 100 * time.Millisecond // facts of this long travel together
	publishTimeout = 5 * time.Second
	maxPublished   = 256  // facts in one Publish
	maxQueuedFacts = 1024 // that wait to be published
	maxKnownFacts  = 4096 // of others, about RPCs of lists that are still to come

	// After the view was lost it is tried again so soon, twice that, …
	firstRejoin = 250 * time.Millisecond
	lastRejoin  = 15 * time.Second
)

// sharing is a pool's part in a fleet. Its goroutines begin with the first list that is
// fetched, as New and Chain send nothing.
type sharing struct {
	view SharedView
	pool *poolState
	key  []byte // of the ids
	from string // this pool

	mu        sync.Mutex // protects what follows
	queue     []heldFact // own, to be published, oldest first
	sending   bool
	joined    bool
	known     map[factKey]heldFact // of others
	following bool                 // the view can be followed
	reachable bool                 // and facts can be published, as far as was tried
	outage    bool                 // and that it can't be was logged
	counts    SharedStats
}

// heldFact is a fact with the moments of this process's own clock.
type heldFact struct {
	Fact
	at    time.Time // when it was found out
	until time.Time // when it ceases to hold
}

// factKey is what a fact is about: of two with the same key the later one counts.
type factKey struct {
	chain, id, method string
	head              bool
}

func (h *heldFact) key() factKey { return factKey{h.Chain, h.ID, h.Method, h.Kind == FactHead} }

func newSharing(view SharedView, secret string, p *poolState) *sharing {
	return &sharing{
		view: view, pool: p, key: []byte(secret), from: fmt.Sprintf("%016x", rand.Uint64()),
		known: map[factKey]heldFact{}, reachable: true,
	}
}

// idOfRPC gives what an RPC is called across processes.
func (s *sharing) idOfRPC(url string) string {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte("rpc\x00" + url))
	return hex.EncodeToString(mac.Sum(nil))
}

func (s *sharing) idOfProxy(p *proxydial.Proxy) string {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte("proxy\x00"))
	p.WriteIdentity(mac)
	return hex.EncodeToString(mac.Sum(nil))
}

// tell queues a fact for the others. It takes no time; the caller may hold the lock of a
// chain or of the proxies.
func (s *sharing) tell(f *Fact) {
	now := time.Now()
	f.From, f.For = s.from, min(f.For, maxCooldown)
	if len(f.Label) > maxFactText || !isPrintable(f.Label) {
		f.Label = ""
	}
	if !f.Valid() { // a chain or method with a name that can't be passed on
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.Kind == FactClear {
		delete(s.known, factKey{chain: f.Chain, id: f.ID})
	}
	s.enqueue(heldFact{*f, now, now.Add(f.For)})
	if !s.sending {
		s.sending = s.pool.start(s.publish)
		if !s.sending { // closed
			s.counts.Dropped += uint64(len(s.queue))
			s.queue = nil
		}
	}
}

// enqueue puts a fact in the place of an older one about the same, or drops the oldest where
// there are too many. The caller holds s.mu.
func (s *sharing) enqueue(h heldFact) {
	key := h.key()
	s.queue = slices.DeleteFunc(s.queue, func(old heldFact) bool { return old.key() == key })
	if over := len(s.queue) + 1 - maxQueuedFacts; over > 0 {
		s.counts.Dropped += uint64(over)
		s.queue = slices.Delete(s.queue, 0, over)
	}
	s.queue = append(s.queue, h)
}

// publish hands over what is queued, and ends when nothing is left.
func (s *sharing) publish() {
	wait := publishEvery
	for s.sleep(wait) {
		batch := s.nextBatch()
		if len(batch) == 0 {
			return
		}
		if err := s.handOver(batch); err != nil {
			wait = min(max(2*wait, firstRejoin), lastRejoin)
			s.putBack(batch)
			continue
		}
		wait = publishEvery
	}
	s.mu.Lock() // the pool closes
	defer s.mu.Unlock()
	s.sending = false
	s.counts.Dropped += uint64(len(s.queue))
	s.queue = nil
}

// nextBatch takes the oldest facts that still hold off the queue.
func (s *sharing) nextBatch() (batch []heldFact) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.queue) > 0 && len(batch) < maxPublished {
		if h := s.queue[0]; h.Kind == FactClear || now.Before(h.until) {
			batch = append(batch, h)
		} else {
			s.counts.Dropped++
		}
		s.queue = s.queue[1:]
	}
	s.sending = len(batch) > 0
	return batch
}

// putBack queues facts again that weren't taken, before those that came since.
func (s *sharing) putBack(batch []heldFact) {
	s.mu.Lock()
	defer s.mu.Unlock()
	newer := make(map[factKey]bool, len(s.queue))
	for i := range s.queue {
		newer[s.queue[i].key()] = true
	}
	batch = slices.DeleteFunc(batch, func(h heldFact) bool { return newer[h.key()] })
	s.queue = append(batch, s.queue...)
	if over := len(s.queue) - maxQueuedFacts; over > 0 {
		s.counts.Dropped += uint64(over)
		s.queue = s.queue[over:]
	}
}

// handOver publishes a batch. A Publish that doesn't return in time is an outage, and is
// waited for all the same: there is never more than one.
func (s *sharing) handOver(batch []heldFact) error {
	now := time.Now()
	facts := make([]Fact, len(batch))
	for i := range batch {
		facts[i] = batch[i].Fact
		facts[i].Age = now.Sub(batch[i].at)
		facts[i].For = max(batch[i].until.Sub(now), 0)
	}
	ctx, cancel := context.WithTimeout(s.pool.working, publishTimeout)
	defer cancel()
	ended := guarded("the view", func() error { return s.view.Publish(ctx, facts) })
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
		err = errHangs
	}
	if err != nil && s.pool.working.Err() != nil {
		return err // that is Close, and no outage
	}
	s.note(&s.reachable, err == nil, err)
	if errors.Is(err, errHangs) {
		select {
		case err = <-ended:
		case <-s.pool.working.Done():
			return err
		}
		s.note(&s.reachable, err == nil, err)
	}
	if err == nil {
		s.mu.Lock()
		s.counts.Published += uint64(len(facts))
		s.mu.Unlock()
	}
	return err
}

var errHangs = errors.New("it doesn't take facts in time")

// sleep waits; false once the pool closes.
func (s *sharing) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.pool.working.Done():
		return false
	}
}

// join begins to follow the others, once.
func (s *sharing) join() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.joined {
		s.joined = s.pool.start(s.follow)
	}
}

// follow takes over what others publish, until the pool closes.
func (s *sharing) follow() {
	wait := firstRejoin
	for {
		var over atomic.Bool // a take that comes later is nobody's
		began := time.Now()
		ended := guarded("the view", func() error {
			return s.view.Follow(s.pool.working, func(facts []Fact) {
				if !over.Load() {
					s.note(&s.following, true, nil)
					s.take(facts)
				}
			})
		})
		var err error
		select {
		case err = <-ended:
		case <-s.pool.working.Done():
		}
		over.Store(true)
		if s.pool.working.Err() != nil {
			return
		}
		if err == nil {
			err = errors.New("it ended")
		}
		s.note(&s.following, false, err)
		if time.Since(began) > lastRejoin {
			wait = firstRejoin
		}
		if !s.sleep(wait + rand.N(wait)) {
			return
		}
		wait = min(2*wait, lastRejoin)
	}
}

// note keeps whether the view can be reached, and writes a line where an outage begins or
// ends: one for each, however often the view is tried.
func (s *sharing) note(way *bool, open bool, err error) {
	s.mu.Lock()
	*way = open
	lost := !open && !s.outage
	back := s.outage && s.following && s.reachable
	if lost {
		s.outage = true
		s.counts.Outages++
	}
	if back {
		s.outage = false
	}
	s.mu.Unlock()
	switch {
	case lost:
		s.pool.log.Warn("rpcpool: the shared view is lost; the pool goes on alone and tries it again",
			keyError, s.pool.secrets.Scrub(withoutURL(err).Error()))
	case back:
		s.pool.log.Info("rpcpool: the shared view is back")
	}
}

func (s *sharing) statistics() SharedStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.counts
	stats.Connected = s.following && s.reachable
	return stats
}
