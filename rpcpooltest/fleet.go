package rpcpooltest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/bomzrpc/rpcpool"
)

// Fleet is an [rpcpool.SharedView] in memory: pools that have the same one in their
// configuration share what they find out, as bots on several machines do over a server.
// It may be lost and come back.
//
//	fleet := rpcpooltest.NewFleet()
//	cfg.Shared = fleet
type Fleet struct {
	mu      sync.Mutex // protects what follows
	facts   []fleetFact
	changed chan struct{} // closed when anything below or above changes
	lost    bool
	follows int
}

type fleetFact struct {
	rpcpool.Fact
	at time.Time
}

// ErrFleetLost is what both methods of a [Fleet] give as long as it is lost.
var ErrFleetLost = errors.New("rpcpooltest: the fleet's view is lost")

// NewFleet makes a view without facts.
func NewFleet() *Fleet { return &Fleet{changed: make(chan struct{})} }

// Publish hands facts to all who follow, and keeps them for those to come.
func (f *Fleet) Publish(_ context.Context, facts []rpcpool.Fact) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lost {
		return ErrFleetLost
	}
	for i := range facts {
		f.facts = append(f.facts, fleetFact{facts[i], time.Now()})
	}
	f.news()
	return nil
}

// Follow hands over what was published and still holds, and then what comes.
func (f *Fleet) Follow(ctx context.Context, take func([]rpcpool.Fact)) error {
	f.count(1)
	defer f.count(-1)
	for seen, first := 0, true; ; first = false {
		f.mu.Lock()
		lost, changed := f.lost, f.changed
		fresh := slices.Clone(f.facts[seen:])
		seen = len(f.facts)
		f.mu.Unlock()
		if lost {
			return ErrFleetLost
		}
		if facts := holding(fresh, time.Now()); first || len(facts) > 0 {
			take(facts)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// holding gives the facts that hold at now, with the time that is left of them.
func holding(kept []fleetFact, now time.Time) (facts []rpcpool.Fact) {
	for i := range kept {
		fact, age := kept[i].Fact, now.Sub(kept[i].at)
		if fact.Kind != rpcpool.FactClear && fact.For <= age {
			continue
		}
		fact.Age += age
		fact.For = max(fact.For-age, 0)
		facts = append(facts, fact)
	}
	return facts
}

// Lose has the view lost, or back: while it is lost both methods give [ErrFleetLost], those
// under way included. Facts stay.
func (f *Fleet) Lose(lost bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lost = lost
	f.news()
}

// Facts gives all that was published, in order, as it was published.
func (f *Fleet) Facts() []rpcpool.Fact {
	f.mu.Lock()
	defer f.mu.Unlock()
	facts := make([]rpcpool.Fact, len(f.facts))
	for i := range f.facts {
		facts[i] = f.facts[i].Fact
	}
	return facts
}

// Followers gives the number of pools that follow.
func (f *Fleet) Followers() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.follows
}

func (f *Fleet) count(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.follows += n
}

// news wakes all who follow. The caller holds f.mu.
func (f *Fleet) news() {
	close(f.changed)
	f.changed = make(chan struct{})
}
