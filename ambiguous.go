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
}

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
