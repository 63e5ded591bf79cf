package rpcpool_test

import (
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// Five hundred random rings read a chain of 200,000 blocks, with every Concurrency
// from 1 to 16: whatever the RPCs' limits, hints, faults and lags, each log comes
// exactly once and in order, and what the queries cost is bounded (rules A9.1 to
// A9.5). The chain is cut at random places into 16 queries, each with a Concurrency
// of its own; what a query learns is kept for the next ones.
func TestLogsExactlyOnceInOrder(t *testing.T) {
	const groups, runs = 10, 50
	for group := range groups {
		t.Run(fmt.Sprintf("group %d", group), func(t *testing.T) {
			var total logCost
			for run := range runs {
				seed := uint64(group*runs + run)
				inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
					total = total.plus(simulateLogs(t, w, seed))
				})
				if t.Failed() {
					t.Fatalf("run %d", seed)
				}
			}
			t.Logf("%d queries broken off and resumed %d times: %d pieces, %d refusals, %d faults, %d requests for heads",
				16*runs, total.resumed, total.pieces, total.refused, total.spoiled, total.heads)
		})
	}
}

// logCost is what log queries cost.
type logCost struct {
	pieces, resumed int
	logNodeCounts
}

func (c logCost) plus(other logCost) logCost {
	return logCost{c.pieces + other.pieces, c.resumed + other.resumed, c.logNodeCounts.plus(other.logNodeCounts)}
}

// logSimulation is one random ring.
type logSimulation struct {
	t      *testing.T
	random *rand.Rand
	chain  *logChain
	nodes  []*logNode
	bot    *rpcpool.Chain
	check  bool // heads are checked
	chunk  uint64
}

func simulateLogs(t *testing.T, w *rpcpooltest.World, seed uint64) logCost {
	random := rand.New(rand.NewPCG(seed, 4))
	s := &logSimulation{t: t, random: random, chain: newLogChain(random), check: seed%2 == 0}
	s.chunk = []uint64{600, 1000, 3000, 10_000}[random.IntN(4)]
	s.ring(w)
	s.bot = open(t, w, func(cfg *rpcpool.Config) {
		cfg.Timeout = 3 * time.Second
		cfg.Mode = []rpcpool.Mode{rpcpool.Sticky, rpcpool.RoundRobin}[random.IntN(2)]
	}).Chain("1")

	var cost logCost
	next := uint64(0)
	for i, concurrency := range random.Perm(16) {
		last := next + random.Uint64N(2*(s.chain.start-next)/uint64(16-i))
		if i == 15 {
			cost = cost.plus(s.query(&next, "latest", concurrency+1)) // which may be that of an RPC that lags
			last = s.chain.head()
		}
		cost = cost.plus(s.query(&next, last, concurrency+1))
		require.Equal(t, last+1, next, "the query ended too early")
	}
	return cost
}

// ring makes between 1 and 6 RPCs, of which one is at the head and seldom fails. In
// every second run some lag, and then heads are checked.
func (s *logSimulation) ring(w *rpcpooltest.World) {
	w.Network.SetRecording(false)
	w.Proxy("p1")
	if s.check {
		s.chain.start -= s.random.Uint64N(2000)
	}
	good := s.random.IntN(6)
	var listed []any
	for i := range max(good+1, 1+s.random.IntN(6)) {
		n := &logNode{chain: s.chain, random: rand.New(rand.NewPCG(s.random.Uint64(), 1))}
		n.maxSpan = []uint64{0, 250, 800, 1000, 2000, 10_000}[s.random.IntN(6)]
		n.maxResults = []int{0, 0, 300, 501, 1000}[s.random.IntN(5)]
		wordings := [][]refusalWording{namedLimits, unnamedLimits, lyingLimits}[s.random.IntN(3)]
		n.wording = wordings[s.random.IntN(len(wordings))]
		if i == good {
			n.faults = 0.01 * float64(s.random.IntN(2))
		} else {
			n.faults = []float64{0, 0, 0.02, 0.2, 1}[s.random.IntN(5)]
			if s.check {
				n.behind = []uint64{0, 1, 20, 5000}[s.random.IntN(4)]
			}
		}
		s.nodes = append(s.nodes, n)
		entry := rpcpooltest.List(w.Node(fmt.Sprintf("r%d", i), rpcpooltest.Handle(n.answer)))
		entry.Height = n.head() * s.random.Uint64N(2) // or not known
		listed = append(listed, entry)
	}
	w.Pool.Lists("1", rpcpooltest.PoolList("eip155:1", listed...))
}

// query reads the logs from *next on, resumes after errors, and leaves in *next the
// block after the last that it covered. It sleeps, in the run's bubble.
func (s *logSimulation) query(next *uint64, to any, concurrency int) logCost {
	var cost logCost
	options := []rpcpool.LogsOption{rpcpool.ChunkSize(s.chunk), rpcpool.Concurrency(concurrency)}
	if s.check {
		options = append(options, rpcpool.CheckHeads())
	}
	for {
		before := s.counts()
		pieces, err := s.part(next, to, options)
		part := s.counts()
		part = logNodeCounts{
			part.served - before.served, part.refused - before.refused, part.spoiled - before.spoiled, part.heads - before.heads,
		}
		s.requireBounded(pieces, part, concurrency, err == nil)
		cost = cost.plus(logCost{pieces: pieces, logNodeCounts: part})
		if err == nil {
			return cost
		}
		if broken, ok := errors.AsType[*rpcpool.LogsError](err); ok {
			require.Equal(s.t, *next, broken.NextBlock, "the error names another block")
		}
		require.NotErrorAs(s.t, err, new(*rpcpool.RPCError))
		cost.resumed++
		require.Less(s.t, cost.resumed, 50, "it doesn't come to an end: %v", err)
		time.Sleep(20 * time.Minute) // the longest cooldown is over
	}
}

// part reads until the end or an error.
func (s *logSimulation) part(next *uint64, to any, options []rpcpool.LogsOption) (pieces int, err error) {
	for chunk, err := range s.bot.LogChunks(s.t.Context(), rpcpool.LogFilter{FromBlock: *next, ToBlock: to}, options...) {
		if err != nil {
			return pieces, err
		}
		pieces++
		require.Equal(s.t, *next, chunk.From)
		require.GreaterOrEqual(s.t, chunk.To, chunk.From)
		want := s.chain.between(chunk.From, chunk.To)
		requireCount(s.t, len(want), chunk.Logs, "blocks %d to %d", chunk.From, chunk.To)
		for i, log := range chunk.Logs {
			if string(log) != want[i] {
				require.Equal(s.t, want[i], string(log))
			}
		}
		*next = chunk.To + 1
	}
	return pieces, nil
}

func (s *logSimulation) counts() (total logNodeCounts) {
	for _, n := range s.nodes {
		total = total.plus(n.counts())
	}
	return total
}

// requireBounded holds a query's cost against its bounds. Every piece that is handed
// out was answered once; no answer is thrown away but those to the pieces that an
// error left behind. The size goes down at most log2(ChunkSize) times by half and 8
// times by less, and each time at most Concurrency pieces were refused, by three
// RPCs each; a piece that is taken may have been refused by two others before.
func (s *logSimulation) requireBounded(pieces int, part logNodeCounts, concurrency int, whole bool) {
	lost := 0
	if !whole {
		lost = concurrency
	}
	require.GreaterOrEqual(s.t, part.served, pieces)
	require.LessOrEqual(s.t, part.served, pieces+lost)
	sizes := bits.Len64(s.chunk) + 8
	require.LessOrEqual(s.t, part.refused, 2*(pieces+lost)+3*concurrency*sizes)
}
