package rpcpool_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// logRing is a ring of RPCs with these limits of blocks; 0 is an RPC without one,
// which gives at most 10,000 results.
type logRing struct {
	chain *logChain
	nodes []*logNode
	bot   *rpcpool.Chain
}

// newLogRing makes a ring on a chain with a log in each block and, where it is
// dense, three: 10,000 results are those of 3,333 dense blocks.
func newLogRing(t *testing.T, w *rpcpooltest.World, wording refusalWording, limits ...uint64) *logRing {
	r := &logRing{chain: &logChain{full: logRingBlocks, start: logRingBlocks, since: time.Now()}}
	for block := range uint64(logRingBlocks + 1) {
		for range 1 + 2*(block/30_000%2) {
			r.chain.blocks = append(r.chain.blocks, block)
			r.chain.logs = append(r.chain.logs, "7")
		}
	}
	w.Network.SetRecording(false)
	w.Proxy("p1")
	var listed []*rpcpooltest.Node
	for i, limit := range limits {
		n := &logNode{chain: r.chain, maxSpan: limit, wording: wording, random: rand.New(rand.NewPCG(1, 1))}
		if limit == 0 {
			n.maxResults = 10_000
		}
		r.nodes = append(r.nodes, n)
		listed = append(listed, w.Node(fmt.Sprintf("r%d", i), rpcpooltest.Handle(n.answer)))
	}
	w.List("1", listed...)
	r.bot = open(t, w).Chain("1")
	return r
}

const logRingBlocks = 90_000 - 1

// read makes a query of the whole chain, and gives how many refusals it met with and
// the span of its pieces.
func (r *logRing) read(t *testing.T, options ...rpcpool.LogsOption) (refusals int, first, last uint64) {
	t.Helper()
	before := r.refused()
	logs, next := 0, uint64(0)
	for chunk, err := range r.bot.LogChunks(t.Context(), rpcpool.LogFilter{FromBlock: 0, ToBlock: logRingBlocks}, options...) {
		require.NoError(t, err)
		require.Equal(t, next, chunk.From)
		next = chunk.To + 1
		logs += len(chunk.Logs)
		if first == 0 {
			first = chunk.To - chunk.From + 1
		}
		if next <= logRingBlocks { // the last piece is what is left
			last = chunk.To - chunk.From + 1
		}
	}
	require.Equal(t, len(r.chain.logs), logs)
	return r.refused() - before, first, last
}

func (r *logRing) refused() (total int) {
	for _, n := range r.nodes {
		total += n.counts().refused
	}
	return total
}

// A ring of limits of 800, 1,000, 2,000 and 10,000 blocks and of 10,000 results
// settles within one query, and stays there until what it learned is 600 s old: the
// widest RPC serves, and nobody is asked for what it refuses. Where RPCs name their
// limits that takes one refusal by each at most, else three for every halving on the
// way to a size that is taken; of pieces that are asked for at once each may be one.
func TestLogsRingOfDifferentLimitsSettles(t *testing.T) {
	limits := []uint64{800, 1000, 2000, 10_000, 0}
	for name, c := range map[string]struct {
		wording     refusalWording
		order       []uint64
		concurrency int
		most        int
	}{
		"named":                 {namedLimits[0], limits, 1, 4},
		"not named":             {unnamedLimits[0], limits, 1, 3 * 4},
		"lied about":            {lyingLimits[1], limits, 1, 3 * 4},
		"named, best first":     {namedLimits[0], []uint64{10_000, 0, 2000, 1000, 800}, 1, 1},
		"named, 8 at once":      {namedLimits[0], limits, 8, 8 * 4},
		"not named, 8 at once":  {unnamedLimits[0], limits, 8, 8*4 + 3*4},
		"lied about, 8 at once": {lyingLimits[1], limits, 8, 8*4 + 3*4},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				ring := newLogRing(t, w, c.wording, c.order...)
				options := []rpcpool.LogsOption{rpcpool.ChunkSize(10_000), rpcpool.Concurrency(c.concurrency)}
				refusals, _, last := ring.read(t, options...)
				t.Logf("the first query met with %d refusals and came to pieces of %d blocks", refusals, last)
				require.LessOrEqual(t, refusals, c.most)
				later := 0
				for range 5 {
					refusals, first, _ := ring.read(t, options...)
					later += refusals
					require.Equal(t, uint64(10_000), first)
				}
				require.LessOrEqual(t, later, 3, "refusals of five queries after it")
				time.Sleep(601 * time.Second)
				refusals, _, _ = ring.read(t, options...)
				require.LessOrEqual(t, refusals, c.most, "once what was learned is old")
			})
		})
	}
}

// One RPC with a limit that it doesn't name: each query that was taken lets the next
// one try more, half of the way to what was refused, until the two are close; a try
// that fails costs one refusal, whatever is asked for at once.
func TestLogsSpanGrowsTowardsWhatIsTaken(t *testing.T) {
	for _, concurrency := range []int{1, 8} {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			ring := newLogRing(t, w, unnamedLimits[0], 800)
			options := []rpcpool.LogsOption{rpcpool.ChunkSize(10_000), rpcpool.Concurrency(concurrency)}
			for i, step := range []struct {
				refusals int
				first    uint64
			}{
				{3 + concurrency, 625}, // 10,000, 5,000, 2,500 and 1,250 are refused
				{1, 625},               // 937 is refused
				{0, 781},
				{1, 781}, // 859 is refused: 781 is close
				{0, 781},
				{0, 781},
			} {
				refusals, first, last := ring.read(t, options...)
				require.Equal(t, step.refusals, refusals, "query %d", i)
				require.Equal(t, step.first, first, "query %d", i)
				require.Equal(t, step.first, last, "query %d", i)
			}
		})
	}
}

// A limit that an RPC names twice is its limit: more isn't tried again. ChunkSize
// bounds the pieces in any case.
func TestLogsSpanThatIsNamedStays(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		ring := newLogRing(t, w, namedLimits[0], 800)
		for i, wanted := range []int{1, 1, 0, 0, 0, 0} {
			refusals, first, last := ring.read(t, rpcpool.ChunkSize(10_000))
			require.Equal(t, wanted, refusals, "query %d", i)
			require.Equal(t, uint64(800), first)
			require.Equal(t, uint64(800), last)
		}
		refusals, first, _ := ring.read(t, rpcpool.ChunkSize(300))
		require.Zero(t, refusals)
		require.Equal(t, uint64(300), first)
	})
}

// A refusal of a dense stretch isn't a limit of blocks: where there are fewer logs
// the RPC takes more again, up to ChunkSize, as soon as that has been tried.
func TestLogsSpanGrowsBackWhereLogsAreFew(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		ring := newLogRing(t, w, unnamedLimits[0], 0)
		read := func(from, to uint64) (spans []uint64) {
			for chunk, err := range ring.bot.LogChunks(t.Context(), rpcpool.LogFilter{FromBlock: from, ToBlock: to}, rpcpool.ChunkSize(10_000)) {
				require.NoError(t, err)
				spans = append(spans, chunk.To-chunk.From+1)
			}
			return spans
		}
		require.Equal(t, []uint64{2500, 2500, 2500, 2500}, read(30_000, 39_999), "the dense stretch")
		// 10,000 blocks were refused there, and 5,000; half of the way is tried, and so on.
		require.Equal(t, uint64(3750), read(0, 9999)[0])
		require.Equal(t, uint64(4375), read(0, 9999)[0])
		require.Equal(t, uint64(4687), read(0, 9999)[0])
		require.Equal(t, uint64(4687), read(0, 9999)[0], "close to what was refused")
		time.Sleep(600 * time.Second)
		require.Equal(t, []uint64{10_000}, read(0, 9999), "the refusals are too old")
	})
}
