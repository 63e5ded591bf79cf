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
	// head or a chain's id, checks of proxies. An element of a batch counts as one.
	Attempts int
	// InFlight is the number of these that may be under way at a time; more wait.
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
	s.outer, _ = ctx.Value(budgetKey{}).(*budget)
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

// take gives leave for a request, which must be given back by release; the error says what
// has run out, or that the context ended.
func (b *budget) take(ctx context.Context, closed <-chan struct{}) error {
	for s := b; s != nil; s = s.outer {
		if err := s.takeOne(ctx, closed); err != nil {
			for done := b; done != s; done = done.outer {
				done.releaseOne()
			}
			return err
		}
	}
	return nil
}

func (b *budget) takeOne(ctx context.Context, closed <-chan struct{}) error {
	if !b.end.IsZero() && !time.Now().Before(b.end) {
		return &BudgetError{Ran: "time", Limit: b.Time.String()}
	}
	if b.places != nil {
		select {
		case b.places <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		case <-closed:
			return ErrClosed
		}
	}
	if b.Attempts > 0 && b.used.Add(1) > int64(b.Attempts) {
		b.releaseOne()
		return &BudgetError{Ran: "attempts", Limit: fmt.Sprint(b.Attempts)}
	}
	return nil
}

// release gives back the places of a request that ended.
func (b *budget) release() {
	for s := b; s != nil; s = s.outer {
		s.releaseOne()
	}
}

func (b *budget) releaseOne() {
	if b.places != nil {
		<-b.places
	}
}

// takeMore counts another request of an attempt that has its place already.
func (b *budget) takeMore() bool {
	for s := b; s != nil; s = s.outer {
		if s.Attempts > 0 && s.used.Add(1) > int64(s.Attempts) {
			return false
		}
	}
	return true
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
	k.budget, _ = k.ctx.Value(budgetKey{}).(*budget)
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
// [Config.MaxRequests] go; false where it may not, and k.err says why.
func (k *call) takeLeave() bool {
	closed := k.pool.working.Done()
	if all := k.pool.requests; all != nil {
		if err := all.take(k.ctx, closed); err != nil {
			k.err = k.interrupted(err)
			return false
		}
	}
	if k.budget == nil {
		return true
	}
	err := k.budget.take(k.ctx, closed)
	if err == nil {
		return true
	}
	if all := k.pool.requests; all != nil {
		all.release()
	}
	if over, ok := errors.AsType[*BudgetError](err); ok {
		over.Attempts = k.attempts
	}
	k.err = k.interrupted(err)
	return false
}

// giveBack ends what takeLeave began.
func (k *call) giveBack() {
	if k.budget != nil {
		k.budget.release()
	}
	if all := k.pool.requests; all != nil {
		all.release()
	}
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
