package rpcpool

import "time"

// This file has what hooks are told.

// ChainLabels say which handle an event is of.
type ChainLabels struct {
	// Chain is the reference that the handle was made with. There are as many as the
	// program asks for: bounded, unless it passes on references that others choose.
	Chain string
	// Policy tells handles of one reference apart, see [Chain.Policy]. Bounded as Chain is.
	Policy string
}

// CallKind says what made a call. Bounded.
type CallKind string

// The kinds.
const (
	KindCall         CallKind = "call"          // Chain.Call, CallContext, CallAs
	KindBatch        CallKind = "batch"         // a batch as a whole
	KindBatchElement CallKind = "batch_element" // a call of a batch
	KindRun          CallKind = "run"           // Chain.Run, RunAs
	KindHTTP         CallKind = "http"          // a request over Chain.HTTPClient; those of a batch are batch elements
	KindLogs         CallKind = "logs"          // a piece of GetLogsChunked or LogChunks
	KindSend         CallKind = "send"          // SendRawTransaction, and each RPC of Broadcast
	KindSnapshot     CallKind = "snapshot"      // a read at a Snapshot's block
	KindQuorum       CallKind = "quorum"        // one of the reads that must agree
	KindInternal     CallKind = "internal"      // the library's own: WaitReceipt's looks, sampling, block times, lost transactions
)

// CallResult is how a call ended, named for the error that it ended with. Bounded. A few
// errors are made of others further up (a *[QuorumError], a *[LogsError]); the result is
// that of the call underneath.
type CallResult string

// The results.
const (
	ResultOK        CallResult = "ok"                 // there is an answer
	ResultRPCError  CallResult = "rpc_error"          // *RPCError: a node's error about the request
	ResultHTTPError CallResult = "http_error"         // *HTTPError: a status about the request
	ResultRange     CallResult = "range"              // *LogsRangeTooLargeError; a chunked query asks for less then
	ResultNoCapable CallResult = "no_capable_rpc"     // *NoCapableRPCError
	ResultNoHealthy CallResult = "no_healthy_rpc"     // *NoHealthyRPCError
	ResultProxy     CallResult = "proxy"              // *ProxyError
	ResultPoolAPI   CallResult = "pool_api"           // *PoolAPIError
	ResultStale     CallResult = "stale"              // *StaleError
	ResultSnapshot  CallResult = "snapshot"           // *SnapshotError
	ResultAmbiguous CallResult = "ambiguous"          // *AmbiguousError
	ResultUnknown   CallResult = "tx_outcome_unknown" // *TxOutcomeUnknownError
	ResultPartial   CallResult = "partial_answer"     // *PartialAnswerError
	ResultBudget    CallResult = "budget"             // *BudgetError
	ResultHost      CallResult = "host"               // *HostError
	ResultRequest   CallResult = "request"            // *RequestError
	ResultCanceled  CallResult = "canceled"           // the caller's context was cancelled
	ResultDeadline  CallResult = "deadline"           // the caller's deadline passed
	ResultClosed    CallResult = "closed"             // ErrClosed
	ResultPanic     CallResult = "panic"              // the function given to Run panicked
	ResultOther     CallResult = "other"              // another error, of the function given to Run perhaps
)

// Answered tells whether a node answered: with a result, or an error about the request.
func (r CallResult) Answered() bool {
	return r == ResultOK || r == ResultRPCError || r == ResultHTTPError
}

// CallStart is the beginning of a call.
type CallStart struct {
	ChainLabels
	// Kind is what made the call. Bounded.
	Kind CallKind
	// Method is the JSON-RPC method; empty in Run, for REST and for a batch as a whole. Not
	// bounded: it is whatever the program asks for. To label a metric, keep a list of those
	// that you know and call all others "other".
	Method string
	// Elements is the number of calls of a batch as a whole; 0 for others.
	Elements int
}

// CallEnd is the end of a call.
type CallEnd struct {
	CallStart
	// Result is how it ended. Bounded.
	Result CallResult
	// Attempts is the number of attempts that were begun for it; 0 for a batch as a whole,
	// whose elements have theirs.
	Attempts int
	// Hedged tells whether a second RPC was asked because the first was slow ([WithHedge]).
	Hedged bool
	// Duration is from the call's beginning to now, waits included.
	Duration time.Duration
}

// AttemptStart is the beginning of an attempt.
type AttemptStart struct {
	ChainLabels
	// Kind is what made the call. Bounded.
	Kind CallKind
	// Method is what is asked, which for a question isn't the call's. Not bounded, see
	// CallStart.Method.
	Method string
	// RPC is the masked URL, such as "https://rpc.example.org/***"; two RPCs of one host may
	// have the same. Bounded by the lists of the chains in use.
	RPC string
	// Proxy is the masked proxy, such as "socks5://***@proxy-a.example.com:1080". Bounded by
	// Config.Proxies.
	Proxy string
	// Number counts the attempts of the call, from 1 on. Not bounded.
	Number int
	// Hedged tells whether it belongs to the second request of a hedged read.
	Hedged bool
	// Question tells whether the library asks by itself before it sends the request: for a
	// head or the chain's id.
	Question bool
}

// AttemptEnd is the end of an attempt.
type AttemptEnd struct {
	AttemptStart
	// Verdict is what the end means; empty where the attempt ended because its call did (the
	// caller left, a hedged read's other request was quicker, Close, a budget), which is
	// nobody's fault. Bounded.
	Verdict Verdict
	// Class is the class of the failure; NoFailure for an answer, the caller's error, and
	// what is the proxy's fault. Bounded.
	Class FailureClass
	// Detail says what happened, masked, in at most a few hundred characters. Not bounded.
	Detail string
	// Bytes is the number of bytes of the result; 0 in Run and for REST.
	Bytes int
	// Duration is from AttemptStarted to the answer's last byte.
	Duration time.Duration
}

// CooldownChange is what happened to an RPC. Bounded.
type CooldownChange string

// The changes.
const (
	// RPCCooled: it failed, and is left alone for a cooldown. One for each failure that
	// counts.
	RPCCooled CooldownChange = "cooled"
	// RPCRested: it asked to be left alone (a rate limit), and is.
	RPCRested CooldownChange = "rested"
	// RPCExpelled: it is on another chain, and left out until the list changes.
	RPCExpelled CooldownChange = "expelled"
	// RPCUndone: a failure is taken back, because the proxy turned out to be at fault (rule
	// A7). One for each RPCCooled that is.
	RPCUndone CooldownChange = "undone"
	// RPCBack: it is as good as new: it answered after failures or rests, or the list that
	// expelled it has changed, or the chain itself had gone back.
	RPCBack CooldownChange = "back"
)

// CooldownEvent is a change of whether an RPC is asked.
type CooldownEvent struct {
	ChainLabels
	// RPC is the masked URL. Bounded by the lists of the chains in use.
	RPC string
	// Change is what happened. Bounded.
	Change CooldownChange
	// Verdict and Class are of the failure that caused it, or that is taken back; empty and
	// NoFailure for RPCBack. Bounded.
	Verdict Verdict
	Class   FailureClass
	// Until is when the cooldown or rest ends, after the change; zero where there is none.
	Until time.Time
	// FailuresInRow is the number of failures that count after the change; for a rest that
	// of rate limits in a row.
	FailuresInRow int
}

// ProxyChange is what happened to a proxy. Bounded.
type ProxyChange string

// The changes.
const (
	// ProxyDead: it was found dead and is left alone for a cooldown; the failed connections
	// through it are taken back.
	ProxyDead ProxyChange = "dead"
	// ProxyCooled: it refused an RPC, and is left alone for a cooldown that may be taken
	// back.
	ProxyCooled ProxyChange = "cooled"
	// ProxyUndone: a refusal is taken back: every proxy refused that RPC (rule A5.1).
	ProxyUndone ProxyChange = "undone"
	// ProxyBack: an answer came through it after failures.
	ProxyBack ProxyChange = "back"
	// ProxySwitched: it is the one in use from now on.
	ProxySwitched ProxyChange = "switched"
)

// ProxyEvent is a change of a proxy.
type ProxyEvent struct {
	// Proxy is the masked proxy. Bounded by Config.Proxies.
	Proxy string
	// Change is what happened. Bounded.
	Change ProxyChange
	// Checked tells of ProxyDead whether a check found it out, rather than an attempt.
	Checked bool
	// From is the one that was in use before, for ProxySwitched. Bounded as Proxy is.
	From string
	// Until is when the cooldown ends, after the change; zero where there is none.
	Until time.Time
	// FailuresInRow is the number of failures that count after the change.
	FailuresInRow int
	// Deaths is how often it was found dead.
	Deaths uint64
}

// ListSource is where a list is from. Bounded.
type ListSource string

// The sources.
const (
	ListFromPool      ListSource = "pool"      // the pool API
	ListFromDirectory ListSource = "directory" // Config.Directory
	ListFromStatic    ListSource = "static"    // a StaticDirectory
	ListFromMemory    ListSource = "memory"    // the one in use is kept
	ListFromCache     ListSource = "cache"     // the file of a list from before
	ListFromNowhere   ListSource = "none"      // there is none, and the calls that need it fail
)

// ListEvent is the end of a request for a list.
type ListEvent struct {
	// ChainLabels are of the handle whose list it is; Policy is empty where Checks is set.
	ChainLabels
	// Source is where the list is from that is used now. Bounded.
	Source ListSource
	// RPCs is the number of RPCs in it that can be used.
	RPCs int
	// Duration is how long the pool API, or the Directory, took.
	Duration time.Duration
	// StatusCode is the pool API's HTTP status where it refused; 0 else.
	StatusCode int
	// Error is why the pool API or Directory gave no list, or one from before only; masked.
	// Empty where it gave one. Not bounded.
	Error string
	// Checks tells that the list is one to check proxies by (rule A7.2), of eip155:1.
	Checks bool
}

// ReportChange is what became of a report. Bounded.
type ReportChange string

// The changes.
const (
	ReportQueued  ReportChange = "queued"
	ReportSent    ReportChange = "sent"
	ReportFailed  ReportChange = "failed"  // the pool API or Directory didn't take it; it isn't tried again
	ReportDropped ReportChange = "dropped" // too many were waiting, or the pool was closed
)

// ReportEvent is what became of a report.
type ReportEvent struct {
	// Chain is the key of the list that the RPC is from, such as "eip155:8453". Bounded by
	// the chains in use.
	Chain string
	// RPC is the masked URL. Bounded by the lists of the chains in use.
	RPC string
	// Change is what became of it. Bounded.
	Change ReportChange
	// Kind is the report's Error: "timeout", "http_403", "http_429", "conn" or "rpc_error".
	// Bounded.
	Kind string
	// Detail is the report's, masked. Not bounded.
	Detail string
	// Error is why it wasn't taken, masked; only for ReportFailed. Not bounded.
	Error string
}

// SplitCause is why a piece is cut to the size that it is. Bounded.
type SplitCause string

// The causes.
const (
	SplitNamed  SplitCause = "named"  // an RPC named the number of blocks that it takes
	SplitTaken  SplitCause = "taken"  // an RPC took that many a short while ago
	SplitHalved SplitCause = "halved" // nothing better is known
)

// RangeSplitEvent is a piece of a log query that was refused as too large.
type RangeSplitEvent struct {
	ChainLabels
	// From and To are the piece's blocks, both included.
	From, To uint64
	// Span is the number of its blocks, NewSpan that of the pieces from now on.
	Span, NewSpan uint64
	// Cause is why NewSpan is what it is. Bounded.
	Cause SplitCause
}

// StaleEvent is an RPC that is passed over because of its head.
type StaleEvent struct {
	ChainLabels
	// RPC is the masked URL. Bounded by the lists of the chains in use.
	RPC string
	// Head is what it says, or the list says, that it has; 0 where it can't be known.
	Head uint64
	// HighWater is the highest head that is believed, and Lag the blocks that Head is under
	// it; 0 where Head is above, and not believed.
	HighWater, Lag uint64
	// Ejected tells whether it is held against the RPC, which cools then.
	Ejected bool
}

// ForkKind is what was seen of a fork. Bounded.
type ForkKind string

// The kinds.
const (
	ForkBetween  ForkKind = "fork"     // two RPCs have different hashes for a block
	ForkReorg    ForkKind = "reorg"    // an RPC has another hash for a block than before
	ForkRollback ForkKind = "rollback" // the chain itself went back: RPCs agree on a lower head
)

// ForkEvent is a block with two hashes, or a chain that went back.
type ForkEvent struct {
	ChainLabels
	// Kind is what was seen. Bounded.
	Kind ForkKind
	// RPC is the masked URL of the one whose answer showed it, Other that of the one that
	// says otherwise; empty but for ForkBetween. Bounded by the lists of the chains in use.
	RPC, Other string
	// Block is the number of the block; 0 for ForkRollback.
	Block uint64
}
