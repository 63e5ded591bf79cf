package rpcpool_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// queue makes so many calls at once and gives how long each took, in the order of their
// ends. All must be answered.
func queue(t *testing.T, callers int, call func() error) (ends []time.Duration) {
	t.Helper()
	began := time.Now()
	var mu sync.Mutex
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			assert.NoError(t, call())
			mu.Lock()
			defer mu.Unlock()
			ends = append(ends, time.Since(began))
		})
	}
	all.Wait()
	return ends
}

// fetch is a function for Run that leaves its answer's body open.
func fetch(ctx context.Context, url string, client *http.Client) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return &rpcpool.HTTPError{StatusCode: res.StatusCode, Status: res.Status}
	}
	_, err = io.Copy(io.Discard, res.Body)
	return err
}

// callsOfTheLine are the ways by which requests go to an RPC one by one.
func callsOfTheLine(ctx context.Context, chain *rpcpool.Chain) map[string]func() error {
	rest := chain.HTTPClient(rpcpool.REST(rpcpool.JoinPath))
	return map[string]func() error{
		"call": func() error {
			_, err := chain.Call(ctx, "eth_chainId")
			return err
		},
		"run": func() error { return chain.Run(ctx, fetch) },
		"rest": func() error {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://chain/status", http.NoBody)
			if err != nil {
				return err
			}
			res, err := rest.Do(req)
			if err != nil {
				return err
			}
			return res.Body.Close()
		},
		"batch": func() error {
			return chain.BatchCallContext(ctx, []rpcpool.BatchElem{{Method: "eth_chainId"}, {Method: "eth_gasPrice"}})
		},
	}
}

// Rule F4: a crowd opens as many connections to an RPC as it may and no more; the others
// stand in line, and stay with the RPC that the ring has chosen.
func TestCrowdStandsInLine(t *testing.T) {
	for _, way := range []string{"call", "run", "rest", "batch"} {
		t.Run(way, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				p := w.Proxy("p1")
				good := restNode(w, "good", rpcpooltest.Result("0x2").Method("eth_gasPrice"), rpcpooltest.Result("0x1").Delay(time.Second))
				other := restNode(w, "other")
				w.List("1", good, other)
				chain := open(t, w, func(cfg *rpcpool.Config) { cfg.MaxConns = 10 }).Chain("1")
				most := 0
				done := make(chan struct{})
				go func() {
					for range 95 {
						time.Sleep(100 * time.Millisecond)
						most = max(most, w.Network.OpenConns(p.Addr()))
					}
					close(done)
				}()
				ends := queue(t, 100, callsOfTheLine(t.Context(), chain)[way])
				<-done
				require.Equal(t, 10, most)
				require.Empty(t, other.Requests())
				require.Equal(t, 10*time.Second, ends[len(ends)-1])
				require.Equal(t, time.Second, ends[0])
			})
		})
	}
}

// Who stands in line for an RPC that fails others meanwhile goes on to the next one: a
// hundred callers don't ask in vain because they came before it was known.
func TestLineIsSentAway(t *testing.T) {
	for name, bad := range map[string]rpcpooltest.Reply{"fails": rpcpooltest.Status(500), "limits": rpcpooltest.RateLimited(time.Minute)} {
		for _, way := range []string{"call", "run", "rest"} {
			t.Run(name+"/"+way, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
					w.Proxy("p1")
					r1 := restNode(w, "r1", bad.Delay(time.Second))
					w.List("1", r1, restNode(w, "r2"))
					chain := open(t, w, func(cfg *rpcpool.Config) { cfg.MaxConns, cfg.MaxWait = 5, time.Minute }).Chain("1")
					ends := queue(t, 100, callsOfTheLine(t.Context(), chain)[way])
					// Each that leaves lets one more in before its failure counts.
					require.LessOrEqual(t, len(r1.Requests()), 10)
					require.LessOrEqual(t, ends[len(ends)-1], 2*time.Second)
				})
			})
		}
	}
}

// An RPC isn't blamed for the time that a request stood in line for it: neither by those
// that never got there nor by those that had a part of their time left.
func TestLineBlamesNobody(t *testing.T) {
	for _, way := range []string{"call", "run", "rest", "batch"} {
		t.Run(way, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				w.Proxy("p1")
				slow := restNode(w, "slow", rpcpooltest.Result("0x2").Method("eth_gasPrice"), rpcpooltest.Result("0x1").Delay(10*time.Second))
				w.List("1", slow, restNode(w, "quick"))
				chain := open(t, w, func(cfg *rpcpool.Config) { cfg.MaxConns = 2 }).Chain("1")
				ends := queue(t, 6, callsOfTheLine(t.Context(), chain)[way])
				require.Equal(t, 10*time.Second, ends[1])
				require.Equal(t, 15*time.Second, ends[2], "an attempt's time includes the line")
				require.LessOrEqual(t, ends[5], 16*time.Second)
				stats := chain.Stats()[0]
				require.Zero(t, stats.Ejections)
				require.False(t, stats.Cooling)
				time.Sleep(3 * time.Second)
				require.Empty(t, w.Pool.Reports())
			})
		})
	}
}

// A caller that leaves the line is told that its own context ended, and takes no place.
func TestLeavingTheLine(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		slow := restNode(w, "slow", rpcpooltest.Result("0x1").Delay(10*time.Second))
		w.List("1", slow)
		chain := open(t, w, func(cfg *rpcpool.Config) { cfg.MaxConns = 1 }).Chain("1")
		var callers sync.WaitGroup
		callers.Go(func() {
			_, err := chain.Call(t.Context(), "eth_chainId")
			assert.NoError(t, err)
		})
		time.Sleep(time.Second)
		_, err := chain.Call(within(t, 3*time.Second), "eth_chainId")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		callers.Wait()
		require.Len(t, slow.Requests(), 1)
		_, err = chain.Call(t.Context(), "eth_chainId")
		require.NoError(t, err)
	})
}

// A dial isn't given up because its request was sent over a connection that came free
// meanwhile: the next request has what it brings. One that nobody has a use for ends with
// its attempt, or a little later.
func TestLateDialServesTheNext(t *testing.T) {
	call := func(t *testing.T, chain *rpcpool.Chain) {
		_, err := chain.Call(t.Context(), "eth_chainId")
		require.NoError(t, err)
	}
	for name, hangs := range map[string]bool{"brings a connection": false, "hangs": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				p := w.Proxy("p1")
				w.List("1", w.Node("r1", rpcpooltest.Result("0x1").Delay(time.Second)))
				chain := open(t, w).Chain("1")
				call(t, chain)
				late := rpcpooltest.ProxyCarry().Delay(3 * time.Second)
				if hangs {
					late = rpcpooltest.ProxyBlackHole()
				}
				p.Script(late)
				dials := len(w.Network.Dials())
				queue(t, 2, func() error { call(t, chain); return nil }) // one waits for the other's
				require.Len(t, w.Network.Dials(), dials+1)
				require.Equal(t, 2, w.Network.OpenConns(p.Addr()))
				time.Sleep(3*time.Second + time.Millisecond)
				if hangs {
					require.Equal(t, 1, w.Network.OpenConns(p.Addr()))
					return
				}
				queue(t, 2, func() error { call(t, chain); return nil })
				require.Len(t, w.Network.Dials(), dials+1, "the late connection is used")
			})
		})
	}
}

// Late dials are bounded: a crowd that is served over few connections doesn't dial more and
// more, whatever the way.
func TestLateDialsAreBounded(t *testing.T) {
	for _, url := range []string{"http://user-p1:word-p1@p1.test:8080", "socks5://user-p1:word-p1@p1.test:1080"} {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			p := w.ProxyAt("p1", url)
			w.List("1", w.Node("r1", rpcpooltest.Result("0x1").Delay(time.Millisecond)))
			chain := open(t, w, func(cfg *rpcpool.Config) { cfg.MaxConns = 3 }).Chain("1")
			_, err := chain.Call(t.Context(), "eth_chainId")
			require.NoError(t, err)
			w.Network.SetFault(p.Addr(), rpcpooltest.HangIt)
			most := 0
			var mu sync.Mutex
			queue(t, 2000, func() error {
				_, err := chain.Call(t.Context(), "eth_chainId")
				mu.Lock()
				defer mu.Unlock()
				most = max(most, w.Network.PendingDials(p.Addr()))
				return err
			})
			require.LessOrEqual(t, most, 2*3+1, "of those who wait, late ones, and that of the call that has just ended")
			time.Sleep(4 * time.Second)
			require.Zero(t, w.Network.PendingDials(p.Addr()))
		})
	}
}

// Handles that share an RPC, or RPCs that share a host, don't wait for each other's
// connections: nobody's time runs out in a line that isn't the RPC's own.
func TestHandlesShareNoLine(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		r := w.Node("r1", rpcpooltest.Result("0x1").Delay(6*time.Second))
		pool := open(t, w, func(cfg *rpcpool.Config) { cfg.MaxConns, cfg.MaxRounds = 1, 1 })
		var all sync.WaitGroup
		for i := range 4 {
			ref := strconv.Itoa(10 + i)
			w.List(ref, r)
			all.Go(func() {
				_, err := pool.Chain(ref).Call(t.Context(), "eth_chainId")
				assert.NoError(t, err)
				assert.False(t, pool.Chain(ref).Stats()[0].Cooling)
			})
		}
		all.Wait()
	})
}

// Whether a proxy is alive is found out without waiting for a crowd's connections.
func TestProxyCheckWaitsForNoLine(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		slow := func(name string) *rpcpooltest.Node {
			return w.Node(name, rpcpooltest.Result("0x1").Delay(14*time.Second).Method("eth_slow"), rpcpooltest.Result("0x1"))
		}
		w.List("eip155:1", slow("r1"), slow("r2"))
		w.List("2", w.Node("x1", rpcpooltest.Reset()), w.Node("x2", rpcpooltest.Reset()), w.Node("x3", rpcpooltest.Reset()))
		pool := open(t, w, func(cfg *rpcpool.Config) {
			cfg.MaxConns, cfg.Mode, cfg.MaxRounds = 1, rpcpool.LeastOutstanding, 1
		})
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() { _, _ = pool.Chain("eip155:1").Call(t.Context(), "eth_slow") })
			time.Sleep(time.Millisecond)
		}
		began := time.Now()
		_, err := pool.Chain("2").Call(t.Context(), "eth_chainId")
		var nobody *rpcpool.NoHealthyRPCError
		require.ErrorAs(t, err, &nobody)
		require.Zero(t, pool.ProxyStats()[0].Deaths)
		require.Less(t, time.Since(began), time.Second)
		all.Wait()
	})
}

// LastResort asks RPCs that cool where there are no others, the one whose cooldown ends
// first at first, each once in a call, and none that asked for a rest.
func TestLastResort(t *testing.T) {
	for _, mode := range modes {
		for _, fresh := range []bool{false, true} {
			t.Run(fmt.Sprint(mode, fresh), func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
					w.Proxy("p1")
					evm := rpcpooltest.NewEVM(1, 1000)
					evm.SetBlockTime(testBlockTime)
					down := func(name string) *rpcpooltest.Node {
						return w.Node(name, rpcpooltest.Status(500).ToStep(0), evm.Serve())
					}
					rests := w.Node("rests", rpcpooltest.RateLimited(10*time.Minute))
					w.List("1", rests, down("r1"), down("r2"))
					var opts []rpcpool.ChainOption
					if fresh {
						opts = append(opts, rpcpool.WithFreshness(rpcpool.Freshness{}))
					}
					pool := open(t, w, func(cfg *rpcpool.Config) { cfg.Mode, cfg.LastResort, cfg.MaxWait = mode, true, time.Nanosecond })
					chain := pool.Chain("1", opts...)
					_, err := chain.Call(t.Context(), "eth_blockNumber")
					var nobody *rpcpool.NoHealthyRPCError
					require.ErrorAs(t, err, &nobody)
					require.Len(t, nobody.Attempts, 3, "each is asked once: %v", err)
					time.Sleep(time.Second)
					w.Network.SetStep(1)
					first := "r1"
					if mode == rpcpool.LeastOutstanding {
						first = chain.Stats()[1].RPC[len("http://"):][:2]
					}
					raw, err := chain.Call(t.Context(), "eth_blockNumber")
					require.NoError(t, err)
					require.Equal(t, evm.Head(), number(t, raw))
					asked := ""
					for _, line := range w.Requests() {
						if strings.HasSuffix(line, "eth_blockNumber") {
							asked = line[:2]
						}
					}
					require.Equal(t, first, asked)
					require.Equal(t, rpcpool.StateReady, chain.Stats()[1].State)
					require.Len(t, rests.Requests(), 1)

					plain := open(t, w, func(cfg *rpcpool.Config) { cfg.Mode = mode }).Chain("1")
					w.Network.SetStep(0)
					for range 2 {
						_, err = plain.Call(t.Context(), "eth_blockNumber")
						require.ErrorAs(t, err, &nobody)
					}
					require.Empty(t, nobody.Attempts, "without it those that cool are left alone")
				})
			})
		}
	}
}

// A call turns to those that cool also where one didn't, and failed it, and only then.
func TestLastResortComesLast(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1",
			w.Node("r1", rpcpooltest.Status(500).Times(1), rpcpooltest.Result("0x1")),
			w.Node("r2", rpcpooltest.Result("0x2").Times(1), rpcpooltest.Status(500)))
		chain := open(t, w, func(cfg *rpcpool.Config) { cfg.MaxRounds, cfg.LastResort = 1, true }).Chain("1")
		for _, want := range []string{`"0x2"`, `"0x1"`} {
			raw, err := chain.Call(t.Context(), "eth_chainId")
			require.NoError(t, err)
			require.Equal(t, want, string(raw))
		}
		require.Equal(t, []string{"r1 p1 eth_chainId", "r2 p1 eth_chainId", "r2 p1 eth_chainId", "r1 p1 eth_chainId"}, w.Requests())
	})
}

// What only a dead proxy failed is asked through the next one (rule A7.3).
func TestLastResortAfterADeadProxy(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1", rpcpooltest.ProxyCarry().ToStep(0), rpcpooltest.ProxyCode(5))
		w.Proxy("p2")
		var nodes []*rpcpooltest.Node
		for _, name := range []string{"r1", "r2", "r3"} {
			nodes = append(nodes, w.Node(name, rpcpooltest.Status(500).ToStep(0), rpcpooltest.Result("0x1")))
		}
		w.List("1", nodes...)
		check := w.Node("check")
		chain := open(t, w, func(cfg *rpcpool.Config) { cfg.LastResort, cfg.ProxyCheckURL = true, check.URL() }).Chain("1")
		_, err := chain.Call(t.Context(), "eth_chainId")
		require.Error(t, err)
		time.Sleep(40 * time.Second) // idle connections are closed
		w.Network.SetStep(1)
		_, err = chain.Call(t.Context(), "eth_chainId")
		require.NoError(t, err)
	})
}

// Who asks an RPC although it cools stays in the line for it, whatever others hear of it.
func TestLastResortStaysInLine(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1", w.Node("r1", rpcpooltest.Status(500).Delay(time.Second)))
		chain := open(t, w, func(cfg *rpcpool.Config) { cfg.MaxConns, cfg.MaxRounds, cfg.LastResort = 1, 1, true }).Chain("1")
		_, _ = chain.Call(t.Context(), "eth_chainId")
		queue(t, 3, func() error {
			_, err := chain.Call(t.Context(), "eth_chainId")
			var nobody *rpcpool.NoHealthyRPCError
			require.ErrorAs(t, err, &nobody)
			require.Len(t, nobody.Attempts, 1, "%v", err)
			return nil
		})
	})
}

// Who was sent away from the line has asked nobody: the RPC is no tried one for the last
// resort, and the round doesn't count.
func TestSentAwayIsNotTried(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1", w.Node("r1", rpcpooltest.Status(500).Delay(time.Second).Times(1), rpcpooltest.Result("0x1")))
		chain := open(t, w, func(cfg *rpcpool.Config) { cfg.MaxConns, cfg.MaxRounds, cfg.LastResort = 1, 1, true }).Chain("1")
		var callers sync.WaitGroup
		failed := 0
		var mu sync.Mutex
		for range 5 {
			callers.Go(func() {
				if _, err := chain.Call(t.Context(), "eth_chainId"); err != nil {
					mu.Lock()
					defer mu.Unlock()
					failed++
				}
			})
		}
		callers.Wait()
		require.Equal(t, 1, failed, "the one whose request failed")
	})
}

// An RPC that hangs while there is always a line is blamed: whoever stood in it for a moment
// only had nearly all of an attempt's time.
func TestLineExcusesNoHungRPC(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		node := func(name string) *rpcpooltest.Node {
			return w.Node(name, rpcpooltest.Result("0x1").Delay(time.Second).ToStep(0), rpcpooltest.Hang())
		}
		w.List("1", node("r1"), w.Node("r2", rpcpooltest.Result("0x1").Delay(time.Second)))
		chain := open(t, w, func(cfg *rpcpool.Config) { cfg.MaxConns, cfg.Mode = 2, rpcpool.RoundRobin }).Chain("1")
		time.AfterFunc(10500*time.Millisecond, func() { w.Network.SetStep(1) })
		until := time.Now().Add(40 * time.Second)
		queue(t, 16, func() error {
			for time.Now().Before(until) {
				if _, err := chain.Call(t.Context(), "eth_chainId"); err != nil {
					return err
				}
			}
			return nil
		})
		require.Positive(t, chain.Stats()[0].Ejections)
	})
}

// What the line has left an attempt too little time for isn't tried over and over: without a
// deadline of the caller's it is MaxRounds that counts.
func TestLineGivesNoMoreRounds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1", w.Node("r1", rpcpooltest.Result("0x1").Delay(10*time.Second).Method("eth_slow"), rpcpooltest.Hang()))
		chain := open(t, w, func(cfg *rpcpool.Config) { cfg.MaxConns, cfg.MaxRounds = 1, 1 }).Chain("1")
		var slow sync.WaitGroup
		slow.Go(func() {
			_, err := chain.Call(t.Context(), "eth_slow")
			assert.NoError(t, err)
		})
		time.Sleep(time.Millisecond)
		began := time.Now()
		_, err := chain.Call(t.Context(), "eth_chainId")
		var nobody *rpcpool.NoHealthyRPCError
		require.ErrorAs(t, err, &nobody)
		require.Equal(t, 15*time.Second, time.Since(began))
		require.False(t, chain.Stats()[0].Cooling)
		slow.Wait()
	})
}
