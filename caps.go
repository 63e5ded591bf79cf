package rpcpool

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// Archive is how much old state an RPC keeps.
type Archive int

// Levels of old state.
const (
	// ArchiveNone asks for nothing: any RPC will do. The zero value.
	ArchiveNone Archive = iota
	// ArchiveRecent asks for an RPC that keeps recent old state, or all of it.
	ArchiveRecent
	// ArchiveFull asks for an RPC that keeps all state since genesis.
	ArchiveFull
)

// String gives the pool's word for the level.
func (a Archive) String() string {
	switch a {
	case ArchiveNone:
		return "none"
	case ArchiveRecent:
		return "recent"
	case ArchiveFull:
		return "full"
	}
	return "Archive(" + strconv.Itoa(int(a)) + ")"
}

// Caps is what the pool measured that an RPC can do. A nil field is unknown, and
// what is unknown never satisfies a requirement (rule A3.1).
type Caps struct {
	// SendTx tells whether the RPC takes raw transactions.
	SendTx *bool
	// Logs is the widest eth_getLogs range that passed, in blocks: 0, 1000 or 10000.
	Logs *uint64
	// Archive is how much old state the RPC has.
	Archive *Archive
}

const (
	narrowLogs = 1000  // blocks that an RPC must take for eth_getLogs at all
	wideLogs   = 10000 // blocks that make it preferred for wider ranges
	recentDeep = 128   // blocks under the head that every full node keeps the state of
)

// requirement is what a call needs of an RPC. Requirements add up (rule A3.1).
type requirement struct {
	sendTx     bool
	logs       bool
	preferWide bool // RPCs that take wide log ranges go first
	archive    Archive
}

// fits tells whether an RPC with these capabilities has what is needed.
func (r requirement) fits(c *Caps) bool {
	if r.sendTx && (c.SendTx == nil || !*c.SendTx) {
		return false
	}
	if r.logs && (c.Logs == nil || *c.Logs < narrowLogs) {
		return false
	}
	if r.archive > ArchiveNone && (c.Archive == nil || *c.Archive < r.archive) {
		return false
	}
	return true
}

// wide tells whether the RPC belongs to the preferred group of a wide log query.
func (r requirement) wide(c *Caps) bool { return c.Logs != nil && *c.Logs >= wideLogs }

// names says what is needed, for errors.
func (r requirement) names() []string {
	var names []string
	if r.sendTx {
		names = append(names, "send_tx")
	}
	if r.logs {
		names = append(names, "logs of "+strconv.Itoa(narrowLogs)+" blocks")
	}
	if r.archive > ArchiveNone {
		names = append(names, "archive "+r.archive.String())
	}
	return names
}

// stateReads are the methods that read the state of a block, with the position
// of the block among their params.
var stateReads = map[string]int{
	"eth_getBalance":          1,
	"eth_getCode":             1,
	"eth_getTransactionCount": 1,
	"eth_getStorageAt":        2,
	"eth_call":                1,
}

// requirementOf derives what a call needs from its method, its params and the
// handle's archive level; head is the largest height in the list (rule A3).
func requirementOf(method string, params []byte, archive Archive, head uint64) requirement {
	need := requirement{archive: archive}
	switch {
	case strings.HasPrefix(method, "eth_sendRawTransaction"):
		need.sendTx = true
	case method == "eth_getLogs":
		need.logs = true
		need.preferWide = logSpan(params, head) > narrowLogs
	default:
		if number, ok := stateBlock(method, params); ok && number+recentDeep < head && need.archive < ArchiveRecent {
			need.archive = ArchiveRecent
		}
	}
	return need
}

// stateBlock gives the number of the block whose state the call reads, where it
// is given as a number: a tag or a hash isn't old, whatever it stands for.
func stateBlock(method string, params []byte) (uint64, bool) {
	position, ok := stateReads[method]
	if !ok {
		return 0, false
	}
	var list []json.RawMessage
	if json.Unmarshal(params, &list) != nil || len(list) <= position {
		return 0, false
	}
	return blockNumber(list[position])
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

// logSpan gives the number of blocks that a log query asks for, as far as its
// bounds tell: "latest", or none, is the head of the list. 0 where they don't.
func logSpan(params []byte, head uint64) uint64 {
	var filters []struct {
		FromBlock, ToBlock json.RawMessage
		BlockHash          json.RawMessage
	}
	if json.Unmarshal(params, &filters) != nil || len(filters) == 0 || len(filters[0].BlockHash) > 0 {
		return 0
	}
	from, okFrom := logBound(filters[0].FromBlock, head)
	to, okTo := logBound(filters[0].ToBlock, head)
	if !okFrom || !okTo || from > to {
		return 0
	}
	return to - from + 1
}

func logBound(bound json.RawMessage, head uint64) (uint64, bool) {
	if len(bound) == 0 || string(bound) == "null" {
		return head, head > 0
	}
	switch tag, _ := decode[string](bound); tag {
	case "earliest":
		return 0, true
	case "latest":
		return head, head > 0
	}
	return blockNumber(bound)
}
