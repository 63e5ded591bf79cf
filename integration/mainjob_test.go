package integration

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/bomzrpc/rpcpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The main job: whatever the proxy and however the node is reached, by http or
// https, three everyday reads give the node's own answers, at the first attempt,
// and nobody is complained about.
func TestCallThroughEveryProxyToEveryNode(t *testing.T) {
	for _, proxy := range proxyKinds {
		for _, node := range nodes {
			t.Run(proxy.name+"/"+node.name, func(t *testing.T) {
				t.Parallel()
				need(t, proxy.runs, node.name)
				for scheme, url := range map[string]string{"http": node.url(), "https": node.secureURL(t)} {
					b := newBed(t, []string{proxy.url()}, map[string][]string{node.ref(): {url}})
					assertEverydayReads(t, b.ChainID(node.chainID), node, scheme)
					for _, attempt := range b.log.attempts() {
						assert.Equal(t, rpcpool.VerdictOK, attempt.verdict, "%s: %+v", scheme, attempt)
					}
					assert.Empty(t, b.complaints(), scheme)
				}
			})
		}
	}
}

func assertEverydayReads(t *testing.T, chain *rpcpool.Chain, n node, scheme string) {
	t.Helper()
	id, err := rpcpool.CallAs[string](bounded(t), chain, "eth_chainId")
	require.NoError(t, err, scheme)
	assert.Equal(t, fmt.Sprintf("0x%x", n.chainID), id, scheme)

	head, err := rpcpool.CallAs[string](bounded(t), chain, "eth_blockNumber")
	require.NoError(t, err, scheme)
	assert.Regexp(t, "^0x[0-9a-f]+$", head, scheme)

	// A block by its number is the same whoever asks; only the spacing of the JSON
	// may be the node's own.
	block, err := chain.Call(bounded(t), "eth_getBlockByNumber", head, false)
	require.NoError(t, err, scheme)
	assert.JSONEq(t, string(n.direct(t, "eth_getBlockByNumber", head, false)), string(block), scheme)
}

// dante speaks SOCKS4 for addresses (not for names): socks4:// reaches a node that
// is listed by its address.
func TestCallThroughSOCKS4ToAnAddress(t *testing.T) {
	t.Parallel()
	need(t, "danted", "anvil")
	anvil := nodes[0]
	b := newBed(t, []string{"socks4://" + loopback(started["danted"])},
		map[string][]string{anvil.ref(): {anvil.directURL() + "/"}})
	assertEverydayReads(t, b.ChainID(anvil.chainID), anvil, "http")
	assert.Empty(t, b.complaints())
}

// Rule A1.2: with every kind of proxy and by http and https, the RPC's name is
// looked up by the proxy and by nobody on this host. (That this host looked up
// nothing else either is checked after all tests.)
func TestNamesOfRPCsAreLookedUpAtTheProxyOnly(t *testing.T) {
	for _, proxy := range proxyKinds {
		for _, scheme := range []string{"http", "https"} {
			t.Run(proxy.name+"/"+scheme, func(t *testing.T) {
				t.Parallel()
				need(t, proxy.runs)
				name := fmt.Sprintf("only-%s-%s%s", strings.ToLower(proxy.name), scheme, rpcDomain)
				url := fmt.Sprintf("%s://%s:%d/", scheme, name, healthy.ports[scheme])
				b := newBed(t, []string{proxy.url()}, map[string][]string{"1": {url}})
				_, err := b.ChainID(1).Call(bounded(t), "eth_blockNumber")
				require.NoError(t, err)
				assert.True(t, proxiesResolver.wasAsked(name), "the proxy didn't look the name up")
				assert.False(t, clientResolver.wasAsked(name), "this host looked the name up")
			})
		}
	}
}

// direct asks the node itself, without library and proxy: what the answers are
// compared with.
func (n node) direct(t *testing.T, method string, params ...any) json.RawMessage {
	t.Helper()
	answer := n.ask(t, method, params...)
	require.Empty(t, answer.Error, "%s: %s", n.name, method)
	return answer.Result
}

type nodeAnswer struct {
	Result json.RawMessage
	Error  json.RawMessage
}

var directClient = &http.Client{Transport: &http.Transport{}, Timeout: 20 * time.Second}

func (n node) ask(t *testing.T, method string, params ...any) (answer nodeAnswer) {
	t.Helper()
	return askAt(t, n.directURL(), method, params...)
}

func askAt(t *testing.T, url, method string, params ...any) (answer nodeAnswer) {
	t.Helper()
	if params == nil {
		params = []any{}
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	require.NoError(t, err)
	resp, err := directClient.Post(url, "application/json", strings.NewReader(string(body)))
	require.NoError(t, err)
	defer resp.Body.Close()
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&answer), "%s: %s", url, method)
	return answer
}
