package rpcpool

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ReadToken says what a caller has seen of a chain, so that later reads don't show less:
// a latest read whose context has the token is answered only by an RPC whose head is at
// least Block, and by the RPC that took the transaction as long as that answers and the
// receipt wasn't seen (rule B9). Tokens are values: they work across goroutines and
// handles, with [WithFreshness] and without. The zero ReadToken asks for nothing.
type ReadToken struct {
	// Block is a block that was seen: the receipt's, or the high-water mark of when the
	// transaction was sent.
	Block uint64
	// Hash is the transaction's; empty where the token isn't of one.
	Hash string
	// RPC is the masked URL of the RPC that took the transaction; empty where unknown.
	RPC string

	url string
}

// String gives the token without the RPC's URL.
func (t ReadToken) String() string {
	text := "block " + strconv.FormatUint(t.Block, 10)
	if t.Hash != "" {
		text += ", transaction " + t.Hash
	}
	if t.RPC != "" {
		text += ", taken by " + t.RPC
	}
	return text
}

// Format prints String under every verb, so that none reaches the RPC's URL.
func (t ReadToken) Format(s fmt.State, verb rune) { formatText(s, verb, t.String()) }

// ReadToken gives the token of a transaction that was sent over this handle within the
// last ten minutes, by its hash; false where there is none. Once the receipt was seen
// over the handle, Block is the receipt's.
func (c *Chain) ReadToken(hash string) (ReadToken, bool) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	w := c.s.writes.find(hash)
	if w == nil || w.by == nil {
		return ReadToken{}, false
	}
	return w.token(), true
}

// ReceiptToken gives the token of a receipt, as eth_getTransactionReceipt has it.
func ReceiptToken(receipt json.RawMessage) (ReadToken, error) {
	var fields struct{ BlockNumber, TransactionHash string }
	if err := json.Unmarshal(receipt, &fields); err != nil {
		return ReadToken{}, &MalformedResponseError{Method: methodReceipt, Reason: "no receipt"}
	}
	number, ok := parseQuantity(fields.BlockNumber)
	if !ok {
		return ReadToken{}, &MalformedResponseError{Method: methodReceipt, Reason: "a receipt without a block number"}
	}
	return ReadToken{Block: number, Hash: fields.TransactionHash}, nil
}

type tokenKey struct{}

// WithReadToken gives a context whose latest reads show no less than the token says. Of
// several tokens the highest block counts, and the RPC of the last.
func WithReadToken(ctx context.Context, t ReadToken) context.Context {
	if before, ok := ctx.Value(tokenKey{}).(ReadToken); ok {
		t.Block = max(t.Block, before.Block)
	}
	return context.WithValue(ctx, tokenKey{}, t)
}

const (
	writeKept = 600 * time.Second // how long a transaction without a receipt is remembered
	maxWrites = 256
)

// write is a transaction that was sent over a handle.
type write struct {
	hash    string
	raw     []byte    // the transaction; nil where only its hash is known
	by      *endpoint // that took it; nil as long as nobody did
	mark    uint64    // the high-water mark then
	block   uint64    // of its receipt; 0 as long as that wasn't seen
	forgets time.Time
}

func (w *write) token() ReadToken {
	t := ReadToken{Block: max(w.mark, w.block), Hash: w.hash}
	if w.block == 0 {
		t.RPC, t.url = w.by.label, w.by.url
	}
	return t
}

// writes are the last transactions of a handle, oldest first. Guarded by chainState.mu.
type writes struct {
	sent  []*write
	floor uint64 // no latest read of the handle shows less, with ReadYourWrites
}

func (w *writes) find(hash string) *write {
	for _, each := range w.sent {
		if strings.EqualFold(each.hash, hash) {
			return each
		}
	}
	return nil
}

// note gives what is kept of a transaction, anew where there is nothing yet.
func (w *writes) note(hash string, now time.Time) *write {
	for len(w.sent) > 0 && (len(w.sent) >= maxWrites || now.After(w.sent[0].forgets)) {
		w.sent = w.sent[1:]
	}
	each := w.find(hash)
	if each == nil {
		each = &write{hash: hash}
		w.sent = append(w.sent, each)
	}
	each.forgets = now.Add(writeKept)
	return each
}

// took notes that an RPC took a transaction.
func (w *writes) took(hash string, by *endpoint, mark uint64, now time.Time) {
	each := w.note(hash, now)
	each.by, each.mark = by, max(each.mark, mark)
	w.floor = max(w.floor, mark)
}

// keepTransaction keeps the bytes of a transaction before it is sent.
func (c *chainState) keepTransaction(hash string, raw []byte) {
	kept := slices.Clone(raw)
	c.mark(func(now time.Time) { c.writes.note(hash, now).raw = kept })
}

// keptTransaction gives the bytes of a transaction that was sent over the handle; nil
// where they aren't known.
func (c *chainState) keptTransaction(hash string) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if each := c.writes.find(hash); each != nil {
		return each.raw
	}
	return nil
}

// forgetFloors forgets what was seen of a chain that went back.
func (w *writes) forgetFloors() {
	w.floor = 0
	for _, each := range w.sent {
		each.mark = 0
	}
}

// mined notes that the receipt of a transaction was seen.
func (w *writes) mined(hash string, block uint64) {
	if each := w.find(hash); each != nil {
		each.block = block
		w.floor = max(w.floor, block)
	}
}

// home gives the RPC that reads stay on: the one that took the last transaction whose
// receipt wasn't seen; nil where there is none.
func (w *writes) home(now time.Time) *endpoint {
	for _, each := range slices.Backward(w.sent) {
		if each.by != nil && each.block == 0 && now.Before(each.forgets) {
			return each.by
		}
	}
	return nil
}

// noteWrites keeps what a good answer tells of transactions.
func (c *chainState) noteWrites(e *endpoint, method string, result json.RawMessage) {
	switch method {
	case methodSendRaw, "eth_sendTransaction":
		if hash, ok := decode[string](result); ok {
			c.mark(func(now time.Time) { c.writes.took(hash, e, c.heads.mark, now) })
		}
	case methodReceipt:
		if !c.hasWrites() {
			return
		}
		token, err := ReceiptToken(result)
		if err != nil {
			return
		}
		c.mark(func(now time.Time) {
			if c.policy != nil { // a block that nobody believes in is no floor
				token.Block = min(token.Block, max(c.heads.mark, c.heads.plausible(now)))
			}
			c.writes.mined(token.Hash, token.Block)
		})
	}
}

func (c *chainState) hasWrites() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.writes.sent) > 0
}
