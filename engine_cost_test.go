package rpcpool

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What the engine costs: a call without its transport.

// instantRequest is answered at once.
type instantRequest struct{ *callRequest }

func (instantRequest) send(context.Context, target) outcome {
	return outcome{judgement: judgement{verdict: VerdictOK}, result: instantResult}
}

var instantResult = json.RawMessage(`"0x1"`)

// engine is a handle with some features in use.
type engine struct {
	chain *chainState
	req   request
	with  func(context.Context) context.Context
}

// feature is something that a call may use.
type feature struct {
	name   string
	change func(*Config)
	option ChainOption
	with   func(context.Context) context.Context // what the caller adds to its context
}

// features are measured one by one, beside a call without any.
var features = []feature{
	{name: "none"},
	{name: "head known", option: WithFreshness(Freshness{BlockTime: time.Hour})},
	{name: "budget", with: func(ctx context.Context) context.Context {
		return WithBudget(ctx, Budget{Attempts: 1 << 60, InFlight: 1 << 10, Time: time.Hour})
	}},
	{name: "hedging", option: WithHedge(Hedge{})},
	{name: "MaxInFlight", change: func(cfg *Config) { cfg.MaxInFlight = 1 << 10 }},
	{name: "debug log off", change: func(cfg *Config) {
		cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelInfo}))
	}},
	{name: "hooks", change: func(cfg *Config) { cfg.Hooks = []Hook{quietHook{}} }},
}

// engine gives a handle on so many RPCs, about which all is known that the feature asks for.
func (f feature) engine(t testing.TB, mode Mode, rpcs int) *engine {
	t.Helper()
	pool := stillPool(t, rpcs, func(cfg *Config) {
		cfg.Mode = mode
		if f.change != nil {
			f.change(cfg)
		}
	})
	c := pool.Chain("1", f.option).s
	require.NoError(t, c.ensureList(t.Context(), time.Hour))
	if c.policy != nil {
		for _, e := range c.ring.endpoints {
			for range 2 { // one answer is too little to believe
				c.heads.observe(c.ring, e, 100, true, time.Now(), time.Now(), c.policy)
			}
		}
	}
	return &engine{c, instantRequest{newEncodedRequest(c.pool, "eth_gasPrice", []byte(noParams))}, f.with}
}

// context is what the feature's user calls with.
func (e *engine) context(ctx context.Context) context.Context {
	if e.with == nil {
		return ctx
	}
	return e.with(ctx)
}

// call makes a call that no transport has a part in.
func (e *engine) call(ctx context.Context) error {
	do := e.chain.do
	if e.chain.hedge != nil { // which do does for a callRequest alone
		do = e.chain.doHedged
	}
	_, err := do(ctx, e.req)
	return err
}

// engineAllocs is what the engine allocates for a call.
const engineAllocs = 5

// Rule F1: what the engine allocates for a call is the same for a list of 5 and of 1,000,
// in every mode. LeastOutstanding has to look at all RPCs for the one with the fewest calls,
// and allocates once more, for all of them in their order: so a call takes longer there the
// longer the list is, and that allocation is larger, but there are no more of them.
func TestEngineAllocatesNothingPerRPC(t *testing.T) {
	for mode, more := range map[Mode]int{Sticky: 0, RoundRobin: 0, LeastOutstanding: 1} {
		for _, rpcs := range []int{1, 5, 1000} {
			e := features[0].engine(t, mode, rpcs)
			require.Equal(t, engineAllocs+more, e.allocs(t), "%s, %d RPCs", mode, rpcs)
		}
	}
}

// What is off, or never has to act, costs no allocation.
func TestFeaturesThatAreOffAllocateNothing(t *testing.T) {
	for _, off := range []feature{
		features[0],
		{name: "debug log off", change: features[5].change},
		{name: "every call has its turn", change: features[4].change},
		{name: "empty budget", with: func(ctx context.Context) context.Context { return WithBudget(ctx, Budget{}) }},
		{name: "nothing cools", change: func(cfg *Config) { cfg.LastResort, cfg.MaxWait = true, time.Hour }},
	} {
		require.Equal(t, engineAllocs, off.engine(t, Sticky, 5).allocs(t), off.name)
	}
}

// allocs counts what a call that ends well allocates.
func (e *engine) allocs(t *testing.T) int {
	ctx := e.context(t.Context())
	return int(testing.AllocsPerRun(200, func() { // which gives whole numbers
		if err := e.call(ctx); err != nil {
			t.Error(err)
		}
	}))
}

// BenchmarkEngine is a call without its transport, with each feature on its own: rings of 5
// and of 1,000 RPCs cost the same (rule F1).
func BenchmarkEngine(b *testing.B) {
	for _, f := range features {
		for _, mode := range []Mode{Sticky, RoundRobin} {
			for _, rpcs := range []int{5, 1000} {
				e := f.engine(b, mode, rpcs)
				benchmarkCall(b, fmt.Sprintf("%s/%s/%d", f.name, mode, rpcs), func(b *testing.B) error { return e.call(e.context(b.Context())) })
			}
		}
	}
}

// benchmarkCall measures a call by one goroutine, by 64 at once and by 1,000.
func benchmarkCall(b *testing.B, name string, call func(*testing.B) error) {
	b.Run(name+"/g1", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := call(b); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, goroutines := range []int{64, 1000} {
		b.Run(fmt.Sprintf("%s/g%d", name, goroutines), func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism((goroutines + runtime.GOMAXPROCS(0) - 1) / runtime.GOMAXPROCS(0))
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := call(b); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}
