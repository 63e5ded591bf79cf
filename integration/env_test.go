package integration

import (
	"context"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bomzrpc/rpcpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The variables that hand the child process its task.
const (
	childVariable      = "RPCPOOL_INTEGRATION_CHILD" // "1"
	childProxyVariable = "RPCPOOL_INTEGRATION_PROXY"
	childPoolVariable  = "RPCPOOL_INTEGRATION_POOL"
	childCacheVariable = "RPCPOOL_INTEGRATION_CACHE"
	childSuccess       = "the hostile environment changed nothing"
	childTimeLimit     = 30 * time.Second
	childChain         = "1"
)

// Rule A1.3: no proxy variable, in any case, changes anything for work or pool
// traffic: not one that names another proxy, not NO_PROXY, which would make an
// obedient client go directly, and not the marks of a CGI environment, in which
// such a client refuses to work. Go reads these variables once per process, so
// each set gets a process of its own.
func TestProxyVariablesChangeNothing(t *testing.T) {
	need(t, "microsocks", "squid")
	t.Parallel()
	other := tattletale.url()
	for name, env := range map[string][]string{
		"upper case":         {"HTTP_PROXY=" + other, "HTTPS_PROXY=" + other, "ALL_PROXY=" + other},
		"lower case":         {"http_proxy=" + other, "https_proxy=" + other, "all_proxy=" + other},
		"SOCKS":              {"ALL_PROXY=" + strings.Replace(other, "http", "socks5", 1)},
		"NO_PROXY":           {"NO_PROXY=*"},
		"no_proxy and other": {"no_proxy=*", "http_proxy=" + other, "https_proxy=" + other},
		"CGI":                {"HTTP_PROXY=" + other, "REQUEST_METHOD=GET"},
		"unusable":           {"HTTP_PROXY=%zz", "HTTPS_PROXY=%zz", "ALL_PROXY=%zz"},
	} {
		for _, proxy := range []string{"microsocks", "squid"} {
			for _, scheme := range []string{"http", "https"} {
				t.Run(name+"/"+proxy+"/"+scheme, func(t *testing.T) {
					t.Parallel()
					runHostileChild(t, env, kind(proxy).url(), scheme)
				})
			}
		}
	}
}

// runHostileChild has the pool API here, and the call made by a process with the
// given variables. The target's name resolves at the proxy alone, so that an
// answer proves that the call went through it.
func runHostileChild(t *testing.T, env []string, proxyURL, scheme string) {
	t.Helper()
	api := newPoolAPI(t, map[string][]string{childChain: {healthy.url(scheme)}})
	before := tattletale.connections.Load()
	ctx, cancel := context.WithTimeout(t.Context(), childTimeLimit)
	defer cancel()
	child := exec.CommandContext(ctx, os.Args[0])
	child.Env = append([]string{
		childVariable + "=1", "RUN=" + os.Getenv("RUN"), "START_SH=" + os.Getenv("START_SH"),
		childProxyVariable + "=" + proxyURL, childPoolVariable + "=" + api.url, childCacheVariable + "=" + t.TempDir(),
		"SSL_CERT_FILE=" + writeRoots(t),
	}, env...)
	output, err := child.CombinedOutput()
	require.NoError(t, err, "%s", output)
	assert.Contains(t, string(output), childSuccess)
	assert.Equal(t, before, tattletale.connections.Load(), "the proxy named in the environment was connected to")
}

// writeRoots writes the authority of the test's targets to a file for the child,
// to which it is the system's list.
func writeRoots(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "roots.pem")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: ourCA.cert.Raw}
	require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(block), 0o600))
	return path
}

// hostileChild is the child: one pool, one call.
func hostileChild() int {
	pool, err := rpcpool.New(rpcpool.Config{
		Proxies:  []string{os.Getenv(childProxyVariable)},
		APIURL:   os.Getenv(childPoolVariable),
		APIKey:   apiKey,
		Timeout:  timeout,
		CacheDir: os.Getenv(childCacheVariable),
	})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer pool.Close()
	result, err := rpcpool.CallAs[string](context.Background(), pool.Chain(childChain), "eth_blockNumber")
	if err != nil || result != "0x1" {
		fmt.Println(result, err)
		return 1
	}
	fmt.Println(childSuccess)
	return 0
}
