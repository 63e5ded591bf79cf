package rpcpool_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sort"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// logChain is a chain for log queries: long empty stretches, lonely logs, and
// stretches with several logs in each block.
type logChain struct {
	blocks []uint64 // the block of each log, in order
	logs   []string // the log as JSON
	full   uint64   // the last block
	since  time.Time
	start  uint64 // the newest block at the time since; one comes every two seconds
}

// logChainBlocks is the length of the chain; the race detector has time for less.
var logChainBlocks = map[bool]uint64{false: 200_000, true: 10_000}[underRace]

func newLogChain(random *rand.Rand) *logChain {
	c := &logChain{full: logChainBlocks - 1, start: logChainBlocks - 1, since: time.Now()}
	add := func(block uint64, count int) {
		for i := range count {
			c.blocks = append(c.blocks, block)
			c.logs = append(c.logs, fmt.Sprintf(`{"blockNumber":"0x%x","logIndex":"0x%x"}`, block, i))
		}
	}
	for block := uint64(0); block < logChainBlocks; {
		switch length := 200 + random.Uint64N(4000); random.IntN(8) {
		case 0: // dense
			for end := block + length/12; block < end && block < logChainBlocks; block++ {
				add(block, 1+random.IntN(3))
			}
		case 1, 2, 3: // lonely logs
			for end := block + length; block < end && block < logChainBlocks; block += 1 + random.Uint64N(300) {
				add(block, 1)
			}
		default:
			block += length
		}
	}
	return c
}

// head is the newest block by now.
func (c *logChain) head() uint64 {
	return min(c.full, c.start+uint64(time.Since(c.since)/(2*time.Second)))
}

// between gives the logs of a range of blocks.
func (c *logChain) between(from, to uint64) []string {
	first := sort.Search(len(c.blocks), func(i int) bool { return c.blocks[i] >= from })
	end := sort.Search(len(c.blocks), func(i int) bool { return c.blocks[i] > to })
	return c.logs[first:max(first, end)]
}

// refusalWording is how an RPC refuses a range of blocks, and what it lets out
// about its limit.
type refusalWording struct {
	name string
	say  func(limit, from, to uint64) string
}

var (
	namedLimits = []refusalWording{
		{"names its limit", func(limit, _, _ uint64) string { return fmt.Sprintf("exceed maximum block range: %d", limit) }},
		{"names both", func(limit, from, to uint64) string {
			return fmt.Sprintf("block range too large (%d), maximum allowed is %d blocks", to-from+1, limit)
		}},
		{"shows the way", func(limit, from, _ uint64) string {
			return fmt.Sprintf("Log response size exceeded. this block range should work: [0x%x, 0x%x]", from, from+limit-1)
		}},
	}
	unnamedLimits = []refusalWording{
		{"names nothing", func(_, _, _ uint64) string { return "block range is too wide" }},
		{"times out", func(_, _, _ uint64) string { return "query timeout exceeded" }},
	}
	lyingLimits = []refusalWording{
		{"repeats the range", func(_, from, to uint64) string {
			return fmt.Sprintf("Log response size exceeded. this block range should work: [0x%x, 0x%x]", from, to)
		}},
		{"names what was asked", func(_, from, to uint64) string { return fmt.Sprintf("exceed maximum block range: %d", to-from+1) }},
		{"names more", func(_, _, _ uint64) string { return "exceed maximum block range: 50000" }},
		{"names one less", func(_, from, to uint64) string { return fmt.Sprintf("exceed maximum block range: %d", to-from) }},
		{"names too little", func(limit, _, _ uint64) string { return fmt.Sprintf("exceed maximum block range: %d", limit/3) }},
	}
)

// logNode is an RPC that serves a logChain, with limits and faults of its own.
type logNode struct {
	chain      *logChain
	maxSpan    uint64 // blocks that it takes; 0: any number
	maxResults int    // logs that it gives; 0: any number
	wording    refusalWording
	faults     float64 // how much of the requests it spoils
	behind     uint64  // blocks that it lags, without a word

	mu     sync.Mutex // protects what follows
	random *rand.Rand
	logNodeCounts
}

// logNodeCounts is what became of the requests to a logNode.
type logNodeCounts struct{ served, refused, spoiled, heads int }

func (c logNodeCounts) plus(other logNodeCounts) logNodeCounts {
	return logNodeCounts{c.served + other.served, c.refused + other.refused, c.spoiled + other.spoiled, c.heads + other.heads}
}

// counts gives what became of all requests so far.
func (n *logNode) counts() logNodeCounts {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.logNodeCounts
}

func (n *logNode) head() uint64 {
	head := n.chain.head()
	return head - min(head, n.behind)
}

func (n *logNode) answer(q rpcpooltest.Request) rpcpooltest.Reply {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.faults > 0 && n.random.Float64() < n.faults {
		n.spoiled++
		return []rpcpooltest.Reply{
			rpcpooltest.Status(500), rpcpooltest.Status(429), rpcpooltest.Reset(), rpcpooltest.Hang(), rpcpooltest.Garbage(), rpcpooltest.Truncated(),
		}[n.random.IntN(6)]
	}
	if q.Method == "eth_blockNumber" {
		n.heads++
		return rpcpooltest.Result("0x" + strconv.FormatUint(n.head(), 16))
	}
	from, to, _ := rpcpooltest.LogRange(q.Params)
	found := n.chain.between(from, min(to, n.head()))
	switch {
	case n.maxSpan > 0 && to-from >= n.maxSpan:
		n.refused++
		return rpcpooltest.Error(-32000, n.wording.say(n.maxSpan, from, to))
	case n.maxResults > 0 && len(found) > n.maxResults:
		n.refused++
		return rpcpooltest.Error(-32005, n.tooMany(from, found))
	}
	n.served++
	return logList(q, found)
}

// tooMany says that there are more results than the RPC gives. Half of the RPCs
// show the range that they would answer for.
func (n *logNode) tooMany(from uint64, found []string) string {
	text := fmt.Sprintf("query returned more than %d results", n.maxResults)
	if n.maxResults%2 == 0 {
		return text
	}
	end := from // the last block up to which there are few enough
	for len(n.chain.between(from, end+1)) <= n.maxResults {
		end++
	}
	return fmt.Sprintf("%s. Try with this block range [0x%x, 0x%x].", text, from, end)
}

// requireCount is require.Len for lists that are too long to be shown.
func requireCount[T any](t *testing.T, want int, got []T, about ...any) {
	t.Helper()
	if len(got) != want {
		require.Fail(t, fmt.Sprintf("there are %d, not %d", len(got), want), about...)
	}
}

// logList answers with logs, as cheaply as can be: the tests ask a lot.
func logList(q rpcpooltest.Request, logs []string) rpcpooltest.Reply {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"jsonrpc":"2.0","id":%s,"result":[`, q.ID)
	for i, log := range logs {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(log)
	}
	b.WriteString("]}")
	return rpcpooltest.Body(b.String())
}
