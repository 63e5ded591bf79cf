package rpcpooltest

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// How far the tags safe and finalized are behind the head.
const (
	safeDepth      = 32
	finalizedDepth = 64
)

// blockAt says at which of its params a method names its block.
var blockAt = map[string]int{
	"eth_getBalance": 1, "eth_getTransactionCount": 1, "eth_getCode": 1, "eth_call": 1, "eth_getStorageAt": 2,
}

func (v evmView) answer(q Request) Reply {
	if v.turn != nil && v.turn.Add(1)%2 == 0 {
		v.behind += v.other
	}
	if v.cache != nil {
		return v.cache.through(q, v.fresh)
	}
	return v.fresh(q)
}

// fresh is the answer of now.
func (v evmView) fresh(q Request) Reply {
	if at, ok := blockAt[q.Method]; ok {
		return v.state(q, at)
	}
	switch q.Method {
	case "eth_chainId":
		return Result(quantity(v.id))
	case "net_version":
		return Result(strconv.FormatUint(v.id, 10))
	case "eth_blockNumber":
		return Result(quantity(v.head() + v.boast))
	case "eth_gasPrice", "eth_maxPriorityFeePerGas":
		return Result("0x3b9aca00")
	case "eth_getBlockByNumber", "eth_getBlockByHash":
		return v.block(q)
	case "eth_getLogs":
		return v.logs(q)
	case "eth_sendRawTransaction":
		return v.send(q)
	case "eth_getTransactionByHash", "eth_getTransactionReceipt":
		return v.receipt(q)
	}
	return Error(-32601, "the method "+q.Method+" does not exist/is not available")
}

// state answers the reads of a block's state.
func (v evmView) state(q Request, at int) Reply {
	var param json.RawMessage
	if q.Param(at, &param) != nil {
		param = json.RawMessage(`"latest"`)
	}
	block, refusal := v.resolve(param)
	switch {
	case refusal != nil && v.vague:
		return emptyState(q.Method)
	case refusal != nil:
		return *refusal
	}
	if block > v.head() {
		return emptyState(q.Method)
	}
	if block < v.pruned {
		return Error(-32000, fmt.Sprintf("required historical state unavailable (reexec=%d)", safeDepth*4))
	}
	switch q.Method {
	case "eth_call", "eth_getStorageAt":
		return Result(v.hash(block))
	case "eth_getCode":
		return Result("0x6001")
	}
	return Result(quantity(block))
}

// emptyState is what a node says that has nothing for a block.
func emptyState(method string) Reply {
	switch method {
	case "eth_getBalance", "eth_getTransactionCount":
		return Result("0x0")
	}
	return Result("0x")
}

// resolve finds the block that a param names: a tag, a number, or an object of
// EIP-1898.
func (v evmView) resolve(param json.RawMessage) (uint64, *Reply) {
	var named struct {
		BlockNumber string `json:"blockNumber"`
		BlockHash   string `json:"blockHash"`

		RequireCanonical bool `json:"requireCanonical"`
	}
	var text string
	switch {
	case json.Unmarshal(param, &text) == nil:
	case json.Unmarshal(param, &named) == nil && named.BlockHash != "":
		if block, ok := v.find(named.BlockHash); ok {
			return block, nil
		}
		if block, ok := v.findReplaced(named.BlockHash); ok {
			if !named.RequireCanonical {
				return block, nil
			}
			replaced := Error(-32000, "hash "+strings.TrimPrefix(named.BlockHash, "0x")+" is not currently canonical")
			return 0, &replaced
		}
		unknown := Error(-32000, "header for hash not found")
		return 0, &unknown
	default:
		text = named.BlockNumber
	}
	head := v.head()
	switch text {
	case "latest", "pending", "":
		return head, nil
	case "safe":
		return head - min(head, safeDepth), nil
	case "finalized":
		return head - min(head, finalizedDepth), nil
	case "earliest":
		return 0, nil
	}
	block, ok := parseQuantity(text)
	if !ok {
		invalid := Error(-32602, "invalid argument 1: hex string without 0x prefix")
		return 0, &invalid
	}
	if block > v.headers() {
		beyond := Error(-32000, "header not found")
		return 0, &beyond
	}
	return block, nil
}

// find looks for a hash among the node's newest blocks.
func (v evmView) find(hash string) (uint64, bool) {
	const depth = 10_000
	head := v.headers()
	for back := uint64(0); back <= min(head, depth); back++ {
		if strings.EqualFold(v.hash(head-back), hash) {
			return head - back, true
		}
	}
	return 0, false
}

// findReplaced looks for a hash among the blocks that reorganizations have replaced.
func (v evmView) findReplaced(hash string) (uint64, bool) {
	const depth = 1000
	head := v.headers()
	for after := range v.chain.reorgCount() {
		for back := uint64(0); back <= min(head, depth); back++ {
			block := head - back
			if strings.EqualFold(blockHash(v.id, v.chain.branch(block, after), block), hash) {
				return block, true
			}
		}
	}
	return 0, false
}

func (v evmView) block(q Request) Reply {
	var param json.RawMessage
	if err := q.Param(0, &param); err != nil {
		return Error(-32602, err.Error())
	}
	if q.Method == "eth_getBlockByHash" {
		param = must(json.Marshal(map[string]json.RawMessage{"blockHash": param}))
	}
	block, refusal := v.resolve(param)
	if refusal != nil {
		return Result(nil) // as geth does for blocks that it hasn't
	}
	parent := "0x" + strings.Repeat("0", 64)
	if block > 0 {
		parent = v.hash(block - 1)
	}
	return Result(map[string]any{
		"number":       quantity(block),
		"hash":         v.hash(block),
		"parentHash":   parent,
		"timestamp":    quantity(uint64(max(v.chain.timeOf(block).Unix(), 0))),
		"transactions": []string{},
	})
}

func (v evmView) logs(q Request) Reply {
	var filter struct {
		FromBlock json.RawMessage `json:"fromBlock"`
		ToBlock   json.RawMessage `json:"toBlock"`
		BlockHash string          `json:"blockHash"`
	}
	if err := q.Param(0, &filter); err != nil {
		return Error(-32602, err.Error())
	}
	var from, to uint64
	var refusal *Reply
	if filter.BlockHash != "" {
		from, refusal = v.resolve(must(json.Marshal(map[string]string{"blockHash": filter.BlockHash})))
		to = from
	} else if from, refusal = v.resolve(orLatest(filter.FromBlock)); refusal == nil {
		to, refusal = v.resolve(orLatest(filter.ToBlock))
	}
	switch {
	case refusal != nil && v.vague:
		return Result([]any{})
	case refusal != nil:
		return *refusal
	}
	logs := []any{}
	for block := from; block <= min(to, v.head()); block++ {
		log := logAt(block)
		log["blockHash"] = v.hash(block)
		logs = append(logs, log)
	}
	return Result(logs)
}

func orLatest(bound json.RawMessage) json.RawMessage {
	if len(bound) == 0 || string(bound) == "null" {
		return json.RawMessage(`"latest"`)
	}
	return bound
}

func (v evmView) send(q Request) Reply {
	var raw string
	if err := q.Param(0, &raw); err != nil {
		return Error(-32602, err.Error())
	}
	hash, known, err := v.chain.send(raw)
	switch {
	case err != nil:
		return Error(-32602, err.Error())
	case known:
		return Error(-32000, "already known")
	}
	return Result(hash)
}

func (v evmView) receipt(q Request) Reply {
	var hash string
	if err := q.Param(0, &hash); err != nil {
		return Error(-32602, err.Error())
	}
	tx, ok := v.chain.transaction(hash)
	mined := ok && tx.block <= v.head()
	if !ok || !mined && q.Method == "eth_getTransactionReceipt" {
		return Result(nil)
	}
	answer := map[string]any{"transactionHash": hash, "hash": hash, "status": "0x1", "logs": []any{}}
	if mined {
		answer["blockNumber"], answer["blockHash"] = quantity(tx.block), v.hash(tx.block)
	}
	return Result(answer)
}
