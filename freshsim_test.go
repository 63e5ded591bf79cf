package rpcpool_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// Twelve RPCs of which eight deceive in different ways, random failures on all of them,
// 200,000 reads: with the policy no answer is staler than MaxLag, none is from another
// chain, no snapshot is mixed, and no honest RPC is left out, or isn't believed, for longer
// than one cooldown beyond what its own failures cost it. The same reads without the policy
// show what it is worth. (Rules B2 to B7, D1, D2; fewer reads under the race detector.)
func TestTwelveDeceivers(t *testing.T) {
	t.Parallel() // it takes a core for long
	runs, reads := 20, 10_000
	if underRace || testing.Short() {
		runs, reads = 4, 1000
	}
	var with, without deception
	for run := range runs {
		for _, policy := range []bool{true, false} {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				s := newDeceivers(t, w, uint64(run), policy)
				s.read(reads)
				if policy {
					with.add(&s.seen)
				} else {
					without.add(&s.seen)
				}
			})
			if t.Failed() {
				t.Fatalf("run %d", run)
			}
		}
	}
	t.Logf("with the policy:    %s", &with)
	t.Logf("without the policy: %s", &without)
	require.Zero(t, with.stale, "stale answers")
	require.Zero(t, with.wrongChain, "answers from another chain")
	require.Zero(t, with.mixed, "mixed snapshots")
	require.Zero(t, with.outTooLong, "honest RPCs out of the ring for longer than a cooldown")
	require.Zero(t, with.unknown, "states of no chain there is")
	require.Less(t, with.refused, with.reads/20, "reads that ended with an error")
	require.NotZero(t, with.noticed, "forks are served, but noticed")
	require.NotZero(t, without.stale, "the world deceives nobody")
	require.NotZero(t, without.wrongChain)
	require.NotZero(t, without.mixed)
	require.NotZero(t, without.forked)
}

// deception is what a bot got to see.
type deception struct {
	reads, stale, wrongChain, forked, unknown, mixed, refused, outTooLong, requests int

	noticed uint64        // forks
	longest time.Duration // for which an honest RPC was left out, beyond what its failures explain
}

func (d *deception) add(other *deception) {
	d.reads += other.reads
	d.stale += other.stale
	d.wrongChain += other.wrongChain
	d.forked += other.forked
	d.unknown += other.unknown
	d.noticed += other.noticed
	d.mixed += other.mixed
	d.refused += other.refused
	d.outTooLong += other.outTooLong
	d.requests += other.requests
	d.longest = max(d.longest, other.longest)
}

func (d *deception) String() string {
	return fmt.Sprintf("%d reads (%.2f requests each): %d stale, %d from another chain, %d from a fork (noticed %d times), %d of mixed states, %d refused; "+
		"an honest RPC left out for %v at most",
		d.reads, float64(d.requests)/float64(d.reads), d.stale, d.wrongChain, d.forked, d.noticed, d.mixed, d.refused, d.longest)
}

const deceiversMaxLag = 2

// deceivers is one run.
type deceivers struct {
	t      *testing.T
	random *rand.Rand
	chain  *rpcpooltest.EVM
	other  *rpcpooltest.EVM // the other chain, to know its hashes
	fork   forkHashes
	bot    *rpcpool.Chain
	policy bool
	seen   deception

	mu       sync.Mutex // protects requests, and honestRPC.excused
	requests int

	honest map[string]*honestRPC // by masked URL
}

// honestRPC is one that fails at times, but says the truth.
type honestRPC struct {
	failures atomic.Int64 // of its own

	excused time.Time // until when its own failures have it left alone
	outFrom time.Time // since when it isn't asked, or isn't believed; zero: it is
}

// CooldownChanged tells what an honest RPC's own failures explain: that it isn't believed is
// none of them.
func (s *deceivers) CooldownChanged(_ context.Context, event rpcpool.CooldownEvent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rpc := s.honest[event.RPC]
	if rpc != nil && event.Class != rpcpool.SemanticFailure && event.Until.After(rpc.excused) {
		rpc.excused = event.Until
	}
}

// forkHashes are the hashes of the fork, asked of a node that the bot doesn't know.
type forkHashes struct {
	t     *testing.T
	node  *rpcpooltest.Node
	known map[uint64]string
}

func (f *forkHashes) of(block uint64) string {
	if hash, known := f.known[block]; known {
		return hash
	}
	res, err := f.node.Client().Post(f.node.URL(), "application/json", strings.NewReader(fmt.Sprintf(
		`{"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["0x%x",false]}`, block)))
	require.NoError(f.t, err)
	defer res.Body.Close()
	var answer struct{ Result struct{ Hash string } }
	require.NoError(f.t, json.NewDecoder(res.Body).Decode(&answer))
	require.NotEmpty(f.t, answer.Result.Hash)
	f.known[block] = answer.Result.Hash
	return answer.Result.Hash
}

func newDeceivers(t *testing.T, w *rpcpooltest.World, seed uint64, policy bool) *deceivers {
	s := &deceivers{
		t: t, random: rand.New(rand.NewPCG(seed, 12)), policy: policy,
		chain: rpcpooltest.NewEVM(1, 1000), other: rpcpooltest.NewEVM(5, 1000),
		honest: map[string]*honestRPC{},
	}
	w.Network.SetRecording(false)
	w.Proxy("p1")
	s.chain.SetBlockTime(testBlockTime)
	s.fork = forkHashes{t, w.Node("unlisted", s.chain.Serve(rpcpooltest.ForkedFrom(990))), map[uint64]string{}}
	faults := map[string][]rpcpooltest.EVMFault{
		"honest-1": nil, "honest-2": nil, "honest-3": nil, "honest-4": nil,
		"lagging":     {rpcpooltest.Lagging(20)},
		"frozen":      {rpcpooltest.StuckAt(1000 + s.random.Uint64N(60))},
		"boasting":    {rpcpooltest.Boasting([]uint64{3, 50, 1 << 30}[s.random.IntN(3)])},
		"forked":      {rpcpooltest.ForkedFrom(990)},
		"other-chain": {rpcpooltest.OnChain(5)},
		"alternating": {rpcpooltest.Alternating(10)},
		"caching":     {rpcpooltest.Caching(2 * testBlockTime)},
		"vague":       {rpcpooltest.Vague(), rpcpooltest.Lagging(10)},
	}
	var names []string
	for name := range faults {
		names = append(names, name)
	}
	// The order of a map is no seed's.
	slices.Sort(names)
	s.random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	var listed []any
	for _, name := range names {
		rpc := new(honestRPC)
		node := w.Node(name, s.unreliable(s.chain.Serve(faults[name]...), &rpc.failures, name != "alternating"))
		entry := rpcpooltest.List(node)
		entry.Height *= s.random.Uint64N(2) // known or not
		listed = append(listed, entry)
		if strings.HasPrefix(name, "honest") {
			s.honest["http://"+name+".test/***"] = rpc
		}
	}
	w.Pool.Lists("1", rpcpooltest.PoolList("eip155:1", listed...))
	var opts []rpcpool.ChainOption
	if policy {
		opts = append(opts, rpcpool.WithFreshness(rpcpool.Freshness{MaxLag: deceiversMaxLag}))
	}
	mode := []rpcpool.Mode{rpcpool.Sticky, rpcpool.RoundRobin, rpcpool.LeastOutstanding}[s.random.IntN(3)]
	s.bot = open(t, w, func(cfg *rpcpool.Config) {
		cfg.Mode, cfg.VerifyChainID, cfg.Timeout = mode, policy, 3*time.Second
		if policy {
			cfg.MaxWait = 2 * testBlockTime
			cfg.Hooks = []rpcpool.Hook{s}
		}
	}).Chain("1", opts...)
	return s
}

// unreliable has a node fail at random; but not one that alternates, which a failure at the
// right moment would have answer from the same of its two nodes three times in a row, and
// then nobody could tell.
func (s *deceivers) unreliable(answer rpcpooltest.Reply, failures *atomic.Int64, fails bool) rpcpooltest.Reply {
	random := newDice(s.random.Uint64(), 1)
	return rpcpooltest.Handle(func(rpcpooltest.Request) rpcpooltest.Reply {
		s.mu.Lock()
		s.requests++
		s.mu.Unlock()
		if !fails || random.IntN(100) > 0 {
			return answer
		}
		failures.Add(1)
		return []rpcpooltest.Reply{
			rpcpooltest.Status(502), rpcpooltest.Reset(), rpcpooltest.Truncated(),
			rpcpooltest.RateLimited(5 * time.Second), rpcpooltest.Garbage(), rpcpooltest.Hang(),
			rpcpooltest.Error(-32603, "internal error"),
		}[random.IntN(7)]
	})
}

// read reads at random, in the run's bubble.
func (s *deceivers) read(reads int) {
	for s.seen.reads < reads && !s.t.Failed() {
		switch s.random.IntN(10) {
		case 0:
			s.snapshot()
		case 1, 2:
			s.latestNumber("eth_blockNumber")
		case 3, 4, 5:
			s.latestNumber("eth_getBalance", someAccount, "latest")
		case 6, 7:
			s.latestHash()
		case 8:
			s.byNumber()
		case 9:
			s.logs()
		}
		s.watchHonest()
		time.Sleep(time.Duration(s.random.IntN(600)) * time.Millisecond)
	}
	s.seen.requests = s.requests
	for _, stats := range s.bot.Stats() {
		s.seen.noticed += stats.Forks
	}
}

func (s *deceivers) call(method string, params ...any) (json.RawMessage, bool) {
	s.seen.reads++
	raw, err := s.bot.Call(s.t.Context(), method, params...)
	if err != nil {
		s.seen.refused++
		return nil, false
	}
	return raw, true
}

// latestNumber reads what is, or shows, the number of the latest block.
func (s *deceivers) latestNumber(method string, params ...any) {
	oldest := s.oldest()
	raw, ok := s.call(method, params...)
	if !ok {
		return
	}
	if n := number(s.t, raw); n < oldest || n > s.chain.Head()+deceiversMaxLag {
		s.seen.stale++
		s.complain("%s gave %d at %d", method, n, oldest)
	}
}

// oldest is the oldest block that a latest read may be answered from: MaxLag under what
// the handle has seen, and under what there is but for the two newest blocks, which nobody
// may have been asked for yet.
func (s *deceivers) oldest() uint64 {
	return max(s.chain.Head()-2, s.bot.HighWater()) - deceiversMaxLag
}

func (s *deceivers) complain(format string, args ...any) {
	if s.policy {
		s.t.Logf(format, args...)
		var table strings.Builder
		_ = rpcpool.WriteStats(&table, s.bot.Stats())
		s.t.Log("\n" + table.String())
	}
}

// latestHash reads the hash of the latest state.
func (s *deceivers) latestHash() {
	oldest := s.oldest()
	raw, ok := s.call("eth_call", map[string]string{"to": someAccount}, "latest")
	if !ok {
		return
	}
	s.judgeHash(strings.Trim(string(raw), `"`), oldest, s.chain.Head())
}

// judgeHash says where a state is from.
func (s *deceivers) judgeHash(hash string, from, to uint64) {
	for n := from; n <= to; n++ {
		if hash == s.chain.Hash(n) {
			return
		}
		if hash == s.other.Hash(n) {
			s.seen.wrongChain++
			s.complain("a state of another chain")
			return
		}
		if hash == s.fork.of(n) {
			s.seen.forked++ // which is noticed, and no reason to leave the RPC out
			return
		}
	}
	for n := uint64(900); n < from; n++ {
		switch hash {
		case s.chain.Hash(n):
			s.seen.stale++
			s.complain("the state of block %d at %d", n, to)
			return
		case s.other.Hash(n):
			s.seen.wrongChain++
			return
		}
	}
	s.seen.unknown++
	s.complain("a state of no block from %d on: %s", from, hash)
}

// byNumber reads the state of a block that exists.
func (s *deceivers) byNumber() {
	n := s.chain.Head() - s.random.Uint64N(8)
	raw, ok := s.call("eth_getBalance", someAccount, fmt.Sprintf("0x%x", n))
	if ok && number(s.t, raw) != n {
		s.seen.stale++
		s.complain("block %d reads as %s", n, raw)
	}
}

// logs reads the logs of blocks that exist, of which each has one.
func (s *deceivers) logs() {
	to := s.chain.Head() - s.random.Uint64N(8)
	raw, ok := s.call("eth_getLogs", map[string]string{"fromBlock": fmt.Sprintf("0x%x", to-5), "toBlock": fmt.Sprintf("0x%x", to)})
	if !ok {
		return
	}
	var logs []json.RawMessage
	if json.Unmarshal(raw, &logs) != nil || len(logs) != 6 {
		s.seen.stale++
		s.complain("%d logs up to block %d", len(logs), to)
	}
}

// snapshot reads three things that belong together, and without the policy in the way of
// those who have no snapshots.
func (s *deceivers) snapshot() {
	ctx := s.t.Context()
	states := map[string]bool{}
	if !s.policy {
		before := s.chain.Head()
		for range 3 {
			if raw, ok := s.call("eth_call", map[string]string{"to": someAccount}, "latest"); ok {
				states[string(raw)] = true
			}
		}
		if before == s.chain.Head() && len(states) > 1 {
			s.seen.mixed++
		}
		return
	}
	s.seen.reads += 4
	snap, err := s.bot.Snapshot(ctx, "latest")
	if err != nil {
		s.seen.refused++
		return
	}
	for range 2 {
		raw, err := snap.Call(ctx, "eth_call", map[string]string{"to": someAccount})
		if err != nil {
			s.seen.refused++
			continue
		}
		states[strings.Trim(string(raw), `"`)] = true
	}
	raw, err := snap.Call(ctx, "eth_getBalance", someAccount)
	switch {
	case err != nil:
		s.seen.refused++
	case number(s.t, raw) != snap.Number():
		s.seen.mixed++
		s.complain("the balance is of block %s, the snapshot of %d", raw, snap.Number())
	}
	delete(states, snap.Hash())
	if len(states) > 0 {
		s.seen.mixed++
		s.complain("a snapshot has two states")
	}
}

// watchHonest sees to it that an honest RPC is left out for failures of its own alone, each
// of which costs it one cooldown, and for no other reason longer than one.
func (s *deceivers) watchHonest() {
	if !s.policy {
		return
	}
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, stats := range s.bot.Stats() {
		rpc := s.honest[stats.RPC]
		if rpc == nil {
			continue
		}
		if int64(stats.Ejections) > rpc.failures.Load() || stats.State == rpcpool.StateWrongChain {
			s.seen.outTooLong++
			s.complain("%s is out of the ring", stats.RPC)
		}
		if isAsked(&stats) {
			rpc.outFrom = time.Time{}
			continue
		}
		if rpc.outFrom.IsZero() {
			rpc.outFrom = now
		}
		from := rpc.outFrom
		if rpc.excused.After(from) {
			from = rpc.excused
		}
		s.seen.longest = max(s.seen.longest, now.Sub(from))
		if now.Sub(from) > oneCooldown {
			s.seen.outTooLong++
			s.complain("%s is %s and %q for %v longer than by its own failures", stats.RPC, stats.State, stats.Doubt, now.Sub(from))
		}
	}
}

// oneCooldown is the first.
const oneCooldown = 60 * time.Second

// isAsked tells whether an RPC is asked when its turn comes, and believed. One on trial is.
func isAsked(stats *rpcpool.RPCStats) bool {
	return stats.Doubt == "" && (stats.State == rpcpool.StateReady || stats.State == rpcpool.StateTrial)
}
