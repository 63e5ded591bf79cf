package rpcpool

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// An RPC whose head goes back does so alone, and is taken to do so again, unless another
// operator's went back within a few block times: then it was the chain, and it is held
// against none of them. Two URLs of one operator are one.
func TestWhoWentBackTogether(t *testing.T) {
	const blockTime = 12 * time.Second
	for _, c := range []struct {
		name  string
		falls []int           // which of a1, a2 (of one operator), b, c went back, in order
		after []time.Duration // since the one before
		dips  [4]uint64       // what is held against each in the end
	}{
		{"alone", []int{0}, []time.Duration{0}, [4]uint64{5}},
		{"one operator", []int{0, 1}, []time.Duration{0, time.Second}, [4]uint64{5, 5}},
		{"two operators", []int{0, 2}, []time.Duration{0, togetherBlocks * blockTime}, [4]uint64{}},
		{"one after the other", []int{0, 2}, []time.Duration{0, togetherBlocks*blockTime + 1}, [4]uint64{5, 0, 5}},
		{"all", []int{0, 1, 2, 3}, []time.Duration{0, time.Second, time.Second, time.Second}, [4]uint64{}},
		{"alone again", []int{0, 2, 0}, []time.Duration{0, time.Second, time.Hour}, [4]uint64{5}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := ringOf("a1.one.test", "a2.one.test", "b.test", "c.test")
			require.Equal(t, 3, r.sources)
			v := headView{pace: blockPace{fixed: blockTime}}
			now := at(0)
			for i, fallen := range c.falls {
				now = now.Add(c.after[i])
				v.wentDown(r, r.endpoints[fallen], 5, now)
			}
			for i, e := range r.endpoints {
				require.Equal(t, c.dips[i], e.heads.dipAt(now), "%d", i)
			}
		})
	}
}

// Where there is nobody else to ask, that the only RPC went back makes no difference; what is
// held against one is the most that it went back, for ten minutes.
func TestWhatIsHeldAgainstOneThatWentBack(t *testing.T) {
	for hosts, want := range map[int]uint64{1: 0, 2: 7} {
		r := ringOf([]string{"a.test", "b.test"}[:hosts]...)
		v, e := headView{}, r.endpoints[0]
		v.wentDown(r, e, 7, at(0))
		v.wentDown(r, e, 2, at(100))
		require.Equal(t, want, e.heads.dipAt(at(700)), hosts)
		require.Zero(t, e.heads.dipAt(at(701)), hosts)
		v.wentDown(r, e, 2, at(800))
		require.Equal(t, min(want, 2), e.heads.dipAt(at(801)), hosts)
	}
}

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
