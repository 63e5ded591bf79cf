package rpcpool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
)

// Snapshot is a chain's state at one block, for reads that belong together (rule D2):
// each names the block by its hash, whatever RPC answers, so values of different states
// are never mixed. It is safe for concurrent use, costs nothing to keep, and works for as
// long as RPCs have the block's state, which without archives is some 128 blocks.
type Snapshot struct {
	s *snapshotState
}

type snapshotState struct {
	chain  *chainState
	number uint64
	hash   string
	header json.RawMessage

	mu     sync.Mutex // protects proven
	proven map[provenBy]bool
}

// provenBy says of whom an empty answer is believed: it has shown something of the block
// that it could only have with the state (or the logs) at hand.
type provenBy struct {
	url  string
	kind string
}

// Snapshot fixes the block that later reads are of: "latest", "safe", "finalized",
// "earliest", a number in hex, or a hash of 32 bytes. It is asked for once. With
// [WithFreshness] the latest is really the latest. No RPC has the block: *[SnapshotError].
func (c *Chain) Snapshot(ctx context.Context, block string) (*Snapshot, error) {
	method, fits := methodBlockByNumber, func(uint64, string) bool { return true }
	asked, isNumber := parseQuantity(block)
	switch {
	case isHash(block):
		method = methodBlockByHash
		fits = func(_ uint64, hash string) bool { return strings.EqualFold(hash, block) }
	case isNumber:
		fits = func(number uint64, _ string) bool { return number == asked }
	case block == tagLatest, block == tagSafe, block == tagFinalized, block == tagEarliest:
	default:
		return nil, &RequestError{Method: "Snapshot", Reason: fmt.Sprintf(
			"%q is no block; give \"latest\", \"safe\", \"finalized\", \"earliest\", a hex number such as \"0x10\", or a hash", block)}
	}
	req, err := newCallRequest(c.s.pool, method, []any{block, false})
	if err != nil {
		return nil, err
	}
	raw, err := c.s.do(ctx, &presentRequest{callRequest: req, fits: func(raw json.RawMessage) bool {
		number, hash, ok := blockOf(raw)
		return ok && fits(number, hash)
	}})
	if err != nil {
		return nil, snapshotError(c.s, block, method, err)
	}
	number, hash, _ := blockOf(raw)
	return &Snapshot{&snapshotState{
		chain: c.s, number: number, hash: hash, header: raw, proven: map[provenBy]bool{},
	}}, nil
}

// blockOf gives the number and hash of a block.
func blockOf(raw json.RawMessage) (number uint64, hash string, ok bool) {
	var header struct{ Number, Hash string }
	if json.Unmarshal(raw, &header) != nil || !isHash(header.Hash) {
		return 0, "", false
	}
	number, ok = parseQuantity(header.Number)
	return number, header.Hash, ok
}

// Number is the block's number.
func (s *Snapshot) Number() uint64 { return s.s.number }

// Hash is the block's hash.
func (s *Snapshot) Hash() string { return s.s.hash }

// Header is the block as eth_getBlockByNumber gave it, without its transactions.
func (s *Snapshot) Header() json.RawMessage { return s.s.header }

// String gives the block.
func (s Snapshot) String() string {
	if s.s == nil {
		return "rpcpool.Snapshot(not made by Chain.Snapshot)"
	}
	return fmt.Sprintf("rpcpool.Snapshot(block %d, %s)", s.s.number, s.s.hash)
}

// Format prints String under every verb.
func (s Snapshot) Format(f fmt.State, verb rune) { formatText(f, verb, s.String()) }

// Call is [Chain.Call] at the snapshot's block. A param that names a block may be left
// out, be "latest", or name this very block; it is sent as the hash
// ({"blockHash": …, "requireCanonical": true}, after EIP-1898). Log filters get the
// blockHash, eth_getBlockByNumber becomes eth_getBlockByHash, eth_blockNumber is
// answered without a request. A method that can't be tied to a block is a *[RequestError].
//
// An RPC that doesn't know the hash is passed over, nothing is quietly read from another
// block. An empty answer (0x, zero, null, []) could come from an RPC that has the block's
// header but not its state, so it is believed of one that has shown something of the block
// before, or when another operator's RPC says the same. The error is a *[SnapshotError]
// where no RPC has the state, or where the chain went on without the block: take a new
// snapshot then and read all of it again.
func (s *Snapshot) Call(ctx context.Context, method string, params ...any) (json.RawMessage, error) {
	encoded, err := encodeParams(params)
	if err != nil {
		return nil, &RequestError{Method: method, Reason: "the params can't be written as JSON", Err: err}
	}
	return s.s.call(ctx, method, encoded)
}

// CallContext is Call with the signature of go-ethereum's rpc.Client.
func (s *Snapshot) CallContext(ctx context.Context, result any, method string, args ...any) error {
	raw, err := s.Call(ctx, method, args...)
	if err != nil || result == nil {
		return err
	}
	return decodeResult(method, raw, result)
}

// HTTPClient gives a client for SDKs, as [Chain.HTTPClient] does, all of whose reads are
// at the snapshot's block.
func (s *Snapshot) HTTPClient() *http.Client {
	return &http.Client{Transport: &rpcTransport{chain: s.s.chain, snapshot: s.s}}
}

func (s *snapshotState) call(ctx context.Context, method string, params []byte) (json.RawMessage, error) {
	req, local, err := s.request(method, params)
	if err != nil || local != nil {
		return local, err
	}
	raw, err := s.chain.do(ctx, req)
	if err == nil {
		return raw, nil
	}
	return nil, req.explain(err)
}

// presentRequest is a request for something that is there: null is no answer to it, and
// neither is what doesn't fit.
type presentRequest struct {
	*callRequest
	fits func(json.RawMessage) bool // nil: everything does
}

func (r *presentRequest) send(ctx context.Context, to target) outcome {
	out := r.callRequest.send(ctx, to)
	if out.verdict == VerdictOK && string(out.result) == "null" {
		return failed(VerdictNoState, "", "the RPC doesn't have it")
	}
	if out.verdict == VerdictOK && r.fits != nil && !r.fits(out.result) {
		return failed(VerdictRPCFail, reportRPC, "the answer is of something else")
	}
	return lacksBlock(out)
}

// snapshotRequest is a read at a snapshot's block.
type snapshotRequest struct {
	*callRequest
	snapshot *snapshotState
	kind     string // what of the block is read; empty for what isn't of a block
	alone    bool   // there is nobody to confirm an empty answer

	replaced bool              // an RPC says that the block isn't part of the chain any more
	refusal  *RPCError         // what an RPC said that can't read by hash, or of bad params
	refusals int               // by how many
	passed   int               // RPCs that were passed over otherwise
	empty    map[string]string // empty answers that nobody else has confirmed, and whose they are
}

// send makes an attempt and judges what only a snapshot can.
func (r *snapshotRequest) send(ctx context.Context, to target) outcome {
	out := r.callRequest.send(ctx, to)
	if out.verdict == VerdictOK {
		return r.judgeResult(to, out)
	}
	if out = lacksBlock(out); out.verdict == VerdictNoState {
		r.passed++
		if rpcErr, ok := errors.AsType[*RPCError](out.err); ok && saysAny(rpcErr, replacedWords) {
			r.replaced = true
		}
		return out
	}
	// Old nodes take no object for a block. Whether it is that or the caller's own
	// params is seen when the others have spoken.
	if rpcErr, ok := errors.AsType[*RPCError](out.err); ok && out.verdict == VerdictCaller && rpcErr.Code == codeInvalidParams {
		r.refusal = rpcErr
		r.refusals++
		return failed(VerdictNoState, "", out.detail)
	}
	return out
}

const (
	codeInvalidParams = -32602
	codeRevert        = 3 // whose words are a contract's
)

// judgeResult says whether an answer is one.
func (r *snapshotRequest) judgeResult(to target, out outcome) outcome {
	s, by := r.snapshot, provenBy{to.endpoint.url, r.kind}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case r.kind == "":
		return out
	case string(out.result) == "null" && r.kind != kindItem: // there is something of a block that is there
		r.passed++
		return failed(VerdictNoState, "", "the RPC doesn't have the block")
	case !s.isOfTheBlock(r.kind, out.result):
		r.passed++
		return failed(VerdictNoState, "", "the answer is of another block")
	case r.kind == kindBlock, !isEmpty(out.result):
		s.proven[by] = true
		return out
	}
	operator := to.endpoint.operator
	first, said := r.empty[string(out.result)]
	if s.proven[by] || said && first != operator || r.alone {
		return out
	}
	if r.empty == nil {
		r.empty = map[string]string{}
	}
	r.empty[string(out.result)] = operator
	r.passed++
	return failed(VerdictNoState, "", "an empty answer, as of an RPC that has the block but not its state")
}

// isOfTheBlock tells whether an answer that names its block names the snapshot's.
func (s *snapshotState) isOfTheBlock(kind string, result json.RawMessage) bool {
	type named struct{ Hash, BlockHash string }
	var parts []named
	switch kind {
	case kindLogs:
		if json.Unmarshal(result, &parts) != nil {
			return false
		}
	case kindBlock, kindItem:
		var one named
		if json.Unmarshal(result, &one) != nil {
			return true // a count
		}
		if kind == kindBlock && one.Hash != "" && !strings.EqualFold(one.Hash, s.hash) {
			return false
		}
		parts = []named{one}
	}
	for _, part := range parts {
		if part.BlockHash != "" && !strings.EqualFold(part.BlockHash, s.hash) {
			return false
		}
	}
	return true
}

// explain says what the end of a snapshot's read means.
func (r *snapshotRequest) explain(err error) error {
	none, ok := errors.AsType[*NoHealthyRPCError](err)
	if !ok {
		return err
	}
	switch {
	case r.refusals > 0 && r.passed == 0 && len(none.Attempts) == r.refusals:
		return r.refusal // all say that the params are wrong
	case r.passed == 0 && r.refusals == 0:
		return err // it isn't about the block: nobody serves the method, or nobody answers
	}
	return &SnapshotError{
		Chain: r.snapshot.chain.ref, Block: fmt.Sprintf("%d (%s)", r.snapshot.number, r.snapshot.hash),
		Method: r.name, Replaced: r.replaced, Unconfirmed: r.empty != nil, Attempts: none.Attempts,
	}
}

func snapshotError(c *chainState, block, method string, err error) error {
	if none, ok := errors.AsType[*NoHealthyRPCError](err); ok && len(none.Attempts) > 0 {
		return &SnapshotError{Chain: c.ref, Block: block, Method: method, Attempts: none.Attempts}
	}
	return err
}

// lackingWords are what nodes say that don't have a block or its state, beyond what makes
// a no_state anyway: for a read by hash it is no fault of theirs. Geth: "header for hash
// not found", "header not found", "missing trie node"; Erigon, Nethermind: "block not
// found", "unknown block"; Besu: "Block not found", "World state unavailable"; hardhat:
// "Received invalid block tag 0x…", "blockHash cannot be found".
var lackingWords = []string{
	"header not found", "header for hash", "missing trie node", "block not found", "unknown block",
	"could not find block", "block hash not found", "world state unavailable", "no state available",
	"received invalid block tag", "blockhash cannot be found",
}

// replacedWords are what nodes say of a block that isn't part of the chain any more.
// Geth: "hash … is not currently canonical"; Nethermind: "… block is not canonical".
var replacedWords = []string{"not currently canonical", "not canonical"}

// saysAny tells whether an error's message has one of the wordings.
func saysAny(e *RPCError, words []string) bool {
	text := strings.ToLower(e.Message)
	for _, each := range words {
		if strings.Contains(text, each) {
			return true
		}
	}
	return false
}

// lacksBlock makes what an RPC says that lacks the block a reason to pass it over.
func lacksBlock(out outcome) outcome {
	rpcErr, ok := errors.AsType[*RPCError](out.err)
	switch {
	case !ok, rpcErr.Code == codeRevert, out.verdict != VerdictCaller && out.verdict != VerdictRPCFail:
		return out
	case !saysAny(rpcErr, lackingWords) && !saysAny(rpcErr, replacedWords):
		return out
	}
	passed := failed(VerdictNoState, "", out.detail)
	passed.err = out.err
	return passed
}

// isEmpty tells whether a result says that there is nothing.
func isEmpty(result json.RawMessage) bool {
	text := strings.TrimSpace(string(result))
	if text == "null" || text == "[]" || text == `""` {
		return true
	}
	digits, isHex := strings.CutPrefix(strings.Trim(text, `"`), "0x")
	return isHex && strings.Trim(digits, "0") == ""
}

// isHash tells whether a text is a hash of 32 bytes.
func isHash(text string) bool {
	digits, found := strings.CutPrefix(text, "0x")
	return found && len(digits) == 64 && strings.Trim(digits, "0123456789abcdefABCDEF") == ""
}
