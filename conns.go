package rpcpool

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// A crowd of callers doesn't dial without end: so many requests at a time go to one RPC,
// each over a connection of its own, and the others stand in line (rule F4). That is no
// matter of [Config.MaxInFlight]: who stands in line stays with the RPC that the ring has
// chosen.

// connLine is the line at one RPC. A nil one lets everybody in. It needs no lock.
type connLine struct {
	places chan struct{}
	faults atomic.Uint64 // how often the RPC was left alone
}

func newConnLine(places int) *connLine { return &connLine{places: make(chan struct{}, places)} }

// enter waits for a place, which must be left again. given is how much of ctx's time was
// left then, where that was less than half: too little to blame the RPC for; else 0. Where
// there is no place before ctx ends, or the RPC is left alone meanwhile, nothing may be sent,
// and why says it. Who stays does so also where the RPC is left alone.
func (l *connLine) enter(ctx context.Context, stays bool) (given time.Duration, why string) {
	if l == nil {
		return 0, ""
	}
	select {
	case l.places <- struct{}{}:
		return 0, ""
	default:
	}
	faults, began := l.faults.Load(), time.Now()
	select {
	case l.places <- struct{}{}:
	case <-ctx.Done():
		return 0, fmt.Sprintf("no connection came free in time, all %d are in use", cap(l.places))
	}
	if l.faults.Load() != faults && !stays {
		l.leave()
		return 0, "the RPC failed others while the request stood in line for a connection"
	}
	end, _ := ctx.Deadline()
	if given = time.Until(end); given >= end.Sub(began)/2 {
		return 0, ""
	}
	return max(given, 1), ""
}

func (l *connLine) leave() {
	if l != nil {
		<-l.places
	}
}

// turnAway sends those away who stand in line: the RPC is left alone from now on.
func (l *connLine) turnAway() {
	if l != nil {
		l.faults.Add(1)
	}
}

// enter waits for a place in the target's line. leave gives it back.
func (to *target) enter(ctx context.Context) (given time.Duration, why string) {
	return to.endpoint.conns.enter(ctx, to.stays)
}

func (to *target) leave() { to.endpoint.conns.leave() }

// hadOnly notes that the RPC wasn't given all of an attempt's time; 0: it was.
func (out *outcome) hadOnly(given time.Duration) {
	if given > 0 && (out.given == 0 || given < out.given) {
		out.given = given
	}
}

// notSent is the outcome of a request that stood in line in vain. Nobody is at fault.
func notSent(why string) outcome {
	out := failed(VerdictConnFail, "", why)
	out.crowded = true
	return out
}
