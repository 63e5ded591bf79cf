package cookbook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

//recipe: Several chains in one bot

// Each chain has its own answer.
func TestSeveralChains(t *testing.T) {
	inWorld(t, func(t *testing.T, world *rpcpooltest.World) {
		for _, id := range []uint64{1, 8453, 42161} {
			world.List(fmt.Sprint(id), world.Node(fmt.Sprint("of-", id), rpcpooltest.NewEVM(id, 1000).Serve()))
		}
		if err := watchAll(t.Context(), newPool(t, world.Config())); err != nil {
			t.Error(err)
		}
		for _, id := range []string{"1", "8453", "42161"} {
			if !strings.Contains(asked(world), "of-"+id+" p eth_blockNumber") {
				t.Errorf("asked were %s", asked(world))
			}
		}
	})
}

//recipe: The pool is down

// A bot opens with the pool's list, with the cached one, and with one of its own; what the
// pool refuses is no outage.
func TestThePoolIsDown(t *testing.T) {
	t.Chdir(t.TempDir())
	inWorld(t, func(t *testing.T, world *rpcpooltest.World) {
		node := world.Node("r1", rpcpooltest.NewEVM(8453, 1000).Serve())
		world.List("8453", node)
		own := fmt.Sprintf(`{"chain":{"key":"eip155:8453"},"rpcs":[{"url":%q}]}`, node.URL())
		down := []rpcpooltest.PoolReply{rpcpooltest.PoolStatus(http.StatusServiceUnavailable)}
		state, empty := t.TempDir(), t.TempDir()
		for _, step := range []struct {
			name     string
			pool     []rpcpooltest.PoolReply
			stateDir string
			fails    bool
		}{
			{"refused", []rpcpooltest.PoolReply{rpcpooltest.PoolStatus(http.StatusUnauthorized)}, empty, true},
			{"down, no list", down, empty, true},
			{"up", nil, state, false},
			{"down, cached", down, state, false},
			{"down, own list", down, empty, false},
			{"refused, own list", []rpcpooltest.PoolReply{rpcpooltest.PoolStatus(http.StatusUnauthorized)}, empty, true},
		} {
			if step.pool == nil {
				world.List("8453", node)
			} else {
				world.Pool.Lists("8453", step.pool...)
			}
			if step.name == "down, own list" {
				if err := os.WriteFile("rpcpool.json", []byte(own), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			cfg := world.Config()
			cfg.CacheDir = t.TempDir()
			pool, err := open(t.Context(), cfg, step.stateDir)
			if (err != nil) != step.fails {
				t.Errorf("%s: %v", step.name, err)
			}
			if err != nil {
				continue
			}
			if _, err := pool.Chain("8453").Call(t.Context(), "eth_blockNumber"); err != nil {
				t.Errorf("%s: %v", step.name, err)
			}
			pool.Close()
		}
	})
}

//recipe: All proxies are dead

// Work begins again when a proxy is back, and ends with its context.
func TestProxiesAreBack(t *testing.T) {
	for _, backAfter := range []time.Duration{30 * time.Second, time.Hour} {
		inWorld(t, func(t *testing.T, world *rpcpooltest.World) {
			proxy := world.ProxyAt("only", "socks5://user-only:word-only@only.test:1080")
			world.List("8453", world.Node("r1", rpcpooltest.Result("0x1")))
			cfg := world.Config()
			cfg.Proxies = []string{proxy.URL()}
			pool := newPool(t, cfg)
			proxy.Kill()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			back := time.AfterFunc(backAfter, proxy.Revive)
			defer back.Stop()
			began := time.Now()
			err := untilProxiesAreBack(ctx, pool.Chain("8453"))
			took := time.Since(began)
			if backAfter < time.Minute && (err != nil || took != time.Minute) || backAfter > time.Minute && (!errors.Is(err, context.DeadlineExceeded) || took != 10*time.Minute) {
				t.Errorf("%v after %v", err, took)
			}
		})
	}
}

//recipe: Statistics in the log

// The line counts what is ready, and who failed.
func TestStatistics(t *testing.T) {
	inWorld(t, func(t *testing.T, world *rpcpooltest.World) {
		world.List("8453", world.Node("r1", rpcpooltest.Status(500)), world.Node("r2", rpcpooltest.Result("0x1")), world.Node("r3"))
		pool := newPool(t, world.Config())
		chain := pool.Chain("8453")
		if _, err := chain.Call(t.Context(), "eth_blockNumber"); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		before := slog.Default()
		defer slog.SetDefault(before)
		slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
		logStats(pool, chain)
		if !strings.Contains(out.String(), "msg=ring chain=8453 ready=2 listed=3 ") || !strings.HasSuffix(out.String(), " failures=1 limited=0 proxies=1\n") {
			t.Error(out.String())
		}
	})
}
