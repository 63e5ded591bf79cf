package rpcpool

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Rule B2: what the only RPC that can be asked says is held against the pace until it said
// so, be that its head or a block that it has; what it says doesn't come true by waiting.
func TestTakenAloneByWhenItSaidSo(t *testing.T) {
	const blockTime = 12 * time.Second
	for name, c := range map[string]struct {
		head  uint64
		exact bool
		spoke bool // it was believed before, by what others said
		taken bool
	}{
		"as far as the pace allows": {1006, true, false, true},
		"ahead of it":               {1007, true, false, false},
		"as far as it may go on":    {1013, true, true, true},
		"a block that it has":       {1013, false, true, true},
		"further than it may":       {1014, true, true, false},
		"a block further than that": {1014, false, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := ringOf("a.test", "b.test", "c.test")
			v, p := headView{pace: blockPace{fixed: blockTime}}, &Freshness{MaxLag: 2}
			first, alone := []*endpoint{r.endpoints[0], r.endpoints[1]}, r.endpoints[2]
			if c.spoke {
				first = append(first, alone)
			}
			for _, e := range first {
				v.observe(r, e, 1000, true, at(0), at(0), p)
			}
			v.observe(r, alone, c.head, c.exact, at(60), at(60), p)
			require.Equal(t, c.taken, v.believes(alone) || v.takeAlone(alone))
		})
	}
}
