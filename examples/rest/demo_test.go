package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Everything that the bot does works behind RPCs that fail, and each of those is
// asked once. One 404 is an answer, too: the transaction isn't there yet.
func TestDemo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		require.NoError(t, run(t.Context(), options{demo: true}, &out))
		assert.Equal(t, `by function: chain 4 is at block 333
by client: account 0x1 has sent 7 transactions
by client: sent a transaction, it has version 1005
http://limited.test/***: asked 1 times, answered 0 times
http://down.test/***: asked 1 times, answered 0 times
http://good.test/***: asked 5 times, answered 5 times
`, out.String())
	})
}

// Without a world or a chain the program says what it lacks.
func TestUsage(t *testing.T) {
	assert.ErrorContains(t, run(t.Context(), options{}, nil), "-chain")
}

// With proxies and a list of the user's own the program reads, and sends nothing.
func TestReadingWithAListOfOnesOwn(t *testing.T) {
	world := rpcpooltest.NewWorld(rpcpooltest.NewLoopbackNetwork())
	t.Cleanup(func() { world.Close() })
	proxy := world.ProxyAt("proxy", "socks5://user:word@proxy.test:1080")
	node := world.Node("good", rpcpooltest.Handle(newFullnode().answer))
	node.AllowREST()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv(envProxies, "socks5://user:word@"+world.Network.RealAddr(proxy.Addr()))
	file := filepath.Join(t.TempDir(), "rpcpool.json")
	list := fmt.Sprintf(`{"chain": {"key": %q}, "rpcs": [{"url": %q}]}`, demoChain, node.URL())
	require.NoError(t, os.WriteFile(file, []byte(list), 0o600))

	var out strings.Builder
	require.NoError(t, run(t.Context(), options{chain: demoChain, file: file}, &out))
	assert.Equal(t, "by function: chain 4 is at block 333\nby client: account 0x1 has sent 7 transactions\n", out.String())
}

// newRing gives a pool's handle on a ring of REST nodes.
func newRing(t *testing.T, nodes func(*rpcpooltest.World) []*rpcpooltest.Node, changes ...func(*rpcpool.Config)) *rpcpool.Chain {
	t.Helper()
	world := rpcpooltest.New(t)
	world.Proxy("p1")
	all := nodes(world)
	for _, node := range all {
		node.AllowREST()
	}
	world.List(demoChain, all...)
	config := world.Config()
	for _, change := range changes {
		change(&config)
	}
	pool, err := rpcpool.New(config)
	require.NoError(t, err)
	t.Cleanup(func() { pool.Close() })
	return pool.Chain(demoChain)
}

// The status that the function returns decides: a 400 is the caller's answer, and no
// other RPC is asked; after a 503 the next one is.
func TestRunJudgesTheStatus(t *testing.T) {
	for status, wantNext := range map[int]bool{400: false, 422: false, 404: true, 429: true, 503: true} {
		synctest.Test(t, func(t *testing.T) {
			var good *rpcpooltest.Node
			ring := newRing(t, func(w *rpcpooltest.World) []*rpcpooltest.Node {
				good = w.Node("good", rpcpooltest.Handle(newFullnode().answer))
				return []*rpcpooltest.Node{w.Node("bad", rpcpooltest.Status(status)), good}
			})
			info, err := readLedger(t.Context(), ring)
			if wantNext {
				require.NoError(t, err, status)
				assert.Equal(t, "1001", info.LedgerVersion)
				return
			}
			refused, ok := errors.AsType[*rpcpool.HTTPError](err)
			require.True(t, ok, "%T: %v", err, err)
			assert.Equal(t, status, refused.StatusCode)
			assert.Empty(t, good.Requests())
		})
	}
}

// A submission whose answer is lost is repeated, as the bot says that it may be: the
// chain has it once.
func TestSubmissionWhoseAnswerIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		chain := newFullnode()
		ring := newRing(t, func(w *rpcpooltest.World) []*rpcpooltest.Node {
			return []*rpcpooltest.Node{
				w.Node("cut", rpcpooltest.Handle(func(r rpcpooltest.Request) rpcpooltest.Reply { return chain.answer(r).Cut() })),
				w.Node("good", rpcpooltest.Handle(chain.answer)),
			}
		})
		_, err := connect(ring).submit(t.Context(), []byte("a signed transaction"))
		require.NoError(t, err)
		assert.Equal(t, 2, chain.submitted)
		assert.Len(t, chain.sent, 1)
	})
}

// A client that isn't told so repeats nothing with effects, and says what that means.
func TestUnsafeSubmissionIsNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		chain := newFullnode()
		ring := newRing(t, func(w *rpcpooltest.World) []*rpcpooltest.Node {
			return []*rpcpooltest.Node{
				w.Node("cut", rpcpooltest.Handle(func(r rpcpooltest.Request) rpcpooltest.Reply { return chain.answer(r).Cut() })),
				w.Node("good", rpcpooltest.Handle(chain.answer)),
			}
		})
		client := newSDK("http://ring/v1", ring.HTTPClient(rpcpool.REST(rpcpool.JoinAptos)))
		_, err := client.submit(t.Context(), []byte("a signed transaction"))
		_, ok := errors.AsType[*rpcpool.AmbiguousError](err)
		assert.True(t, ok, "%T: %v", err, err)
		assert.Equal(t, 1, chain.submitted)
	})
}

// The node's own refusal comes through with its status, message and code, and names
// the SDK's URL and no RPC's.
func TestRefusalComesThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ring := newRing(t, func(w *rpcpooltest.World) []*rpcpooltest.Node {
			return []*rpcpooltest.Node{w.Node("node", rpcpooltest.Body(
				`{"message":"Account not found by Address(0x5) and Ledger version(5)","error_code":"account_not_found","vm_error_code":null}`).WithStatus(404))}
		})
		_, err := connect(ring).account(t.Context(), "0x5")
		assert.EqualError(t, err, "GET http://ring/v1/accounts/0x5: 404 Not Found: "+
			"Account not found by Address(0x5) and Ledger version(5) (account_not_found)")
	})
}

// An SDK that sets a timeout, as aptos-go-sdk's SetTimeout does, gets it, and changes
// no other SDK's.
func TestTimeoutOfOneClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		chain := newFullnode()
		ring := newRing(t, func(w *rpcpooltest.World) []*rpcpooltest.Node {
			return []*rpcpooltest.Node{w.Node("slow", rpcpooltest.Handle(func(r rpcpooltest.Request) rpcpooltest.Reply {
				return chain.answer(r).Delay(10 * time.Second)
			}))}
		})
		hasty, patient := connect(ring), connect(ring)
		hasty.http.Timeout = 3 * time.Second
		began := time.Now()
		_, err := hasty.account(t.Context(), "0x1")
		late, ok := errors.AsType[*url.Error](err)
		require.True(t, ok, "%T: %v", err, err)
		assert.True(t, late.Timeout())
		assert.Equal(t, 3*time.Second, time.Since(began))
		_, err = patient.account(t.Context(), "0x1")
		assert.NoError(t, err)
	})
}

// Where no RPC answers, the SDK's error has the library's in it, and shows no key.
func TestNoHealthyRPCIsFoundInTheSDKsError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ring := newRing(t, func(w *rpcpooltest.World) []*rpcpooltest.Node {
			return []*rpcpooltest.Node{w.Node("down", rpcpooltest.Status(http.StatusBadGateway))}
		})
		_, err := connect(ring).account(t.Context(), "0x1")
		none, ok := errors.AsType[*rpcpool.NoHealthyRPCError](err)
		require.True(t, ok, "%T: %v", err, err)
		assert.NotEmpty(t, none.Attempts)
		assert.NotContains(t, err.Error(), "key-down")
	})
}
