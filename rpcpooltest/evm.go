package rpcpooltest

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/sha3"
)

// EVM is a small chain for nodes to serve, together and consistently, or each
// with a fault of its own: nodes that lag, fork, prune, lie about their head or
// are on another chain.
//
//	chain := rpcpooltest.NewEVM(8453, 1000)
//	world.Node("good", chain.Serve())
//	world.Node("stale", chain.Serve(rpcpooltest.Lagging(50)))
//
// Answers show what state they were read from, so that a test can tell whether
// states were mixed: eth_getBalance is the number of the block, eth_call and
// eth_getStorageAt its hash. Each block has one log.
type EVM struct {
	id uint64

	mu        sync.Mutex // protects what follows
	head      uint64     // at since
	since     time.Time
	blockTime time.Duration // 0: blocks come by Mine only
	reorgs    []uint64      // the first block of each reorganization, oldest first
	txs       map[string]transaction
}

type transaction struct {
	raw   string
	block uint64 // in which it is mined
}

// NewEVM makes a chain with this id whose newest block has this number.
func NewEVM(id, head uint64) *EVM {
	return &EVM{id: id, head: head, since: time.Now(), txs: map[string]transaction{}}
}

// SetBlockTime lets the chain grow by itself from now on, by one block each time
// this passes; 0 stops it.
func (c *EVM) SetBlockTime(every time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.head, c.since, c.blockTime = c.headLocked(), time.Now(), every
}

// Mine adds so many blocks.
func (c *EVM) Mine(blocks uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.head += blocks
}

// Head is the number of the newest block.
func (c *EVM) Head() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.headLocked()
}

func (c *EVM) headLocked() uint64 {
	if c.blockTime <= 0 {
		return c.head
	}
	return c.head + uint64(time.Since(c.since)/c.blockTime)
}

// Reorg replaces the newest blocks, so many, by others with other hashes. Nodes still
// know the old ones, but not as part of the chain.
func (c *EVM) Reorg(blocks uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	head := c.headLocked()
	c.reorgs = append(c.reorgs, head+1-min(head+1, blocks))
}

// Rewind takes the chain back to this block, from which it goes on.
func (c *EVM) Rewind(block uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.head, c.since = block, time.Now()
}

// Hash is the hash of a block, on the chain itself and not on a fork.
func (c *EVM) Hash(block uint64) string { return blockHash(c.id, c.branch(block, -1), block) }

// branch names the blocks that a block is one of after so many reorganizations; -1 stands
// for all.
func (c *EVM) branch(block uint64, after int) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if after < 0 {
		after = len(c.reorgs)
	}
	branch := uint64(0)
	for i, from := range c.reorgs[:after] {
		if block >= from {
			branch = uint64(i+1) << 32
		}
	}
	return branch
}

func (c *EVM) reorgCount() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.reorgs)
}

func blockHash(id, fork, block uint64) string {
	var seed [24]byte
	binary.BigEndian.PutUint64(seed[0:], id)
	binary.BigEndian.PutUint64(seed[8:], fork)
	binary.BigEndian.PutUint64(seed[16:], block)
	sum := sha256.Sum256(seed[:])
	return "0x" + hex.EncodeToString(sum[:])
}

// timeOf is a block's time: the newest one's is now, or when it came.
func (c *EVM) timeOf(block uint64) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	every := c.blockTime
	if every <= 0 {
		every = 2 * time.Second
	}
	return c.since.Add(time.Duration(int64(block)-int64(c.head)) * every)
}

// send takes a raw transaction. It is mined in the next block.
func (c *EVM) send(raw string) (hash string, known bool, err error) {
	data, err := hex.DecodeString(strings.TrimPrefix(raw, "0x"))
	if err != nil || len(data) == 0 {
		return "", false, fmt.Errorf("invalid raw transaction")
	}
	keccak := sha3.NewLegacyKeccak256()
	_, _ = keccak.Write(data)
	hash = "0x" + hex.EncodeToString(keccak.Sum(nil))
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.txs[hash]; known {
		return hash, true, nil
	}
	c.txs[hash] = transaction{raw: raw, block: c.headLocked() + 1}
	return hash, false, nil
}

func (c *EVM) transaction(hash string) (transaction, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	tx, ok := c.txs[strings.ToLower(hash)]
	return tx, ok
}

// Transactions gives the raw transactions that the chain was sent, by hash.
func (c *EVM) Transactions() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	raws := make(map[string]string, len(c.txs))
	for hash, tx := range c.txs {
		raws[hash] = tx.raw
	}
	return raws
}

// MinedIn gives the block in which a transaction is mined; false as long as it isn't.
func (c *EVM) MinedIn(hash string) (block uint64, mined bool) {
	tx, ok := c.transaction(hash)
	return tx.block, ok && tx.block <= c.Head()
}

// EVMFault makes a node's view of a chain differ from the chain, see
// [EVM.Serve].
type EVMFault func(*evmView)

// Lagging is so many blocks behind: its answers are valid, but stale.
func Lagging(blocks uint64) EVMFault {
	return func(v *evmView) { v.behind = blocks }
}

// StuckAt has no blocks after this one.
func StuckAt(block uint64) EVMFault { return func(v *evmView) { v.stuck = &block } }

// Boasting says that its head is so many blocks further than it is.
func Boasting(blocks uint64) EVMFault { return func(v *evmView) { v.boast = blocks } }

// ForkedFrom has other blocks, with other hashes, from this one on. Forks of the
// same block are the same fork.
func ForkedFrom(block uint64) EVMFault { return func(v *evmView) { v.fork = &block } }

// PrunedBelow lacks the state of blocks under this one. It still has the blocks.
func PrunedBelow(block uint64) EVMFault { return func(v *evmView) { v.pruned = block } }

// OnChain says that its chain is another one, and has that one's blocks.
func OnChain(id uint64) EVMFault { return func(v *evmView) { v.id = id } }

// Alternating stands for a load balancer over two nodes, of which the second is so many
// blocks behind: each request goes to the other one than the request before.
func Alternating(blocks uint64) EVMFault {
	turn := new(atomic.Uint64)
	return func(v *evmView) { v.other, v.turn = blocks, turn }
}

// Caching answers what it was asked within the last ttl as it answered then.
func Caching(ttl time.Duration) EVMFault {
	kept := &answerCache{ttl: ttl, answers: map[string]keptAnswer{}}
	return func(v *evmView) { v.cache = kept }
}

// Vague answers null, [] and 0x, as if there was nothing, where it lacks the block.
func Vague() EVMFault { return func(v *evmView) { v.vague = true } }

// Unexecuted has the headers of its newest blocks but hasn't executed them: its latest
// block is so many behind, later ones have no state and no logs but are no error.
func Unexecuted(blocks uint64) EVMFault { return func(v *evmView) { v.unexecuted = blocks } }

// Serve gives the script entry of a node that serves the chain, with faults.
func (c *EVM) Serve(faults ...EVMFault) Reply {
	view := evmView{chain: c, id: c.id}
	for _, fault := range faults {
		fault(&view)
	}
	return Handle(view.answer)
}

// Answer is what a faultless node answers: for a handler of a test's own, such
// as one that takes a transaction and then loses the answer.
func (c *EVM) Answer(request Request) Reply { return evmView{chain: c, id: c.id}.answer(request) }

// evmView is the chain as one node sees it.
type evmView struct {
	chain  *EVM
	id     uint64
	behind uint64
	stuck  *uint64
	boast  uint64
	fork   *uint64
	pruned uint64

	other uint64 // how far the second node behind the load balancer is behind
	turn  *atomic.Uint64
	cache *answerCache
	vague bool

	unexecuted uint64
}

// answerCache is what a caching node remembers.
type answerCache struct {
	ttl time.Duration

	mu      sync.Mutex // protects answers
	answers map[string]keptAnswer
}

type keptAnswer struct {
	reply Reply
	at    time.Time
}

// through gives the answer from before, or the one that answer gives.
func (c *answerCache) through(q Request, answer func(Request) Reply) Reply {
	key := q.Method + string(q.Params)
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if kept, ok := c.answers[key]; ok && now.Sub(kept.at) < c.ttl {
		return kept.reply
	}
	reply := answer(q)
	c.answers[key] = keptAnswer{reply, now}
	return reply
}

// head is the newest block that the node has the state of.
func (v evmView) head() uint64 {
	head := v.headers()
	return head - min(head, v.unexecuted)
}

// headers is the newest block that the node knows of.
func (v evmView) headers() uint64 {
	head := v.chain.Head()
	head -= min(head, v.behind)
	if v.stuck != nil {
		head = min(head, *v.stuck)
	}
	return head
}

func (v evmView) hash(block uint64) string {
	if v.fork != nil && block >= *v.fork {
		return blockHash(v.id, *v.fork+1, block)
	}
	return blockHash(v.id, v.chain.branch(block, -1), block)
}
