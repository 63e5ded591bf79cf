package rpcpool_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// Rule C2: ten thousand payments over three RPCs that fail before and after the effect in
// every way: never more than one effect, exactly one where the call succeeds, none where
// it fails with anything but an AmbiguousError. The same faults with the method not
// declared show what the rule is worth.
func TestNoSecondEffect(t *testing.T) {
	t.Parallel() // it takes a core for long
	const groups = 20
	perGroup := 500
	if underRace || testing.Short() {
		perGroup = 25
	}
	var doubled, ambiguous, charged int
	for group := range groups {
		for _, declared := range []bool{true, false} {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				p := newPayments(t, w, uint64(group), declared)
				payments := perGroup
				if !declared {
					payments = perGroup / 10
				}
				for i := range payments {
					p.pay(t, fmt.Sprint("payment ", i))
				}
				if declared {
					ambiguous += p.ambiguous
					charged += p.charged
					require.Zero(t, p.doubled)
				} else {
					doubled += p.doubled
				}
			})
		}
	}
	t.Logf("%d payments: %d charged, %d ambiguous, none twice; of a tenth as many, undeclared, %d were charged more than once",
		charged+ambiguous, charged, ambiguous, doubled)
	require.NotZero(t, ambiguous)
	require.NotZero(t, charged)
	require.NotZero(t, doubled, "the faults are harmless")
}

// dice are random numbers for many goroutines.
type dice struct {
	mu     sync.Mutex // protects random
	random *rand.Rand
}

func newDice(seed, stream uint64) *dice { return &dice{random: rand.New(rand.NewPCG(seed, stream))} }

func (d *dice) IntN(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.random.IntN(n)
}

// payments are calls over RPCs that fail at random.
type payments struct {
	chain    *rpcpool.Chain
	ledger   *rpcpooltest.Ledger
	random   *dice
	declared bool
	how      int

	doubled, ambiguous, charged int
}

func newPayments(t *testing.T, w *rpcpooltest.World, seed uint64, declared bool) *payments {
	t.Helper()
	p := &payments{ledger: rpcpooltest.NewLedger(), random: newDice(seed, 2), declared: declared, how: int(seed % 3)}
	w.Network.SetRecording(false)
	w.Proxy("p1")
	w.Proxy("p2")
	w.SetKeepAlive(seed%2 == 0)
	var nodes []*rpcpooltest.Node
	for i := range 3 {
		nodes = append(nodes, w.Node(fmt.Sprint("r", i), rpcpooltest.Handle(func(q rpcpooltest.Request) rpcpooltest.Reply {
			return p.ledger.Charge(rpcpooltest.ChargeFault(p.random.IntN(int(rpcpooltest.HungAfter) + 1)))
		})))
	}
	w.List("1", nodes...)
	pool := open(t, w, func(cfg *rpcpool.Config) {
		cfg.Timeout = 5 * time.Second
		if declared {
			cfg.NonIdempotent = []string{"pay_*"}
		}
	})
	p.chain = pool.Chain("1")
	return p
}

// pay makes a payment in one of three ways, and waits a while, in its bubble.
func (p *payments) pay(t *testing.T, name string) {
	t.Helper()
	err := p.call(t.Context(), name)
	effects := p.ledger.EffectsOf(name)
	if effects > 1 {
		p.doubled++
	}
	_, ambiguous := errors.AsType[*rpcpool.AmbiguousError](err)
	switch {
	case !p.declared:
	case err == nil:
		p.charged++
		require.Equal(t, 1, effects, "it was said to be charged")
	case ambiguous:
		p.ambiguous++
		require.LessOrEqual(t, effects, 1)
	default:
		require.Zero(t, effects, "it was said not to be charged: %v", err)
	}
	time.Sleep(time.Duration(p.random.IntN(200)) * time.Second)
}

func (p *payments) call(ctx context.Context, name string) error {
	switch p.how {
	case 0:
		_, err := p.chain.Call(ctx, "pay_charge", name)
		return err
	case 1:
		elems := []rpcpool.BatchElem{{Method: "pay_charge", Args: []any{name}}, {Method: "eth_chainId"}}
		_ = p.chain.BatchCallContext(ctx, elems)
		return elems[0].Error
	}
	var opts []rpcpool.RunOption
	if p.declared {
		opts = append(opts, rpcpool.NonIdempotent())
	}
	body := []byte(`{"jsonrpc":"2.0","id":1,"method":"pay_charge","params":["` + name + `"]}`)
	return p.chain.Run(ctx, func(ctx context.Context, url string, client *http.Client) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/json")
		res, err := client.Do(req)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		answer, err := io.ReadAll(res.Body)
		switch {
		case err != nil:
			return err
		case res.StatusCode != http.StatusOK:
			return &rpcpool.HTTPError{StatusCode: res.StatusCode}
		case bytes.Contains(answer, []byte("internal error")):
			return &rpcpool.RPCError{Code: -32603, Message: "internal error"}
		}
		return nil
	}, opts...)
}

// Rule C2: what provably didn't reach an RPC, or was refused before it ran, is repeated;
// whatever else happened ends with an AmbiguousError that says so.
func TestWhatMayBeRepeated(t *testing.T) {
	for name, c := range map[string]struct {
		fault     rpcpooltest.Reply
		ambiguous bool
	}{
		"429":                 {rpcpooltest.RateLimited(0), false},
		"403":                 {rpcpooltest.Status(403), false},
		"401":                 {rpcpooltest.Status(401), false},
		"method not found":    {rpcpooltest.Error(-32601, "the method eth_sendTransaction does not exist"), false},
		"unreachable":         {rpcpooltest.Unreachable(), false},
		"rate limit in words": {rpcpooltest.Error(-32005, "rate limit exceeded"), false},
		"500":                 {rpcpooltest.Status(500), true},
		"502":                 {rpcpooltest.Status(502), true},
		"404":                 {rpcpooltest.Status(404), true},
		"internal error":      {rpcpooltest.Error(-32603, "internal error"), true},
		"not JSON":            {rpcpooltest.Garbage(), true},
		"reset after it":      {rpcpooltest.Reset(), true},
		"closed after it":     {rpcpooltest.Close(), true},
		"no answer":           {rpcpooltest.Hang(), true},
		"half an answer":      {rpcpooltest.Truncated(), true},
		"another's answer":    {rpcpooltest.WrongID("0x1"), true},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				w.Proxy("p1")
				bad, good := w.Node("bad", c.fault), w.Node("good")
				w.List("1", bad, good)
				_, err := open(t, w).Chain("1").Call(t.Context(), "eth_sendTransaction", map[string]string{})
				if !c.ambiguous {
					require.NoError(t, err)
					require.Len(t, good.Requests(), 1)
					return
				}
				var open *rpcpool.AmbiguousError
				require.ErrorAs(t, err, &open)
				require.Equal(t, "eth_sendTransaction", open.Method)
				require.Len(t, open.Attempts, 1)
				require.Empty(t, good.Requests())
				require.NotContains(t, err.Error(), "key-")
			})
		})
	}
	t.Run("the proxy is dead", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			w.Proxy("p1", rpcpooltest.ProxyRefuse())
			w.Proxy("p2")
			w.List("1", w.Node("r1"))
			_, err := open(t, w).Chain("1").Call(t.Context(), "eth_sendTransaction", map[string]string{})
			require.NoError(t, err)
		})
	})
	t.Run("the caller's end", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			w.Proxy("p1")
			w.List("1", w.Node("r1", rpcpooltest.Hang()))
			_, err := open(t, w).Chain("1").Call(within(t, 3*time.Second), "eth_sendTransaction", map[string]string{})
			var open *rpcpool.AmbiguousError
			require.ErrorAs(t, err, &open)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		})
	})
}

// Rules C2, C5: a function that made more than one request isn't called again, whatever
// the last one met; who isn't at fault for that isn't cooled.
func TestFunctionOfTwoRequests(t *testing.T) {
	for name, c := range map[string]struct {
		second rpcpooltest.Reply
		proxy  rpcpooltest.ProxyReply
		option rpcpool.RunOption
		cools  bool
	}{
		"the proxy refuses":        {rpcpooltest.Result("0x1"), rpcpooltest.ProxyRefuseLogin(), rpcpool.NonIdempotent(), false},
		"the proxy, of a stream":   {rpcpooltest.Result("0x1"), rpcpooltest.ProxyRefuseLogin(), rpcpool.NotAfterFirstByte(), false},
		"a method isn't served":    {rpcpooltest.Error(-32601, "the method x does not exist"), rpcpooltest.ProxyCarry(), rpcpool.NonIdempotent(), false},
		"no method, of a stream":   {rpcpooltest.Error(-32601, "the method x does not exist"), rpcpooltest.ProxyCarry(), rpcpool.NotAfterFirstByte(), false},
		"the address is blocked":   {rpcpooltest.Status(403), rpcpooltest.ProxyCarry(), rpcpool.NonIdempotent(), false},
		"it broke":                 {rpcpooltest.Status(500), rpcpooltest.ProxyCarry(), rpcpool.NonIdempotent(), true},
		"the connection, a stream": {rpcpooltest.Close(), rpcpooltest.ProxyCarry(), rpcpool.NotAfterFirstByte(), true},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				w.SetKeepAlive(false)
				w.Proxy("p1", rpcpooltest.ProxyCarry().Times(1), c.proxy.Times(1), rpcpooltest.ProxyCarry())
				w.Proxy("p2")
				bad, good := w.Node("bad", rpcpooltest.Result("0x1").Times(1), c.second), w.Node("good")
				w.List("1", bad, good)
				chain, calls := open(t, w).Chain("1"), 0
				err := chain.Run(t.Context(), func(ctx context.Context, url string, client *http.Client) error {
					calls++
					for range 2 {
						if err := postOnce(ctx, url, client); err != nil {
							return err
						}
					}
					return nil
				}, c.option)
				require.Equal(t, 1, calls)
				if strings.HasSuffix(name, "stream") {
					var partial *rpcpool.PartialAnswerError
					require.ErrorAs(t, err, &partial)
				} else {
					var ambiguous *rpcpool.AmbiguousError
					require.ErrorAs(t, err, &ambiguous)
				}
				require.Empty(t, good.Requests())
				require.Equal(t, c.cools, chain.Stats()[0].Cooling)
			})
		})
	}
}

// postOnce makes a request and reads its answer, as an SDK does.
func postOnce(ctx context.Context, url string, client *http.Client) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(blockNumberRequest))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	var answer struct{ Error *rpcpool.RPCError }
	if err := json.NewDecoder(res.Body).Decode(&answer); err == nil && answer.Error != nil {
		return answer.Error
	}
	if res.StatusCode != http.StatusOK {
		return &rpcpool.HTTPError{StatusCode: res.StatusCode}
	}
	return nil
}

// Rule C2: the default list, and what a user adds to it.
func TestMethodsWithEffects(t *testing.T) {
	for _, method := range []string{
		"eth_sendTransaction", "personal_sign", "miner_start", "admin_addPeer", "evm_mine", "anvil_mine",
		"hardhat_reset", "wallet_sendCalls", "engine_newPayloadV4", "generatetoaddress", "my_pay", "my_other", "exact",
	} {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			w.Proxy("p1")
			w.List("1", w.Node("r1", rpcpooltest.Close()), w.Node("r2"))
			chain := open(t, w, func(cfg *rpcpool.Config) { cfg.NonIdempotent = []string{"my_*", "exact"} }).Chain("1")
			_, err := chain.Call(t.Context(), method)
			var open *rpcpool.AmbiguousError
			require.ErrorAs(t, err, &open, method)
		})
	}
	for _, method := range []string{"eth_call", "eth_sendRawTransaction", "sendTransaction", "exactly", "mine", "eth_getLogs"} {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			w.Proxy("p1")
			w.List("1", w.Node("r1", rpcpooltest.Close()), w.Node("r2", rpcpooltest.Result([]any{})))
			chain := open(t, w, func(cfg *rpcpool.Config) { cfg.NonIdempotent = []string{"my_*", "exact"} }).Chain("1")
			_, err := chain.Call(t.Context(), method, map[string]string{})
			require.NoError(t, err, method)
		})
	}
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		for _, bad := range []string{"", "*", "a*b", "**"} {
			cfg := w.Config()
			cfg.NonIdempotent = []string{bad}
			_, err := rpcpool.New(cfg)
			var unusable *rpcpool.ConfigError
			require.ErrorAs(t, err, &unusable, "%q", bad)
			require.Equal(t, "NonIdempotent[0]", unusable.Field)
		}
	})
}

// Rule C3: nothing under the engine repeats a request that was written. net/http would
// send a GET again on each kept connection that breaks; here it is sent on the first one,
// and once more by the library itself on a fresh one (rule A5.3), which isn't done for a
// function with effects. Of a TRACE, and of what has a key to tell repetitions by, it does
// the same, so these go out on a fresh connection.
func TestOneLoopOfRetries(t *testing.T) {
	const kept = 5
	for name, sent := range map[string]int{
		"GET": 2, "HEAD": 2, "OPTIONS": 2, "TRACE": 1, "POST Idempotency-Key": 1, "DELETE X-Idempotency-Key": 1,
	} {
		method, key, _ := strings.Cut(name, " ")
		for _, effects := range []bool{false, true} {
			t.Run(fmt.Sprint(name, effects), func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
					w.Proxy("p1")
					r := w.Node("r1", rpcpooltest.Body("").Delay(time.Second).ToStep(0), rpcpooltest.Close())
					r.AllowREST()
					w.List("1", r)
					chain := open(t, w, func(cfg *rpcpool.Config) { cfg.MaxRounds = 1 }).Chain("1")
					ask := func(opts ...rpcpool.RunOption) error {
						return chain.Run(t.Context(), func(ctx context.Context, url string, client *http.Client) error {
							req, err := http.NewRequestWithContext(ctx, method, url, http.NoBody)
							if err != nil {
								return err
							}
							if key != "" {
								req.Header.Set(key, "1")
							}
							res, err := client.Do(req)
							if err != nil {
								return err
							}
							defer res.Body.Close()
							_, err = io.Copy(io.Discard, res.Body)
							return err
						}, opts...)
					}
					var first sync.WaitGroup
					for range kept {
						first.Go(func() { assert.NoError(t, ask()) })
					}
					first.Wait()
					w.Network.SetStep(1)
					before, want := len(r.Requests()), sent
					var opts []rpcpool.RunOption
					if effects {
						opts, want = append(opts, rpcpool.NonIdempotent()), 1
					}
					require.Error(t, ask(opts...))
					require.Len(t, r.Requests(), before+want)
				})
			})
		}
	}
}

// Rule C5: a function that has read of an answer is called again from the start, unless
// that is forbidden.
func TestStreamsBeginAnew(t *testing.T) {
	for _, forbidden := range []bool{false, true} {
		t.Run(fmt.Sprint(forbidden), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				w.Proxy("p1")
				broken := w.Node("broken", rpcpooltest.Body(strings.Repeat("x", 1000)).Cut())
				whole := w.Node("whole", rpcpooltest.Body(strings.Repeat("y", 1000)))
				broken.AllowREST()
				whole.AllowREST()
				w.List("1", broken, whole)
				var got strings.Builder
				var opts []rpcpool.RunOption
				if forbidden {
					opts = append(opts, rpcpool.NotAfterFirstByte())
				}
				err := open(t, w).Chain("1").Run(t.Context(), func(ctx context.Context, url string, client *http.Client) error {
					req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
					if err != nil {
						return err
					}
					res, err := client.Do(req)
					if err != nil {
						return err
					}
					defer res.Body.Close()
					_, err = io.Copy(&got, res.Body)
					return err
				}, opts...)
				if !forbidden {
					require.NoError(t, err)
					require.Equal(t, strings.Repeat("x", 1000)+strings.Repeat("y", 1000), got.String())
					return
				}
				var partial *rpcpool.PartialAnswerError
				require.ErrorAs(t, err, &partial)
				require.Len(t, partial.Attempts, 1)
				require.NotContains(t, got.String(), "y")
			})
		})
	}
}
