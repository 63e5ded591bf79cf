package rpcpool

import (
	"encoding/json"
	"strings"
)

// latestMethods are those that mean the newest state without saying so, or that ask for
// something by its hash, which an RPC that lags doesn't have yet and answers by null.
var latestMethods = map[string]bool{
	"eth_blockNumber":          true,
	"eth_gasPrice":             true,
	"eth_maxPriorityFeePerGas": true,
	"eth_blobBaseFee":          true,
	"eth_baseFee":              true,

	"eth_getTransactionByHash":              true,
	"eth_getRawTransactionByHash":           true,
	"eth_getTransactionReceipt":             true,
	"eth_getTransactionBySenderAndNonce":    true,
	"eth_getBlockByHash":                    true,
	"eth_getBlockTransactionCountByHash":    true,
	"eth_getTransactionByBlockHashAndIndex": true,
	"eth_getUncleByBlockHashAndIndex":       true,
	"eth_getUncleCountByBlockHash":          true,
	"debug_traceTransaction":                true,
	"debug_traceBlockByHash":                true,
	"trace_transaction":                     true,
	"trace_get":                             true,
	"trace_replayTransaction":               true,
}

// moreBlockParams are methods that name a block but need no archive and aren't marked
// as pruned.
var moreBlockParams = map[string]int{
	"eth_feeHistory": 1,
	"eth_callMany":   1,
	"trace_call":     2,
	"trace_callMany": 1,
}

// headDemandOf reads what a request asks of an RPC's head (rules B3, B6). Of a method
// that isn't known it asks nothing.
func headDemandOf(method string, params []byte) headDemand {
	d := headDemand{on: true}
	switch {
	case method == methodLogs:
		d.logs(params)
		return d
	case latestMethods[method]:
		d.latest = true
		d.carries = method == methodBlockNumber
		return d
	}
	position, known := moreBlockParams[method]
	if where, ok := blockParams[method]; ok {
		position, known = where.position, true
	}
	if !known && string(params) == noParams {
		return d
	}
	var list []json.RawMessage
	if json.Unmarshal(params, &list) != nil {
		return d
	}
	if !known {
		d.tags(list)
		return d
	}
	if len(list) <= position {
		d.latest = true
		return d
	}
	d.block(list[position])
	tag, _ := decode[string](list[position])
	d.carries = tag == tagLatest && method == methodBlockByNumber
	return d
}

// block takes in a param that names a block.
func (d *headDemand) block(param json.RawMessage) {
	if number, ok := blockNumber(param); ok {
		if d.named {
			number = max(number, d.number)
		}
		d.named, d.number = true, number
		return
	}
	if len(param) > 0 && param[0] == '{' { // by its hash, which an RPC that lags hasn't
		d.latest = true
		return
	}
	tag, _ := decode[string](param)
	if tag == "" || tag == tagLatest || tag == tagPending || isHash(tag) {
		d.latest = true
	}
}

// tags takes in the params of a method that isn't known: one that names the latest block
// means it.
func (d *headDemand) tags(list []json.RawMessage) {
	for _, param := range list {
		if tag, _ := decode[string](param); tag == tagLatest || tag == tagPending {
			d.latest = true
		}
	}
}

// logs takes in a log filter.
func (d *headDemand) logs(params []byte) {
	var filters []struct {
		FromBlock, ToBlock json.RawMessage
		BlockHash          json.RawMessage
	}
	if json.Unmarshal(params, &filters) != nil || len(filters) == 0 {
		return
	}
	if len(filters[0].BlockHash) > 0 && string(filters[0].BlockHash) != "null" {
		d.latest = true
		return
	}
	d.block(filters[0].FromBlock)
	d.block(filters[0].ToBlock)
}

// What answers tell of heads.

// saidHead is what an answer tells of the RPC's head and of a block.
type saidHead struct {
	known  bool
	head   uint64
	exact  bool // the head itself, not merely a block that the RPC has
	hash   string
	number uint64 // the block with the hash
	stamp  uint64 // its timestamp, in seconds; 0: not known
}

// headSaid reads what the answer to a request says.
func headSaid(method string, params []byte, result json.RawMessage) saidHead {
	switch method {
	case methodBlockNumber:
		number, ok := decodeQuantity(result)
		return saidHead{known: ok, head: number, exact: true}
	case methodBlockByNumber, methodBlockByHash:
		return headOfBlock(method, params, result)
	case methodReceipt, methodTransaction:
		var mined struct{ BlockNumber, BlockHash string }
		if json.Unmarshal(result, &mined) != nil {
			return saidHead{}
		}
		number, ok := parseQuantity(mined.BlockNumber)
		return saidHead{known: ok, head: number, hash: mined.BlockHash, number: number}
	case methodLogs:
		number, ok := lastLogBlock(result)
		return saidHead{known: ok, head: number}
	}
	return saidHead{}
}

func headOfBlock(method string, params []byte, result json.RawMessage) saidHead {
	var block struct{ Number, Hash, Timestamp string }
	if json.Unmarshal(result, &block) != nil {
		return saidHead{}
	}
	number, ok := parseQuantity(block.Number)
	if !ok {
		return saidHead{}
	}
	said := saidHead{known: true, head: number, hash: block.Hash, number: number}
	said.stamp, _ = parseQuantity(block.Timestamp)
	var list []json.RawMessage
	if method == methodBlockByNumber && json.Unmarshal(params, &list) == nil && len(list) > 0 {
		switch tag, _ := decode[string](list[0]); tag {
		case tagLatest:
			said.exact = true
		case tagPending: // the block to come, or the latest: nodes differ
			said = saidHead{known: number > 0, head: number - min(number, 1)}
		}
	}
	return said
}

// lastLogBlock gives the block of the last log of an answer, without decoding it all.
func lastLogBlock(result json.RawMessage) (uint64, bool) {
	const name = `"blockNumber":"`
	text := string(result[len(result)-min(len(result), 16<<10):])
	at := strings.LastIndex(text, name)
	if at < 0 {
		return 0, false
	}
	digits, _, found := strings.Cut(text[at+len(name):], `"`)
	if !found {
		return 0, false
	}
	return parseQuantity(digits)
}

// decodeQuantity reads a result that is a hex quantity.
func decodeQuantity(result json.RawMessage) (uint64, bool) {
	text, ok := decode[string](result)
	if !ok {
		return 0, false
	}
	return parseQuantity(text)
}
