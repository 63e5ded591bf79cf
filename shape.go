package rpcpool

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// shape is what the method and params of a request say of what it needs. It is
// read once, before any lock is taken: params can be large.
type shape struct {
	method string
	sendTx bool
	logs   bool
	read   blockRead
	old    bool // one of the reads that need an archive for old blocks (rule A3)

	bounds *logBounds // of a log query; nil where they aren't told
}

// blockRead is the block that a request reads from, where it names one by number.
type blockRead struct {
	kind     string // what of the block: "state", "block", "logs" or "trace"
	block    uint64
	numbered bool
}

type logBounds struct{ from, to logEdge }

// logEdge is a bound of a log query.
type logEdge struct {
	number uint64
	head   bool // "latest", or none: the head of the list
	known  bool
}

// blockParam is where a method has its block.
type blockParam struct {
	position int
	kind     string
	old      bool // listed in rule A3
}

// blockParams are the methods that name the block that they read from. Kinds are
// what a node drops together: one that has dropped a block's state may still have
// the block.
var blockParams = map[string]blockParam{
	"eth_getBalance":          {1, "state", true},
	"eth_getCode":             {1, "state", true},
	"eth_getTransactionCount": {1, "state", true},
	"eth_getStorageAt":        {2, "state", true},
	"eth_call":                {1, "state", true},
	"eth_getProof":            {2, "state", false},
	"eth_estimateGas":         {1, "state", false},
	"eth_createAccessList":    {1, "state", false},
	"eth_simulateV1":          {1, "state", false},
	"debug_traceCall":         {1, "state", false},

	"eth_getBlockByNumber":                    {0, "block", false},
	"eth_getBlockReceipts":                    {0, "block", false},
	"eth_getBlockTransactionCountByNumber":    {0, "block", false},
	"eth_getTransactionByBlockNumberAndIndex": {0, "block", false},
	"eth_getUncleByBlockNumberAndIndex":       {0, "block", false},
	"eth_getUncleCountByBlockNumber":          {0, "block", false},

	"debug_traceBlockByNumber":      {0, "trace", false},
	"trace_block":                   {0, "trace", false},
	"trace_replayBlockTransactions": {0, "trace", false},
}

// shapeOf reads a request. Of params that can't be read it says nothing.
func shapeOf(method string, params []byte) shape {
	s := shape{method: method, sendTx: strings.HasPrefix(method, "eth_sendRawTransaction")}
	if method == methodLogs {
		s.logs = true
		s.readFilter(params)
		return s
	}
	where, ok := blockParams[method]
	if !ok {
		return s
	}
	var list []json.RawMessage
	if json.Unmarshal(params, &list) != nil || len(list) <= where.position {
		return s
	}
	if number, ok := blockNumber(list[where.position]); ok {
		s.read = blockRead{kind: where.kind, block: number, numbered: true}
		s.old = where.old
	}
	return s
}

func (s *shape) readFilter(params []byte) {
	var filters []struct {
		FromBlock, ToBlock json.RawMessage
		BlockHash          json.RawMessage
	}
	if json.Unmarshal(params, &filters) != nil || len(filters) == 0 || len(filters[0].BlockHash) > 0 {
		return
	}
	s.bounds = &logBounds{logEdgeOf(filters[0].FromBlock), logEdgeOf(filters[0].ToBlock)}
	if from := s.bounds.from; from.known && !from.head {
		s.read = blockRead{kind: "logs", block: from.number, numbered: true}
	}
}

func logEdgeOf(bound json.RawMessage) logEdge {
	if len(bound) == 0 || string(bound) == "null" {
		return logEdge{head: true, known: true}
	}
	switch tag, _ := decode[string](bound); tag {
	case tagEarliest:
		return logEdge{known: true}
	case tagLatest:
		return logEdge{head: true, known: true}
	}
	number, ok := blockNumber(bound)
	return logEdge{number: number, known: ok}
}

// need gives what an RPC must have for the request, in a handle of this archive
// level; head is the largest height in the list, 0 if unknown (rule A3).
func (s *shape) need(archive Archive, head uint64) requirement {
	need := requirement{sendTx: s.sendTx, logs: s.logs, archive: archive}
	need.preferWide = s.logSpan(head) > narrowLogs
	if s.old && s.read.block+recentDeep < head && need.archive < ArchiveRecent {
		need.archive = ArchiveRecent
	}
	return need
}

// logSpan gives the number of blocks that a log query asks for, as far as its
// bounds tell; 0 where they don't.
func (s *shape) logSpan(head uint64) uint64 {
	if s.bounds == nil {
		return 0
	}
	from, okFrom := s.bounds.from.at(head)
	to, okTo := s.bounds.to.at(head)
	if !okFrom || !okTo || from > to {
		return 0
	}
	return to - from + 1
}

func (e logEdge) at(head uint64) (uint64, bool) {
	if e.head {
		return head, head > 0
	}
	return e.number, e.known
}

// blockNumber reads a hex quantity, or an EIP-1898 object with blockNumber.
func blockNumber(param json.RawMessage) (uint64, bool) {
	if len(param) > 0 && param[0] == '{' {
		var object struct {
			BlockNumber json.RawMessage `json:"blockNumber"`
		}
		if json.Unmarshal(param, &object) != nil {
			return 0, false
		}
		param = object.BlockNumber
	}
	var text string
	if json.Unmarshal(param, &text) != nil {
		return 0, false
	}
	return parseQuantity(text)
}

// parseQuantity reads a hex quantity such as "0x1b4". One that is larger than a
// block number can be is no number of a block.
func parseQuantity(text string) (uint64, bool) {
	digits, found := strings.CutPrefix(text, "0x")
	if !found {
		digits, found = strings.CutPrefix(text, "0X")
	}
	if !found || digits == "" {
		return 0, false
	}
	number, err := strconv.ParseUint(digits, 16, 64)
	return number, err == nil && number <= math.MaxInt64
}
