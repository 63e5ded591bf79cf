package rpcpool_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// The same storm over real connections, where the scheduler and the kernel choose the
// interleavings: every call ends, and after Close nothing is left (rule F4).
func TestStormOverLoopback(t *testing.T) {
	for _, c := range []crowd{
		{name: "64 callers, 100 handles", mode: rpcpool.Sticky, handles: 100, callers: 64, calls: 10, between: 100 * time.Millisecond},
		{name: "1000 callers, 50 handles", mode: rpcpool.RoundRobin, handles: 50, callers: 1000, calls: 1, between: time.Second},
	} {
		c.perPhase, c.timeout = 150*time.Millisecond, 500*time.Millisecond
		t.Run(c.name, func(t *testing.T) {
			w := rpcpooltest.NewWorld(rpcpooltest.NewLoopbackNetwork())
			t.Cleanup(func() { assert.NoError(t, w.Close()) })
			s := newStorm(t, w, c)
			s.rage(t, 200*time.Millisecond)
			require.Equal(t, int64(c.callers*c.calls), s.answered.Load()+s.failed.Load())
			t.Logf("%d calls answered, %d not", s.answered.Load(), s.failed.Load())
			for _, chain := range s.chains {
				require.Zero(t, chain.Unsettled(), "no call is running")
			}
			s.checkDials(t)

			require.NoError(t, s.pool.Close())
			require.Eventually(t, func() bool { return w.Network.OpenConns()+w.Network.PendingDials() == 0 }, 5*time.Second, time.Millisecond)
			require.Eventually(t, func() bool { return len(libraryStacks()) == 0 }, 5*time.Second, 10*time.Millisecond)
		})
	}
}
