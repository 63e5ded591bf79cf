package rpcpool

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A line in which an attempt's time goes by counts as a round: a call ends also where its
// RPC never has a connection for it.
func TestLineThatTakesAllTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := stillChain(t, 1, func(cfg *Config) { cfg.MaxConns = 1 })
		c.ring.endpoints[0].conns.places <- struct{}{} // somebody keeps the only one
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		began := time.Now()
		_, err := c.call(ctx, "eth_chainId", nil)
		var nobody *NoHealthyRPCError
		require.ErrorAs(t, err, &nobody)
		require.Len(t, nobody.Attempts, DefaultMaxRounds)
		require.Equal(t, DefaultMaxRounds*DefaultTimeout, time.Since(began))
		require.False(t, c.stats(time.Now())[0].Cooling)
	})
}
