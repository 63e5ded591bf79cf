package rpcpool

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// ringOf makes a ring of RPCs at these hosts.
func ringOf(hosts ...string) *ring {
	list := &List{}
	for _, host := range hosts {
		list.RPCs = append(list.RPCs, RPC{URL: "http://" + host})
	}
	r, _ := newRing(list, nil)
	return r
}

// The chain went back where two operators have said so for a minute, or one for a quarter of
// an hour, and nobody who goes on has said otherwise since. The only one needn't wait so long.
func TestWhenTheChainWentBack(t *testing.T) {
	const now, mark = 10_000, 1000
	fell := func(since, said int) headState { // to 500
		return headState{seen: 500, at: at(said), rose: at(since), fellAt: at(since)}
	}
	long := fell(now-60, now)
	goesOn := headState{seen: mark, at: at(now), rose: at(now - 5)}
	change := func(h headState, f func(*headState)) headState { f(&h); return h }
	for _, c := range []struct {
		name  string
		hosts []string
		heads []headState
		gone  int // whose RPC is on another chain; -1: nobody's
		want  bool
	}{
		{"nobody fell", []string{"a.test", "b.test"}, []headState{goesOn, goesOn}, -1, false},
		{"two did", []string{"a.test", "b.test"}, []headState{long, long}, -1, true},
		{"one not long enough", []string{"a.test", "b.test"}, []headState{long, fell(now-59, now)}, -1, false},
		{"one hasn't said so for long", []string{"a.test", "b.test"}, []headState{long, fell(now-60, now-1)}, -1, false},
		{"two of one operator", []string{"x.a.test", "y.a.test", "b.test"}, []headState{long, long, {}}, -1, false},
		{"the only one", []string{"a.test"}, []headState{long}, -1, true},
		{"one alone", []string{"a.test", "b.test"}, []headState{fell(now-899, now), {}}, -1, false},
		{"one alone for long", []string{"a.test", "b.test"}, []headState{fell(now-900, now), {}}, -1, true},
		{"another goes on", []string{"a.test", "b.test", "c.test"}, []headState{long, long, goesOn}, -1, false},
		{"a bit behind", []string{"a.test", "b.test", "c.test"}, []headState{long, long, change(goesOn, func(h *headState) { h.seen -= 3 })}, -1, false},
		{"far behind", []string{"a.test", "b.test", "c.test"}, []headState{long, long, change(goesOn, func(h *headState) { h.seen -= 4 })}, -1, true},
		{"another stands still", []string{"a.test", "b.test", "c.test"}, []headState{long, long, change(goesOn, func(h *headState) { h.rose = at(now - 60) })}, -1, true},
		{"another spoke before", []string{"a.test", "b.test", "c.test"}, []headState{long, long, change(goesOn, func(h *headState) { h.at = at(now - 60) })}, -1, true},
		{"on another chain", []string{"a.test", "b.test", "c.test"}, []headState{long, long, goesOn}, 2, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := ringOf(c.hosts...)
			for i, e := range r.endpoints {
				e.heads, e.expelled = c.heads[i], i == c.gone
			}
			v := headView{mark: mark}
			require.Equal(t, c.want, v.wentBack(r, at(now), &Freshness{EjectLag: 3}))
		})
	}
}

// After a rollback all is counted anew from what was said lately, and what was said or listed
// before counts for nothing: where one alone has spoken, the mark is its word until two have.
func TestAfterARollback(t *testing.T) {
	const now = 10_000
	for _, both := range []bool{false, true} {
		r := ringOf("a.test", "b.test")
		a, b := r.endpoints[0], r.endpoints[1]
		a.heads = headState{listed: 1000, seen: 500, at: at(now), rose: at(now - 60), fellAt: at(now - 60), top: 1000, dip: 500, dipUntil: at(now + 500)}
		b.heads = headState{listed: 1000, seen: 1000, at: at(now - 121), rose: at(now - 121), top: 1000}
		if both {
			b.heads = headState{listed: 1000, seen: 499, at: at(now - 120), rose: at(now - 120), fellAt: at(now - 120), top: 1000}
		}
		v := headView{mark: 1000, anchor: 1000, pace: blockPace{fixed: 12 * time.Second}, listedAt: at(5)}
		v.rollBack(r, at(now))
		require.Equal(t, headState{listed: 500, seen: 500, at: at(now), rose: at(now - 60), top: 500, topAt: at(now), spoke: true}, a.heads)
		require.Equal(t, !both, v.alone)
		require.Equal(t, 12*time.Second, v.pace.fixed)
		require.Equal(t, at(5), v.listedAt)
		if both {
			require.Equal(t, uint64(499), v.mark, "what both have reached")
			require.Equal(t, uint64(499), v.anchor)
			require.Equal(t, uint64(499), b.heads.claim())
			continue
		}
		require.Equal(t, uint64(500), v.mark)
		require.Zero(t, v.anchor)
		require.Zero(t, b.heads.claim())
		require.Zero(t, b.heads.top)
		require.True(t, b.heads.at.IsZero())
	}
}
