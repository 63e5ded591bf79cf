package rpcpool

import "strings"

// AmbiguousError says that a request which must not be sent twice failed after it may
// have reached the RPC: whether it had its effect isn't known (rule C2). It isn't
// repeated. Find out by other means (the account's state, the transaction by its hash)
// before you ask again.
type AmbiguousError struct {
	// Method is the JSON-RPC method; of a REST request the HTTP method.
	Method string
	// Attempts are the call's failed attempts, in order, masked. The last is the one
	// that may have had its effect.
	Attempts []Attempt
	// Err is why the call ended, where that wasn't the failure itself: an
	// *[InterruptedError], in which errors.Is finds the context's error. May be nil.
	Err error
}

// Unwrap gives Err.
func (e *AmbiguousError) Unwrap() error { return e.Err }

func (e *AmbiguousError) Error() string {
	var b strings.Builder
	b.WriteString("rpcpool: it isn't known whether ")
	if e.Method == "" {
		b.WriteString("the request")
	} else {
		b.WriteString("the " + e.Method + " request")
	}
	b.WriteString(" had its effect, so it wasn't repeated; look before you ask again")
	writeAttempts(&b, e.Attempts)
	return b.String()
}

func (*AmbiguousError) rpcPoolError() {}

// PartialAnswerError says that an answer broke off after the function given to
// [Chain.Run] had read a part of it, and that the function wasn't called again because of
// [NotAfterFirstByte] (rule C5). What was read can't be relied on to be whole.
type PartialAnswerError struct {
	// Attempts are the call's failed attempts, in order, masked. The last is the one
	// whose answer broke off.
	Attempts []Attempt
}

func (e *PartialAnswerError) Error() string {
	var b strings.Builder
	b.WriteString("rpcpool: the answer broke off after a part of it was read, so it wasn't asked for again")
	writeAttempts(&b, e.Attempts)
	return b.String()
}

func (*PartialAnswerError) rpcPoolError() {}
