package rpcpool

import (
	"bytes"
	"encoding/json"
	"net/http"
)

// status judges an answer by its HTTP status and, where it has more to say, by its
// body (rule A6.4). The RPCError is the body's JSON-RPC error where that decided.
//
// It may be asked about a 2xx answer too whose body isn't a JSON-RPC answer: some
// chains' REST interfaces say there what went wrong. Where they don't, the node is
// at fault.
func (c *classifier) status(chain, method string, status int, body []byte) (judgement, *RPCError) {
	e, isRPC := readErrorBody(body)
	if status >= 200 && status <= 299 && !isRPC && !json.Valid(body) {
		e = RPCError{}
	}
	w := wordsOf(method, e.Message, e.Data, e.Code)
	defer w.free()
	var own *RPCError
	if isRPC {
		own = &e
	}
	if len(c.rules) > 0 {
		answer := ErrorAnswer{Chain: chain, Method: method, Status: status, Code: e.Code, Message: e.Message, Data: e.Data}
		if j, ok := c.userRule(&answer, w); ok {
			return j, own
		}
	}
	classes := classesOf(method)
	r := c.table.decide(w, classes, e.Code)
	if r != nil && r.winsOver(status, classes, isRPC) {
		return r.judge(w), own
	}
	if isRPC && status == http.StatusInternalServerError && isBitcoinCode(e.Code) && (r == nil || r.verdict == VerdictCaller) {
		return judgement{verdict: VerdictCaller}, own
	}
	return judgeHTTPStatus(status), nil
}

// winsOver tells whether a row that fits the body counts for more than the status.
func (r *compiledRow) winsOver(status int, c class, isRPC bool) bool {
	verdict := judgeHTTPStatus(status).verdict
	switch {
	case status >= 200 && status <= 299:
		return true
	case status == http.StatusBadRequest && r.verdict != VerdictCaller:
		// 400 says that the request is at fault; a node that speaks of itself knows better.
		return true
	case !r.section.wins && !r.wins:
		return false
	case isRPC:
		// A 401 or 403 may complain of the signature, or the sender, of an access
		// token: only in answer to a transaction are these the transaction's.
		return r.section.step != stepTx || verdict != VerdictIPBlocked || c&sends != 0
	case status == http.StatusMethodNotAllowed:
		return false // the method that isn't allowed is HTTP's
	case r.section.step == stepRange:
		return status < 500 // a gateway's page about a time-out says nothing of the range
	case verdict == VerdictIPBlocked:
		return r.verdict == VerdictNoState || r.verdict == VerdictUnsupported
	}
	return true
}

// isBitcoinCode tells whether a JSON-RPC error code is one of those of bitcoind and
// its kin, which send every JSON-RPC error with HTTP status 500, so that the status
// says nothing.
func isBitcoinCode(code int) bool { return code < 0 && code > -40 }

// judgeHTTPStatus judges an answer whose body says nothing.
func judgeHTTPStatus(status int) judgement {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests:
		return judgement{verdict: VerdictIPBlocked, report: blockedReport(status, 0)}
	case http.StatusProxyAuthRequired:
		return judgement{verdict: VerdictProxyFail}
	case http.StatusRequestTimeout:
		return judgement{verdict: VerdictRPCFail, report: reportTimeout}
	case http.StatusPaymentRequired, // the key isn't paid for
		http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusGone, // the address is gone, or takes no POST
		http.StatusMisdirectedRequest, http.StatusUpgradeRequired, // the address is another service's
		http.StatusLocked, http.StatusTooEarly, // later, perhaps
		http.StatusUnavailableForLegalReasons,
		statusNginxNoAnswer, statusNginxClosed:
		return judgement{verdict: VerdictRPCFail, report: reportRPC}
	}
	if status >= 400 && status <= 499 {
		return judgement{verdict: VerdictCaller} // about the request (rule A6.2)
	}
	return judgement{verdict: VerdictRPCFail, report: reportRPC}
}

// nginx's own statuses.
const (
	statusNginxNoAnswer = 444
	statusNginxClosed   = 499
)

func blockedReport(status, code int) string {
	if status == http.StatusTooManyRequests || code == http.StatusTooManyRequests {
		return reportHTTP429
	}
	return reportHTTP403
}

// readErrorBody takes apart the body of an answer that isn't a JSON-RPC result. It
// gives the JSON-RPC error, where isRPC; or else what the body says, in the same
// form: a text, or the message and the whole of a JSON object, or a page's title,
// for a page has many words.
func readErrorBody(body []byte) (e RPCError, isRPC bool) {
	body = bytes.TrimSpace(body)
	switch {
	case len(body) == 0:
		return e, false
	case body[0] == '<':
		return RPCError{Message: pageTitle(body)}, false
	case body[0] != '{':
		return RPCError{Message: string(appendCut(nil, body))}, false
	}
	var object struct {
		Error   json.RawMessage `json:"error"`
		Message json.RawMessage `json:"message"`
	}
	if json.Unmarshal(body, &object) != nil {
		return RPCError{Data: body}, false
	}
	if inner, ok := readError(object.Error); ok {
		return inner, true
	}
	for _, member := range []json.RawMessage{object.Message, object.Error} {
		if json.Unmarshal(member, &e.Message) == nil && e.Message != "" {
			break
		}
	}
	e.Data = body
	return e, false
}

// readError reads a JSON-RPC error object, with or without a code.
func readError(raw json.RawMessage) (RPCError, bool) {
	var inner struct {
		Code    json.RawMessage `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	}
	if len(raw) == 0 || raw[0] != '{' || json.Unmarshal(raw, &inner) != nil || inner.Message == "" && inner.Code == nil {
		return RPCError{}, false
	}
	e := RPCError{Message: inner.Message, Data: inner.Data}
	if json.Unmarshal(inner.Code, &e.Code) != nil {
		e.Code = 0 // a code that is a string, or too large for one
	}
	return e, true
}

// pageTitle gives the title of an HTML page, or nothing.
func pageTitle(page []byte) string {
	page = page[:min(len(page), textHead)]
	_, rest, found := bytes.Cut(page, []byte("<title>"))
	if !found {
		return ""
	}
	title, _, _ := bytes.Cut(rest, []byte("<"))
	return string(title)
}
