package rpcpooltest

import (
	"encoding/json"
	"sync"
)

// Ledger counts effects, as a server that charges a card does: what a client takes for one
// payment may be none, or three. Its nodes fail before or after the effect in ways that
// look alike to the client.
//
//	ledger := rpcpooltest.NewLedger()
//	world.Node("r1", ledger.Charge(rpcpooltest.LostAfter).Times(1), ledger.Charge(rpcpooltest.Fine))
type Ledger struct {
	mu      sync.Mutex // protects effects
	effects map[string]int
}

// NewLedger makes a ledger without effects.
func NewLedger() *Ledger { return &Ledger{effects: map[string]int{}} }

// ChargeFault is how a request to a [Ledger] goes wrong.
type ChargeFault int

// The faults.
const (
	Fine          ChargeFault = iota // the effect, and its answer
	RefusedBefore                    // no effect: HTTP 429
	DownBefore                       // no effect: the connection is reset before the request is read through
	FailedAfter                      // the effect, then HTTP 500
	ErrorAfter                       // the effect, then a JSON-RPC internal error
	LostAfter                        // the effect, then the connection is closed
	BrokenAfter                      // the effect, then a part of the answer
	HungAfter                        // the effect, and no answer ever
)

// Charge gives the script entry of a node whose requests have an effect each. The first
// param names the payment, for [Ledger.EffectsOf].
func (l *Ledger) Charge(fault ChargeFault) Reply {
	return Handle(func(q Request) Reply {
		if fault == RefusedBefore {
			return RateLimited(0)
		}
		if fault == DownBefore {
			return Reset()
		}
		l.count(q)
		switch fault {
		case FailedAfter:
			return Status(500)
		case ErrorAfter:
			return Error(-32603, "internal error")
		case LostAfter:
			return Close()
		case BrokenAfter:
			return Truncated()
		case HungAfter:
			return Hang()
		}
		return Result("charged")
	})
}

func (l *Ledger) count(q Request) {
	var name json.RawMessage
	if q.Param(0, &name) != nil {
		name = q.Params
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.effects[string(name)]++
}

// Effects gives how many effects there were in all.
func (l *Ledger) Effects() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := 0
	for _, n := range l.effects {
		all += n
	}
	return all
}

// EffectsOf gives how many effects the requests of one payment had: of those whose first
// param is this.
func (l *Ledger) EffectsOf(payment string) int {
	name, err := json.Marshal(payment)
	if err != nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.effects[string(name)]
}
