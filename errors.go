package rpcpool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Error is satisfied by every error that the library raises on purpose. Use
// [errors.As] with the concrete types, or with Error to tell them from others.
type Error interface {
	error
	rpcPoolError()
}

// ErrClosed is returned by calls on a [Pool] after its Close, and by those that
// Close interrupts.
var ErrClosed error = closedError{}

type closedError struct{}

func (closedError) Error() string { return "rpcpool: the pool is closed" }
func (closedError) rpcPoolError() {}

// RPCError is a node's own answer about the request: a revert, a nonce too low,
// invalid params. Another node would say the same, so it is returned as it is,
// without failover (rule A6.2). It satisfies go-ethereum's rpc.Error and
// rpc.DataError.
type RPCError struct {
	// Code is the JSON-RPC error code.
	Code int
	// Message is the node's text, unchanged but for secrets of the RPC's URL,
	// which are masked where a node repeats them.
	Message string
	// Data is the error's data as the node sent it; nil where there was none.
	Data json.RawMessage
}

func (e *RPCError) Error() string {
	return "rpcpool: the node answered with JSON-RPC error " + strconv.Itoa(e.Code) + ": " + e.Message
}

func (*RPCError) rpcPoolError() {}

// ErrorCode gives the JSON-RPC error code, as go-ethereum's rpc.Error has it.
func (e *RPCError) ErrorCode() int { return e.Code }

// ErrorData gives the error's data decoded from JSON, as go-ethereum's
// rpc.DataError has it: a string for the data of a revert, nil for none.
func (e *RPCError) ErrorData() any {
	if len(e.Data) == 0 {
		return nil
	}
	var data any
	if json.Unmarshal(e.Data, &data) != nil {
		return string(e.Data)
	}
	return data
}

// HTTPError is an HTTP status that speaks of the request itself (400, 413, 422
// and the like): another RPC would answer the same (rule A6.2). A function given
// to [Chain.Run] returns one for every status that isn't 2xx, so that the engine
// can judge it.
type HTTPError struct {
	// StatusCode is the status, such as 400.
	StatusCode int
	// Status is the status line's text, such as "400 Bad Request"; may be empty.
	Status string
	// Body holds at most the first 4 KiB of the answer's body. It may hold
	// secrets that the server repeats, so it is for the caller's eyes only:
	// neither Error nor any printed or JSON form shows it.
	Body []byte
}

func (e *HTTPError) Error() string {
	status := e.Status
	if status == "" {
		status = strconv.Itoa(e.StatusCode)
	}
	return "rpcpool: the RPC refused the request with HTTP status " + status
}

func (*HTTPError) rpcPoolError() {}

// Format prints the error without its body under every verb.
func (e HTTPError) Format(s fmt.State, verb rune) { formatText(s, verb, e.Error()) }

// MarshalJSON leaves the body out.
func (e HTTPError) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		StatusCode int    `json:"statusCode"`
		Status     string `json:"status,omitempty"`
	}{e.StatusCode, e.Status})
}

// LogsRangeTooLargeError says that RPCs refused the block range, or the number of
// results, of a log query (rule A5): three of them, or all that answered.
// Ask for fewer blocks, or use [Chain.GetLogsChunked], which does.
type LogsRangeTooLargeError struct {
	// SuggestedSpan is the number of blocks that a provider named as its limit,
	// the largest of those named; 0 where none named one.
	SuggestedSpan uint64
	// Attempts are the call's failed attempts, in order.
	Attempts []Attempt
}

func (e *LogsRangeTooLargeError) Error() string {
	var b strings.Builder
	b.WriteString("rpcpool: the RPCs refused the range of the log query as too large")
	if e.SuggestedSpan > 0 {
		fmt.Fprintf(&b, " (the widest span named was %d blocks)", e.SuggestedSpan)
	}
	b.WriteString("; ask for fewer blocks, or use GetLogsChunked")
	writeAttempts(&b, e.Attempts)
	return b.String()
}

func (*LogsRangeTooLargeError) rpcPoolError() {}

// NoCapableRPCError says that no RPC of the chain's list has what the call needs
// (rule A3.2). Nothing was sent: there is no quiet fallback to an RPC that might
// answer wrongly.
type NoCapableRPCError struct {
	// Chain is the reference that the handle was made with.
	Chain string
	// Method is the JSON-RPC method; empty in Run.
	Method string
	// Needs says what an RPC must have, such as "send_tx" or "archive recent".
	Needs []string
	// Listed is the number of RPCs in the list.
	Listed int
}

func (e *NoCapableRPCError) Error() string {
	what := e.Method
	if what == "" {
		what = "the call"
	}
	return fmt.Sprintf("rpcpool: none of the %d RPCs listed for chain %q has what %s needs (%s); "+
		"use another method or chain, or wait for the pool to list a capable RPC",
		e.Listed, e.Chain, what, strings.Join(e.Needs, ", "))
}

func (*NoCapableRPCError) rpcPoolError() {}

// NoHealthyRPCError says that no RPC answered in any round (rule A4.4).
type NoHealthyRPCError struct {
	// Chain is the reference that the handle was made with.
	Chain string
	// Attempts are the call's failed attempts, in order, masked. Empty where
	// nothing could be tried, because every RPC was cooling or none was listed.
	Attempts []Attempt
	// Listed is the number of RPCs in the chain's list.
	Listed int
	// RetryAt is when the first cooldown of an RPC of this chain ends; zero
	// where none is cooling.
	RetryAt time.Time
}

func (e *NoHealthyRPCError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "rpcpool: no healthy RPC for chain %q: ", e.Chain)
	switch {
	case e.Listed == 0 && len(e.Attempts) == 0:
		b.WriteString("nothing could be tried, the pool lists none")
	case len(e.Attempts) == 0:
		fmt.Fprintf(&b, "nothing could be tried, none of the %d listed is fit now", e.Listed)
	case len(e.Attempts) == 1:
		b.WriteString("the one attempt that could be made failed")
	default:
		fmt.Fprintf(&b, "all %d attempts failed", len(e.Attempts))
	}
	if !e.RetryAt.IsZero() {
		fmt.Fprintf(&b, "; the first cooldown ends at %s, try again then", e.RetryAt.UTC().Format(time.RFC3339))
	}
	writeAttempts(&b, e.Attempts)
	return b.String()
}

func (*NoHealthyRPCError) rpcPoolError() {}

// ProxyError says that every proxy is cooling. Work stops here: nothing is ever
// sent directly (rule A1.1).
type ProxyError struct {
	// Attempts are the call's failed attempts, in order, masked.
	Attempts []Attempt
	// RetryAt is when the first proxy's cooldown ends.
	RetryAt time.Time
}

func (e *ProxyError) Error() string {
	var b strings.Builder
	b.WriteString("rpcpool: every proxy is cooling down and nothing is sent without one; check the proxies")
	if !e.RetryAt.IsZero() {
		fmt.Fprintf(&b, " (the first may be tried again at %s)", e.RetryAt.UTC().Format(time.RFC3339))
	}
	writeAttempts(&b, e.Attempts)
	return b.String()
}

func (*ProxyError) rpcPoolError() {}

// HostError says that this host can't open another connection: its files or ports
// are used up. Neither an RPC nor a proxy is blamed for it. Raise the limit of open
// files (ulimit -n), or make fewer calls at once.
type HostError struct {
	// Err is the cause.
	Err error
}

func (e *HostError) Error() string {
	return "rpcpool: this host can't open another connection (raise its limit of open files, or make fewer calls at once): " +
		hostCause(e.Err)
}

// Unwrap gives the cause.
func (e *HostError) Unwrap() error { return e.Err }

func (*HostError) rpcPoolError() {}

func hostCause(err error) string {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno.Error()
	}
	return "out of resources"
}

// PoolAPIError says that the pool refused to list a chain's RPCs, or couldn't be
// reached while no list was in memory or in the cache (rule A2.4).
type PoolAPIError struct {
	// StatusCode is the pool's HTTP status; 0 where nothing answered.
	StatusCode int
	// Chain is the reference that was asked for.
	Chain string
	// Reason says what went wrong, without secrets.
	Reason string
}

func (e *PoolAPIError) Error() string {
	return fmt.Sprintf("rpcpool: pool API, chain %q: %s", e.Chain, e.Reason)
}

func (*PoolAPIError) rpcPoolError() {}

// LogsError says how far a log query came before it failed. errors.As finds the
// cause in it.
type LogsError struct {
	// NextBlock is the first block that isn't covered: a query from there on goes
	// on where this one ended.
	NextBlock uint64
	// Err is why the piece that begins there failed.
	Err error
}

func (e *LogsError) Error() string {
	return fmt.Sprintf("rpcpool: log query failed at block %d, all before it is covered: %v", e.NextBlock, e.Err)
}

// Unwrap gives the cause.
func (e *LogsError) Unwrap() error { return e.Err }

func (*LogsError) rpcPoolError() {}

// MalformedResponseError says that an RPC's answer was a JSON-RPC result, but of
// a kind that a log query can't use (rule A9.3), or that can't be decoded into what
// the caller wants ([CallAs], [Chain.CallContext]).
type MalformedResponseError struct {
	// Method is the method whose result can't be used.
	Method string
	// Reason says what was expected.
	Reason string
}

func (e *MalformedResponseError) Error() string {
	return "rpcpool: malformed answer to " + e.Method + ": " + e.Reason
}

func (*MalformedResponseError) rpcPoolError() {}

// ConfigError says which field of a [Config], or which argument, can't be used.
// It never shows a secret, not even a part of a URL that can't be parsed.
type ConfigError struct {
	// Field is the name of the field or argument, such as "Proxies[1]".
	Field string
	// Reason says why, and what is wanted.
	Reason string
}

func (e *ConfigError) Error() string { return "rpcpool: " + e.Field + ": " + e.Reason }

func (*ConfigError) rpcPoolError() {}

// RequestError says that a request can't be sent as it is: params that don't
// marshal to JSON, no method, a log filter that contradicts itself, more logs than
// [MaxResults] allows.
type RequestError struct {
	// Method is the JSON-RPC method.
	Method string
	// Reason says what is wrong.
	Reason string
	// Err is the cause; may be nil.
	Err error
}

func (e *RequestError) Error() string {
	text := "rpcpool: invalid request " + strconv.Quote(e.Method) + ": " + e.Reason
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap gives the cause.
func (e *RequestError) Unwrap() error { return e.Err }

func (*RequestError) rpcPoolError() {}

// InterruptedError says that the caller's context ended before there was an answer.
// errors.Is finds context.Canceled or context.DeadlineExceeded in it.
type InterruptedError struct {
	// Err is the context's error.
	Err error
	// Attempts are the attempts that had failed before, in order, masked.
	Attempts []Attempt
}

func (e *InterruptedError) Error() string {
	var b strings.Builder
	b.WriteString("rpcpool: the call was ended by its caller: ")
	b.WriteString(e.Err.Error())
	writeAttempts(&b, e.Attempts)
	return b.String()
}

// Unwrap gives the context's error.
func (e *InterruptedError) Unwrap() error { return e.Err }

// Timeout tells whether it was a deadline, as [net.Error] has it: so SDKs ask.
func (e *InterruptedError) Timeout() bool { return errors.Is(e.Err, context.DeadlineExceeded) }

func (*InterruptedError) rpcPoolError() {}

// Verdict is what an attempt's end means (rule A5).
type Verdict string

// The verdicts. See docs/FAILOVER.md for what is done upon each.
const (
	VerdictOK          Verdict = "ok"          // a JSON-RPC result
	VerdictCaller      Verdict = "caller"      // about the request; another RPC would say the same
	VerdictProxyFail   Verdict = "proxy_fail"  // the proxy's fault
	VerdictIPBlocked   Verdict = "ip_blocked"  // 401, 403, 429: perhaps this proxy's address only
	VerdictConnFail    Verdict = "conn_fail"   // no connection to the RPC, or it broke, or time ran out
	VerdictRPCFail     Verdict = "rpc_fail"    // the RPC answered, and is at fault
	VerdictUnsupported Verdict = "unsupported" // the RPC doesn't serve the method
	VerdictRange       Verdict = "range"       // a log query too large for the RPC
	VerdictNoState     Verdict = "no_state"    // the RPC lacks the block or state
	VerdictStale       Verdict = "stale"       // the RPC lags
	VerdictWrongChain  Verdict = "wrong_chain" // the RPC is on another chain
)

// Attempt is one request to one RPC through one proxy. Everything in it may be
// shown: URLs are masked.
type Attempt struct {
	// RPC is the masked URL, such as "https://rpc.example.org/***".
	RPC string
	// Proxy is the masked proxy, such as "socks5://***@proxy-a.example.com:1080".
	Proxy string
	// Verdict is what the attempt's end meant.
	Verdict Verdict
	// Class is the class of the failure (rule B1): NoFailure where the RPC isn't at fault, as
	// with the verdicts caller and proxy_fail.
	Class FailureClass
	// Detail says what happened, in a phrase.
	Detail string
	// Duration is how long the attempt took.
	Duration time.Duration
}

func (a Attempt) String() string {
	text := a.RPC + " via " + a.Proxy + ": " + string(a.Verdict)
	if a.Detail != "" {
		text += " (" + a.Detail + ")"
	}
	return text
}

// shownAttempts is how many attempts an error's text lists; Attempts has all.
const shownAttempts = 10

func writeAttempts(b *strings.Builder, attempts []Attempt) {
	for i, a := range attempts {
		if i == shownAttempts {
			fmt.Fprintf(b, "; and %d more", len(attempts)-i)
			return
		}
		if i == 0 {
			b.WriteString(": ")
		} else {
			b.WriteString("; ")
		}
		b.WriteString(a.String())
	}
}

// formatText prints text for any verb, so that no verb reaches a type's fields.
func formatText(s fmt.State, verb rune, text string) {
	if verb == 'q' {
		text = strconv.Quote(text)
	}
	_, _ = fmt.Fprint(s, text)
}

// isError tells whether err is, or wraps, one of the library's own.
func isError(err error) bool {
	var own Error
	return errors.As(err, &own)
}
