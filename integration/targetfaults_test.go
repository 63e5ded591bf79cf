package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/bomzrpc/rpcpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// silence is the attempt's time where somebody says nothing: short, but long
// enough for a busy machine to do all that comes before the silence.
const silence = 3 * time.Second

// targetFault is something wrong at or behind the RPC, the proxy being well.
type targetFault struct {
	name    string
	url     func(t *testing.T, scheme string) string
	schemes []string      // nil: both
	timeout time.Duration // 0: far more than the fault takes to show
	report  string        // "conn" where empty; "conn|timeout": either, by who gives up first
	detail  string        // a pattern that names the phase which hung, where the proxy only relays (rule A5.4)
}

var both = []string{"http", "https"}

var targetFaults = []targetFault{
	{name: "port refused", url: func(_ *testing.T, scheme string) string {
		return fmt.Sprintf("%s://refused%s:%d/", scheme, rpcDomain, unusedPort())
	}},
	{name: "no such name", url: at(missingName)},
	{name: "name server fails", url: at(brokenName)},
	{name: "host unreachable", url: at(hostUnreachable)},
	{name: "network unreachable", url: at(netUnreachable)},
	{name: "route prohibited", url: at(prohibited)},
	{name: "SYNs vanish", report: "conn|timeout", timeout: silence, url: func(t *testing.T, scheme string) string {
		port, err := blackHole()
		require.NoError(t, err)
		return fmt.Sprintf("%s://black-hole%s:%d/", scheme, rpcDomain, port)
	}},
	{name: "reset at accept", url: doing(reset, false)},
	{name: "closed at accept", url: doing(closeNow, false)},
	{name: "mute at accept", schemes: []string{"https"}, timeout: silence, report: "timeout", detail: `(?i)\btls\b`, url: doing(stayMute, false)},
	{name: "mute after the request", timeout: silence, report: "timeout", detail: `(?i)\bwaiting\b`, url: doing(afterRequest("", stayMute), true)},
	{name: "mute in the body", timeout: silence, report: "timeout", detail: `(?i)\bbody\b`, url: doing(afterRequest(halfAnswer, stayMute), true)},
	{name: "reset after the request", url: doing(afterRequest("", reset), true)},
	{name: "closed after the request", url: doing(afterRequest("", closeNow), true)},
	{name: "closed in the headers", url: doing(afterRequest("HTTP/1.1 200 OK\r\nContent-Ty", closeNow), true)},
	{name: "closed between the headers", url: doing(afterRequest("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n", closeNow), true)},
	{name: "not HTTP", url: doing(afterRequest("garbage garbage garbage\r\n\r\n", closeNow), true)},
	{name: "reset in the body", url: doing(afterRequest(halfAnswer, reset), true)},
	{name: "closed in the body", url: doing(afterRequest(halfAnswer, closeNow), true)},
	{name: "http on the https port", schemes: []string{"https"}, url: func(*testing.T, string) string {
		return fmt.Sprintf("https://healthy%s:%d/", rpcDomain, healthy.ports["http"])
	}},
	{name: "certificate of another name", schemes: []string{"https"}, url: func(t *testing.T, _ string) string {
		return faultyTarget(t, "https", serving(wrongNameCert), afterRequest("", closeNow))
	}},
	{name: "certificate expired", schemes: []string{"https"}, url: func(t *testing.T, _ string) string {
		return faultyTarget(t, "https", serving(expiredCert), afterRequest("", closeNow))
	}},
	{name: "certificate of an unknown authority", schemes: []string{"https"}, url: func(t *testing.T, _ string) string {
		return faultyTarget(t, "https", serving(foreignCert), afterRequest("", closeNow))
	}},
}

func at(host string) func(*testing.T, string) string {
	return func(_ *testing.T, scheme string) string { return scheme + "://" + host + "/" }
}

func doing(do act, behindTLS bool) func(*testing.T, string) string {
	return func(t *testing.T, scheme string) string {
		if scheme == "https" && behindTLS {
			return faultyTarget(t, scheme, serving(goodCert), do)
		}
		return faultyTarget(t, scheme, nil, do)
	}
}

// nodeFault tells the cells of the matrix that are the RPC's rpc_fail instead of
// its conn_fail, because the proxy makes a page with status 200 of what it got
// (rule A5: not JSON): squid of an answer that isn't HTTP, squid and privoxy of
// one that ends after whole header lines.
func nodeFault(proxy proxyKind, scheme, fault string) bool {
	if proxy.relays(scheme) {
		return false
	}
	switch proxy.program() {
	case "squid":
		return fault == "not HTTP" || fault == "closed between the headers"
	case "privoxy":
		return fault == "closed between the headers"
	}
	return false
}

// refusedByEveryProxy tells the cells in which the proxy answers with a code that
// would be its own fault: microsocks says 1 for a name that it can't look up, and
// dante and microsocks say 1 for a prohibited route. Since it is the only proxy,
// every proxy said so, and it is the RPC (rule A5.1).
func refusedByEveryProxy(proxy proxyKind, fault string) bool {
	switch proxy.program() {
	case "microsocks":
		return fault == "no such name" || fault == "name server fails" || fault == "route prohibited"
	case "danted":
		return fault == "route prohibited"
	}
	return false
}

// The matrix of target faults and real proxies: whatever the proxy says or doesn't
// say about it, by SOCKS codes, CONNECT statuses, pages of its own or a bare EOF,
// a fault of the target is the RPC's conn_fail, reported as such, and the proxy
// goes on serving (A5, A5.1, A5.2, A7).
func TestFaultsOfTargetsAreNotTheProxys(t *testing.T) {
	// Fault by fault, so that what runs at the same time is spread over the proxies.
	for _, fault := range targetFaults {
		schemes := fault.schemes
		if schemes == nil {
			schemes = both
		}
		for _, proxy := range proxyKinds {
			for _, scheme := range schemes {
				t.Run(fault.name+"/"+proxy.name+"/"+scheme, func(t *testing.T) {
					t.Parallel()
					need(t, proxy.runs)
					testTargetFault(t, proxy, scheme, fault)
				})
			}
		}
	}
}

func testTargetFault(t *testing.T, proxy proxyKind, scheme string, fault targetFault) {
	url := fault.url(t, scheme)
	limit := timeout
	if fault.timeout > 0 {
		limit = fault.timeout
	}
	b := newBed(t, []string{proxy.url()},
		map[string][]string{"1": {url}, "2": {healthy.url(scheme)}}, withTimeout(limit))

	_, err := b.ChainID(1).Call(bounded(t), "eth_blockNumber")
	var noHealthy *rpcpool.NoHealthyRPCError
	require.ErrorAs(t, err, &noHealthy)
	require.NotEmpty(t, noHealthy.Attempts)
	attempt := noHealthy.Attempts[0]
	wantVerdict, wantReport := rpcpool.VerdictConnFail, fault.report
	if wantReport == "" {
		wantReport = "conn"
	}
	if nodeFault(proxy, scheme, fault.name) {
		wantVerdict, wantReport = rpcpool.VerdictRPCFail, "rpc_error"
	}
	if !refusedByEveryProxy(proxy, fault.name) {
		require.Len(t, noHealthy.Attempts, 1)
		assert.Equal(t, wantVerdict, attempt.Verdict, "%s", attempt)
	}
	if proxy.relays(scheme) {
		assert.Regexp(t, fault.detail, attempt.Detail)
	}
	assert.NotEmpty(t, attempt.Detail)
	assert.NotZero(t, noHealthy.RetryAt, "the RPC must be cooling")

	_, err = b.ChainID(2).Call(bounded(t), "eth_blockNumber")
	require.NoError(t, err, "the proxy must go on serving")

	complaints := b.complaints()
	require.Len(t, complaints, 1)
	assert.Regexp(t, "^"+url+" ("+wantReport+")$", complaints[0])
}

// rulesets are the kinds of proxy whose ruleset refuses deniedPort.
var rulesets = []string{"danted", "danted-auth", "tinyproxy", "tinyproxy-auth", "squid", "squid-auth", "squid-tls", "privoxy"}

// Rule A5.1: a target that the ruleset of one proxy refuses (SOCKS code 2, CONNECT
// 403) is asked through the next proxy, and the RPC isn't blamed.
func TestPortDeniedByOneProxyIsServedByTheNext(t *testing.T) {
	for _, name := range rulesets {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			need(t, kind(name).runs, "microsocks")
			b := newBed(t, []string{kind(name).url(), kind("microsocks").url()}, map[string][]string{"1": {denied.url("https")}})
			_, err := b.ChainID(1).Call(bounded(t), "eth_blockNumber")
			require.NoError(t, err)
			assert.Equal(t, []rpcpool.Verdict{rpcpool.VerdictProxyFail, rpcpool.VerdictOK}, verdicts(b.log.attempts(), "denied"))
			assert.Empty(t, b.complaints())
		})
	}
}

// Rule A5.1: a target that every proxy refuses in that way is at fault itself: it
// gets the conn_fail, and all proxies are free again at once.
func TestPortDeniedByEveryProxyIsTheRPCs(t *testing.T) {
	for _, pair := range [][2]string{{"danted", "danted-auth"}, {"danted", "squid"}, {"privoxy", "danted"}, {"squid-tls", "tinyproxy"}} {
		t.Run(pair[0]+"+"+pair[1], func(t *testing.T) {
			t.Parallel()
			first, second := kind(pair[0]), kind(pair[1])
			need(t, first.runs, second.runs)
			b := newBed(t, []string{first.url(), second.url()},
				map[string][]string{"1": {denied.url("https"), healthy.url("https")}})
			_, err := b.ChainID(1).Call(bounded(t), "eth_blockNumber")
			require.NoError(t, err)
			requireBothProxiesFree(t, b)
			assert.Equal(t, []string{denied.url("https") + " conn"}, complaintsBut403(b))
		})
	}
}

// Rule A5.1: one host name that is dead takes no microsocks down, although each of
// them says "general failure" for it.
func TestDeadNameDoesntTakeTheProxiesDown(t *testing.T) {
	for _, name := range []string{missingName, brokenName} {
		for _, scheme := range both {
			t.Run(name+"/"+scheme, func(t *testing.T) {
				t.Parallel()
				need(t, "microsocks", "microsocks-auth")
				dead := scheme + "://" + name + "/"
				b := newBed(t, []string{kind("microsocks").url(), kind("microsocks-auth").url()},
					map[string][]string{"1": {dead, healthy.url(scheme)}})
				for range 3 {
					_, err := b.ChainID(1).Call(bounded(t), "eth_blockNumber")
					require.NoError(t, err)
				}
				requireBothProxiesFree(t, b)
				assert.Equal(t, []string{dead + " conn"}, complaintsBut403(b))
			})
		}
	}
}

// requireBothProxiesFree uses that a 403 of an RPC is tried once through another
// proxy that isn't cooling: two attempts through two proxies show both free.
func requireBothProxiesFree(t *testing.T, b *bed) {
	t.Helper()
	forbidding := faultyTarget(t, "http", nil, afterRequest("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", closeNow))
	b.api.mu.Lock()
	b.api.lists["403"] = []string{forbidding}
	b.api.mu.Unlock()
	_, err := b.ChainID(403).Call(bounded(t), "eth_blockNumber")
	var noHealthy *rpcpool.NoHealthyRPCError
	require.ErrorAs(t, err, &noHealthy)
	require.Len(t, noHealthy.Attempts, 2, "the second proxy isn't free")
	assert.NotEqual(t, noHealthy.Attempts[0].Proxy, noHealthy.Attempts[1].Proxy)
}

// complaintsBut403 leaves out what requireBothProxiesFree provokes.
func complaintsBut403(b *bed) (list []string) {
	for _, complaint := range b.complaints() {
		if !strings.HasSuffix(complaint, " http_403") {
			list = append(list, complaint)
		}
	}
	return list
}

// Rule A5.2, by its letter: a page of the proxy's own with 403, in answer to a plain
// http request, is the proxy's; there is no second proxy to ask, so nothing is
// left.
func TestDeniedPageOnPlainHTTPIsTheProxys(t *testing.T) {
	for _, name := range rulesets {
		if kind(name).relays("http") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			need(t, kind(name).runs)
			b := newBed(t, []string{kind(name).url()}, map[string][]string{"1": {denied.url("http")}})
			_, err := b.ChainID(1).Call(bounded(t), "eth_blockNumber")
			requireProxyFail(t, err)
			assert.Empty(t, b.complaints())
		})
	}
}

// targetPages are statuses that the RPC itself gives, and what they mean (A5).
var targetPages = map[int]struct {
	verdict rpcpool.Verdict
	report  string
}{
	401: {rpcpool.VerdictIPBlocked, "http_403"},
	403: {rpcpool.VerdictIPBlocked, "http_403"},
	429: {rpcpool.VerdictIPBlocked, "http_429"},
	404: {rpcpool.VerdictRPCFail, "rpc_error"},
	408: {rpcpool.VerdictRPCFail, "timeout"},
	500: {rpcpool.VerdictRPCFail, "rpc_error"},
	502: {rpcpool.VerdictRPCFail, "rpc_error"},
	503: {rpcpool.VerdictRPCFail, "rpc_error"},
}

// pageURL serves a page with the status, as no JSON-RPC answer looks.
func pageURL(t *testing.T, scheme string, status int) string {
	t.Helper()
	page := fmt.Sprintf("HTTP/1.1 %d Of the target\r\nContent-Type: text/html\r\nContent-Length: 4\r\nConnection: close\r\n\r\npage", status)
	return doing(afterRequest(page, closeNow), true)(t, scheme)
}

// Rule A5.2: the statuses that proxies use for pages of their own, given by the
// RPC itself and handed on by the proxy, are the RPC's: 401, 403 and 429 the block
// of an address, 5xx, 404 and 408 its fault. The proxy goes on serving.
func TestPagesOfTheTargetAreTheTargets(t *testing.T) {
	for status, want := range targetPages {
		for _, proxy := range proxyKinds {
			for _, scheme := range both {
				t.Run(fmt.Sprint(status, "/", proxy.name, "/", scheme), func(t *testing.T) {
					t.Parallel()
					need(t, proxy.runs)
					url := pageURL(t, scheme, status)
					b := newBed(t, []string{proxy.url()}, map[string][]string{"1": {url}, "2": {healthy.url(scheme)}})
					_, err := b.ChainID(1).Call(bounded(t), "eth_blockNumber")
					var noHealthy *rpcpool.NoHealthyRPCError
					require.ErrorAs(t, err, &noHealthy)
					require.Len(t, noHealthy.Attempts, 1)
					assert.Equal(t, want.verdict, noHealthy.Attempts[0].Verdict, "%s", noHealthy.Attempts[0])
					_, err = b.ChainID(2).Call(bounded(t), "eth_blockNumber")
					require.NoError(t, err, "the proxy must go on serving")
					assert.Equal(t, []string{url + " " + want.report}, b.complaints())
				})
			}
		}
	}
}

// A 407 is the proxy's where the proxy reads the request, whoever gave it (A5);
// inside TLS only the RPC can have given it, and the proxy goes on serving.
func TestStatus407IsTheProxysOnlyWhereItReadsTheRequest(t *testing.T) {
	for _, proxy := range proxyKinds {
		for _, scheme := range both {
			if proxy.relays(scheme) && scheme == "http" {
				continue // plain http over SOCKS: the specification leaves it open
			}
			t.Run(proxy.name+"/"+scheme, func(t *testing.T) {
				t.Parallel()
				need(t, proxy.runs)
				b := newBed(t, []string{proxy.url()},
					map[string][]string{"1": {pageURL(t, scheme, 407)}, "2": {healthy.url(scheme)}})
				_, err := b.ChainID(1).Call(bounded(t), "eth_blockNumber")
				if !proxy.relays(scheme) {
					requireProxyFail(t, err)
					return
				}
				require.Error(t, err)
				_, err = b.ChainID(2).Call(bounded(t), "eth_blockNumber")
				require.NoError(t, err)
			})
		}
	}
}
