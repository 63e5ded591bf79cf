package rpcpool_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

const (
	testBlockTime = 12 * time.Second
	someAccount   = "0x4200000000000000000000000000000000000006"
)

// freshWorld is a chain of testBlockTime with nodes r1, r2 … that serve it, each with
// faults of its own, and a handle with a policy.
func freshWorld(t *testing.T, w *rpcpooltest.World, f rpcpool.Freshness, faults [][]rpcpooltest.EVMFault, change ...func(*rpcpool.Config)) (*rpcpooltest.EVM, *rpcpool.Chain) {
	t.Helper()
	w.Proxy("p1")
	chain := rpcpooltest.NewEVM(1, 1000)
	chain.SetBlockTime(testBlockTime)
	var nodes []*rpcpooltest.Node
	for i, each := range faults {
		nodes = append(nodes, w.Node(fmt.Sprintf("r%d", i+1), chain.Serve(each...)))
	}
	w.List("1", nodes...)
	return chain, open(t, w, change...).Chain("1", rpcpool.WithFreshness(f))
}

func healthyNodes(n int) [][]rpcpooltest.EVMFault { return make([][]rpcpooltest.EVMFault, n) }

// number decodes a hex quantity.
func number(t *testing.T, raw json.RawMessage) uint64 {
	t.Helper()
	var text string
	require.NoError(t, json.Unmarshal(raw, &text), "%s", raw)
	n, err := strconv.ParseUint(strings.TrimPrefix(text, "0x"), 16, 64)
	require.NoError(t, err)
	return n
}

// latestBalance reads the number of the block that the latest state is of.
func latestBalance(t *testing.T, chain *rpcpool.Chain) uint64 {
	t.Helper()
	raw, err := chain.Call(t.Context(), "eth_getBalance", someAccount, "latest")
	require.NoError(t, err)
	return number(t, raw)
}

// requestsOf tells how many requests there were that have all these words.
func requestsOf(w *rpcpooltest.World, words ...string) int {
	n := 0
	for _, line := range w.Requests() {
		all := true
		for _, word := range words {
			all = all && strings.Contains(" "+line+" ", " "+word+" ")
		}
		if all {
			n++
		}
	}
	return n
}

// Rule B3: a latest read isn't answered by an RPC that lags by more than MaxLag, however
// good its place in the list.
func TestLatestReadsAreNeverStale(t *testing.T) {
	for _, method := range []string{"eth_getBalance", "eth_getTransactionCount", "eth_blockNumber", "eth_getBlockByNumber"} {
		for _, c := range []struct{ lag, maxLag uint64 }{{2, 0}, {4, 2}, {50, 0}, {50, 10}} {
			t.Run(fmt.Sprintf("%s %d of %d", method, c.lag, c.maxLag), func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
					evm, chain := freshWorld(t, w, rpcpool.Freshness{MaxLag: c.maxLag},
						[][]rpcpooltest.EVMFault{{rpcpooltest.Lagging(c.lag)}, nil, nil})
					// The first calls find out where the others are.
					for range 3 {
						_, err := chain.Call(t.Context(), "eth_blockNumber")
						require.NoError(t, err)
					}
					for range 40 {
						params := []any{someAccount, "latest"}
						switch method {
						case "eth_blockNumber":
							params = nil
						case "eth_getBlockByNumber":
							params = []any{"latest", false}
						}
						raw, err := chain.Call(t.Context(), method, params...)
						require.NoError(t, err)
						if method == "eth_getBlockByNumber" {
							var block struct{ Number json.RawMessage }
							require.NoError(t, json.Unmarshal(raw, &block))
							raw = block.Number
						}
						require.GreaterOrEqual(t, number(t, raw)+c.maxLag, evm.Head())
						time.Sleep(5 * time.Second)
					}
				})
			})
		}
	}
}

// Rule B3: on one fresh RPC, reads that carry their head cost no request more, and other
// latest reads at most one eth_blockNumber a block time.
func TestFreshReadsCostNextToNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		_, chain := freshWorld(t, w, rpcpool.Freshness{}, healthyNodes(3))
		for range 10 { // until the block time is known
			latestBalance(t, chain)
			time.Sleep(testBlockTime / 4)
		}
		for _, c := range []struct {
			name   string
			params []any
			extra  int
		}{
			{"eth_blockNumber", nil, 0},
			{"eth_getBlockByNumber", []any{"latest", false}, 0},
			{"eth_getBalance", []any{someAccount, "latest"}, 20},
			{"eth_getBalance", []any{someAccount, "0x10"}, 0},
			{"eth_getBalance", []any{someAccount, "finalized"}, 0},
			{"eth_chainId", nil, 0},
		} {
			before := len(w.Requests())
			const reads = 200
			for range reads {
				_, err := chain.Call(t.Context(), c.name, c.params...)
				require.NoError(t, err)
				time.Sleep(20 * testBlockTime / reads)
			}
			assert.LessOrEqual(t, len(w.Requests())-before, reads+c.extra, "%s %v", c.name, c.params)
		}
	})
}

// Rule B4: an answer under the mark by more than EjectLag ejects the RPC at once, and it
// is reported; one that lags less isn't ejected.
func TestStaleRPCIsEjected(t *testing.T) {
	for _, c := range []struct {
		lag   uint64
		eject bool
	}{{2, false}, {3, false}, {4, true}, {500, true}} {
		t.Run(strconv.FormatUint(c.lag, 10), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				_, chain := freshWorld(t, w, rpcpool.Freshness{},
					[][]rpcpooltest.EVMFault{nil, {rpcpooltest.Lagging(c.lag)}, nil}, func(cfg *rpcpool.Config) {
						cfg.Mode = rpcpool.RoundRobin
					})
				for range 8 {
					_, err := chain.Call(t.Context(), "eth_blockNumber")
					require.NoError(t, err)
				}
				stats := chain.Stats()
				require.Equal(t, c.eject, stats[1].Cooling, "%+v", stats[1])
				if c.eject {
					require.NotZero(t, stats[1].Ejections)
					require.NotZero(t, stats[1].Semantic)
				}
				require.False(t, stats[0].Cooling || stats[2].Cooling)
			})
		})
	}
}

// Rule B5: where nobody is fresh the call ends with a StaleError that says how far each
// is behind; with MaxWait it waits for one.
func TestNobodyIsFresh(t *testing.T) {
	for _, wait := range []time.Duration{0, 30 * time.Second} {
		t.Run(wait.String(), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				w.Proxy("p1")
				evm := rpcpooltest.NewEVM(1, 1000)
				evm.SetBlockTime(testBlockTime)
				best := w.Node("best", evm.Serve().ToStep(1), rpcpooltest.Status(503))
				w.List("1", best, w.Node("behind", evm.Serve(rpcpooltest.StuckAt(1000))), w.Node("far", evm.Serve(rpcpooltest.Lagging(2))))
				chain := open(t, w, func(cfg *rpcpool.Config) { cfg.MaxWait = wait }).Chain("1", rpcpool.WithFreshness(rpcpool.Freshness{EjectLag: 100}))
				w.Network.SetStep(1)
				latestBalance(t, chain)
				time.Sleep(2 * testBlockTime)
				require.Equal(t, evm.Head(), latestBalance(t, chain))
				w.Network.SetStep(2)
				time.Sleep(testBlockTime + time.Second)
				began := time.Now()
				raw, err := chain.Call(t.Context(), "eth_getBalance", someAccount, "latest")
				if wait > 0 { // one catches up with the mark after one more block
					require.NoError(t, err)
					require.GreaterOrEqual(t, number(t, raw), uint64(1002))
					require.Greater(t, time.Since(began), 5*time.Second)
					return
				}
				var stale *rpcpool.StaleError
				require.ErrorAs(t, err, &stale)
				require.GreaterOrEqual(t, stale.HighWater, uint64(1002))
				require.Len(t, stale.Lags, 3)
				require.NotZero(t, stale.Lags[1].Lag)
				require.Zero(t, time.Since(began))
				require.NotContains(t, err.Error(), "key-")
			})
		})
	}
}

// An answer that was refuted before it was handed out is among the failed attempts, with
// the time that it took.
func TestRefutedAnswerIsAnAttempt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		evm := rpcpooltest.NewEVM(1, 1000)
		const slow = 300 * time.Millisecond
		w.List("1", w.Node("liar", evm.Serve(rpcpooltest.Boasting(5000)).Delay(slow)), w.Node("r2", evm.Serve()), w.Node("r3", evm.Serve()))
		log := new(lockedBuffer)
		chain := open(t, w, func(cfg *rpcpool.Config) {
			cfg.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		}).Chain("1", rpcpool.WithFreshness(rpcpool.Freshness{}))
		head, err := rpcpool.CallAs[string](t.Context(), chain, "eth_blockNumber")
		require.NoError(t, err)
		require.Equal(t, "0x3e8", head)
		var refuted []string
		for line := range strings.Lines(log.String()) {
			if strings.Contains(line, "verdict=stale") && strings.Contains(line, "implausible: head 6000") {
				refuted = append(refuted, line)
			}
		}
		require.Len(t, refuted, 1)
		require.Contains(t, refuted[0], "duration="+slow.String())
	})
}

// Rule B2: one liar among three, five and twelve neither lifts the mark by more than the
// one block that is believed of one alone, nor has an honest RPC ejected, wherever it stands
// in the list and whatever it says.
func TestOneLiarPoisonsNothing(t *testing.T) {
	for _, n := range []int{3, 5, 12} {
		for _, boast := range []uint64{1, 2, 3, 20, 1000, 1 << 40} {
			for _, at := range []int{0, 1, n - 1} {
				t.Run(fmt.Sprintf("%d of %d says %d more", at+1, n, boast), func(t *testing.T) {
					inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
						faults := healthyNodes(n)
						faults[at] = []rpcpooltest.EVMFault{rpcpooltest.Boasting(boast)}
						// One that is a block ahead can't be told from one that is quick.
						policy := rpcpool.Freshness{MaxLag: 1 / boast}
						evm, chain := freshWorld(t, w, policy, faults, func(cfg *rpcpool.Config) {
							cfg.Mode = rpcpool.RoundRobin
						})
						for range 100 {
							for _, method := range []string{"eth_blockNumber", "eth_getBalance"} {
								params := []any{someAccount, "latest"}
								if method == "eth_blockNumber" {
									params = nil
								}
								raw, err := chain.Call(t.Context(), method, params...)
								require.NoError(t, err)
								require.InDelta(t, evm.Head(), number(t, raw), 2)
								require.LessOrEqual(t, chain.HighWater(), evm.Head()+1)
							}
							time.Sleep(time.Second)
						}
						for i, s := range chain.Stats() {
							require.True(t, i == at || s.Ejections == 0, "%+v", s)
						}
					})
				})
			}
		}
	}
}

// When all RPCs begin again from a lower head (the chain was rolled back), the handle
// takes that for the truth once they have said so for a cooldown.
func TestRollbackOfTheChain(t *testing.T) {
	for _, n := range []int{1, 2, 5} {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				evm, chain := freshWorld(t, w, rpcpool.Freshness{}, healthyNodes(n))
				for range 10 {
					latestBalance(t, chain)
					time.Sleep(testBlockTime / 2)
				}
				evm.Rewind(500)
				refused := 0
				time.Sleep(testBlockTime + time.Second) // what an RPC said of its head is out of date now
				began := time.Now()
				for time.Since(began) < 90*time.Second {
					_, err := chain.Call(t.Context(), "eth_getBalance", someAccount, "latest")
					if _, stale := errors.AsType[*rpcpool.StaleError](err); !stale {
						require.NoError(t, err)
						break
					}
					refused++
					time.Sleep(time.Second)
				}
				require.NotZero(t, refused, "old data was served as new at once")
				require.InDelta(t, 60, time.Since(began).Seconds(), 3)
				require.Equal(t, evm.Head(), latestBalance(t, chain))
				for _, s := range chain.Stats() {
					require.False(t, s.Cooling, "%+v", s)
				}
			})
		})
	}
}

// Rule B6: what isn't the latest is sent as it is written, byte for byte, and a numbered
// block isn't asked of an RPC that doesn't have it.
func TestBlocksAreSentAsGiven(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		evm, chain := freshWorld(t, w, rpcpool.Freshness{EjectLag: 1000}, [][]rpcpooltest.EVMFault{{rpcpooltest.Lagging(100)}, nil, nil})
		for range 3 {
			latestBalance(t, chain)
		}
		synctest.Wait() // a block is read for its time in the background
		lagging := 0
		for _, block := range []string{
			`"safe"`, `"finalized"`, `"earliest"`, `"0x0010"`, `"0x384"`, `"0x3e7"`,
			`{"blockNumber":"0x3e7"}`, `{"blockHash":"` + evm.Hash(999) + `","requireCanonical":true}`,
		} {
			before := len(w.Network.Exchanges())
			_, err := chain.Call(t.Context(), "eth_getBalance", someAccount, json.RawMessage(block))
			require.NoError(t, err, block)
			done := w.Network.Exchanges()[before:]
			last := done[len(done)-1]
			for _, each := range done {
				require.False(t, each.Node == "r1" && strings.Contains(string(each.Params), "3e7"), "asked for a block that it doesn't have")
			}
			require.JSONEq(t, `["`+someAccount+`",`+block+`]`, string(last.Params))
			require.Contains(t, string(last.Params), block)
			if last.Node == "r1" {
				lagging++
				require.NotContains(t, block, "3e7")
			}
		}
		require.NotZero(t, lagging, "what any RPC has needn't be asked of a fresh one")
	})
}

// Rule B7: after its cooldown an RPC gets one trial, an eth_blockNumber at the mark, and
// the calls of that moment go elsewhere; if it fails, the next cooldown is longer.
func TestTrialAfterTheCooldown(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		evm := rpcpooltest.NewEVM(1, 1000)
		evm.SetBlockTime(testBlockTime)
		back := w.Node("back", evm.Serve().ToStep(0), evm.Serve(rpcpooltest.Lagging(30)).Delay(2*time.Second).ToStep(1), evm.Serve())
		w.List("1", back, w.Node("r2", evm.Serve()), w.Node("r3", evm.Serve()))
		chain := open(t, w, func(cfg *rpcpool.Config) { cfg.Mode = rpcpool.LeastOutstanding }).
			Chain("1", rpcpool.WithFreshness(rpcpool.Freshness{}))
		for range 5 {
			latestBalance(t, chain)
			time.Sleep(testBlockTime)
		}
		w.Network.SetStep(1)
		time.Sleep(testBlockTime)
		latestBalance(t, chain) // ejects it
		require.True(t, chain.Stats()[0].Cooling)
		time.Sleep(61 * time.Second)

		before := len(w.Requests())
		done := make(chan time.Duration)
		for range 20 {
			go func() {
				start := time.Now()
				_, err := chain.Call(t.Context(), "eth_getBalance", someAccount, "latest")
				assert.NoError(t, err)
				done <- time.Since(start)
			}()
		}
		waited := 0
		for range 20 {
			if <-done > 0 {
				waited++
			}
		}
		require.Equal(t, 1, waited, "the calls of the moment go elsewhere")
		trials := 0
		for _, line := range w.Requests()[before:] {
			if strings.HasPrefix(line, "back ") {
				trials++
				require.Equal(t, "back p1 eth_blockNumber", line)
			}
		}
		require.Equal(t, 1, trials, "one trial")
		stats := chain.Stats()[0]
		require.Equal(t, 2, stats.FailuresInRow)
		require.InDelta(t, 120, time.Until(stats.Until).Seconds(), 3)

		w.Network.SetStep(2)
		time.Sleep(121 * time.Second)
		for range 2 {
			latestBalance(t, chain)
		}
		require.Zero(t, chain.Stats()[0].FailuresInRow)
		require.NotZero(t, requestsOf(w, "back", "eth_getBalance"))
	})
}
