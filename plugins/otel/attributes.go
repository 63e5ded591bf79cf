package rpcpoolotel

import (
	"net"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/bomzrpc/rpcpool"
)

// Attributes that the semantic conventions have no name for.
const (
	keyChain        = attribute.Key("rpcpool.chain")
	keyPolicy       = attribute.Key("rpcpool.policy")
	keyKind         = attribute.Key("rpcpool.call.kind")
	keyResult       = attribute.Key("rpcpool.call.result")
	keyAttempts     = attribute.Key("rpcpool.call.attempts")
	keyCallHedged   = attribute.Key("rpcpool.call.hedged")
	keyBatchSize    = attribute.Key("rpcpool.batch.size")
	keyNumber       = attribute.Key("rpcpool.attempt.number")
	keyHedged       = attribute.Key("rpcpool.attempt.hedged")
	keyQuestion     = attribute.Key("rpcpool.attempt.question")
	keyDetail       = attribute.Key("rpcpool.attempt.detail")
	keyBytes        = attribute.Key("rpcpool.attempt.bytes")
	keyVerdict      = attribute.Key("rpcpool.verdict")
	keyClass        = attribute.Key("rpcpool.failure.class")
	keyFailures     = attribute.Key("rpcpool.failures_in_row")
	keyRPC          = attribute.Key("rpcpool.rpc")
	keyRPCState     = attribute.Key("rpcpool.rpc.state")
	keyProxy        = attribute.Key("rpcpool.proxy")
	keyProxyState   = attribute.Key("rpcpool.proxy.state")
	keyCooldown     = attribute.Key("rpcpool.cooldown.change")
	keyUntil        = attribute.Key("rpcpool.cooldown.until")
	keyProxyChange  = attribute.Key("rpcpool.proxy.change")
	keyListSource   = attribute.Key("rpcpool.list.source")
	keyReportChange = attribute.Key("rpcpool.report.change")
	keyReportKind   = attribute.Key("rpcpool.report.kind")
	keyFrom         = attribute.Key("rpcpool.range.from")
	keyTo           = attribute.Key("rpcpool.range.to")
	keySpan         = attribute.Key("rpcpool.range.span")
	keyNewSpan      = attribute.Key("rpcpool.range.new_span")
	keyCause        = attribute.Key("rpcpool.range.cause")
	keyHead         = attribute.Key("rpcpool.rpc.head")
	keyHighWater    = attribute.Key("rpcpool.chain.high_water")
	keyLag          = attribute.Key("rpcpool.rpc.lag")
	keyEjected      = attribute.Key("rpcpool.rpc.ejected")
	keyForkKind     = attribute.Key("rpcpool.fork.kind")
	keyForkOther    = attribute.Key("rpcpool.fork.other")
	keyBlock        = attribute.Key("rpcpool.fork.block")
)

// otherMethod is what the conventions call a method that isn't known.
const otherMethod = "_OTHER"

// longestMethod is the number of bytes of a method's name that a span shows.
const longestMethod = 100

// jsonRPCVersion is the one that the library speaks. The conventions take 1.0 for granted.
var jsonRPCVersion = semconv.JSONRPCProtocolVersion("2.0")

// withLabels adds which handle something is of; metrics have withHandle.
func withLabels(attrs []attribute.KeyValue, labels rpcpool.ChainLabels) []attribute.KeyValue {
	attrs = append(attrs, keyChain.String(labels.Chain))
	if labels.Policy != "" {
		attrs = append(attrs, keyPolicy.String(labels.Policy))
	}
	return attrs
}

// withRequest adds the RPC system and the method: for metrics and spans, to which
// withOriginal adds the rest.
func (h *Hook) withRequest(attrs []attribute.KeyValue, kind rpcpool.CallKind, method string) []attribute.KeyValue {
	switch {
	case kind == rpcpool.KindBatch:
		return append(attrs, semconv.RPCSystemNameJSONRPC)
	case method == "": // a function given to Run, or REST: no system that the conventions know
		return append(attrs, semconv.RPCSystemNameKey.String(string(kind)))
	case h.methods[method]:
		return append(attrs, semconv.RPCSystemNameJSONRPC, semconv.RPCMethod(method))
	}
	return append(attrs, semconv.RPCSystemNameJSONRPC, semconv.RPCMethod(otherMethod))
}

// withOriginal adds what spans have beside withRequest.
func (h *Hook) withOriginal(attrs []attribute.KeyValue, method string) []attribute.KeyValue {
	if method == "" {
		return attrs
	}
	attrs = append(attrs, jsonRPCVersion)
	if h.methods[method] {
		return attrs
	}
	if len(method) > longestMethod {
		method = strings.ToValidUTF8(method[:longestMethod], "") + "…"
	}
	return append(attrs, semconv.RPCMethodOriginal(method))
}

// withServer adds host and port of an RPC by its masked label, the only parts of a URL that
// may be shown.
func withServer(attrs []attribute.KeyValue, label string) []attribute.KeyValue {
	scheme, rest, ok := strings.Cut(label, "://")
	if !ok {
		return attrs
	}
	host, _, _ := strings.Cut(rest, "/")
	name, digits, err := net.SplitHostPort(host)
	if err != nil {
		name, digits = strings.Trim(host, "[]"), ""
	}
	attrs = append(attrs, semconv.ServerAddress(name))
	port, err := strconv.Atoi(digits)
	switch {
	case err == nil:
	case scheme == "https":
		port = 443
	case scheme == "http":
		port = 80
	default:
		return attrs
	}
	return append(attrs, semconv.ServerPort(port))
}

// withFailure adds what an RPC's failure was, where there was one.
func withFailure(attrs []attribute.KeyValue, verdict rpcpool.Verdict, class rpcpool.FailureClass) []attribute.KeyValue {
	if verdict != "" {
		attrs = append(attrs, keyVerdict.String(string(verdict)))
	}
	if class != rpcpool.NoFailure {
		attrs = append(attrs, keyClass.String(class.String()))
	}
	return attrs
}

// withError adds error.type, if there is one.
func withError(attrs []attribute.KeyValue, errorType string) []attribute.KeyValue {
	if errorType == "" {
		return attrs
	}
	return append(attrs, semconv.ErrorTypeKey.String(errorType))
}

// callError is error.type of a call; empty where it didn't fail. An error about the request
// (a revert, invalid params) is the answer that was asked for: the conventions have what is
// known of a request decide over the mere code, and here it is known that nobody is at fault
// and that another RPC would say the same. A piece of a log query that is too large is asked
// for again in smaller ones.
func callError(end *rpcpool.CallEnd) string {
	if end.Result.Answered() || (end.Kind == rpcpool.KindLogs && end.Result == rpcpool.ResultRange) {
		return ""
	}
	return string(end.Result)
}

// attemptError is error.type of an attempt; empty where the RPC and the proxy did what they
// should, and where the attempt ended because its call did.
func attemptError(end *rpcpool.AttemptEnd) string {
	switch end.Verdict {
	case "", rpcpool.VerdictOK, rpcpool.VerdictCaller:
		return ""
	}
	return string(end.Verdict)
}
