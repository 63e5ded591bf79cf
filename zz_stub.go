// TEMPORARY: lets the package compile until classify.go is here; whoever adds classify.go deletes this file.
package rpcpool

import "strings"

type judgement struct {
	verdict  Verdict
	sentOK   bool
	report   string
	pruned   bool
	span     uint64
	from, to uint64
	hasRange bool
	rule     string
}
type Rule struct{}
type classifier struct{}

func newClassifier(rules []Rule) (*classifier, error) { return &classifier{}, nil }
func (c *classifier) rpcError(chain, method string, e *RPCError) judgement {
	m := strings.ToLower(e.Message)
	switch {
	case strings.Contains(m, "revert"):
		return judgement{verdict: VerdictCaller}
	case e.Code == -32601:
		return judgement{verdict: VerdictUnsupported}
	}
	return judgement{verdict: VerdictCaller}
}
func (c *classifier) status(chain, method string, status int, body []byte) (judgement, *RPCError) {
	switch {
	case status == 401 || status == 403:
		return judgement{verdict: VerdictIPBlocked, report: "http_403"}, nil
	case status == 429:
		return judgement{verdict: VerdictIPBlocked, report: "http_429"}, nil
	case status == 400 || status == 413 || status == 422:
		return judgement{verdict: VerdictCaller}, nil
	case status == 408:
		return judgement{verdict: VerdictRPCFail, report: "timeout"}, nil
	}
	return judgement{verdict: VerdictRPCFail, report: "rpc_error"}, nil
}
func isLogQuery(method string) bool { return method == "eth_getLogs" }
func isRawSend(method string) bool  { return method == "eth_sendRawTransaction" }
