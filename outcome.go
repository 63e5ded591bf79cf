package rpcpool

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/bomzrpc/rpcpool/internal/proxydial"
)

// Kinds of reports, as the pool API has them (rule A8).
const (
	reportTimeout = "timeout"
	reportConn    = "conn"
	reportHTTP403 = "http_403"
	reportHTTP429 = "http_429"
	reportRPC     = "rpc_error"
)

// outcome is what an attempt came to: a verdict, and what acting upon it takes.
type outcome struct {
	judgement
	result json.RawMessage
	err    error  // what the caller gets where the verdict is caller; see also unaffordable
	detail string // masked

	status     int           // the HTTP status, where it decided
	retryAfter time.Duration // how long the RPC asks to be left alone; 0: it doesn't say
	given      time.Duration // the time that it had, where that isn't the attempt's own; else 0

	// batch is what this outcome has in common with those of the requests that
	// travelled with this one; nil where it travelled alone.
	batch *batchBlame

	// refusedTarget says that the proxy refused this RPC in a way that can be the
	// RPC's doing (rule A5.1).
	refusedTarget bool

	// unaffordable says that a request wasn't repeated that died with a kept connection, which
	// is nobody's fault; err, a *BudgetError, says why.
	unaffordable bool

	doubtful bool // others are asked before the answer is handed out; detail says why
	eject    bool // a stale answer is held against the RPC
	early    bool // the caller's deadline left it less time than an attempt has
	crowded  bool // it stood in line for a connection in vain
	timedOut bool // its time ran out

	// arrived says that a part of the request may have been written, for what can be
	// repeated and is asked about later (rule C4).
	arrived bool

	// before says that the request may have arrived by an earlier try than the one that this
	// is the outcome of: on a kept connection that died, or in a batch that was refused.
	before bool

	// mayHaveRun says that the request may have had its effect and must not be
	// repeated (rule C2).
	mayHaveRun bool

	// partial says that the caller has read of an answer that broke off, and doesn't want
	// it to begin anew (rule C5).
	partial bool
}

func failed(verdict Verdict, report, detail string) outcome {
	return outcome{judgement: judgement{verdict: verdict, report: report}, detail: detail}
}

// dialRule says whose fault a failed way through a proxy is. The first rule that
// fits decides. What real proxies do is measured: microsocks says SOCKS code 1 for
// a target's name that doesn't exist, ssh -D closes after the CONNECT request for
// every fault of a target, HTTP proxies answer a status or hang.
type dialRule struct {
	phases  []proxydial.Phase  // empty: any
	reasons []proxydial.Reason // empty: any
	codes   []int              // SOCKS codes or CONNECT statuses; empty: any
	http    bool               // for HTTP proxies only
	verdict Verdict
	target  bool // can be the target's doing
}

var dialRules = []dialRule{
	{ // the proxy isn't reached, or its greeting or login fails
		phases:  []proxydial.Phase{proxydial.PhaseDial, proxydial.PhaseTLS, proxydial.PhaseGreeting},
		verdict: VerdictProxyFail,
	},
	{ // tinyproxy says 401 to a wrong password; no target can answer a CONNECT
		reasons: []proxydial.Reason{proxydial.Status},
		codes:   []int{http.StatusProxyAuthRequired, http.StatusUnauthorized},
		verdict: VerdictProxyFail,
	},
	{
		reasons: []proxydial.Reason{proxydial.Status}, codes: []int{http.StatusForbidden},
		verdict: VerdictProxyFail, target: true,
	},
	{
		reasons: []proxydial.Reason{proxydial.Reply}, codes: []int{1, 2, 8},
		verdict: VerdictProxyFail, target: true,
	},
	{
		reasons: []proxydial.Reason{proxydial.Reply}, codes: []int{7, 93},
		verdict: VerdictProxyFail,
	},
	{
		reasons: []proxydial.Reason{proxydial.BadTarget},
		verdict: VerdictRPCFail,
	},
	{ // SOCKS4 can't name the target, as code 8 says it
		reasons: []proxydial.Reason{proxydial.AddressType},
		verdict: VerdictProxyFail, target: true,
	},
	{
		reasons: []proxydial.Reason{proxydial.Garbage},
		verdict: VerdictProxyFail,
	},
	{ // HTTP proxies say a status for each fault of a target
		reasons: []proxydial.Reason{proxydial.Closed}, http: true,
		verdict: VerdictProxyFail,
	},
	{verdict: VerdictConnFail},
}

func (r *dialRule) fits(e *proxydial.Error, httpProxy bool) bool {
	code := e.Code
	if e.Reason == proxydial.Status {
		code = e.StatusCode
	}
	return contains(r.phases, e.Phase) && contains(r.reasons, e.Reason) && contains(r.codes, code) && (!r.http || httpProxy)
}

// contains tells whether a list that may be empty for "any" has the value.
func contains[T comparable](list []T, value T) bool {
	return len(list) == 0 || slices.Contains(list, value)
}

// judgeLink says what a request that got no answer means.
func judgeLink(f *linkError, httpProxy bool) outcome {
	if f.crowded != "" {
		return notSent(f.crowded)
	}
	if f.proxy != nil {
		return judgeDial(f.proxy, httpProxy)
	}
	if f.timedOut {
		return judgeTimeout(f.phase)
	}
	out := failed(VerdictConnFail, reportConn, linkText(f))
	out.err, out.unaffordable = f.unaffordable, f.unaffordable != nil
	return out
}

func judgeDial(e *proxydial.Error, httpProxy bool) outcome {
	if exhausted(e) {
		err := &HostError{Err: e}
		return outcome{judgement: judgement{verdict: VerdictCaller}, err: err, detail: err.Error()}
	}
	for i := range dialRules {
		rule := &dialRules[i]
		if !rule.fits(e, httpProxy) {
			continue
		}
		out := failed(rule.verdict, "", e.Error())
		out.refusedTarget = rule.target
		switch {
		case rule.verdict == VerdictRPCFail:
			out.report = reportRPC
		case e.Timeout():
			out.report, out.timedOut = reportTimeout, true
		default:
			out.report = reportConn
		}
		return out
	}
	panic("rpcpool: no rule for a failed connection through a proxy") // the last rule fits everything
}

// exhausted tells whether it is this host that can't open another connection: its
// files, ports or buffers are used up, which is no fault of the proxy's.
func exhausted(e *proxydial.Error) bool {
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.EADDRNOTAVAIL, syscall.ENOBUFS, syscall.ENOMEM} {
		if errors.Is(e, errno) {
			return true
		}
	}
	return false
}

// judgeTimeout says whose time ran out, where the dialer itself couldn't say.
func judgeTimeout(phase proxydial.Phase) outcome {
	out := failed(VerdictConnFail, reportTimeout, "no answer in time: "+phase.String())
	switch phase {
	case proxydial.PhaseDial, proxydial.PhaseTLS, proxydial.PhaseGreeting:
		out.verdict, out.report = VerdictProxyFail, ""
	}
	out.timedOut = true
	return out
}

// proxyPage tells whether an answer to a plain-http request that an HTTP proxy
// carried out is a page of the proxy's own (rule A5.2), and whose. A Via alone
// proves nothing: proxies add it to the target's answers too.
func proxyPage(header http.Header, body []byte) (who string, own bool) {
	switch {
	case header.Get("X-Squid-Error") != "":
		return "squid", true
	case strings.HasPrefix(header.Get("Server"), "tinyproxy/") && header.Get("Via") == "":
		return "tinyproxy", true
	case header.Get("Last-Modified") == privoxyDate,
		strings.Contains(string(body), "(Privoxy@"),
		strings.HasPrefix(string(body), privoxyBadAnswer):
		return "privoxy", true
	}
	return "", false
}

// Privoxy's marks: a fixed date on its pages, and a page without headers of its
// own for an answer that isn't HTTP.
const (
	privoxyDate      = "Wed, 08 Jun 1955 12:00:00 GMT"
	privoxyBadAnswer = "Bad response. The server or forwarder response doesn't look like HTTP."
)

// judgeProxyPage says what a page of the proxy's own means.
func judgeProxyPage(who string, status int) outcome {
	detail := fmt.Sprintf("%s's own page with HTTP status %d", who, status)
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		return failed(VerdictProxyFail, "", detail)
	}
	return failed(VerdictConnFail, reportConn, detail)
}

// suggestedSpan is the number of blocks that a refusal of a range names, directly
// or by a range; 0 where it names none.
func (j *judgement) suggestedSpan() uint64 {
	h := j.hints
	switch {
	case h == nil:
		return 0
	case h.span == 0 && h.hasRange && h.from <= h.to:
		return h.to - h.from + 1
	}
	return h.span
}

// linkText says in a few words of our own why a connection to an RPC failed.
func linkText(f *linkError) string {
	if f.received {
		return "the answer broke off: " + causeText(f.err)
	}
	if f.phase == proxydial.PhaseTargetTLS {
		return "TLS with the RPC failed: " + causeText(f.err)
	}
	return "the connection to the RPC failed: " + causeText(f.err)
}
