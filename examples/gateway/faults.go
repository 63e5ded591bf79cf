package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/bomzrpc/rpcpool"
)

// JSON-RPC's codes for what isn't a node's own error.
const (
	codeRequest       = -32600
	codeUnknownMethod = -32601
	codeParams        = -32602
	codeUnsupported   = -32004 // of EIP-1474: the method isn't served
	codeServer        = -32000
)

// kindUnknownChain is the kind of fault by which the page knows a chain that nobody has.
const kindUnknownChain = "unknown_chain"

// fault is an answer of the gateway's own. Its HTTP status is for the retries that
// SDKs have built in: a 5xx says that the same request may work later, 200 that it
// won't, and that the error is to be read. Nothing in it is secret: labels of RPCs
// and proxies are masked.
type fault struct {
	status  int
	code    int
	message string
	data    faultData
	rpcData json.RawMessage // a node's own data, instead of data
	retryAt time.Time
}

// faultData is the error's data: what happened, in a form for programs.
type faultData struct {
	Kind          string         `json:"kind"`
	Attempts      []faultAttempt `json:"attempts,omitempty"`
	SuggestedSpan uint64         `json:"suggestedSpan,omitempty"`
	RetryAt       string         `json:"retryAt,omitempty"`
}

type faultAttempt struct {
	RPC     string `json:"rpc"`
	Proxy   string `json:"proxy"`
	Verdict string `json:"verdict"`
	Detail  string `json:"detail,omitempty"`
}

// shownAttempts is how many attempts an error lists.
const shownAttempts = 20

func notServed(text string) *fault {
	return &fault{status: http.StatusNotFound, code: codeRequest, message: text, data: faultData{Kind: "not_served"}}
}

// badRequest is about what the program sent.
func badRequest(status int, text string) *fault {
	return &fault{status: status, code: codeRequest, message: text, data: faultData{Kind: "request"}}
}

// faultOf says how an error of the library is answered.
func faultOf(err error) *fault {
	for _, read := range []func(error) *fault{requestFault, ringFault, endFault} {
		if f := read(err); f != nil {
			return f
		}
	}
	if own, ok := errors.AsType[rpcpool.Error](err); ok {
		// Of a kind that isn't known here: whether it may be repeated isn't, either.
		return &fault{status: http.StatusOK, code: codeServer, message: own.Error(), data: faultData{Kind: "other"}}
	}
	// Whose text this is isn't known, so it isn't shown.
	return &fault{
		status: http.StatusBadGateway, code: codeServer,
		message: "the request couldn't be passed on", data: faultData{Kind: "other"},
	}
}

// requestFault is about the request itself: another try would end in the same way.
func requestFault(err error) *fault {
	if e, ok := errors.AsType[*rpcpool.RPCError](err); ok {
		return &fault{status: http.StatusOK, code: e.Code, message: e.Message, rpcData: e.Data}
	}
	if e, ok := errors.AsType[*rpcpool.HTTPError](err); ok {
		return refusedBy(e.StatusCode)
	}
	if e, ok := errors.AsType[*rpcpool.LogsRangeTooLargeError](err); ok {
		return rangeFault(e)
	}
	if e, ok := errors.AsType[*rpcpool.NoCapableRPCError](err); ok {
		return &fault{
			status: http.StatusOK, code: codeUnsupported,
			message: fmt.Sprintf("none of the %d RPCs of chain %q has what this needs (%s)", e.Listed, e.Chain, strings.Join(e.Needs, ", ")),
			data:    faultData{Kind: "no_capable_rpc"},
		}
	}
	if e, ok := errors.AsType[*rpcpool.AmbiguousError](err); ok {
		return &fault{
			status: http.StatusOK, code: codeServer,
			message: "it isn't known whether the request had its effect, so it wasn't repeated; look before you ask again",
			data:    faultData{Kind: "ambiguous", Attempts: listed(e.Attempts)},
		}
	}
	if e, ok := errors.AsType[*rpcpool.RequestError](err); ok {
		return badRequest(http.StatusBadRequest, e.Error())
	}
	return nil
}

// refusedBy is an HTTP status about the request. The page under it stays here: a
// server may repeat its URL in it, key and all.
func refusedBy(status int) *fault {
	return &fault{
		status: status, code: codeServer,
		message: "the RPC refuses the request with HTTP status " + strconv.Itoa(status) + " " + http.StatusText(status),
		data:    faultData{Kind: "refused"},
	}
}

// rangeFault words a refused range of blocks as geth does: programs that halve the
// range upon it know that wording.
func rangeFault(e *rpcpool.LogsRangeTooLargeError) *fault {
	f := &fault{
		status: http.StatusOK, code: codeParams,
		message: "block range is too large; ask for fewer blocks",
		data:    faultData{Kind: "range", SuggestedSpan: e.SuggestedSpan, Attempts: listed(e.Attempts)},
	}
	if e.SuggestedSpan > 0 {
		f.message = fmt.Sprintf("exceed maximum block range: %d", e.SuggestedSpan)
	}
	return f
}

// ringFault is about RPCs, proxies and the pool: the same request may work later.
func ringFault(err error) *fault {
	if e, ok := errors.AsType[*rpcpool.NoHealthyRPCError](err); ok {
		f := &fault{
			status: http.StatusBadGateway, code: codeServer, retryAt: e.RetryAt,
			message: fmt.Sprintf("no RPC of chain %q answered (%d listed, %d attempts)", e.Chain, e.Listed, len(e.Attempts)),
			data:    faultData{Kind: "no_healthy_rpc", Attempts: listed(e.Attempts)},
		}
		switch {
		case len(e.Attempts) > 0:
		case e.Listed == 0:
			f.status, f.message = http.StatusServiceUnavailable, fmt.Sprintf("no RPC is listed for chain %q", e.Chain)
		default:
			f.status, f.message = http.StatusServiceUnavailable, fmt.Sprintf("none of the %d RPCs of chain %q is fit now", e.Listed, e.Chain)
		}
		return f
	}
	if e, ok := errors.AsType[*rpcpool.ProxyError](err); ok {
		return &fault{
			status: http.StatusServiceUnavailable, code: codeServer, retryAt: e.RetryAt,
			message: "every proxy is cooling down, and nothing is sent without one",
			data:    faultData{Kind: "proxies", Attempts: listed(e.Attempts)},
		}
	}
	if e, ok := errors.AsType[*rpcpool.PoolAPIError](err); ok {
		return poolFault(e)
	}
	return nil
}

func poolFault(e *rpcpool.PoolAPIError) *fault {
	f := &fault{status: http.StatusServiceUnavailable, code: codeServer, data: faultData{Kind: "pool"}}
	switch e.StatusCode {
	case http.StatusBadRequest, http.StatusNotFound:
		f.status, f.data.Kind = http.StatusNotFound, kindUnknownChain
		f.message = fmt.Sprintf("chain %q isn't known", e.Chain)
	case http.StatusUnauthorized:
		f.status, f.message = http.StatusBadGateway, "the pool API refuses the gateway's key"
	default:
		f.message = fmt.Sprintf("no list of RPCs for chain %q: %s", e.Chain, e.Reason)
	}
	return f
}

// endFault is about time, and the gateway's own end.
func endFault(err error) *fault {
	f := &fault{code: codeServer, data: faultData{Kind: "timeout"}}
	if e, ok := errors.AsType[*rpcpool.InterruptedError](err); ok {
		f.data.Attempts = listed(e.Attempts)
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		f.status, f.message = http.StatusGatewayTimeout, "the time for one request ran out"
	case errors.Is(err, context.Canceled) || errors.Is(err, rpcpool.ErrClosed):
		f.status, f.message, f.data.Kind = http.StatusServiceUnavailable, "the gateway is shutting down", "closing"
	default:
		return nil
	}
	return f
}

func listed(attempts []rpcpool.Attempt) []faultAttempt {
	shown := make([]faultAttempt, 0, min(len(attempts), shownAttempts))
	for _, a := range attempts[:min(len(attempts), shownAttempts)] {
		shown = append(shown, faultAttempt{a.RPC, a.Proxy, string(a.Verdict), a.Detail})
	}
	return shown
}

// errorObject is a JSON-RPC error.
type errorObject struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

// errorAnswer is a JSON-RPC answer that is an error.
type errorAnswer struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Error   errorObject     `json:"error"`
}

// body is the answer to a request: an error with the request's own id, or for a
// batch one for each request that has an id.
func (f *fault) body(request []byte) []byte {
	e := errorObject{Code: f.code, Message: f.message}
	switch {
	case f.rpcData != nil:
		e.Data = f.rpcData
	case f.data.Kind != "":
		if !f.retryAt.IsZero() {
			f.data.RetryAt = f.retryAt.UTC().Format(time.RFC3339)
		}
		e.Data = f.data
	}
	ids, batch := idsOf(request)
	if !batch {
		return encode(errorAnswer{"2.0", ids[0], e})
	}
	answers := make([]errorAnswer, len(ids))
	for i, id := range ids {
		answers[i] = errorAnswer{"2.0", id, e}
		e.Data = nil // once is enough
	}
	return encode(answers)
}

// idsOf gives the ids of a request or batch, byte for byte; null for what has none
// that can be read. A batch of notifications alone is answered like one request.
func idsOf(request []byte) (ids []json.RawMessage, batch bool) {
	type envelope struct {
		ID json.RawMessage `json:"id"`
	}
	null := json.RawMessage("null")
	var many []envelope
	if json.Unmarshal(request, &many) == nil {
		for _, one := range many {
			if len(one.ID) > 0 {
				ids = append(ids, one.ID)
			}
		}
		if len(ids) > 0 {
			return ids, true
		}
		return []json.RawMessage{null}, false
	}
	var one envelope
	if json.Unmarshal(request, &one) != nil || len(one.ID) == 0 || one.ID[0] == '{' || one.ID[0] == '[' {
		one.ID = null
	}
	return []json.RawMessage{one.ID}, false
}

// encode marshals what can't fail: text, numbers, and JSON that was read as such.
func encode(value any) []byte {
	raw, err := json.Marshal(value)
	if err != nil {
		panic("gateway: " + err.Error())
	}
	return raw
}
