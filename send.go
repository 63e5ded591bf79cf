package rpcpool

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// SendRawTransaction hands in a signed Ethereum transaction and gives its hash, which is
// computed here before anything is sent (rule C4). The same bytes go to one RPC after
// another until one takes them or knows them already, both of which are success: a
// transaction has one hash, however often it arrives.
//
//   - An *[RPCError] is the refusal of a node ("nonce too low", "insufficient funds"). If
//     an attempt before may have brought the transaction to the network, the refusal is
//     believed only after every RPC that answers was asked for the transaction by its hash.
//   - A *[TxOutcomeUnknownError] says that it may have been taken and nobody knows: look for
//     Hash, or [Chain.WaitReceipt] for it, before you sign another one. It wraps the cause.
//   - Any other error says that it wasn't sent: nothing of it was written to an RPC.
//
// The handle keeps the bytes for ten minutes, for WaitReceipt and [Chain.ReadToken].
func (c *Chain) SendRawTransaction(ctx context.Context, raw []byte) (hash string, err error) {
	return c.s.sendRaw(ctx, raw, 1)
}

// Broadcast is [Chain.SendRawTransaction] to n RPCs at once, of different operators as far
// as the list has them. The first one that takes the transaction, or knows it, decides; the
// others are left to finish until Close. Only if none does, the error is what they say:
// unknown where one may have taken it, else a refusal.
func (c *Chain) Broadcast(ctx context.Context, raw []byte, n int) (hash string, err error) {
	if n < 1 {
		return "", &RequestError{Method: methodSendRaw, Reason: fmt.Sprintf("it can't be sent to %d RPCs", n)}
	}
	return c.s.sendRaw(ctx, raw, n)
}

func (c *chainState) sendRaw(ctx context.Context, raw []byte, n int) (string, error) {
	if len(raw) == 0 {
		return "", &RequestError{Method: methodSendRaw, Reason: "the transaction is empty"}
	}
	tx := signedTransaction{raw: raw, hash: transactionHash(raw)}
	c.keepTransaction(tx.hash, raw)
	if n == 1 {
		return c.sendOnce(ctx, tx.hash, tx.request(c.pool))
	}
	return c.sendToMany(ctx, tx, n)
}

// signedTransaction is a raw transaction and its hash.
type signedTransaction struct {
	raw  []byte
	hash string
}

// request makes a request that hands it in.
func (tx signedTransaction) request(p *poolState) *sentTransaction {
	params := []byte(`["0x` + hex.EncodeToString(tx.raw) + `"]`)
	return &sentTransaction{request: newEncodedRequest(p, methodSendRaw, params), tx: tx}
}

// isOfKnownType tells whether the transaction is one of Ethereum's own types, which all
// are hashed in the same way: legacy, and 1 to 4.
func (tx signedTransaction) isOfKnownType() bool {
	return tx.raw[0] >= 1 && tx.raw[0] <= 4 || isRLPList(tx.raw)
}

// sendOnce carries the transaction round the ring and says what came of it.
func (c *chainState) sendOnce(ctx context.Context, hash string, req request) (string, error) {
	k, err := c.start(ctx, req)
	if err != nil {
		return "", err
	}
	result, err := k.finish()
	switch {
	case err == nil:
		return resultHash(result, hash), nil
	case !k.leavesOpen(err):
		return "", err
	}
	return "", &TxOutcomeUnknownError{Hash: hash, Err: err, Attempts: k.attempts}
}

// leavesOpen tells whether a raw transaction that ended with an error may have been taken.
func (k *call) leavesOpen(err error) bool { return err != nil && k.arrived }

// resultHash is the hash that a node gave, where it is one: chains with transactions of
// their own hash them differently. A node that says another hash for what is hashed here
// is found out before (see sentTransaction).
func resultHash(result json.RawMessage, hash string) string {
	if said, ok := decode[string](result); ok && isHash(said) {
		return strings.ToLower(said)
	}
	return hash
}

// sentTransaction is a raw transaction on its way.
type sentTransaction struct {
	request
	tx signedTransaction
}

// send is one attempt. Another hash for a transaction of a known type is a lie, or the
// answer to something else: the RPC is at fault, and may have taken the transaction.
func (r *sentTransaction) send(ctx context.Context, to target) outcome {
	out := r.request.send(ctx, to)
	if out.verdict != VerdictOK {
		return out
	}
	if said, ok := decode[string](out.result); !ok || !isHash(said) || r.tx.isOfKnownType() && !strings.EqualFold(said, r.tx.hash) {
		out := failed(VerdictRPCFail, reportRPC, "the answer isn't the transaction's hash")
		out.arrived = true
		return out
	}
	return out
}

// sendToMany sends to n RPCs at once.
func (c *chainState) sendToMany(ctx context.Context, tx signedTransaction, n int) (string, error) {
	type end struct {
		hash string
		err  error
	}
	ends := make(chan end, n)
	asked := &operators{taken: map[string]*vote{}}
	for range n {
		ballot := &vote{request: tx.request(c.pool), taken: asked}
		// Those that are still on their way when one has taken it go on without the caller.
		if !c.pool.start(func() {
			hash, err := c.sendOnce(context.WithoutCancel(ctx), tx.hash, ballot)
			ends <- end{hash, err}
		}) {
			ends <- end{"", ErrClosed}
		}
	}
	var worst error
	for range n {
		select {
		case e := <-ends:
			if e.err == nil {
				return e.hash, nil
			}
			worst = worseOf(worst, e.err)
		case <-ctx.Done():
			return "", &TxOutcomeUnknownError{Hash: tx.hash, Err: &InterruptedError{Err: ctx.Err()}}
		}
	}
	return "", worst
}

// worseOf says which of two errors of a send counts: that the outcome is unknown, then a
// refusal, then that nothing was sent.
func worseOf(one, other error) error {
	if one == nil {
		return other
	}
	for _, is := range []func(error) bool{
		func(err error) bool { _, ok := errors.AsType[*TxOutcomeUnknownError](err); return ok },
		func(err error) bool { _, ok := errors.AsType[*RPCError](err); return ok },
	} {
		switch {
		case is(one):
			return one
		case is(other):
			return other
		}
	}
	return one
}

// TxOutcomeUnknownError says that a transaction may have been taken by the network, and
// that nobody could be found who knows (rule C4). It isn't a failure that allows to sign
// another one: look for Hash first.
type TxOutcomeUnknownError struct {
	// Hash is the transaction's, computed here.
	Hash string
	// Err is why nobody knows: the refusal of an RPC after an attempt that may have
	// arrived, or the end of the call.
	Err error
	// Attempts are the call's failed attempts, in order, masked.
	Attempts []Attempt
}

func (e *TxOutcomeUnknownError) Error() string {
	return fmt.Sprintf("rpcpool: it isn't known whether transaction %s was taken; look for it by its hash, or wait for its receipt, "+
		"before you send another one: %v", e.Hash, e.Err)
}

// Unwrap gives the cause.
func (e *TxOutcomeUnknownError) Unwrap() error { return e.Err }

func (*TxOutcomeUnknownError) rpcPoolError() {}
