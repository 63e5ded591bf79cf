package rpcpool

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Kinds of what is read of a block.
const (
	kindState = "state"
	kindBlock = "block"
	kindItem  = "item" // of a block, which may have fewer
	kindLogs  = "logs"
	kindTrace = "trace"
)

// byHash are the methods that name a block by its number, and their twins that name it by
// its hash.
var byHash = map[string]string{
	"eth_getBlockByNumber":                    "eth_getBlockByHash",
	"eth_getBlockTransactionCountByNumber":    "eth_getBlockTransactionCountByHash",
	"eth_getTransactionByBlockNumberAndIndex": "eth_getTransactionByBlockHashAndIndex",
	"eth_getUncleByBlockNumberAndIndex":       "eth_getUncleByBlockHashAndIndex",
	"eth_getUncleCountByBlockNumber":          "eth_getUncleCountByBlockHash",
	"debug_traceBlockByNumber":                "debug_traceBlockByHash",
}

// request makes the read of a method at the snapshot's block, or answers it without a
// request.
func (s *snapshotState) request(method string, params []byte) (req *snapshotRequest, local json.RawMessage, err error) {
	if method == methodBlockNumber {
		return nil, json.RawMessage(`"` + quantity(s.number) + `"`), nil
	}
	var list []json.RawMessage
	if len(params) > 0 && json.Unmarshal(params, &list) != nil {
		return nil, nil, s.refuse(method, "the params aren't a list")
	}
	name, kind := method, ""
	where, numbered := blockParams[method]
	switch twin, hasTwin := byHash[method]; {
	case method == methodChainID || method == "net_version":
	case method == methodLogs:
		kind = kindLogs
		list, err = s.pinFilter(list)
	case hasTwin:
		name, kind = twin, kindBlock
		if strings.HasSuffix(method, "AndIndex") {
			kind = kindItem
		}
		list, err = s.pin(method, list, 0, `"`+s.hash+`"`)
	case numbered && where.kind != kindTrace || method == "debug_traceCall":
		kind = where.kind
		if method == "eth_getBlockReceipts" {
			kind = kindLogs
		}
		list, err = s.pin(method, list, where.position, s.reference())
	case isNamedByHash(method, list, s.hash):
		kind = kindBlock
	default:
		return nil, nil, s.refuse(method, "it can't be tied to a block; ask the chain itself")
	}
	if err != nil {
		return nil, nil, err
	}
	if list == nil {
		list = []json.RawMessage{}
	}
	encoded, err := json.Marshal(list)
	if err != nil {
		return nil, nil, s.refuse(method, "the params can't be written as JSON")
	}
	call := newEncodedRequest(s.chain.pool, name, encoded)
	return &snapshotRequest{callRequest: call, snapshot: s, kind: kind, alone: s.sole() || kind == ""}, nil, nil
}

// reference names the block as EIP-1898 has it.
func (s *snapshotState) reference() string {
	return `{"blockHash":"` + s.hash + `","requireCanonical":true}`
}

// pin puts the block into the params, in place of a param that means it or isn't there.
func (s *snapshotState) pin(method string, list []json.RawMessage, position int, block string) ([]json.RawMessage, error) {
	if len(list) < position {
		return nil, s.refuse(method, fmt.Sprintf("it needs %d params before the block", position))
	}
	if len(list) == position {
		return append(list, json.RawMessage(block)), nil
	}
	if !s.isMeant(list[position]) {
		return nil, s.refuse(method, fmt.Sprintf(
			"it names the block %s, and the snapshot is of block %d; leave the block out, or ask the chain itself", clip(string(list[position]), 100), s.number))
	}
	list[position] = json.RawMessage(block)
	return list, nil
}

// isMeant tells whether a param that names a block means the snapshot's.
func (s *snapshotState) isMeant(param json.RawMessage) bool {
	if string(param) == "null" {
		return true
	}
	if number, ok := blockNumber(param); ok {
		return number == s.number
	}
	var named struct{ BlockHash string }
	if json.Unmarshal(param, &named) == nil {
		return strings.EqualFold(named.BlockHash, s.hash)
	}
	text, _ := decode[string](param)
	return text == tagLatest || strings.EqualFold(text, s.hash)
}

// pinFilter puts the block's hash into a log filter in place of its bounds.
func (s *snapshotState) pinFilter(list []json.RawMessage) ([]json.RawMessage, error) {
	filter := map[string]json.RawMessage{}
	if len(list) > 0 && json.Unmarshal(list[0], &filter) != nil || filter == nil {
		return nil, s.refuse(methodLogs, "the filter isn't an object")
	}
	if hash, named := filter["blockHash"]; named && !s.isMeant(hash) {
		return nil, s.refuse(methodLogs, "the filter names another block's hash")
	}
	for _, bound := range []string{"fromBlock", "toBlock"} {
		if value, there := filter[bound]; there && !s.isMeant(value) {
			return nil, s.refuse(methodLogs, fmt.Sprintf("the filter's %s isn't block %d, which the snapshot is of", bound, s.number))
		}
		delete(filter, bound)
	}
	filter["blockHash"] = json.RawMessage(`"` + s.hash + `"`)
	encoded, err := json.Marshal(filter)
	if err != nil {
		return nil, s.refuse(methodLogs, "the filter can't be written as JSON")
	}
	return []json.RawMessage{encoded}, nil
}

// isNamedByHash tells whether a request names the block by its hash already.
func isNamedByHash(method string, list []json.RawMessage, hash string) bool {
	for _, twin := range byHash {
		if method == twin && len(list) > 0 {
			named, _ := decode[string](list[0])
			return strings.EqualFold(named, hash)
		}
	}
	return false
}

func (s *snapshotState) refuse(method, why string) error {
	return &RequestError{Method: method, Reason: "in a snapshot: " + why}
}

// sole tells whether there is no second operator to confirm anything.
func (s *snapshotState) sole() bool {
	s.chain.mu.Lock()
	defer s.chain.mu.Unlock()
	return s.chain.ring == nil || s.chain.ring.operators < 2
}

// SnapshotError says that no RPC could be read from at a snapshot's block, or that there
// is no such block. Nothing was read from another block instead. Take a new snapshot, and
// read again all that belongs together.
type SnapshotError struct {
	// Chain is the reference that the handle was made with.
	Chain string
	// Block is the block that was asked for: number and hash, or what [Chain.Snapshot]
	// was given.
	Block string
	// Method is the JSON-RPC method.
	Method string
	// Replaced: an RPC said that the block isn't part of the chain any more (a reorg).
	Replaced bool
	// Unconfirmed: there was an empty answer, which no second operator confirmed.
	Unconfirmed bool
	// Attempts are the call's failed attempts, in order, masked.
	Attempts []Attempt
}

func (e *SnapshotError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "rpcpool: chain %q at block %s: ", e.Chain, e.Block)
	switch {
	case e.Replaced:
		b.WriteString("the block was replaced in a reorganization")
	case e.Unconfirmed:
		b.WriteString("the only answer to " + e.Method + " was empty, and nobody confirms it")
	default:
		b.WriteString("no RPC has what " + e.Method + " needs of it")
	}
	b.WriteString("; take a new snapshot and read all of it again")
	writeAttempts(&b, e.Attempts)
	return b.String()
}

func (*SnapshotError) rpcPoolError() {}
