package integration

import (
	"fmt"
	"slices"
	"testing"

	"github.com/bomzrpc/rpcpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// proxyFault is a proxy that can't be used as its URL says.
type proxyFault struct {
	name   string
	needs  []string
	url    func() string
	change func(*rpcpool.Config)
	// checked: the schemes of targets for which the proxy's silence or EOF could be
	// the target's, so that the proxy's check must find it out (A7).
	checked []string
}

func proxyFaults() (faults []proxyFault) {
	for _, scheme := range []string{"socks5", "socks4a", "http", "https"} {
		faults = append(faults,
			proxyFault{name: "down/" + scheme, url: func() string {
				return scheme + "://" + loopback(unusedPort())
			}},
			proxyFault{name: "no such name/" + scheme, url: func() string {
				return scheme + "://" + goneProxyHost + ":1080"
			}},
		)
	}
	for _, name := range []string{"danted-auth", "microsocks-auth", "tinyproxy-auth", "squid-auth", "squid-tls"} {
		proxy := kind(name)
		faults = append(faults,
			proxyFault{name: "wrong password/" + name, needs: []string{proxy.runs}, url: func() string {
				return proxy.urlWith("proxyuser:wrong@")
			}},
			proxyFault{name: "no password/" + name, needs: []string{proxy.runs}, url: func() string {
				return proxy.urlWith("")
			}},
		)
	}
	return append(faults, wrongProtocols()...)
}

// wrongProtocols are proxies spoken to in a protocol that isn't theirs.
func wrongProtocols() (faults []proxyFault) {
	spoken := func(scheme, runs string, f proxyFault) {
		f.name = scheme + " to " + runs
		f.needs = []string{runs}
		f.url = func() string { return scheme + "://" + loopback(started[runs]) }
		faults = append(faults, f)
	}
	// HTTP proxies wait for a line that never comes: the greeting times out. SOCKS4
	// has no greeting: the target is named in the first message, so the silence
	// could be the target's.
	for _, runs := range []string{"tinyproxy", "squid", "privoxy"} {
		spoken("socks5", runs, proxyFault{change: withTimeout(silence)})
		spoken("socks4a", runs, proxyFault{change: withTimeout(silence), checked: both})
	}
	spoken("socks4a", "microsocks", proxyFault{})
	// SOCKS proxies close on CONNECT or answer in their own tongue. On plain http
	// there is no CONNECT: their closing looks like the target's.
	for _, runs := range []string{"danted", "microsocks", "ssh-D"} {
		spoken("http", runs, proxyFault{checked: []string{"http"}})
		spoken("https", runs, proxyFault{change: withTimeout(silence)})
	}
	for _, runs := range []string{"tinyproxy", "squid", "privoxy"} {
		spoken("https", runs, proxyFault{change: withTimeout(silence)})
	}
	spoken("http", "squid-tls", proxyFault{checked: []string{"http"}})
	return append(faults, proxyFault{
		name: "certificate of an unknown authority", needs: []string{"squid-tls"},
		url:    func() string { return kind("squid-tls").url() },
		change: func(c *rpcpool.Config) { c.RootCAs = onlyOurs() },
	})
}

// The matrix of proxy faults: what is wrong between this host and the proxy, or in
// the proxy's answer to greeting and CONNECT, is proxy_fail and nobody else's
// fault. Alone, such a proxy leaves ProxyError, and never a direct connection;
// with a second proxy, the call is served by that one. The RPC isn't reported.
func TestFaultsOfProxiesAreNotTheRPCs(t *testing.T) {
	for _, fault := range proxyFaults() {
		for _, scheme := range both {
			t.Run(fault.name+"/"+scheme, func(t *testing.T) {
				t.Parallel()
				need(t, append(fault.needs, "microsocks")...)
				testProxyFault(t, fault, scheme)
			})
		}
	}
}

func testProxyFault(t *testing.T, fault proxyFault, scheme string) {
	change := fault.change
	if change == nil {
		change = func(*rpcpool.Config) {}
	}
	lists := map[string][]string{"1": {healthy.url(scheme)}}
	faulty := fault.url()

	alone := newBed(t, []string{faulty}, lists, change)
	_, err := alone.ChainID(1).Call(bounded(t), "eth_blockNumber")
	if slices.Contains(fault.checked, scheme) {
		requireProxyError(t, err)
	} else {
		requireProxyFail(t, err)
	}
	assert.Empty(t, alone.complaints(), "alone")

	withSecond := newBed(t, []string{faulty, kind("microsocks").url()}, lists, change)
	_, err = withSecond.ChainID(1).Call(bounded(t), "eth_blockNumber")
	require.NoError(t, err)
	assert.Len(t, verdicts(withSecond.log.attempts(), "healthy"), 2)
	_, err = withSecond.ChainID(1).Call(bounded(t), "eth_blockNumber")
	require.NoError(t, err)
	assert.Equal(t, []rpcpool.Verdict{rpcpool.VerdictOK}, verdicts(withSecond.log.attempts(), "healthy"), "the faulty proxy must be cooling")
	assert.Empty(t, withSecond.complaints(), "with a second proxy")
}

// requireProxyFail wants the end of a call whose only proxy failed.
func requireProxyFail(t *testing.T, err error) {
	t.Helper()
	attempts := requireProxyError(t, err)
	require.Len(t, attempts, 1)
	assert.Equal(t, rpcpool.VerdictProxyFail, attempts[0].Verdict, "%s", attempts[0])
	assert.NotEmpty(t, attempts[0].Detail)
}

func requireProxyError(t *testing.T, err error) []rpcpool.Attempt {
	t.Helper()
	var proxyError *rpcpool.ProxyError
	require.ErrorAs(t, err, &proxyError)
	assert.NotZero(t, proxyError.RetryAt)
	for _, attempt := range proxyError.Attempts {
		assert.NotContains(t, attempt.String(), "wrong@")
		assert.NotContains(t, attempt.String(), "proxypass")
	}
	return proxyError.Attempts
}

// A real node that refuses the name it is called by (geth's 403 "invalid host
// specified"): the call is tried once through the other proxy, then it is the
// RPC's fault; the next node serves it and both proxies stay in use (A5
// ip_blocked).
func TestForbiddenByTheNodeIsTriedThroughAnotherProxyOnce(t *testing.T) {
	for _, scheme := range []string{"microsocks", "squid"} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			need(t, scheme, "danted", "geth", "anvil")
			forbidding := fmt.Sprintf("http://not-a-vhost%s:%d/", rpcDomain, started["geth"])
			b := newBed(t, []string{kind(scheme).url(), kind("danted").url()},
				map[string][]string{"1": {forbidding, nodes[0].url()}})
			client, err := rpcpool.CallAs[string](bounded(t), b.ChainID(1), "web3_clientVersion")
			require.NoError(t, err)
			assert.Contains(t, client, "anvil")
			attempts := b.log.attempts()
			assert.Len(t, verdicts(attempts, "not-a-vhost"), 2)
			assert.NotEqual(t, attempts[0].proxy, attempts[1].proxy)
			requireBothProxiesFree(t, b)
			complaints := b.complaints()
			assert.Equal(t, forbidding+" http_403", complaints[0])
		})
	}
}
