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
