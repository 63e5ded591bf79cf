package rpcpool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
)

// QuorumReads asks several operators' RPCs the same and gives the answer that all agree
// on. See [Chain.Quorum].
type QuorumReads struct {
	chain    *chainState
	snapshot *snapshotState // of which all reads are; nil: none
	n        int
}

// Quorum gives reads that n RPCs of different operators must agree on, for the few calls
// that deserve it. Several URLs of one registrable domain are one operator (rule D4). The
// n are asked at once, each with the failover of any call; those that answer must say the
// same, up to the order of members in JSON objects. They rarely do of the latest block,
// which is another one from moment to moment: ask for a block by its number, or use
// [Snapshot.Quorum]. Where they don't, or fewer than n operators answer, the error is a
// *[QuorumError] that shows who said what. n is at least 2.
func (c *Chain) Quorum(n int) *QuorumReads { return &QuorumReads{chain: c.s, n: n} }

// Quorum is [Chain.Quorum] at the snapshot's block.
func (s *Snapshot) Quorum(n int) *QuorumReads {
	return &QuorumReads{chain: s.s.chain, snapshot: s.s, n: n}
}

// Call is [Chain.Call] by quorum. A *[RPCError] that all agree on, a revert perhaps, is
// returned as such.
func (q *QuorumReads) Call(ctx context.Context, method string, params ...any) (json.RawMessage, error) {
	switch {
	case q.n < 2:
		return nil, &RequestError{Method: method, Reason: fmt.Sprintf("a quorum of %d is none; use 2 or more", q.n)}
	case !q.chain.pool.repeats.allow(method) || isRawSend(method):
		return nil, &RequestError{Method: method, Reason: "it has effects, and a quorum is for reads"}
	}
	encoded, err := encodeParams(params)
	if err != nil {
		return nil, &RequestError{Method: method, Reason: "the params can't be written as JSON", Err: err}
	}
	votes := make([]*vote, q.n)
	asked := &operators{taken: map[string]*vote{}}
	for i := range votes {
		v, local, err := q.request(method, encoded, asked)
		if err != nil || local != nil {
			return local, err
		}
		votes[i] = v
	}
	var voting sync.WaitGroup
	for _, v := range votes {
		voting.Go(func() {
			v.result, v.err = q.chain.do(ctx, v)
			if pinned, ok := v.request.(*snapshotRequest); ok && v.err != nil {
				v.err = pinned.explain(v.err)
			}
		})
	}
	voting.Wait()
	return countVotes(method, votes)
}

// CallContext is Call with the signature of go-ethereum's rpc.Client.
func (q *QuorumReads) CallContext(ctx context.Context, result any, method string, args ...any) error {
	raw, err := q.Call(ctx, method, args...)
	if err != nil || result == nil {
		return err
	}
	return decodeResult(method, raw, result)
}

func (q *QuorumReads) request(method string, params []byte, taken *operators) (*vote, json.RawMessage, error) {
	if q.snapshot != nil {
		req, local, err := q.snapshot.request(method, params)
		if err != nil || local != nil {
			return nil, local, err
		}
		req.alone = true // the other votes are its confirmation
		return &vote{request: req, taken: taken}, nil, nil
	}
	if method == "" {
		return nil, nil, &RequestError{Method: method, Reason: "no method given"}
	}
	return &vote{request: newEncodedRequest(q.chain.pool, method, params), taken: taken}, nil, nil
}

// operators are those that are asked or have answered in a quorum read.
type operators struct {
	mu    sync.Mutex // protects taken
	taken map[string]*vote
}

// vote is one of the n requests.
type vote struct {
	request
	taken *operators

	by     *endpoint // who was asked last
	result json.RawMessage
	err    error
}

// claim takes an operator for this vote; false where another has it.
func (v *vote) claim(e *endpoint) bool {
	v.taken.mu.Lock()
	defer v.taken.mu.Unlock()
	if other := v.taken.taken[e.operator]; other != nil && other != v {
		return false
	}
	if v.by != nil && v.by.operator != e.operator {
		delete(v.taken.taken, v.by.operator) // it hasn't answered: another vote may try
	}
	v.taken.taken[e.operator], v.by = v, e
	return true
}

// countVotes gives what all votes agree on.
func countVotes(method string, votes []*vote) (json.RawMessage, error) {
	first, agreed := votes[0].canonical(), true
	for _, v := range votes {
		if !isAnswer(v.err) {
			if isInterruption(v.err) {
				return nil, v.err
			}
			agreed = false
			continue
		}
		agreed = agreed && v.canonical() == first
	}
	if agreed {
		return votes[0].result, votes[0].err
	}
	err := &QuorumError{Method: method, Needed: len(votes)}
	for _, v := range votes {
		answer := QuorumAnswer{Result: v.result, Err: v.err}
		if v.by != nil && isAnswer(v.err) {
			answer.RPC, answer.Operator = v.by.label, v.by.operator
		}
		err.Answers = append(err.Answers, answer)
	}
	return nil, err
}

// canonical is the form in which answers are compared.
func (v *vote) canonical() string {
	if rpcErr, ok := errors.AsType[*RPCError](v.err); ok {
		return fmt.Sprintf("error %d %s", rpcErr.Code, canonicalJSON(rpcErr.Data)) // nodes word the same differently
	}
	if v.err != nil {
		return "error " + v.err.Error()
	}
	return canonicalJSON(v.result)
}

// canonicalJSON writes JSON with the members of objects in order, numbers as they are.
func canonicalJSON(raw json.RawMessage) string {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return string(raw)
	}
	canonical, err := json.Marshal(value) // which sorts
	if err != nil {
		return string(raw)
	}
	return string(canonical)
}

func isInterruption(err error) bool {
	_, interrupted := errors.AsType[*InterruptedError](err)
	return interrupted || errors.Is(err, ErrClosed)
}

// QuorumError says that the operators asked don't agree, or that too few answered. Nobody
// is believed then: look at who said what.
type QuorumError struct {
	// Method is the JSON-RPC method.
	Method string
	// Needed is the number of operators that must agree.
	Needed int
	// Answers is what each said, one for each of Needed.
	Answers []QuorumAnswer
}

// QuorumAnswer is what one operator's RPC said.
type QuorumAnswer struct {
	// RPC is the masked URL, and Operator the registrable domain; empty where there was
	// no answer.
	RPC, Operator string
	// Result is the answer; nil where there is Err.
	Result json.RawMessage
	// Err is the RPC's error answer (*[RPCError], *[HTTPError]), or why there is no answer.
	Err error
}

func (e *QuorumError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "rpcpool: %d operators were to agree on %s and don't", e.Needed, e.Method)
	for i, a := range e.Answers {
		separator := "; "
		if i == 0 {
			separator = ": "
		}
		b.WriteString(separator)
		switch {
		case a.RPC == "":
			b.WriteString("no answer (" + clip(a.Err.Error(), maxReportDetail) + ")")
		case a.Err != nil:
			b.WriteString(a.RPC + " said " + clip(a.Err.Error(), maxReportDetail))
		default:
			b.WriteString(a.RPC + " said " + clip(string(a.Result), 100))
		}
	}
	return b.String()
}

// Unwrap gives why answers are missing.
func (e *QuorumError) Unwrap() []error {
	var causes []error
	for _, a := range e.Answers {
		if a.Err != nil {
			causes = append(causes, a.Err)
		}
	}
	return causes
}

func (*QuorumError) rpcPoolError() {}
