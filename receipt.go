package rpcpool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// WaitOption changes what [Chain.WaitReceipt] waits for.
type WaitOption func(*receiptWait)

// Confirmations is how many blocks must be there from the transaction's own on, itself
// included. Default: 1.
func Confirmations(blocks uint64) WaitOption {
	return func(w *receiptWait) { w.confirmations = max(blocks, 1) }
}

// PollEvery is how long WaitReceipt waits between two looks. Default: the chain's block
// time where it is known ([WithFreshness]), else 2 s.
func PollEvery(d time.Duration) WaitOption { return func(w *receiptWait) { w.every = d } }

const (
	unknownPoll = 2 * time.Second
	minPoll     = 250 * time.Millisecond
	maxPoll     = 15 * time.Second

	// A transaction counts as replaced when that was seen in so many looks in a row:
	// nodes learn of a block one after another.
	replacedLooks = 3
	// Every so many looks a transaction that nobody has is sent again, as the bytes that
	// it was sent as.
	resendLooks = 4
	// The block of a replacement is looked for so far back.
	searchedBlocks = 32
)

// WaitReceipt waits until a transaction is mined and gives its receipt, as
// eth_getTransactionReceipt has it; a receipt whose status says that the transaction
// reverted is one, too. RPCs are asked in turn until one has it: that one answers null is
// no verdict. A transaction that was sent over the handle and that nobody has any more is
// sent again, as the same bytes.
//
// A reorganization that takes the transaction's block away is logged, and waited through.
// The error is a *[TxReplacedError] where another transaction of the same sender has used
// the nonce, and a *[TxOutcomeUnknownError] where ctx ends first (errors.Is finds the
// context's error).
func (c *Chain) WaitReceipt(ctx context.Context, hash string, opts ...WaitOption) (json.RawMessage, error) {
	if !isHash(hash) {
		return nil, &RequestError{Method: methodReceipt, Reason: fmt.Sprintf("%q is no transaction's hash, 32 bytes in hex", clip(hash, 100))}
	}
	w := &receiptWait{chain: c.s, hash: strings.ToLower(hash), confirmations: 1}
	for _, opt := range opts {
		if opt != nil {
			opt(w)
		}
	}
	if raw := c.s.keptTransaction(w.hash); raw != nil {
		w.nonce, w.nonceKnown = transactionNonce(raw)
	}
	return w.wait(w.chain.pool.asKind(ctx, KindInternal))
}

// receiptWait is a wait for one transaction.
type receiptWait struct {
	chain         *chainState
	hash          string
	confirmations uint64
	every         time.Duration

	from       string // the sender; empty as long as no node has shown the transaction
	nonce      uint64
	nonceKnown bool

	block    string // the hash of the block that the receipt was last seen in
	missing  int    // looks in a row in which nobody had the transaction
	replaced int    // of these, those in which the nonce was used
}

// wait looks until there is an outcome.
func (w *receiptWait) wait(ctx context.Context) (json.RawMessage, error) {
	for {
		receipt, err := w.look(ctx)
		if receipt != nil {
			return receipt, nil
		}
		if isHopeless(err) {
			return nil, err
		}
		if end := w.pause(ctx); end != nil {
			return nil, &TxOutcomeUnknownError{Hash: w.hash, Err: end}
		}
	}
}

// pause waits for the next look; the error says why there is none.
func (w *receiptWait) pause(ctx context.Context) error {
	timer := time.NewTimer(w.interval())
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return &InterruptedError{Err: ctx.Err()}
	case <-w.chain.pool.working.Done():
		return ErrClosed
	}
}

// isHopeless tells whether looking again can't help.
func isHopeless(err error) bool {
	if errors.Is(err, ErrClosed) {
		return true
	}
	for _, is := range []func(error) bool{
		func(err error) bool { _, ok := errors.AsType[*TxReplacedError](err); return ok },
		func(err error) bool { _, ok := errors.AsType[*ConfigError](err); return ok },
		func(err error) bool { _, ok := errors.AsType[*NoCapableRPCError](err); return ok },
		func(err error) bool { _, ok := errors.AsType[*BudgetError](err); return ok },
		func(err error) bool { api, ok := errors.AsType[*PoolAPIError](err); return ok && refused(api) },
	} {
		if is(err) {
			return true
		}
	}
	return false
}

func (w *receiptWait) interval() time.Duration {
	if w.every > 0 {
		return w.every
	}
	c := w.chain
	c.mu.Lock()
	defer c.mu.Unlock()
	each, known := c.heads.pace.known()
	if !known {
		return unknownPoll
	}
	return min(max(each, minPoll), maxPoll)
}

// look asks once. It gives nil and no error where there is no outcome yet.
func (w *receiptWait) look(ctx context.Context) (json.RawMessage, error) {
	receipt, at, err := w.receipt(ctx)
	switch {
	case err == nil && at.Hash != "":
		return w.confirmed(ctx, receipt, at)
	case err != nil && !nobodyHas(err):
		return nil, err
	}
	if w.block != "" {
		w.chain.log().Warn("rpcpool: a transaction's block was reorganized away, waiting on", keyChain, w.chain.ref, keyTransaction, w.hash)
		w.block = ""
	}
	return nil, w.lookForTransaction(ctx)
}

// minedAt is where a transaction was mined.
type minedAt struct {
	Number uint64
	Hash   string
}

func (w *receiptWait) receipt(ctx context.Context) (json.RawMessage, minedAt, error) {
	req := newEncodedRequest(w.chain.pool, methodReceipt, []byte(`["`+w.hash+`"]`))
	raw, err := w.chain.do(ctx, &presentRequest{callRequest: req})
	if err != nil {
		return nil, minedAt{}, err
	}
	var fields struct{ BlockNumber, BlockHash string }
	if json.Unmarshal(raw, &fields) != nil {
		return nil, minedAt{}, &MalformedResponseError{Method: methodReceipt, Reason: "no receipt"}
	}
	number, _ := parseQuantity(fields.BlockNumber) // some nodes have receipts of pending blocks
	return raw, minedAt{number, fields.BlockHash}, nil
}

// confirmed gives the receipt once enough blocks are on top of its own, and the block is
// still there then.
func (w *receiptWait) confirmed(ctx context.Context, receipt json.RawMessage, at minedAt) (json.RawMessage, error) {
	if w.block != "" && w.block != at.Hash {
		w.chain.log().Warn("rpcpool: a transaction is in another block than before, after a reorganization",
			keyChain, w.chain.ref, keyTransaction, w.hash, keyBlock, at.Number)
	}
	w.block, w.missing, w.replaced = at.Hash, 0, 0
	if w.confirmations <= 1 {
		return receipt, nil
	}
	// An RPC that lags can't say that the block isn't there yet: one that has it is asked.
	needed := at.Number + w.confirmations - 1
	_, err := w.chain.call(WithReadToken(ctx, ReadToken{Block: needed}), methodBlockNumber, nil)
	if _, notYet := errors.AsType[*StaleError](err); notYet {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	receipt, again, err := w.receipt(ctx)
	if err != nil || again.Hash != at.Hash {
		return nil, err // the next look says what became of it
	}
	return receipt, nil
}

// lookForTransaction says what became of a transaction that isn't mined: it waits, it was
// replaced, or it was lost and is sent again.
func (w *receiptWait) lookForTransaction(ctx context.Context) error {
	tx, err := w.chain.transaction(ctx, json.RawMessage(`"`+w.hash+`"`))
	if err == nil {
		w.missing, w.replaced = 0, 0
		w.from = tx.From
		if nonce, ok := parseQuantity(tx.Nonce); ok {
			w.nonce, w.nonceKnown = nonce, true
		}
		return nil
	}
	if !nobodyHas(err) {
		return err
	}
	w.missing++
	used, err := w.nonceIsUsed(ctx)
	if !used {
		w.replaced = 0
		return err
	}
	if w.replaced++; w.replaced < replacedLooks {
		return nil
	}
	return &TxReplacedError{Hash: w.hash, From: w.from, Nonce: w.nonce, By: w.replacement(ctx)}
}

// nonceIsUsed tells whether a mined transaction has the nonce: by the sender's count of
// transactions where the sender is known, else by what nodes say to the bytes.
func (w *receiptWait) nonceIsUsed(ctx context.Context) (bool, error) {
	if w.from != "" && w.nonceKnown {
		raw, err := w.chain.call(ctx, methodNonce, []any{w.from, tagLatest})
		if err != nil {
			return false, err
		}
		next, ok := decodeQuantity(raw)
		if ok && next > w.nonce {
			return true, nil
		}
	}
	raw := w.chain.keptTransaction(w.hash)
	if raw == nil || w.replaced == 0 && w.missing%resendLooks != 0 {
		return false, nil
	}
	tx := signedTransaction{raw: raw, hash: w.hash}
	_, err := w.chain.sendOnce(ctx, w.hash, tx.request(w.chain.pool))
	rpcErr, refused := errors.AsType[*RPCError](err)
	return refused && saysAny(rpcErr, nonceUsedWords), nil
}

// nonceUsedWords are what nodes say to a transaction whose nonce is used. Geth and its
// kin: "nonce too low"; Nethermind: "OldNonce"; Besu: "Nonce too low"; hardhat: "Nonce too
// low. Expected nonce to be …"; Parity: "Transaction nonce is too low".
var nonceUsedWords = []string{"nonce too low", "oldnonce", "old nonce", "nonce is too low", "nonce has already been used"}

// replacement gives the hash of the transaction that has used the nonce; empty where it
// isn't found.
func (w *receiptWait) replacement(ctx context.Context) string {
	if w.from == "" {
		return ""
	}
	raw, err := w.chain.call(ctx, "eth_getTransactionBySenderAndNonce", []any{w.from, quantity(w.nonce)})
	var tx minedTransaction
	if err == nil && json.Unmarshal(raw, &tx) == nil && isHash(tx.Hash) {
		return strings.ToLower(tx.Hash)
	}
	raw, err = w.chain.call(ctx, methodBlockNumber, nil)
	head, ok := decodeQuantity(raw)
	if err != nil || !ok {
		return ""
	}
	for back := range min(head+1, searchedBlocks) {
		raw, err := w.chain.call(ctx, methodBlockByNumber, []any{quantity(head - back), true})
		if err != nil {
			return ""
		}
		var block struct{ Transactions []minedTransaction }
		if json.Unmarshal(raw, &block) != nil {
			return ""
		}
		for _, tx := range block.Transactions {
			if nonce, ok := parseQuantity(tx.Nonce); ok && nonce == w.nonce && strings.EqualFold(tx.From, w.from) {
				return strings.ToLower(tx.Hash)
			}
		}
	}
	return ""
}

// nobodyHas tells whether every RPC that answered said that it doesn't have what was asked
// for, and there was one.
func nobodyHas(err error) bool {
	none, ok := errors.AsType[*NoHealthyRPCError](err)
	if !ok {
		return false
	}
	for _, a := range none.Attempts {
		if a.Verdict == VerdictNoState {
			return true
		}
	}
	return false
}

// TxReplacedError says that a transaction will not be mined: another one of the same
// sender has used its nonce.
type TxReplacedError struct {
	// Hash is the transaction that was waited for.
	Hash string
	// From is the sender; empty where no node has shown the transaction.
	From string
	// Nonce is the nonce of both.
	Nonce uint64
	// By is the hash of the transaction that was mined instead; empty where it wasn't
	// found within the last blocks.
	By string
}

func (e *TxReplacedError) Error() string {
	text := fmt.Sprintf("rpcpool: transaction %s was replaced: nonce %d", e.Hash, e.Nonce)
	if e.From != "" {
		text += " of " + e.From
	}
	text += " was used by another one"
	if e.By != "" {
		text += ", " + e.By
	}
	return text
}

func (*TxReplacedError) rpcPoolError() {}
