package rpcpool

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
)

// Budget bounds what many calls may use together, see [WithBudget]. Zero fields are no
// limit.
type Budget struct {
	// Attempts is the number of requests to RPCs: first ones, repeated ones, questions for a
	// head or a chain's id, those of a function given to [Chain.Run], checks of proxies. An
	// element of a batch counts as one.
	Attempts int
	// InFlight is the number of attempts that may be under way at a time; more wait. The
	// check of a proxy needs no place of its own.
	InFlight int
	// Time is how long the calls may take, from WithBudget on.
	Time time.Duration
}

// WithBudget gives a context whose calls share a budget (rule C6): ten workers that try
// three RPCs twice each make sixty requests, or twenty where the budget says twenty. It
// holds across goroutines, handles and pools. A call that needs more ends with a
// *[BudgetError]. A context that has a budget already gets both.
func WithBudget(ctx context.Context, b Budget) context.Context {
	s := &budget{Budget: b}
	if b.InFlight > 0 {
		s.places = make(chan struct{}, b.InFlight)
	}
	if b.Time > 0 {
		s.end = time.Now().Add(b.Time)
	}
	s.outer = budgetOf(ctx)
	return context.WithValue(ctx, budgetKey{}, s)
}

type budgetKey struct{}

// budget is a Budget in use.
type budget struct {
	Budget
	used   atomic.Int64
	places chan struct{}
	end    time.Time
	outer  *budget // what the context had before
}

// take gives leave for a request, which must be given back by release. wait waits for one
// of the places. The error says what has run out, or is wait's; nothing is taken then.
func (b *budget) take(wait func(places chan<- struct{}) error) error {
	if b == nil {
		return nil
	}
	if !b.end.IsZero() && !time.Now().Before(b.end) {
		return &BudgetError{Ran: "time", Limit: b.Time.String()}
	}
	if b.places != nil {
		if err := wait(b.places); err != nil {
			return err
		}
	}
	err := b.outer.take(wait)
	if err == nil {
		if err = b.spendOne(); err == nil {
			return nil
		}
		b.outer.release()
		b.outer.refund()
	}
	if b.places != nil {
		<-b.places
	}
	return err
}

// release gives back the places of a request that ended.
func (b *budget) release() {
	for s := b; s != nil; s = s.outer {
		if s.places != nil {
			<-s.places
		}
	}
}

// spend counts a request that needs no place: another one of an attempt, or the check of
// a proxy. The error is a *BudgetError; nothing is counted then.
func (b *budget) spend() error {
	if b == nil {
		return nil
	}
	if err := b.outer.spend(); err != nil {
		return err
	}
	err := b.spendOne()
	if err != nil {
		b.outer.refund()
	}
	return err
}

func (b *budget) spendOne() error {
	for limit := int64(b.Attempts); ; {
		used := b.used.Load()
		switch {
		case limit > 0 && used >= limit:
			return &BudgetError{Ran: "attempts", Limit: fmt.Sprint(limit)}
		case b.used.CompareAndSwap(used, used+1):
			return nil
		}
	}
}

// refund takes back the count of a request that wasn't made.
func (b *budget) refund() {
	for s := b; s != nil; s = s.outer {
		s.used.Add(-1)
	}
}

// budgetOf gives the budget of a context; nil where it has none.
func budgetOf(ctx context.Context) *budget {
	b, _ := ctx.Value(budgetKey{}).(*budget)
	return b
}

// endOf gives when the time of a budget is over; zero where it has none.
func (b *budget) endOf() (end time.Time, whose *budget) {
	for s := b; s != nil; s = s.outer {
		if !s.end.IsZero() && (end.IsZero() || s.end.Before(end)) {
			end, whose = s.end, s
		}
	}
	return end, whose
}

// useBudget takes in what the context has the call share with others.
func (k *call) useBudget() {
	k.budget = budgetOf(k.ctx)
	if k.budget == nil {
		return
	}
	if end, _ := k.budget.endOf(); !end.IsZero() {
		k.callers = k.ctx
		k.ctx, k.cancel = context.WithDeadline(k.ctx, end)
	}
}

// overBudget gives the error of a call that the budget's time has ended; nil where that
// isn't it.
func (k *call) overBudget() error {
	if k.callers == nil || hasEnded(k.callers) {
		return nil
	}
	_, whose := k.budget.endOf()
	return &BudgetError{Ran: "time", Limit: whose.Time.String(), Attempts: k.attempts}
}

// takeLeave waits until the request may be sent, as far as the budget and
// [Config.MaxRequests] go; false where it may not, and k.err says why. The budget comes
// first: who waits for others of it must not hold a place that all are waiting for.
func (k *call) takeLeave() bool {
	err := k.budget.take(k.waitForPlace)
	if err == nil {
		if err = k.pool.requests.take(k.waitForPlace); err == nil {
			return true
		}
		k.budget.release()
		k.budget.refund()
	}
	k.err = k.unaffordable(err)
	return false
}

// waitForPlace takes one of so many places as there are. While it waits it isn't waited
// for by the others of a batch.
func (k *call) waitForPlace(places chan<- struct{}) error {
	select {
	case places <- struct{}{}:
		return nil
	default:
	}
	if held, ok := k.req.(waitsForOthers); ok {
		held.pause()
		defer held.resume()
	}
	select {
	case places <- struct{}{}:
		return nil
	case <-k.ctx.Done():
		return k.ctx.Err()
	case <-k.pool.working.Done():
		return ErrClosed
	}
}

// giveBack ends what takeLeave began.
func (k *call) giveBack() {
	k.pool.requests.release()
	k.budget.release()
}

// unaffordable adds the story of the call to what the budget says.
func (k *call) unaffordable(err error) error {
	if over, ok := errors.AsType[*BudgetError](err); ok {
		err = &BudgetError{Ran: over.Ran, Limit: over.Limit, Attempts: k.attempts}
	}
	return k.interrupted(err)
}

// isBounded tells whether requests may have to wait for a place: at an RPC, in the pool or
// in the context's budget.
func (p *poolState) isBounded(ctx context.Context) bool {
	return p.maxInFlight > 0 || p.requests != nil || budgetOf(ctx) != nil
}

// BudgetError says that a call ended because what it shares with others ran out (rule C6).
type BudgetError struct {
	// Ran is what ran out: "attempts" or "time".
	Ran string
	// Limit is how much there was of it.
	Limit string
	// Attempts are this call's failed attempts, in order, masked.
	Attempts []Attempt
}

func (e *BudgetError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "rpcpool: the budget that the call shares with others has run out of %s (%s); give more by WithBudget", e.Ran, e.Limit)
	writeAttempts(&b, e.Attempts)
	return b.String()
}

// Is has errors.Is find [context.DeadlineExceeded] where the time ran out.
func (e *BudgetError) Is(target error) bool {
	return e.Ran == "time" && target == context.DeadlineExceeded
}

func (*BudgetError) rpcPoolError() {}
