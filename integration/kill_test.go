package integration

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bomzrpc/rpcpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// victimKinds are the proxies that are killed, and how they are spoken to.
var victimKinds = map[string]string{
	"danted": "socks5", "microsocks": "socks5", "ssh-D": "socks5",
	"tinyproxy": "http", "squid": "http", "privoxy": "http",
}

// A proxy that is killed in the middle of a series of calls, with requests on the
// way through it, costs no call: the next proxy takes over, and the RPC is neither
// cooled nor reported (A5 proxy_fail, A7).
func TestNoCallIsLostWhenAProxyIsKilled(t *testing.T) {
	for victimKind, scheme := range victimKinds {
		for _, target := range []string{"http", "https"} {
			t.Run(victimKind+"/"+target, func(t *testing.T) {
				t.Parallel()
				need(t, victimKind, "microsocks", "anvil")
				dying := startVictim(t, victimKind)
				anvil := nodes[0]
				url := anvil.url()
				if target == "https" {
					url = anvil.secureURL(t)
				}
				b := newBed(t, []string{scheme + "://" + loopback(dying.port), kind("microsocks").url()},
					map[string][]string{anvil.ref(): {url}})
				callWhile(t, b.ChainID(anvil.chainID), "eth_blockNumber", dying.kill)
				assert.True(t, usedBoth(b.log.attempts(), dying.port, started["microsocks"]), "not both proxies were used")
				assert.Empty(t, b.complaints())
			})
		}
	}
}

// usedBoth tells whether attempts succeeded through both proxies.
func usedBoth(attempts []loggedAttempt, first, second int) bool {
	used := map[int]bool{}
	for _, attempt := range attempts {
		for _, port := range []int{first, second} {
			if attempt.verdict == rpcpool.VerdictOK && strings.Contains(attempt.proxy, fmt.Sprint(":", port)) {
				used[port] = true
			}
		}
	}
	return used[first] && used[second]
}

// A proxy that is stopped (it still accepts, and says nothing more) is found out
// and left: a SOCKS proxy by its silent greeting, an HTTP proxy by its check,
// since its silence could as well be the target's (A7). The RPC isn't blamed.
func TestNoCallIsLostWhenAProxyIsStopped(t *testing.T) {
	for victimKind, scheme := range victimKinds {
		if victimKind == "danted" || victimKind == "ssh-D" {
			continue // several processes, or one that is not the relay: microsocks stands for SOCKS
		}
		for _, target := range []string{"http", "https"} {
			t.Run(victimKind+"/"+target, func(t *testing.T) {
				t.Parallel()
				need(t, victimKind, "microsocks")
				stopped := startVictim(t, victimKind)
				b := newBed(t, []string{scheme + "://" + loopback(stopped.port), kind("microsocks").url()},
					map[string][]string{"1": {healthy.url(target)}}, withTimeout(2*time.Second))
				chain := b.ChainID(1)
				_, err := chain.Call(bounded(t), "eth_blockNumber")
				require.NoError(t, err)
				stopped.stop()
				for range 3 {
					_, err = chain.Call(bounded(t), "eth_blockNumber")
					require.NoError(t, err)
				}
				assert.Empty(t, b.complaints())
			})
		}
	}
}

// A node that is killed in the middle of a series costs no call: a node of another
// make takes over at once, and the dead one is reported.
func TestNoCallIsLostWhenANodeIsKilled(t *testing.T) {
	for _, proxy := range []string{"danted", "ssh-D", "squid", "tinyproxy", "privoxy"} {
		t.Run(proxy, func(t *testing.T) {
			t.Parallel()
			need(t, proxy, "anvil", "hardhat")
			dying := startVictim(t, "anvil")
			dyingURL := fmt.Sprintf("http://dying%s:%d/", rpcDomain, dying.port)
			b := newBed(t, []string{kind(proxy).url()}, map[string][]string{"31337": {dyingURL, nodes[1].url()}})
			callWhile(t, b.Chain("31337"), "eth_chainId", dying.kill)
			client, err := rpcpool.CallAs[string](bounded(t), b.Chain("31337"), "web3_clientVersion")
			require.NoError(t, err)
			assert.Contains(t, client, "Hardhat")
			complaints := b.complaints()
			assert.NotEmpty(t, complaints)
			for _, complaint := range complaints {
				assert.Equal(t, dyingURL+" conn", complaint)
			}
		})
	}
}

// A node that is stopped answers nothing more: the call in progress waits its
// attempt out, then the next node serves it and all that follow, and the stopped
// one is reported for its timeout.
func TestNoCallIsLostWhenANodeIsStopped(t *testing.T) {
	for _, proxy := range []string{"microsocks", "squid"} {
		t.Run(proxy, func(t *testing.T) {
			t.Parallel()
			need(t, proxy, "anvil", "geth")
			stopped := startVictim(t, "anvil")
			stoppedURL := fmt.Sprintf("http://stopped%s:%d/", rpcDomain, stopped.port)
			b := newBed(t, []string{kind(proxy).url()},
				map[string][]string{"1": {stoppedURL, nodes[2].url()}}, withTimeout(2*time.Second))
			chain := b.ChainID(1)
			client, err := rpcpool.CallAs[string](bounded(t), chain, "web3_clientVersion")
			require.NoError(t, err)
			require.Contains(t, client, "anvil")
			stopped.stop()
			for range 5 {
				client, err = rpcpool.CallAs[string](bounded(t), chain, "web3_clientVersion")
				require.NoError(t, err)
				assert.Contains(t, client, "Geth")
			}
			assert.Len(t, verdicts(b.log.attempts(), "stopped"), 2, "after its timeout it must be passed over")
			assert.Equal(t, []string{stoppedURL + " timeout"}, b.complaints())
		})
	}
}

// callWhile makes a series of calls from four goroutines, does the deed when some
// are through and the rest under way, and fails on any call that fails.
func callWhile(t *testing.T, chain *rpcpool.Chain, method string, deed func()) {
	t.Helper()
	const workers, callsEach = 4, 40
	var through atomic.Int64
	var work sync.WaitGroup
	ctx := bounded(t)
	half := make(chan struct{})
	for range workers {
		work.Go(func() {
			for range callsEach {
				if _, err := chain.Call(ctx, method); !assert.NoError(t, err) {
					return
				}
				if through.Add(1) == workers*callsEach/2 {
					close(half)
				}
			}
		})
	}
	select {
	case <-half:
		deed()
	case <-ctx.Done():
		t.Error("half of the calls didn't get through")
	}
	work.Wait()
}
