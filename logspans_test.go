package rpcpool

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What an RPC is asked for is never as much as it refused within 600 s, though it
// took so much since; it is never 0, nor more than what is wanted. That holds for
// any RPC, one whose refusals make no sense included.
func TestSpanMemoryNeverComesToWhatWasRefused(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 6))
		var m spanMemory
		now := 0
		refused, refusedAt := uint64(math.MaxUint64), -1 // the smallest, and when the last was
		for range 400 {
			now += random.IntN(40)
			if refusedAt >= 0 && now-refusedAt >= 600 {
				refused, refusedAt = math.MaxUint64, -1
			}
			wanted := uint64(1) << random.IntN(64) // any size of number
			wanted += random.Uint64N(wanted)
			span := m.believed(wanted, at(now))
			require.NotZero(t, span)
			require.LessOrEqual(t, span, wanted)
			if span > 1 {
				require.Less(t, span, refused, "seed %d, %d s", seed, now)
			}
			if random.IntN(8) == 0 {
				span = wanted // all RPCs refuse so much, and it was asked all the same
			}
			if random.IntN(3) == 0 {
				m.refuse(span, []uint64{0, span, span - 1, span / 3, span / 2, 1, math.MaxUint64}[random.IntN(7)], at(now))
				refused, refusedAt = min(refused, span), now
			} else {
				m.take(span)
			}
			if random.IntN(4) == 0 {
				m.grow()
			}
		}
	}
}

// An RPC with a fixed limit is found out: after some queries it is asked for nearly
// as much as it takes, and refuses nothing any more. What it names is its limit at
// once; what it names wrongly does no harm.
func TestSpanMemoryFindsTheLimit(t *testing.T) {
	for name, hint := range map[string]func(limit, span uint64) uint64{
		"none":     func(_, _ uint64) uint64 { return 0 },
		"right":    func(limit, _ uint64) uint64 { return limit },
		"repeated": func(_, span uint64) uint64 { return span },
		"larger":   func(_, span uint64) uint64 { return 2 * span },
	} {
		for _, limit := range []uint64{1, 2, 3, 10, 99, 100, 101, 799, 800, 2048, 9999} {
			var m spanMemory
			refusals, last := 0, 0
			for query := range 40 {
				m.grow()
				for tries := 0; ; tries++ {
					span := m.believed(10_000, at(0))
					if span <= limit {
						m.take(span)
						break
					}
					m.refuse(span, hint(limit, span), at(0))
					refusals, last = refusals+1, query
					require.Less(t, tries, 20)
				}
			}
			span := m.believed(10_000, at(0))
			require.LessOrEqual(t, span, limit)
			require.GreaterOrEqual(t, span, limit-limit/8, "%s, %d", name, limit)
			require.Less(t, last, 12, "%s, %d: refused in query %d still", name, limit, last)
			if name == "right" {
				require.LessOrEqual(t, refusals, 2, "%d", limit)
			}
			require.LessOrEqual(t, refusals, 18, "%s, %d", name, limit)
		}
	}
}

// Without a refusal nothing is remembered; with one, for 600 s after the last.
func TestSpanMemoryIsForgotten(t *testing.T) {
	var m spanMemory
	m.take(50)
	require.Equal(t, uint64(10_000), m.believed(10_000, at(0)))
	m.refuse(10_000, 800, at(0))
	m.refuse(900, 700, at(500))
	require.Equal(t, uint64(700), m.believed(10_000, at(1099)))
	require.Equal(t, uint64(10_000), m.believed(10_000, at(1100)))
	m.refuse(5000, 0, at(1100))
	require.Equal(t, uint64(2500), m.believed(10_000, at(1101)), "what was forgotten counts no more")
}

// Numbers at the end of uint64 don't run over.
func TestSpanMemoryOfHugeSpans(t *testing.T) {
	var m spanMemory
	m.refuse(math.MaxUint64, 0, at(0))
	require.Equal(t, uint64(math.MaxUint64/2), m.believed(math.MaxUint64, at(0)))
	m.take(math.MaxUint64)
	m.grow()
	require.Equal(t, uint64(math.MaxUint64-1), m.believed(math.MaxUint64, at(0)))
	m.refuse(1, 0, at(0))
	require.Equal(t, uint64(1), m.believed(math.MaxUint64, at(0)))
}

// Every cut makes a span smaller, until it is one block.
func TestCutToMakesProgress(t *testing.T) {
	for _, span := range []uint64{2, 3, 1000, 1 << 40, math.MaxUint64} {
		for _, named := range []uint64{0, 1, span / 2, span - 1, span, math.MaxUint64} {
			size := cutTo(span, named)
			require.Less(t, size, span)
			require.NotZero(t, size)
			if named > 0 && named < span {
				require.Equal(t, named, size)
			}
		}
	}
	require.Equal(t, uint64(1), cutTo(1, 0))
}

// The first blocks of a range and what is left of it make up the range.
func TestBlockRangeFirst(t *testing.T) {
	for _, r := range []blockRange{{0, 0}, {5, 5}, {0, 999}, {7, 1_000_000}, {0, math.MaxUint64}, {math.MaxUint64 - 1, math.MaxUint64}} {
		for _, size := range []uint64{1, 2, 999, 1000, 1001, math.MaxUint64} {
			first := r.first(size)
			require.Equal(t, r.from, first.from)
			require.LessOrEqual(t, first.to, r.to)
			require.Equal(t, min(size, r.span()), first.span())
		}
	}
}

// What RPCs took a short while ago counts for a piece that is refused, but nothing
// that an RPC took which can't be asked now.
func TestTakenBelow(t *testing.T) {
	now := time.Now()
	c := &chainState{}
	require.Zero(t, c.takenBelow(1000), "no list yet")
	c.ring = &ring{}
	add := func(taken uint64, until time.Duration, logs uint64) *endpoint {
		e := &endpoint{caps: Caps{Logs: &logs}, spans: spanMemory{taken: taken, until: now.Add(until)}}
		c.ring.endpoints = append(c.ring.endpoints, e)
		return e
	}
	add(100, time.Minute, 1000)
	add(200, time.Minute, 10_000)
	add(300, -time.Second, 10_000)
	add(400, time.Minute, 0)
	add(500, time.Minute, 10_000).health.record(&failure{at: now})
	add(999, time.Minute, 10_000)
	require.Equal(t, uint64(999), c.takenBelow(1000))
	require.Equal(t, uint64(200), c.takenBelow(999))
	require.Equal(t, uint64(100), c.takenBelow(200))
	require.Zero(t, c.takenBelow(100))
}
