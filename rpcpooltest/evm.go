package rpcpooltest

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
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

// Hash is the hash of a block, on the chain itself and not on a fork.
func (c *EVM) Hash(block uint64) string { return blockHash(c.id, 0, block) }

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
}

// head is the newest block that the node has.
func (v evmView) head() uint64 {
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
	return blockHash(v.id, 0, block)
}
