package rpcpool

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
)

// Rule is a user's own rule for an error answer (rule A6.5), for a wording that
// the built-in ones don't know yet, or where a user wants something else than
// they do. Rules are tried before everything else, in order: the first that
// matches decides, also over reverts and over the HTTP status.
//
//	cfg.Rules = []rpcpool.Rule{{
//		Name:    "acme's credits",
//		Pattern: regexp.MustCompile(`credits? (exhausted|used up)`),
//		Verdict: rpcpool.VerdictRPCFail,
//	}}
type Rule struct {
	// Name stands in errors about the rule. Default: none.
	Name string

	// Pattern is searched in the answer's text: the error's message and what its
	// data says, in lower case, so write it in lower case. Of a long text only
	// the first 4 KiB and the last 512 bytes of message and data are looked at.
	Pattern *regexp.Regexp

	// Match tells whether the rule holds for an answer, where a pattern won't
	// do. It is called by many goroutines at once and must be quick. A panic in
	// it counts as no match. With Pattern set too, both must hold; a rule with
	// neither is refused.
	Match func(ErrorAnswer) bool

	// Methods are the JSON-RPC methods that the rule is for. Default: all, and
	// Run, where the method isn't known.
	Methods []string

	// Chains are the keys of the chains that the rule is for, such as
	// "eip155:8453". Default: all.
	Chains []string

	// Verdict is what a match means: [VerdictCaller], [VerdictRPCFail],
	// [VerdictUnsupported], [VerdictRange], [VerdictNoState] or
	// [VerdictIPBlocked]. VerdictRange counts for log queries only.
	Verdict Verdict
}

// ErrorAnswer is an error answer, as a [Rule]'s Match sees it: as it came. Nodes
// repeat URLs and keys in their words, so no printed or JSON form of it as a whole
// shows Message and Data.
type ErrorAnswer struct {
	// Chain is the chain's key, such as "eip155:8453"; empty where the pool
	// didn't name one.
	Chain string
	// Method is the JSON-RPC method; empty in Run.
	Method string
	// Status is the HTTP status.
	Status int
	// Code is the JSON-RPC error's code; 0 where there was none.
	Code int
	// Message is the JSON-RPC error's message, or the body of an answer that
	// isn't JSON-RPC, cut to 4 KiB.
	Message string
	// Data is the JSON-RPC error's data; nil where there was none.
	Data json.RawMessage
}

// Format prints the answer without its words, under every verb.
func (a ErrorAnswer) Format(s fmt.State, verb rune) {
	formatText(s, verb, fmt.Sprintf("ErrorAnswer(%s %s: status %d, code %d, message of %d bytes, data of %d bytes)",
		a.Chain, a.Method, a.Status, a.Code, len(a.Message), len(a.Data)))
}

// MarshalJSON leaves the answer's words out.
func (a ErrorAnswer) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Chain  string `json:"chain,omitempty"`
		Method string `json:"method,omitempty"`
		Status int    `json:"status"`
		Code   int    `json:"code"`
	}{a.Chain, a.Method, a.Status, a.Code})
}

// check refuses a rule that can't be used.
func (r *Rule) check(field string) error {
	switch r.Verdict {
	case VerdictCaller, VerdictRPCFail, VerdictUnsupported, VerdictRange, VerdictNoState, VerdictIPBlocked:
	default:
		return &ConfigError{Field: field, Reason: fmt.Sprintf("verdict %q can't be had by a rule; use caller, rpc_fail, "+
			"unsupported, range, no_state or ip_blocked", string(r.Verdict))}
	}
	if r.Pattern == nil && r.Match == nil {
		return &ConfigError{Field: field, Reason: "neither Pattern nor Match is set, so it would match everything; set one"}
	}
	return nil
}

// isFor tells whether the rule is for this chain and method.
func (r *Rule) isFor(chain, method string) bool {
	if len(r.Chains) > 0 && !slices.Contains(r.Chains, chain) || len(r.Methods) > 0 && !slices.Contains(r.Methods, method) {
		return false
	}
	return r.Verdict != VerdictRange || method == "" || isLogQuery(method)
}

// matches asks the user's function, whose panic is no match: a rule must not take
// the call down.
func (r *Rule) matches(answer *ErrorAnswer) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	return r.Match(*answer)
}

func (r *Rule) judge(answer *ErrorAnswer, w *words) judgement {
	j := judgement{verdict: r.Verdict, rule: r.Name}
	switch r.Verdict {
	case VerdictRPCFail:
		j.report = reportRPC
	case VerdictIPBlocked:
		j.report = blockedReport(answer.Status, answer.Code)
	case VerdictRange:
		j.hints = hintsOf(w)
	}
	return j
}
