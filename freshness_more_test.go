package rpcpool_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// Rule B8: Retry-After, in both forms and 900 s at most, says how long an RPC is left
// alone; that is no failure in a row, and without the header the pauses double, up to 60 s.
func TestRateLimitsAreRests(t *testing.T) {
	inADay := func(time.Time) rpcpooltest.Reply { return rpcpooltest.RateLimited(24 * time.Hour) }
	for name, c := range map[string]struct {
		limit  func(now time.Time) rpcpooltest.Reply
		pauses []time.Duration
		cools  bool
	}{
		"seconds":  {func(time.Time) rpcpooltest.Reply { return rpcpooltest.RateLimited(7 * time.Second) }, []time.Duration{7 * time.Second, 7 * time.Second}, false},
		"too long": {inADay, []time.Duration{900 * time.Second}, false},
		"not said": {func(time.Time) rpcpooltest.Reply { return rpcpooltest.RateLimited(0) }, []time.Duration{
			time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second, 60 * time.Second, 60 * time.Second,
		}, false},
		"503 with it": {func(time.Time) rpcpooltest.Reply { return rpcpooltest.Status(503).Header("Retry-After", "30") }, []time.Duration{30 * time.Second}, false},
		"503 without": {func(time.Time) rpcpooltest.Reply { return rpcpooltest.Status(503) }, []time.Duration{60 * time.Second}, true},
		"403 with it": {func(time.Time) rpcpooltest.Reply { return rpcpooltest.Status(403).Header("Retry-After", "30") }, []time.Duration{60 * time.Second}, true},
		"500 with it": {func(time.Time) rpcpooltest.Reply { return rpcpooltest.Status(500).Header("Retry-After", "30") }, []time.Duration{60 * time.Second}, true},
		"unreadable":  {func(time.Time) rpcpooltest.Reply { return rpcpooltest.Status(429).Header("Retry-After", "soon") }, []time.Duration{time.Second}, false},
		"date": {func(now time.Time) rpcpooltest.Reply {
			return rpcpooltest.Status(429).Header("Retry-After", now.Add(90*time.Second).UTC().Format(http.TimeFormat))
		}, []time.Duration{90 * time.Second}, false},
		"date long ago": {func(now time.Time) rpcpooltest.Reply {
			return rpcpooltest.Status(429).Header("Retry-After", now.Add(-time.Hour).UTC().Format(http.TimeFormat))
		}, []time.Duration{time.Second}, false},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				w.Proxy("p1")
				limited := w.Node("limited", rpcpooltest.Handle(func(rpcpooltest.Request) rpcpooltest.Reply { return c.limit(time.Now()) }))
				w.List("1", limited, w.Node("other"))
				chain := open(t, w, func(cfg *rpcpool.Config) { cfg.MaxWait, cfg.Mode = time.Nanosecond, rpcpool.LeastOutstanding }).Chain("1")
				for i, pause := range c.pauses {
					_, err := chain.Call(t.Context(), "eth_blockNumber")
					require.NoError(t, err)
					stats := chain.Stats()[0]
					require.InDelta(t, pause.Seconds(), time.Until(stats.Until).Seconds(), 1)
					require.Equal(t, c.cools, stats.Cooling)
					require.Equal(t, c.cools, stats.FailuresInRow > 0)
					asked := len(limited.Requests())
					time.Sleep(pause - 2*time.Millisecond - pause/50)
					_, err = chain.Call(t.Context(), "eth_blockNumber")
					require.NoError(t, err)
					require.Len(t, limited.Requests(), asked, "asked while it rests, pause %d", i)
					time.Sleep(2*time.Millisecond + pause/50 + time.Second)
				}
			})
		})
	}
}

// Without freshness and MaxWait a rate limit is what rule A5 says: a cooldown of 60 s,
// whatever the Retry-After.
func TestRateLimitsCoolWhereNothingIsAskedFor(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1", w.Node("limited", rpcpooltest.RateLimited(2*time.Second)), w.Node("other"))
		chain := open(t, w).Chain("1")
		_, err := chain.Call(t.Context(), "eth_blockNumber")
		require.NoError(t, err)
		require.Equal(t, rpcpool.StateCooling, chain.Stats()[0].State)
		require.InDelta(t, 60, time.Until(chain.Stats()[0].Until).Seconds(), 1)
	})
}

// Rule B8: with MaxWait a call that finds nobody waits for the first RPC to come back,
// with jitter, and not longer than its caller or MaxWait allow.
func TestMaxWait(t *testing.T) {
	const rest = 20 * time.Second
	for _, c := range []struct {
		maxWait, deadline time.Duration
		answered          bool
		within            time.Duration
	}{
		{time.Minute, time.Hour, true, 22 * time.Second},
		{10 * time.Second, time.Hour, false, time.Millisecond}, // nothing can come within it
		{time.Minute, 5 * time.Second, false, 5 * time.Second},
	} {
		t.Run(fmt.Sprint(c.maxWait, c.deadline), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				w.Proxy("p1")
				w.List("1", w.Node("r1", rpcpooltest.RateLimited(rest).ToStep(0)), w.Node("r2", rpcpooltest.RateLimited(2*rest)))
				time.AfterFunc(rest/2, func() { w.Network.SetStep(1) })
				chain := open(t, w, func(cfg *rpcpool.Config) { cfg.MaxWait = c.maxWait }).Chain("1")
				began := time.Now()
				ends := map[time.Duration]bool{}
				var mu sync.Mutex
				var callers sync.WaitGroup
				for range 20 {
					callers.Go(func() {
						ctx, cancel := context.WithTimeout(t.Context(), c.deadline)
						defer cancel()
						_, err := chain.Call(ctx, "eth_blockNumber")
						assert.Equal(t, c.answered, err == nil, "%v", err)
						mu.Lock()
						defer mu.Unlock()
						ends[time.Since(began)] = true
					})
				}
				callers.Wait()
				require.LessOrEqual(t, time.Since(began), c.within)
				if c.answered {
					require.Greater(t, len(ends), 10, "no jitter")
					for end := range ends {
						require.GreaterOrEqual(t, end, rest)
					}
				}
			})
		})
	}
}

// Rule B10: LeastOutstanding sends each call to the RPC with the fewest under way.
func TestLeastOutstanding(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		slow := w.Node("slow", rpcpooltest.Result("0x1").Delay(10*time.Second))
		quick := w.Node("quick", rpcpooltest.Result("0x1").Delay(time.Second))
		quicker := w.Node("quicker", rpcpooltest.Result("0x1").Delay(500*time.Millisecond))
		w.List("1", slow, quick, quicker)
		chain := open(t, w, func(cfg *rpcpool.Config) { cfg.Mode = rpcpool.LeastOutstanding }).Chain("1")
		var callers sync.WaitGroup
		for range 9 { // at every moment nine are under way
			callers.Go(func() {
				for range 20 {
					_, err := chain.Call(t.Context(), "eth_blockNumber")
					assert.NoError(t, err)
				}
			})
		}
		time.Sleep(100 * time.Millisecond)
		for _, s := range chain.Stats() {
			require.Equal(t, 3, s.InFlight, s.RPC)
		}
		callers.Wait()
		require.Less(t, len(slow.Requests()), len(quick.Requests()))
		require.Less(t, len(quick.Requests()), len(quicker.Requests()))
	})
}

// Rule B10: no RPC has more calls than MaxInFlight at a time, in every mode; who finds
// all taken waits for a turn, and ends when its caller ends.
func TestMaxInFlight(t *testing.T) {
	for _, mode := range []rpcpool.Mode{rpcpool.Sticky, rpcpool.RoundRobin, rpcpool.LeastOutstanding} {
		t.Run(mode.String(), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				w.Proxy("p1")
				var now, most [2]atomic.Int64
				node := func(i int) *rpcpooltest.Node {
					return w.Node(fmt.Sprint("r", i), rpcpooltest.Handle(func(rpcpooltest.Request) rpcpooltest.Reply {
						n := now[i].Add(1)
						for {
							m := most[i].Load()
							if n <= m || most[i].CompareAndSwap(m, n) {
								break
							}
						}
						time.Sleep(time.Second)
						now[i].Add(-1)
						return rpcpooltest.Result("0x1")
					}))
				}
				w.List("1", node(0), node(1))
				chain := open(t, w, func(cfg *rpcpool.Config) { cfg.MaxInFlight, cfg.Mode = 5, mode }).Chain("1")
				began := time.Now()
				var callers sync.WaitGroup
				for range 100 {
					callers.Go(func() {
						_, err := chain.Call(t.Context(), "eth_blockNumber")
						assert.NoError(t, err)
					})
				}
				impatient, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
				defer cancel()
				callers.Go(func() {
					time.Sleep(time.Millisecond)
					for range 3 {
						_, err := chain.Call(impatient, "eth_blockNumber")
						assert.ErrorIs(t, err, context.DeadlineExceeded)
						assert.InDelta(t, 2.5, time.Since(began).Seconds(), 0.01)
					}
				})
				callers.Wait()
				require.Equal(t, int64(5), most[0].Load())
				require.Equal(t, int64(5), most[1].Load())
				require.InDelta(t, 10, time.Since(began).Seconds(), 1.1, "the turns aren't used")
			})
		})
	}
}

// Rule B9: after a send, latest reads of the view stay on the RPC that took the
// transaction until the receipt was seen; where that one fails, one that has reached the
// mark of the send stands in. The same goes for a token, in another handle too.
func TestReadYourWrites(t *testing.T) {
	for _, way := range []string{"policy", "token", "token in another handle"} {
		t.Run(way, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				w.Proxy("p1")
				evm := rpcpooltest.NewEVM(1, 1000)
				evm.SetBlockTime(testBlockTime)
				first := w.Node("first", evm.Serve())
				taker := w.Node("taker", evm.Serve().ToStep(0), rpcpooltest.Status(503).ToStep(1), evm.Serve())
				third := w.Node("third", evm.Serve())
				no, yes := false, true
				entry := func(n *rpcpooltest.Node, sends *bool) rpcpooltest.Listed {
					e := rpcpooltest.List(n)
					e.Caps.SendTx = sends
					return e
				}
				for _, ref := range []string{"1", "eip155:1"} {
					w.Pool.Lists(ref, rpcpooltest.PoolList("eip155:1", entry(first, &no), entry(taker, &yes), entry(third, &no)))
				}
				pool := open(t, w)
				var opts []rpcpool.ChainOption
				if way == "policy" {
					opts = append(opts, rpcpool.WithFreshness(rpcpool.Freshness{ReadYourWrites: true}))
				}
				sender := pool.Chain("1", opts...)
				reader, ctx := sender, t.Context()
				if strings.HasSuffix(way, "handle") {
					reader = pool.Chain("eip155:1")
				}
				read := func() string {
					synctest.Wait()
					before := len(w.Requests())
					_, err := reader.Call(ctx, "eth_getBalance", someAccount, "latest")
					require.NoError(t, err)
					synctest.Wait()
					node := ""
					for _, line := range w.Requests()[before:] { // blocks may be read for their times meanwhile
						if strings.HasSuffix(line, " eth_getBalance") {
							node = strings.Fields(line)[0]
						}
					}
					return node
				}
				require.Equal(t, "first", read())
				hash, err := rpcpool.CallAs[string](ctx, sender, "eth_sendRawTransaction", "0x02aa")
				require.NoError(t, err)
				token, ok := sender.ReadToken(hash)
				require.True(t, ok)
				require.NotContains(t, fmt.Sprintf("%v %+v %#v", token, token, token), "key-")
				if way != "policy" {
					ctx = rpcpool.WithReadToken(ctx, token)
				}
				for range 3 {
					require.Equal(t, "taker", read())
					time.Sleep(testBlockTime / 2)
				}
				w.Network.SetStep(1)
				require.NotEqual(t, "taker", read(), "it is down")
				w.Network.SetStep(2)
				time.Sleep(61 * time.Second)
				require.Equal(t, "taker", read(), "it is back")

				receipt, err := sender.Call(t.Context(), "eth_getTransactionReceipt", hash)
				require.NoError(t, err)
				mined, err := rpcpool.ReceiptToken(receipt)
				require.NoError(t, err)
				require.Equal(t, hash, mined.Hash)
				if way != "policy" {
					token, ok = sender.ReadToken(hash)
					require.True(t, ok)
					require.Equal(t, mined.Block, token.Block)
					require.Empty(t, token.RPC, "there is nothing to stay for")
					ctx = rpcpool.WithReadToken(t.Context(), token)
				}
				require.Equal(t, "first", read(), "the receipt was seen")
			})
		})
	}
}

// A token's block is a floor for latest reads, with and without a policy: an RPC that
// hasn't got there is passed over.
func TestTokenIsAFloor(t *testing.T) {
	for _, opts := range [][]rpcpool.ChainOption{nil, {rpcpool.WithFreshness(rpcpool.Freshness{MaxLag: 100})}} {
		for _, method := range []string{"eth_getBalance", "eth_blockNumber"} {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				w.Proxy("p1")
				evm := rpcpooltest.NewEVM(1, 1000)
				w.List("1", w.Node("behind", evm.Serve(rpcpooltest.Lagging(10))), w.Node("there", evm.Serve()))
				chain := open(t, w).Chain("1", opts...)
				params := []any{someAccount, "latest"}
				if method == "eth_blockNumber" {
					params = nil
				}
				for _, c := range []struct {
					floor, want uint64
				}{{0, 990}, {985, 990}, {995, 1000}} {
					ctx := rpcpool.WithReadToken(t.Context(), rpcpool.ReadToken{Block: c.floor})
					raw, err := chain.Call(ctx, method, params...)
					require.NoError(t, err)
					require.Equal(t, c.want, number(t, raw), "%s %d", method, c.floor)
				}
				_, err := chain.Call(rpcpool.WithReadToken(t.Context(), rpcpool.ReadToken{Block: 1001}), method, params...)
				var stale *rpcpool.StaleError
				require.ErrorAs(t, err, &stale)
				require.Equal(t, uint64(1001), stale.Needed)
			})
		}
	}
}

// Rule B11: two RPCs with different hashes for a block are noticed, and so is an RPC that
// replaces its own.
func TestForksAreNoticed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		evm := rpcpooltest.NewEVM(1, 1000)
		w.List("1", w.Node("r1", evm.Serve()), w.Node("forked", evm.Serve(rpcpooltest.ForkedFrom(990))))
		log := new(lockedBuffer)
		chain := open(t, w, func(cfg *rpcpool.Config) {
			cfg.Mode, cfg.Logger = rpcpool.RoundRobin, slog.New(slog.NewTextHandler(log, nil))
		}).Chain("1", rpcpool.WithFreshness(rpcpool.Freshness{}))
		read := func() {
			_, err := chain.Call(t.Context(), "eth_getBlockByNumber", "0x3e0", false) // 992
			require.NoError(t, err)
		}
		read()
		require.NotContains(t, log.String(), "different hashes")
		read()
		require.Contains(t, log.String(), "two RPCs have different hashes for a block")
		require.NotContains(t, log.String(), "key-")
		evm.Reorg(20)
		read()
		read()
		read()
		require.Contains(t, log.String(), "an RPC has another hash for a block than before")
	})
}

// Rule D1: an RPC on another chain is found out before its first use, left out until the
// list changes, and reported; one that recovers from a failure is asked again.
func TestVerifyChainID(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		evm := rpcpooltest.NewEVM(8453, 1000)
		wrong := w.Node("wrong", evm.Serve(rpcpooltest.OnChain(1)))
		right := w.Node("right", evm.Serve().ToStep(0), rpcpooltest.Status(500).Times(1).ToStep(1), evm.Serve())
		w.List("8453", wrong, right)
		chain := open(t, w, func(cfg *rpcpool.Config) { cfg.VerifyChainID = true }).Chain("8453")
		var callers sync.WaitGroup
		for range 50 {
			callers.Go(func() {
				_, err := chain.Call(t.Context(), "eth_getBalance", someAccount, "latest")
				assert.NoError(t, err)
			})
		}
		callers.Wait()
		require.Equal(t, 1, requestsOf(w, "wrong"), "asked for its chain, and for nothing else")
		require.Equal(t, 1, requestsOf(w, "right", "eth_chainId"), "all callers share the question")
		require.Equal(t, rpcpool.StateWrongChain, chain.Stats()[0].State)
		time.Sleep(time.Second)
		reports := w.Pool.Reports()
		require.Len(t, reports, 1)
		require.Equal(t, "rpc_error", reports[0].Error)
		require.Contains(t, reports[0].Detail, "chain 1 instead of 8453")

		time.Sleep(700 * time.Second) // the list is fetched anew, and is the same
		_, err := chain.Call(t.Context(), "eth_blockNumber")
		require.NoError(t, err)
		require.Equal(t, 1, requestsOf(w, "wrong"))

		w.Network.SetStep(1)
		_, err = chain.Call(t.Context(), "eth_blockNumber")
		var none *rpcpool.NoHealthyRPCError
		require.ErrorAs(t, err, &none)
		w.Network.SetStep(2)
		time.Sleep(61 * time.Second)
		_, err = chain.Call(t.Context(), "eth_blockNumber")
		require.NoError(t, err)
		require.Equal(t, 2, requestsOf(w, "right", "eth_chainId"), "asked again after it recovered")

		w.List("8453", right, wrong)
		time.Sleep(700 * time.Second)
		for range 2 {
			_, err = chain.Call(t.Context(), "eth_blockNumber")
			require.NoError(t, err)
		}
		require.Equal(t, 2, requestsOf(w, "wrong", "eth_chainId"), "the list has changed")
		require.Equal(t, rpcpool.StateWrongChain, chain.Stats()[1].State)
	})
}

// Rule D1 is for EVM chains: where the key names no chain id, nothing is asked.
func TestVerifyChainIDElsewhere(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("aptos:mainnet", w.Node("r1"))
		chain := open(t, w, func(cfg *rpcpool.Config) { cfg.VerifyChainID = true }).Chain("aptos:mainnet")
		_, err := chain.Call(t.Context(), "ledger")
		require.NoError(t, err)
		require.Equal(t, []string{"r1 p1 ledger"}, w.Requests())
	})
}

// Rule B2: the background sampler asks every RPC, and ends with the pool.
func TestBackgroundSampling(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		evm, chain := freshWorld(t, w, rpcpool.Freshness{SampleEvery: 5 * time.Second}, healthyNodes(4))
		latestBalance(t, chain)
		time.Sleep(61 * time.Second)
		for _, node := range []string{"r1", "r2", "r3", "r4"} {
			require.GreaterOrEqual(t, requestsOf(w, node, "eth_blockNumber"), 11)
		}
		require.Equal(t, evm.Head(), chain.HighWater())
	})
}

// With the policy off nothing of it is done: no request more, and no field of the
// statistics that only it fills.
func TestNoPolicyNoCost(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		evm := rpcpooltest.NewEVM(1, 1000)
		w.List("1", w.Node("behind", evm.Serve(rpcpooltest.Lagging(50))), w.Node("forked", evm.Serve(rpcpooltest.ForkedFrom(900))))
		chain := open(t, w, func(cfg *rpcpool.Config) { cfg.Mode = rpcpool.RoundRobin }).Chain("1")
		for round := range 6 {
			raw, err := chain.Call(t.Context(), "eth_getBalance", someAccount, "latest")
			require.NoError(t, err)
			require.Equal(t, []uint64{950, 1000}[round%2], number(t, raw))
			_, err = chain.Call(t.Context(), "eth_getBlockByNumber", "0x3b0", false)
			require.NoError(t, err)
			_, err = chain.Call(t.Context(), "eth_blockNumber")
			require.NoError(t, err)
			time.Sleep(time.Minute)
		}
		require.Len(t, w.Requests(), 18)
		require.Zero(t, chain.HighWater())
		require.Len(t, chain.Stats(), 2)
		for _, s := range chain.Stats() {
			require.Zero(t, s.HeadAt, "%+v", s)
			require.Empty(t, s.Doubt, "%+v", s)
			require.Zero(t, s.Forks, "%+v", s)
		}
	})
}

// A policy that can't be used is an error of the calls that says what is wrong.
func TestFreshnessIsChecked(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		pool := open(t, w)
		for field, f := range map[string]rpcpool.Freshness{
			"Freshness.EjectLag":    {MaxLag: 10, EjectLag: 5},
			"Freshness.SampleEvery": {SampleEvery: -1},
			"Freshness.BlockTime":   {BlockTime: -1},
		} {
			_, err := pool.Chain("1", rpcpool.WithFreshness(f)).Call(t.Context(), "eth_blockNumber")
			var bad *rpcpool.ConfigError
			require.ErrorAs(t, err, &bad)
			require.Equal(t, field, bad.Field)
		}
		require.Empty(t, w.Requests())
	})
}

// Rule D3: whatever is asked for, in every mode, where nothing is usable each kind of call
// ends with an error of the library that says of which chain, and where to look: at the
// list, or at the RPC; nothing panics.
func TestNothingUsableSaysWhatToDo(t *testing.T) {
	const empty, unfit = "nothing could be tried, the pool lists none", "nothing could be tried, none of the 1 listed is fit now"
	for name, c := range map[string]struct {
		listed      func(w *rpcpooltest.World) []any
		first, then string // what the first call says, which finds it out, and what the others do
	}{
		"an empty list": {func(*rpcpooltest.World) []any { return nil }, empty, empty},
		"no usable URL": {func(*rpcpooltest.World) []any {
			return []any{rpcpooltest.Listed{URL: "ftp://r1.test/"}, rpcpooltest.Listed{URL: "://"}}
		}, empty, empty},
		"another chain": {func(w *rpcpooltest.World) []any {
			return []any{w.Node("r1", rpcpooltest.NewEVM(5, 1000).Serve())}
		}, "the RPC is on chain 5 instead of 1", unfit},
	} {
		for _, mode := range modes {
			t.Run(name+"/"+mode.String(), func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
					w.Proxy("p1")
					w.Pool.Lists("1", rpcpooltest.PoolList("eip155:1", c.listed(w)...))
					pool := open(t, w, func(cfg *rpcpool.Config) {
						cfg.Mode, cfg.VerifyChainID, cfg.MaxInFlight, cfg.MaxWait = mode, true, 1, time.Second
					})
					for _, opt := range []rpcpool.ChainOption{
						nil, rpcpool.WithFreshness(rpcpool.Freshness{ReadYourWrites: true}), rpcpool.WithHedge(rpcpool.Hedge{}),
					} {
						says := c.first
						for _, failed := range callsOfAllKinds(t.Context(), pool.Chain("1", opt)) {
							var own rpcpool.Error
							require.ErrorAs(t, failed.err, &own, failed.kind)
							require.ErrorContains(t, failed.err, `chain "1"`, failed.kind)
							require.ErrorContains(t, failed.err, says, failed.kind)
							require.ErrorContains(t, failed.err, failed.words, failed.kind)
							says = c.then
						}
					}
				})
			})
		}
	}
}

// failedCall is the error of a call, and what it says that only its kind does.
type failedCall struct {
	kind  string
	err   error
	words string
}

// callsOfAllKinds makes a call of each kind and gives their errors.
func callsOfAllKinds(ctx context.Context, chain *rpcpool.Chain) []failedCall {
	_, call := chain.Call(ctx, "eth_getBalance", someAccount, "latest")
	_, snapshot := chain.Snapshot(ctx, "latest")
	_, quorum := chain.Quorum(2).Call(ctx, "eth_chainId")
	_, send := chain.SendRawTransaction(ctx, []byte{2})
	_, broadcast := chain.Broadcast(ctx, []byte{2}, 2)
	batch := chain.BatchCallContext(ctx, []rpcpool.BatchElem{{Method: "eth_chainId"}, {Method: "eth_gasPrice"}})
	_, logs := chain.GetLogsChunked(ctx, rpcpool.LogFilter{FromBlock: 1, ToBlock: 2})
	run := chain.Run(ctx, func(context.Context, string, *http.Client) error { return nil })
	return []failedCall{
		{"call", call, ""}, {"snapshot", snapshot, ""}, {"quorum", quorum, "2 operators were to agree on eth_chainId"},
		{"send", send, ""}, {"broadcast", broadcast, ""}, {"batch", batch, ""},
		{"logs", logs, "log query failed at block 1"}, {"run", run, ""},
	}
}
