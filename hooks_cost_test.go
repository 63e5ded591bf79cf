package rpcpool

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
)

// instantPool makes a pool of one RPC that answers at once.
func instantPool(t testing.TB, hooks ...Hook) (call func()) {
	t.Helper()
	lists, err := NewStaticDirectory(List{Key: "eip155:1", RPCs: []RPC{{URL: "https://rpc.example.org/key"}}})
	require.NoError(t, err)
	pool, err := New(Config{
		Proxies: []string{"socks5://p.test:1080"}, Directory: lists, CacheDir: t.TempDir(),
		Logger: slog.New(slog.DiscardHandler), Hooks: hooks,
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = pool.Close() })
	c := pool.Chain("1").s
	req := instantRequest{newEncodedRequest(c.pool, "eth_chainId", []byte(noParams))}
	ctx := context.Background()
	return func() {
		if _, err := c.do(ctx, req); err != nil {
			t.Error(err)
		}
	}
}

// quietHook is told of everything that happens in a good call, and does nothing.
type quietHook struct{}

func (quietHook) CallStarted(ctx context.Context, _ CallStart) context.Context { return ctx }
func (quietHook) CallEnded(context.Context, CallEnd)                           {}
func (quietHook) AttemptStarted(ctx context.Context, _ AttemptStart) context.Context {
	return ctx
}
func (quietHook) AttemptEnded(context.Context, AttemptEnd) {}

// engineAllocs is what the engine allocates for a call that is answered at once: as much as
// before there were hooks.
const engineAllocs = 5

// Without hooks a call allocates what it did before there were any; with hooks that do
// nothing, a few things more (rule F1).
func TestHooksOffAllocateNothing(t *testing.T) {
	off := instantPool(t)
	off()
	require.Equal(t, engineAllocs, int(testing.AllocsPerRun(1000, off)))
	on := instantPool(t, quietHook{})
	on()
	t.Logf("hooks off: %v allocations, on: %v", testing.AllocsPerRun(1000, off), testing.AllocsPerRun(1000, on))
	require.LessOrEqual(t, testing.AllocsPerRun(1000, on), float64(engineAllocs+4))
}

// BenchmarkCallHooksOff is the engine's own work on a call that is answered at once.
func BenchmarkCallHooksOff(b *testing.B) { benchmarkInstant(b) }

// BenchmarkCallHooksOn is the same with a hook of calls and attempts that does nothing.
func BenchmarkCallHooksOn(b *testing.B) { benchmarkInstant(b, quietHook{}) }

func benchmarkInstant(b *testing.B, hooks ...Hook) {
	call := instantPool(b, hooks...)
	call()
	b.ReportAllocs()
	for b.Loop() {
		call()
	}
}
