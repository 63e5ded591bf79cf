package rpcpool

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Rule B3: where two RPCs' heads go back by about as much, the chain did; where one goes
// back by a block, as one behind a cache does, another that goes back by ten still has two
// nodes behind it.
func TestDipsOfTwoRPCs(t *testing.T) {
	for _, c := range []struct {
		first, second uint64 // blocks by which they go back
		later         time.Duration
		chain         bool // it is the chain's doing
	}{
		{1, 10, time.Second, false},
		{10, 1, time.Second, false},
		{10, 10, time.Second, true},
		{6, 10, time.Second, true},
		{10, 6, time.Second, true},
		{10, 10, time.Hour, false},
	} {
		r := testRing(t, Caps{}, Caps{})
		v := headView{pace: blockPace{fixed: 12 * time.Second}}
		policy := Freshness{EjectLag: 1000}
		one, two := r.endpoints[0], r.endpoints[1]
		say := func(e *endpoint, head uint64, when time.Time) { v.observe(r, e, head, true, when, when, &policy) }
		say(one, 1000, at(0))
		say(two, 1000, at(0))
		say(one, 1000-c.first, at(1))
		now := at(1).Add(c.later)
		say(two, 1000-c.second, now)
		want := c.second
		if c.chain {
			want = 0
		}
		require.Equal(t, want, two.heads.dipAt(now), "%+v", c)
		if c.chain {
			require.Zero(t, one.heads.dipAt(now), "%+v", c)
		}
	}
}
