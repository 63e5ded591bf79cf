package rpcpool

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// quietHook is told of everything that happens in a good call, and does nothing.
type quietHook struct{}

func (quietHook) CallStarted(ctx context.Context, _ CallStart) context.Context { return ctx }
func (quietHook) CallEnded(context.Context, CallEnd)                           {}
func (quietHook) AttemptStarted(ctx context.Context, _ AttemptStart) context.Context {
	return ctx
}
func (quietHook) AttemptEnded(context.Context, AttemptEnd) {}

// Hooks of calls and attempts that do nothing cost a call a few allocations (rule F1);
// without hooks it is engineAllocs, see TestFeaturesThatAreOffAllocateNothing.
func TestHooksAllocateLittle(t *testing.T) {
	on := feature{name: "hooks", change: func(cfg *Config) { cfg.Hooks = []Hook{quietHook{}} }}
	require.LessOrEqual(t, on.engine(t, Sticky, 5).allocs(t), engineAllocs+4)
}
