package rpcpool

import (
	"context"
	"errors"
)

// BatchElem is one call of a batch. Its fields are those of go-ethereum's
// rpc.BatchElem; [BatchCall] takes these, too.
type BatchElem struct {
	// Method is the JSON-RPC method.
	Method string
	// Args are the params, as [Chain.Call] takes them.
	Args []any
	// Result points to what the result is decoded into; nil drops the result.
	Result any
	// Error is set by the call: nil where there is a result, else what
	// [Chain.CallContext] would have returned.
	Error error
}

// BatchCallContext makes many calls at once, with the element semantics of
// go-ethereum's rpc.Client (rule E2). Each element has a verdict and a failover of
// its own, and its own Error: an *[RPCError] of one says nothing of the others.
//
// Elements that go to the same RPC travel as one JSON-RPC batch of up to 100, or 1
// MiB, where the RPC takes batches. One that turns out not to isn't blamed: its
// elements are sent one by one, 16 at a time, and so are others for 600 s. Methods
// that must not be sent twice always travel alone.
//
// The error is that of the whole: ctx ended, or not one element was answered, such as
// when every proxy is cooling; the elements have theirs all the same. No elements are
// no error. The calls aren't atomic, and their order isn't kept.
func (c *Chain) BatchCallContext(ctx context.Context, elems []BatchElem) error {
	calls := make([]batchElement, len(elems))
	for i := range elems {
		calls[i].call, calls[i].err = newCallRequest(c.s.pool, elems[i].Method, elems[i].Args)
	}
	c.s.doBatch(ctx, calls)
	for i := range calls {
		elems[i].Error = calls[i].err
		if elems[i].Error == nil && elems[i].Result != nil {
			elems[i].Error = decodeResult(elems[i].Method, calls[i].result, elems[i].Result)
		}
	}
	return batchError(calls)
}

// BatchCall is [Chain.BatchCallContext] for elements of another type with the same
// fields, such as go-ethereum's rpc.BatchElem.
func BatchCall[E ~struct {
	Method string
	Args   []any
	Result any
	Error  error
}](ctx context.Context, c *Chain, elems []E) error {
	own := make([]BatchElem, len(elems))
	for i := range elems {
		own[i] = BatchElem(elems[i])
	}
	err := c.BatchCallContext(ctx, own)
	for i := range own {
		elems[i] = E(own[i])
	}
	return err
}

// batchError is the error of a batch as a whole: its caller's own end, or the first
// error where nobody answered anything.
func batchError(calls []batchElement) error {
	var first error
	answered := len(calls) == 0
	for i := range calls {
		err := calls[i].err
		if _, ended := errors.AsType[*InterruptedError](err); ended {
			return err
		}
		if isAnswer(err) {
			answered = true
		} else if first == nil {
			first = err
		}
	}
	if answered {
		return nil
	}
	return first
}

// isAnswer tells whether a call's end is what a node said to it: a result, or an
// error of the request's own.
func isAnswer(err error) bool {
	if err == nil {
		return true
	}
	if _, ok := errors.AsType[*RPCError](err); ok {
		return true
	}
	_, ok := errors.AsType[*HTTPError](err)
	return ok
}
