package rpcpoolprom

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
)

// An RPC that is asked for the first time in the middle of a scrape keeps what was counted:
// that the scrape hasn't seen it in a list says nothing. One that it looked for in vain goes.
func TestForgetLeavesWhatCameSinceTheLook(t *testing.T) {
	m := New()
	chain := m.chain(rpcpool.ChainLabels{Chain: "1"})
	m.rpc(chain, "https://gone.test/***").count(m, rpcpool.NoFailure)
	v := m.look(nil)
	v.chain(chain.chainKey).looked = true
	m.rpc(chain, "https://new.test/***").count(m, rpcpool.NoFailure)
	m.forget(v)
	var left []string
	for key := range m.rpcs.all() {
		left = append(left, key.rpc)
	}
	require.Equal(t, []string{"https://new.test/***"}, left)
}
