package rpcpool

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool/internal/proxydial"
)

// A failed way through a proxy is blamed on whom the table of rule A5 blames; what
// the target may have caused is marked as such (rule A5.1).
func TestJudgeDialFollowsTheTable(t *testing.T) {
	const (
		socks = false
		http  = true
	)
	for _, c := range []struct {
		name    string
		err     proxydial.Error
		http    bool
		verdict Verdict
		report  string
		target  bool
	}{
		{"refused", proxydial.Error{Phase: proxydial.PhaseDial, Reason: proxydial.Unreachable}, socks, VerdictProxyFail, "", false},
		{"dial timeout", proxydial.Error{Phase: proxydial.PhaseDial, Reason: proxydial.Timeout}, http, VerdictProxyFail, "", false},
		{"bad TLS of the proxy", proxydial.Error{Phase: proxydial.PhaseTLS, Reason: proxydial.BadTLS}, http, VerdictProxyFail, "", false},
		{"closed at the greeting", proxydial.Error{Phase: proxydial.PhaseGreeting, Reason: proxydial.Closed}, socks, VerdictProxyFail, "", false},
		{"silent greeting", proxydial.Error{Phase: proxydial.PhaseGreeting, Reason: proxydial.Timeout}, socks, VerdictProxyFail, "", false},
		{"no SOCKS", proxydial.Error{Phase: proxydial.PhaseGreeting, Reason: proxydial.Garbage}, socks, VerdictProxyFail, "", false},
		{"login", proxydial.Error{Phase: proxydial.PhaseGreeting, Reason: proxydial.AuthRefused}, socks, VerdictProxyFail, "", false},
		{"code 1", reply(1), socks, VerdictProxyFail, "", true},
		{"code 2", reply(2), socks, VerdictProxyFail, "", true},
		{"code 3", reply(3), socks, VerdictConnFail, reportConn, false},
		{"code 4", reply(4), socks, VerdictConnFail, reportConn, false},
		{"code 5", reply(5), socks, VerdictConnFail, reportConn, false},
		{"code 6", reply(6), socks, VerdictConnFail, reportConn, false},
		{"code 7", reply(7), socks, VerdictProxyFail, "", false},
		{"code 8", reply(8), socks, VerdictProxyFail, "", true},
		{"code 9", reply(9), socks, VerdictConnFail, reportConn, false},
		{"code 91", reply(91), socks, VerdictConnFail, reportConn, false},
		{"code 93", reply(93), socks, VerdictProxyFail, "", false},
		{"code 255", reply(255), socks, VerdictConnFail, reportConn, false},
		{"CONNECT 401", status(401), http, VerdictProxyFail, "", false},
		{"CONNECT 403", status(403), http, VerdictProxyFail, "", true},
		{"CONNECT 404", status(404), http, VerdictConnFail, reportConn, false},
		{"CONNECT 407", status(407), http, VerdictProxyFail, "", false},
		{"CONNECT 429", status(429), http, VerdictConnFail, reportConn, false},
		{"CONNECT 502", status(502), http, VerdictConnFail, reportConn, false},
		{"CONNECT isn't HTTP", connect(proxydial.Garbage), http, VerdictProxyFail, "", false},
		{"CONNECT closed", connect(proxydial.Closed), http, VerdictProxyFail, "", false},
		{"SOCKS closed after the request", connect(proxydial.Closed), socks, VerdictConnFail, reportConn, false},
		{"the target silent", connect(proxydial.Timeout), socks, VerdictConnFail, reportTimeout, false},
		{"CONNECT silent", connect(proxydial.Timeout), http, VerdictConnFail, reportTimeout, false},
		{"not sayable", proxydial.Error{Reason: proxydial.AddressType}, socks, VerdictProxyFail, "", true},
		{"no target", proxydial.Error{Reason: proxydial.BadTarget}, http, VerdictRPCFail, reportRPC, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := judgeLink(&linkError{proxy: &c.err, err: &c.err}, c.http)
			require.Equal(t, c.verdict, out.verdict)
			require.Equal(t, c.target, out.refusedTarget)
			require.NotEmpty(t, out.detail)
			if c.verdict != VerdictProxyFail {
				require.Equal(t, c.report, out.report)
			}
		})
	}
}

func reply(code int) proxydial.Error {
	return proxydial.Error{Phase: proxydial.PhaseConnect, Reason: proxydial.Reply, Code: code}
}

func status(code int) proxydial.Error {
	return proxydial.Error{Phase: proxydial.PhaseConnect, Reason: proxydial.Status, StatusCode: code}
}

func connect(reason proxydial.Reason) proxydial.Error {
	return proxydial.Error{Phase: proxydial.PhaseConnect, Reason: reason}
}

// Where only the attempt's end is known, the phase says whose time ran out.
func TestJudgeTimeoutByPhase(t *testing.T) {
	for phase, verdict := range map[proxydial.Phase]Verdict{
		proxydial.PhaseNone: VerdictConnFail, proxydial.PhaseDial: VerdictProxyFail, proxydial.PhaseTLS: VerdictProxyFail,
		proxydial.PhaseGreeting: VerdictProxyFail, proxydial.PhaseConnect: VerdictConnFail,
		proxydial.PhaseTargetTLS: VerdictConnFail, proxydial.PhaseReady: VerdictConnFail,
	} {
		out := judgeLink(&linkError{phase: phase, timedOut: true, err: context.DeadlineExceeded}, false)
		require.Equal(t, verdict, out.verdict, phase.String())
		require.Contains(t, out.detail, phase.String())
	}
}

// A page is the proxy's own by its marks, which the proxy doesn't put on the pages
// that it passes on (rule A5.2).
func TestProxyPageByItsMarks(t *testing.T) {
	for name, c := range map[string]struct {
		header http.Header
		body   string
		who    string
	}{
		"squid":             {header: http.Header{"X-Squid-Error": {"ERR_ACCESS_DENIED 0"}, "Via": {"1.1 x (squid)"}}, who: "squid"},
		"passed by squid":   {header: http.Header{"Via": {"1.1 x (squid/5.7)"}, "X-Cache": {"MISS"}}},
		"tinyproxy":         {header: http.Header{"Server": {"tinyproxy/1.11.1"}}, who: "tinyproxy"},
		"passed by it":      {header: http.Header{"Server": {"tinyproxy/1.11.1"}, "Via": {"1.1 h (tinyproxy/1.11.1)"}}},
		"privoxy":           {header: http.Header{"Last-Modified": {privoxyDate}}, who: "privoxy"},
		"privoxy's title":   {body: "<title>404 - No such Domain (Privoxy@host)</title>", who: "privoxy"},
		"privoxy's refusal": {body: privoxyBadAnswer + " ...", who: "privoxy"},
		"of the target":     {header: http.Header{"Server": {"nginx"}}, body: "Privoxy is a proxy"},
		"nothing":           {},
	} {
		who, own := proxyPage(c.header, []byte(c.body))
		require.Equal(t, c.who, who, name)
		require.Equal(t, c.who != "", own, name)
	}
}

// Only a kept connection that ended with nothing received on it died idle; a text
// of net/http is the one thing that has to be asked for by its words.
func TestDiedIdle(t *testing.T) {
	closed := errors.New("http: server closed idle connection")
	for name, c := range map[string]struct {
		failed linkError
		idle   bool
	}{
		"closed":    {linkError{reused: true, err: io.EOF}, true},
		"in words":  {linkError{reused: true, err: closed}, true},
		"fresh":     {linkError{err: io.EOF}, false},
		"received":  {linkError{reused: true, received: true, err: io.EOF}, false},
		"timed out": {linkError{reused: true, timedOut: true, err: io.EOF}, false},
		"malformed": {linkError{reused: true, err: errors.New("malformed HTTP response")}, false},
	} {
		require.Equal(t, c.idle, c.failed.diedIdle(), name)
	}
}
