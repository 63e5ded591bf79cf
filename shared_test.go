package rpcpool_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// learned is the time within which a fleet over memory knows what one of it found out.
const learned = 150 * time.Millisecond

// openBot opens a pool of a fleet that goes through one of the world's proxies, named last
// in the world: so it can be told who sent what.
func openBot(t *testing.T, w *rpcpooltest.World, view rpcpool.SharedView, proxy *rpcpooltest.Proxy, change ...func(*rpcpool.Config)) *rpcpool.Pool {
	t.Helper()
	return open(t, w, append([]func(*rpcpool.Config){func(c *rpcpool.Config) {
		c.Proxies, c.Shared = []string{proxy.URL()}, view
	}}, change...)...)
}

// twoBots opens two pools of a fleet, the first through the proxy "a", the second through "b".
// Both know the list.
func twoBots(t *testing.T, w *rpcpooltest.World, change ...func(*rpcpool.Config)) (a, b *rpcpool.Pool, fleet *rpcpooltest.Fleet) {
	t.Helper()
	fleet = rpcpooltest.NewFleet()
	a = openBot(t, w, fleet, w.Proxy("a"), change...)
	b = openBot(t, w, fleet, w.Proxy("b"), change...)
	return a, b, fleet
}

func call(t *testing.T, pool *rpcpool.Pool, method string) {
	t.Helper()
	_, err := pool.Chain("1").Call(t.Context(), method)
	require.NoError(t, err)
}

func kinds(facts []rpcpool.Fact) (all []rpcpool.FactKind) {
	for i := range facts {
		all = append(all, facts[i].Kind)
	}
	return all
}

// warnedOf tells which RPCs a pool is warned of, by their places.
func warnedOf(pool *rpcpool.Pool) (places []int) {
	for _, s := range pool.Chain("1").Stats() {
		if !s.WarnedUntil.IsZero() {
			places = append(places, s.Position)
		}
	}
	return places
}

// position tells where a pool's cursor is.
func position(pool *rpcpool.Pool) int {
	return slices.IndexFunc(pool.Chain("1").Stats(), func(s rpcpool.RPCStats) bool { return s.Current })
}

// What one bot finds dead, another asks last, for as long as it cools there. It is no failure
// of the other's, and no report.
func TestFleetTakesOverACooldown(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.List("1", w.Node("r1", rpcpooltest.Status(500).Via("a")), w.Node("r2"), w.Node("r3"))
		a, b, fleet := twoBots(t, w, func(c *rpcpool.Config) { c.Mode = rpcpool.LeastOutstanding })
		call(t, b, "eth_first")
		call(t, a, "eth_x")
		time.Sleep(learned)
		for range 10 {
			call(t, b, "eth_y")
		}
		require.Equal(t, []string{"r1 b eth_first", "r1 a eth_x", "r2 a eth_x"}, w.Requests()[:3])
		require.Equal(t, 1, requestsOf(w, "r1", "b"), "%v", w.Requests())
		stats := b.Chain("1").Stats()[0]
		require.Zero(t, stats.FailuresInRow)
		require.False(t, stats.Cooling)
		require.WithinDuration(t, time.Now().Add(60*time.Second), stats.WarnedUntil, time.Second)
		require.Equal(t, []rpcpool.FactKind{rpcpool.FactCooldown}, kinds(fleet.Facts()))
		require.Equal(t, "http://r1.test/***", fleet.Facts()[0].Label)
		require.Empty(t, warnedOf(a), "its own word is no news")

		time.Sleep(60 * time.Second)
		call(t, b, "eth_z")
		require.Equal(t, 1, requestsOf(w, "r1", "b", "eth_z"), "the warning has an end")
		require.NoError(t, a.Close())
		require.NoError(t, b.Close())
		require.Len(t, w.Pool.Reports(), 1)
	})
}

// A pool that begins later takes over what still holds, also about a chain whose list it
// hasn't asked for yet.
func TestFleetOfOneThatBeginsLater(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		r1, r2 := w.Node("r1", rpcpooltest.Status(500).Via("a")), w.Node("r2")
		w.List("1", r1, r2)
		w.List("2", w.Node("other"))
		a, b, _ := twoBots(t, w)
		call(t, a, "eth_x")
		time.Sleep(20 * time.Second)
		_, err := b.Chain("2").Call(t.Context(), "eth_x") // with the first list it joins
		require.NoError(t, err)
		synctest.Wait()
		call(t, b, "eth_y")
		require.Zero(t, requestsOf(w, "r1", "b"), "%v", w.Requests())
		require.WithinDuration(t, time.Now().Add(40*time.Second), b.Chain("1").Stats()[0].WarnedUntil, time.Second)
		require.Equal(t, 1, position(b), "the cursor is off it, as after a failure")
	})
}

// The others know when it answers again, and a bot that had an answer itself knows best.
func TestFleetWarningEndsWithAnAnswer(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		r1, r2 := w.Node("r1"), w.Node("r2")
		w.List("1", r1, r2)
		a, b, fleet := twoBots(t, w)
		c := openBot(t, w, fleet, w.Proxy("c"))
		call(t, b, "eth_x")
		call(t, c, "eth_x")
		r1.Script(rpcpooltest.Status(500).Times(1))
		call(t, a, "eth_x")
		time.Sleep(learned)
		require.Equal(t, []int{0}, warnedOf(b))
		require.Equal(t, []int{0}, warnedOf(c))

		r2.Script(rpcpooltest.Status(500).Via("b"))
		call(t, b, "eth_y") // r2 fails, so r1 is asked all the same
		require.Empty(t, warnedOf(b), "it answered this process")
		time.Sleep(learned)
		require.NotContains(t, warnedOf(c), 0, "and the others know")
		require.True(t, a.Chain("1").Stats()[0].Cooling, "what a process found out itself is its own")

		// What was found out before that answer doesn't count any more when it arrives late.
		late := fleet.Facts()[0]
		late.Age = 10 * time.Second
		require.NoError(t, fleet.Publish(t.Context(), []rpcpool.Fact{late}))
		synctest.Wait()
		require.NotContains(t, warnedOf(b), 0)
		require.NotContains(t, warnedOf(c), 0)
	})
}

// poison says the worst of each RPC of a list and each proxy, over and over.
func poison(t *testing.T, fleet *rpcpooltest.Fleet, told []rpcpool.Fact, methods ...string) {
	t.Helper()
	var facts []rpcpool.Fact
	for i := range told {
		f := told[i]
		f.From, f.For, f.Age = "mallory", 1000*time.Hour, 0
		if f.Chain == "" {
			f.Kind = rpcpool.FactProxyDead
			facts = append(facts, f)
			continue
		}
		f.Method = ""
		for _, kind := range []rpcpool.FactKind{rpcpool.FactCooldown, rpcpool.FactRest, rpcpool.FactHead} {
			f.Kind, f.Head = kind, 1<<60
			facts = append(facts, f)
		}
		f.Kind, f.Head = rpcpool.FactUnsupported, 0
		for _, f.Method = range methods {
			facts = append(facts, f)
		}
	}
	require.NoError(t, fleet.Publish(t.Context(), facts))
	synctest.Wait()
}

// Whoever writes to the view can't stop a bot: one that is warned of everything there is has
// its answers all the same, in every mode, on the first walk, from fresh RPCs; and no
// warning lasts longer than 900 s.
func TestFleetPoisonStopsNobody(t *testing.T) {
	for _, mode := range []rpcpool.Mode{rpcpool.Sticky, rpcpool.RoundRobin, rpcpool.LeastOutstanding} {
		for _, fresh := range []bool{false, true} {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				evm := rpcpooltest.NewEVM(1, 1000)
				evm.SetBlockTime(testBlockTime)
				gone := rpcpooltest.Reset().Via("a")
				r1, r2 := w.Node("r1", gone, evm.Serve()), w.Node("r2", gone, evm.Serve())
				w.List("1", r1, r2, w.Node("r3", rpcpooltest.Status(500).Via("a"), evm.Serve()))
				a, b, fleet := twoBots(t, w, func(c *rpcpool.Config) { c.Mode, c.MaxRounds = mode, 1 })
				var opts []rpcpool.ChainOption
				if fresh {
					opts = append(opts, rpcpool.WithFreshness(rpcpool.Freshness{MaxLag: 0, BlockTime: testBlockTime}))
				}
				chain := b.Chain("1", opts...)
				_, err := chain.Call(t.Context(), "eth_getBalance", someAccount, "latest")
				require.NoError(t, err)
				_, err = a.Chain("1").Call(t.Context(), "eth_chainId")
				require.Error(t, err)
				time.Sleep(learned)
				told := fleet.Facts()
				require.GreaterOrEqual(t, len(told), 3)
				for range 5 {
					poison(t, fleet, told, "eth_getBalance", "eth_blockNumber")
					raw, err := chain.Call(t.Context(), "eth_getBalance", someAccount, "latest")
					require.NoError(t, err)
					if fresh {
						require.GreaterOrEqual(t, number(t, raw)+2, evm.Head())
						require.LessOrEqual(t, chain.HighWater(), evm.Head())
					}
					time.Sleep(testBlockTime)
				}
				for _, s := range chain.Stats() {
					require.False(t, s.WarnedUntil.After(time.Now().Add(900*time.Second)), s.WarnedUntil)
				}
			})
		}
	}
}

// An RPC that is warned of is still there when the others fail, without another round.
func TestFleetWarnedOfComesLast(t *testing.T) {
	for _, mode := range []rpcpool.Mode{rpcpool.Sticky, rpcpool.RoundRobin, rpcpool.LeastOutstanding} {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			w.List("1", w.Node("r1", rpcpooltest.Status(500).Via("a")), w.Node("r2", rpcpooltest.Status(500).Via("b")),
				w.Node("r3", rpcpooltest.Status(500).Via("b")))
			a, b, _ := twoBots(t, w, func(c *rpcpool.Config) { c.Mode, c.MaxRounds = mode, 1 })
			call(t, a, "eth_x")
			_, err := b.Chain("9").Call(t.Context(), "eth_x") // joins
			require.Error(t, err)
			time.Sleep(learned)
			call(t, b, "eth_y")
			lines := slices.DeleteFunc(w.Requests(), func(l string) bool { return !strings.HasSuffix(l, " b eth_y") })
			require.Equal(t, []string{"r2 b eth_y", "r3 b eth_y", "r1 b eth_y"}, lines)
		})
	}
}

// A method that one bot is told an RPC doesn't serve is asked of it last by the others.
func TestFleetSharesUnsupportedMethods(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.List("1", w.Node("r1", rpcpooltest.Error(-32601, "method not found").Method("debug_x")), w.Node("r2"))
		a, b, fleet := twoBots(t, w)
		call(t, b, "eth_x")
		call(t, a, "debug_x")
		time.Sleep(learned)
		call(t, b, "debug_x")
		call(t, b, "eth_y")
		require.Zero(t, requestsOf(w, "r1", "b", "debug_x"), "%v", w.Requests())
		require.Equal(t, 1, requestsOf(w, "r1", "b", "eth_y"), "%v", w.Requests())
		require.Equal(t, []rpcpool.FactKind{rpcpool.FactUnsupported}, kinds(fleet.Facts()))
		require.Equal(t, 600*time.Second, (fleet.Facts()[0].For + fleet.Facts()[0].Age))
		time.Sleep(601 * time.Second)
		call(t, b, "debug_x")
		require.Equal(t, 1, requestsOf(w, "r1", "b", "debug_x"))
	})
}

// A connection that failed may be the proxy's fault (rule A7): it isn't told before its call
// has ended, and never where the proxy was found dead.
func TestFleetIsToldOfFailuresThatStand(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.List("1", w.Node("r1", rpcpooltest.Reset()), w.Node("r2", rpcpooltest.Result("0x1").Delay(5*time.Second)))
		a, _, fleet := twoBots(t, w)
		go func() { _, _ = a.Chain("1").Call(context.Background(), "eth_x") }()
		time.Sleep(4 * time.Second)
		require.Equal(t, 1, requestsOf(w, "r2"))
		require.Empty(t, fleet.Facts(), "the call is still under way")
		time.Sleep(2 * time.Second)
		require.Equal(t, []rpcpool.FactKind{rpcpool.FactCooldown}, kinds(fleet.Facts()))
		require.InDelta(t, 55, fleet.Facts()[0].For.Seconds(), 1, "from the failure on")
	})
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.List("1", w.Node("r1"), w.Node("r2"), w.Node("r3"))
		w.List("eip155:1", w.Node("check"))
		dead := w.Proxy("dead", rpcpooltest.ProxyBlackHole())
		alive := w.Proxy("alive")
		fleet := rpcpooltest.NewFleet()
		a := openBot(t, w, fleet, dead, func(c *rpcpool.Config) { c.Proxies = []string{dead.URL(), alive.URL()} })
		call(t, a, "eth_x")
		time.Sleep(learned)
		require.Equal(t, []rpcpool.FactKind{rpcpool.FactProxyDead}, kinds(fleet.Facts()))
		require.Equal(t, "socks5://***@dead.test:1080", fleet.Facts()[0].Label)
	})
}

// A proxy that another bot found dead is used after the others for a minute, and used all the
// same where there is no other.
func TestFleetSharesDeadProxies(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.List("1", w.Node("r1"))
		p, q := w.Proxy("p", rpcpooltest.ProxyRefuseLogin().Times(1)), w.Proxy("q")
		fleet := rpcpooltest.NewFleet()
		both := func(c *rpcpool.Config) { c.Proxies = []string{p.URL(), q.URL()} }
		b, alone := openBot(t, w, fleet, p, both), openBot(t, w, fleet, p)
		p.Script()
		call(t, b, "eth_first")
		call(t, alone, "eth_first")
		p.Script(rpcpooltest.ProxyRefuseLogin().Times(2))
		a := openBot(t, w, fleet, p, both)
		call(t, a, "eth_x")
		p.Script()
		time.Sleep(learned)
		require.False(t, b.ProxyStats()[0].WarnedUntil.IsZero())
		call(t, b, "eth_y")
		require.Equal(t, 1, requestsOf(w, "r1", "q", "eth_y"), "%v", w.Requests())
		require.Zero(t, b.ProxyStats()[0].Deaths, "no death of this process's")
		call(t, alone, "eth_z")
		require.Equal(t, 1, requestsOf(w, "r1", "p", "eth_z"))
		time.Sleep(learned)
		require.True(t, b.ProxyStats()[0].WarnedUntil.IsZero(), "it carries again, and the others know")

		worst := fleet.Facts()[0]
		require.Equal(t, rpcpool.FactProxyDead, worst.Kind)
		worst.For, worst.From = time.Hour, "mallory"
		require.NoError(t, fleet.Publish(t.Context(), []rpcpool.Fact{worst}))
		synctest.Wait()
		require.WithinDuration(t, time.Now().Add(60*time.Second), b.ProxyStats()[0].WarnedUntil, time.Second)
	})
}

// A head that another bot heard from an RPC has this one ask that RPC again, before its own
// sample is a block time old. It lifts no mark by itself.
func TestFleetSharesHeads(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		evm := rpcpooltest.NewEVM(1, 1000)
		w.List("1", w.Node("r1", evm.Serve()), w.Node("r2", evm.Serve()))
		a, b, fleet := twoBots(t, w)
		fresh := rpcpool.WithFreshness(rpcpool.Freshness{MaxLag: 1, BlockTime: 12 * time.Second})
		read := func(p *rpcpool.Pool) {
			_, err := p.Chain("1", fresh).Call(t.Context(), "eth_getBalance", someAccount, "latest")
			require.NoError(t, err)
		}
		read(b)
		read(a)
		evm.Mine(1)
		time.Sleep(2 * time.Second)
		asked := requestsOf(w, "b", "eth_blockNumber")
		read(b)
		require.Equal(t, asked, requestsOf(w, "b", "eth_blockNumber"), "its sample is young enough")
		time.Sleep(9 * time.Second)
		read(b)
		_, err := a.Chain("1", fresh).Call(t.Context(), "eth_blockNumber")
		require.NoError(t, err)
		time.Sleep(learned)
		require.Contains(t, kinds(fleet.Facts()), rpcpool.FactHead)
		require.Equal(t, uint64(1000), b.Chain("1", fresh).HighWater())
		read(b)
		require.Equal(t, asked+1, requestsOf(w, "b", "eth_blockNumber"), "%v", w.Requests())
		require.Equal(t, uint64(1001), b.Chain("1", fresh).HighWater())
	})
}

// brokenView is a view that does what it shouldn't.
type brokenView struct {
	publish func(ctx context.Context) error
	follow  func(ctx context.Context, take func([]rpcpool.Fact)) error
	tries   atomic.Int64

	mu   sync.Mutex // protects told
	told []rpcpool.Fact
}

func (v *brokenView) Publish(ctx context.Context, facts []rpcpool.Fact) error {
	v.tries.Add(1)
	v.mu.Lock()
	v.told = append(v.told, facts...)
	v.mu.Unlock()
	return v.publish(ctx)
}

func (v *brokenView) Follow(ctx context.Context, take func([]rpcpool.Fact)) error {
	return v.follow(ctx, take)
}

// A view that errs, panics, returns at once, or hangs without heeding its context, also after
// it said something, harms no call and no Close, and costs one log line; also when what was
// found out first is over and found out again.
func TestFleetWithABrokenView(t *testing.T) {
	secret := errors.New("no such host, auth word-a refused")
	warning := rpcpool.Fact{Kind: rpcpool.FactCooldown, From: "another", Chain: "eip155:1", ID: idOfRPC("http://r2.test/key-r2"), For: time.Hour}
	for name, view := range map[string]*brokenView{
		"errs": {
			publish: func(context.Context) error { return secret },
			follow:  func(context.Context, func([]rpcpool.Fact)) error { return secret },
		},
		"panics": {
			publish: func(context.Context) error { panic("publish") },
			follow:  func(context.Context, func([]rpcpool.Fact)) error { panic("follow") },
		},
		"ends": {
			publish: func(context.Context) error { return secret },
			follow:  func(context.Context, func([]rpcpool.Fact)) error { return nil },
		},
		"hangs": {
			publish: func(context.Context) error { hang(); return nil },
			follow:  func(context.Context, func([]rpcpool.Fact)) error { hang(); return nil },
		},
		"speaks and hangs": {
			publish: func(context.Context) error { hang(); return nil },
			follow: func(_ context.Context, take func([]rpcpool.Fact)) error {
				take([]rpcpool.Fact{warning})
				hang()
				return nil
			},
		},
	} {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			var log lockedBuffer
			w.List("1", w.Node("r1", rpcpooltest.Status(500).Times(50)), w.Node("r2"))
			a := openBot(t, w, view, w.Proxy("a"), func(c *rpcpool.Config) {
				c.Mode = rpcpool.RoundRobin
				c.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelInfo}))
			})
			began := time.Now()
			for range 100 {
				before := time.Now()
				call(t, a, "eth_x")
				require.Zero(t, time.Since(before), name)
				time.Sleep(time.Second)
			}
			require.Equal(t, 100*time.Second, time.Since(began))
			require.Equal(t, 2, requestsOf(w, "r1"), "it cooled for 60 s and was tried again")
			require.Less(t, view.tries.Load(), int64(15), "it is tried less and less often")
			require.GreaterOrEqual(t, view.tries.Load(), int64(1))
			stats := a.SharedStats()
			require.Equal(t, name == "speaks and hangs", stats.Taken == 1)
			require.False(t, stats.Connected, name)
			require.Equal(t, uint64(1), stats.Outages)
			before := time.Now()
			require.NoError(t, a.Close())
			require.Zero(t, time.Since(before), name)
			require.Equal(t, 1, strings.Count(log.String(), "the shared view is lost"), log.String())
			require.NotContains(t, log.String(), "word-a")
			time.Sleep(2 * time.Hour) // what hangs ends with the bubble
		})
	}
}

// What couldn't be published is published when the view is back, as far as it still holds;
// what comes too fast is dropped, oldest first, and counted.
func TestFleetAfterAnOutage(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		var log lockedBuffer
		w.List("1", w.Node("r1", rpcpooltest.Status(500).Via("a")),
			w.Node("r2", rpcpooltest.Error(-32601, "method not found").Via("a")), w.Node("r3"))
		a, b, fleet := twoBots(t, w, func(c *rpcpool.Config) {
			c.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelInfo}))
		})
		call(t, b, "eth_x")
		call(t, a, "eth_x")
		time.Sleep(time.Second)
		require.Equal(t, []int{0}, warnedOf(b))
		require.True(t, a.SharedStats().Connected)
		fleet.Lose(true)
		time.Sleep(time.Second)
		require.False(t, b.SharedStats().Connected)
		for i := range 1500 {
			call(t, a, fmt.Sprint("debug_", i))
		}
		fleet.Lose(false)
		time.Sleep(30 * time.Second)
		require.True(t, a.SharedStats().Connected)
		require.True(t, b.SharedStats().Connected)
		require.Equal(t, uint64(1), b.SharedStats().Outages)
		require.GreaterOrEqual(t, a.SharedStats().Dropped, uint64(400))
		require.Equal(t, uint64(2+1024), a.SharedStats().Published, "two before, and what the queue holds")
		call(t, b, "debug_1499")
		require.Zero(t, requestsOf(w, "r2", "b", "debug_1499"))
		call(t, b, "debug_0")
		require.Equal(t, 1, requestsOf(w, "r2", "b", "debug_0"), "the oldest was dropped")
		require.Equal(t, 2, strings.Count(log.String(), "the shared view is lost"), log.String())
		require.Equal(t, 2, strings.Count(log.String(), "the shared view is back"), log.String())
		last := fleet.Facts()[len(fleet.Facts())-1]
		require.Equal(t, rpcpool.FactUnsupported, last.Kind)
		require.Positive(t, last.Age)
	})
}

// Facts travel together, ten times a second at most, and no secret is in one.
func TestFleetFactsTravelTogether(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		r2 := w.NodeAt("r2", "http://r2.test/key-r2?token=token-of-r2")
		w.List("1", w.Node("r1", rpcpooltest.Error(-32601, "method not found")), r2)
		view := &brokenView{
			publish: func(context.Context) error { return nil },
			follow:  func(ctx context.Context, _ func([]rpcpool.Fact)) error { <-ctx.Done(); return ctx.Err() },
		}
		proxy := w.Proxy("a")
		a := openBot(t, w, view, proxy)
		for i := range 200 {
			call(t, a, fmt.Sprint("debug_", i))
			time.Sleep(5 * time.Millisecond)
		}
		require.InDelta(t, 10, view.tries.Load(), 1)

		r2.Script(rpcpooltest.Status(500))
		_, err := a.Chain("1").Call(t.Context(), "eth_x")
		require.Error(t, err)
		proxy.Script(rpcpooltest.ProxyRefuseLogin())
		time.Sleep(time.Hour) // the connections are closed, r2 isn't cooling
		_, err = a.Chain("1").Call(t.Context(), "eth_y")
		require.Error(t, err)
		time.Sleep(learned)
		require.NoError(t, a.Close()) // from now on nobody publishes
		view.mu.Lock()
		defer view.mu.Unlock()
		require.Subset(t, kinds(view.told), []rpcpool.FactKind{rpcpool.FactUnsupported, rpcpool.FactCooldown, rpcpool.FactProxyDead})
		require.GreaterOrEqual(t, len(w.Secrets()), 5)
		for i := range view.told {
			for _, secret := range w.Secrets() {
				require.NotContains(t, fmt.Sprintf("%+v", view.told[i]), secret)
			}
		}
	})
}

// A view that goes on saying things after its Follow has ended, or after Close, isn't heard:
// nothing of that counts.
func TestFleetHearsNobodyAfterFollow(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.List("1", w.Node("r1"), w.Node("r2"))
		takes := make(chan func([]rpcpool.Fact), 2)
		view := &brokenView{
			publish: func(context.Context) error { return nil },
			follow: func(ctx context.Context, take func([]rpcpool.Fact)) error {
				takes <- take
				if len(takes) < cap(takes) {
					return nil // the first one ends at once
				}
				<-ctx.Done()
				return ctx.Err()
			},
		}
		a := openBot(t, w, view, w.Proxy("a"))
		call(t, a, "eth_x")
		time.Sleep(time.Second)
		require.Len(t, takes, 2)
		ended, current := <-takes, <-takes
		warning := []rpcpool.Fact{
			{Kind: rpcpool.FactCooldown, From: "another", Chain: "eip155:1", ID: idOfRPC("http://r1.test/key-r1"), For: time.Minute},
			{Kind: "nonsense"},
		}

		ended(warning)
		require.Empty(t, warnedOf(a))
		require.Zero(t, a.SharedStats().Taken)
		require.Zero(t, a.SharedStats().Refused)
		require.False(t, a.SharedStats().Connected, "nor does it tell that the view is there")

		current(warning)
		require.Equal(t, []int{0}, warnedOf(a))
		require.Equal(t, uint64(1), a.SharedStats().Taken)
		require.NoError(t, a.Close())
		current(warning)
		require.Equal(t, uint64(1), a.SharedStats().Taken)
		require.Equal(t, uint64(1), a.SharedStats().Refused)
	})
}

// idOfRPC is the id of an RPC in the view of a fleet without a secret.
func idOfRPC(url string) string {
	mac := hmac.New(sha256.New, nil)
	mac.Write([]byte("rpc\x00" + url))
	return hex.EncodeToString(mac.Sum(nil))
}

// Facts that aren't well-formed are put aside and counted.
func TestFleetRefusesWhatIsNotValid(t *testing.T) {
	good := rpcpool.Fact{Kind: rpcpool.FactCooldown, From: "x", Chain: "eip155:1", ID: strings.Repeat("0a", 32), For: time.Second}
	require.True(t, good.Valid())
	for name, spoil := range map[string]func(*rpcpool.Fact){
		"no kind":           func(f *rpcpool.Fact) { f.Kind = "" },
		"an unknown kind":   func(f *rpcpool.Fact) { f.Kind = "ban" },
		"no id":             func(f *rpcpool.Fact) { f.ID = "" },
		"not hex":           func(f *rpcpool.Fact) { f.ID = strings.Repeat("zz", 32) },
		"over":              func(f *rpcpool.Fact) { f.For = 0 },
		"a negative time":   func(f *rpcpool.Fact) { f.For = -time.Second },
		"from the future":   func(f *rpcpool.Fact) { f.Age = -time.Second },
		"no chain":          func(f *rpcpool.Fact) { f.Chain = "" },
		"no method":         func(f *rpcpool.Fact) { f.Kind = rpcpool.FactUnsupported },
		"no head":           func(f *rpcpool.Fact) { f.Kind = rpcpool.FactHead },
		"a proxy's chain":   func(f *rpcpool.Fact) { f.Kind = rpcpool.FactProxyDead },
		"a long text":       func(f *rpcpool.Fact) { f.Label = strings.Repeat("x", 129) },
		"a terminal escape": func(f *rpcpool.Fact) { f.Label = "\x1b[2J" },
	} {
		f := good
		spoil(&f)
		require.False(t, f.Valid(), name)
	}
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.List("1", w.Node("r1"))
		_, b, fleet := twoBots(t, w)
		call(t, b, "eth_x")
		require.NoError(t, fleet.Publish(t.Context(), []rpcpool.Fact{good, {For: time.Second}, {Kind: rpcpool.FactHead, For: time.Second}}))
		synctest.Wait()
		require.Equal(t, uint64(2), b.SharedStats().Refused)
		require.Equal(t, uint64(1), b.SharedStats().Taken)
	})
}

// Without a view nothing runs, and with one nothing before the first call.
func TestFleetBeginsWithTheFirstCall(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.List("1", w.Node("r1"))
		_, b, fleet := twoBots(t, w)
		b.Chain("1")
		time.Sleep(time.Second)
		require.Zero(t, fleet.Followers())
		call(t, b, "eth_x")
		synctest.Wait()
		require.Equal(t, 1, fleet.Followers())
		require.NoError(t, b.Close())
		synctest.Wait()
		require.Zero(t, fleet.Followers())
		require.Zero(t, open(t, w).SharedStats())
	})
}

// hang is only called inside a bubble.
func hang() { time.Sleep(time.Hour) }

// What asked for a rest is left alone by all; what lags is for each to find out.
func TestFleetSharesRestsAndNoLag(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		evm := rpcpooltest.NewEVM(1, 1000)
		evm.SetBlockTime(testBlockTime)
		w.List("1", w.Node("r1", evm.Serve()), w.Node("r2", evm.Serve(rpcpooltest.Lagging(10))), w.Node("r3", evm.Serve()),
			w.Node("r4", rpcpooltest.RateLimited(30*time.Second)))
		a, b, fleet := twoBots(t, w, func(c *rpcpool.Config) { c.Mode = rpcpool.RoundRobin })
		fresh := rpcpool.WithFreshness(rpcpool.Freshness{MaxLag: 1, BlockTime: testBlockTime})
		call(t, b, "eth_chainId")
		for range 6 {
			_, err := a.Chain("1", fresh).Call(t.Context(), "eth_blockNumber")
			require.NoError(t, err)
		}
		require.Positive(t, a.Chain("1", fresh).Stats()[1].Ejections)
		time.Sleep(learned)
		told := kinds(fleet.Facts())
		require.Contains(t, told, rpcpool.FactRest)
		require.NotContains(t, told, rpcpool.FactCooldown)
		require.Equal(t, []int{3}, warnedOf(b))
		require.WithinDuration(t, time.Now().Add(30*time.Second), b.Chain("1").Stats()[3].WarnedUntil, time.Second)
	})
}

// Connections that failed through a proxy which passed its check are told at once.
func TestFleetIsToldOfWhatACheckConfirmed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		gone := rpcpooltest.Reset()
		w.List("1", w.Node("r1", gone), w.Node("r2", gone), w.Node("r3", gone), w.Node("r4", rpcpooltest.Result("0x1").Delay(5*time.Second)))
		w.List("eip155:1", w.Node("check"))
		a, _, fleet := twoBots(t, w)
		go func() { _, _ = a.Chain("1").Call(context.Background(), "eth_x") }()
		time.Sleep(4 * time.Second)
		require.Equal(t, 1, requestsOf(w, "r4"), "the call is still under way")
		require.Len(t, fleet.Facts(), 3)
		time.Sleep(2 * time.Second)
		require.Len(t, fleet.Facts(), 3, "and not again when it ends")
	})
}

// The library's own questions go last to what others warn of, too: neither the sampler nor a
// call that asks others about a head turns to it as long as there are others.
func TestFleetWarnedOfIsNotSampled(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		evm := rpcpooltest.NewEVM(1, 1000)
		evm.SetBlockTime(testBlockTime)
		w.List("1", w.Node("r1", rpcpooltest.Status(500).Via("a"), evm.Serve()), w.Node("r2", evm.Serve(rpcpooltest.Boasting(9))),
			w.Node("r3", evm.Serve()), w.Node("r4", evm.Serve()), w.Node("r5", evm.Serve()))
		a, b, _ := twoBots(t, w)
		call(t, b, "eth_chainId")
		call(t, a, "eth_chainId")
		time.Sleep(learned)
		fresh := rpcpool.WithFreshness(rpcpool.Freshness{MaxLag: 1, BlockTime: testBlockTime, SampleEvery: time.Second})
		for range 20 {
			_, err := b.Chain("1", fresh).Call(t.Context(), "eth_blockNumber")
			require.NoError(t, err)
			time.Sleep(time.Second)
		}
		require.Zero(t, requestsOf(w, "r1", "b", "eth_blockNumber"))
		require.GreaterOrEqual(t, requestsOf(w, "r5", "b", "eth_blockNumber"), 15)
	})
}

// A fact that the view didn't take is published when it is back.
func TestFleetPublishesAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.List("1", w.Node("r1", rpcpooltest.Status(500).Via("a")), w.Node("r2"))
		a, b, fleet := twoBots(t, w)
		call(t, b, "eth_x")
		fleet.Lose(true)
		call(t, a, "eth_x")
		time.Sleep(2 * time.Second)
		require.Empty(t, fleet.Facts())
		fleet.Lose(false)
		time.Sleep(5 * time.Second)
		require.Len(t, fleet.Facts(), 1)
		require.InDelta(t, 60, (fleet.Facts()[0].For + fleet.Facts()[0].Age).Seconds(), 0.01)
		require.Equal(t, []int{0}, warnedOf(b))
	})
}

// Close in the middle of a Publish is no outage: neither the log nor the statistics have one.
func TestFleetCloseIsNoOutage(t *testing.T) {
	for name, heeds := range map[string]bool{"a view that heeds its context": true, "one that doesn't": false} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				var log lockedBuffer
				view := &brokenView{
					publish: func(ctx context.Context) error {
						if !heeds {
							hang()
						}
						<-ctx.Done()
						return ctx.Err()
					},
					follow: func(ctx context.Context, take func([]rpcpool.Fact)) error {
						take(nil)
						<-ctx.Done()
						return ctx.Err()
					},
				}
				w.List("1", w.Node("r1", rpcpooltest.Status(500)), w.Node("r2"))
				a := openBot(t, w, view, w.Proxy("a"), func(c *rpcpool.Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
				call(t, a, "eth_x")
				time.Sleep(2 * learned)
				require.Equal(t, int64(1), view.tries.Load())
				require.NoError(t, a.Close())
				synctest.Wait()
				require.Zero(t, a.SharedStats().Outages)
				require.NotContains(t, log.String(), "is lost")
				time.Sleep(2 * time.Hour) // what hangs ends with the bubble
			})
		})
	}
}

// An outage lasts until something was published, also where the facts that waited have come
// to their end meanwhile.
func TestFleetOutageOutlastsItsFacts(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		var log lockedBuffer
		view := &brokenView{
			publish: func(context.Context) error { return errors.New("refused") },
			follow: func(ctx context.Context, take func([]rpcpool.Fact)) error {
				take(nil)
				<-ctx.Done()
				return ctx.Err()
			},
		}
		w.List("1", w.Node("r1", rpcpooltest.RateLimited(2*time.Second)), w.Node("r2"))
		a := openBot(t, w, view, w.Proxy("a"), func(c *rpcpool.Config) {
			c.Mode, c.MaxWait = rpcpool.RoundRobin, time.Second
			c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		})
		for range 6 {
			call(t, a, "eth_x")
			time.Sleep(30 * time.Second)
		}
		require.Equal(t, uint64(1), a.SharedStats().Outages)
		require.False(t, a.SharedStats().Connected)
		require.Equal(t, 1, strings.Count(log.String(), "is lost"))
		require.NotContains(t, log.String(), "is back")
	})
}

// An answer from before a failure was found out is old news: it ends no warning.
func TestFleetOldAnswersEndNoWarning(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.List("1", w.Node("r1", rpcpooltest.Status(500)), w.Node("r2"))
		w.List("2", w.Node("elsewhere"))
		a, b, fleet := twoBots(t, w)
		call(t, b, "eth_x")
		later := openBot(t, w, fleet, w.Proxy("c")) // which has another chain's list until now
		_, err := later.Chain("2").Call(t.Context(), "eth_x")
		require.NoError(t, err)
		call(t, a, "eth_x")
		time.Sleep(learned)
		require.Equal(t, []int{0}, warnedOf(b))
		fact := fleet.Facts()[0]
		old := rpcpool.Fact{Kind: rpcpool.FactClear, From: "another", Chain: fact.Chain, ID: fact.ID, Age: 10 * time.Minute}
		require.NoError(t, fleet.Publish(t.Context(), []rpcpool.Fact{old}))
		time.Sleep(learned)
		require.Equal(t, []int{0}, warnedOf(b))

		call(t, later, "eth_x")
		require.Equal(t, []int{0}, warnedOf(later))
		old.Age = 0
		require.NoError(t, fleet.Publish(t.Context(), []rpcpool.Fact{old}))
		time.Sleep(learned)
		require.Empty(t, warnedOf(b), "a new one does")
	})
}
