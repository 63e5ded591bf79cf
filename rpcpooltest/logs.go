package rpcpooltest

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Logs answers eth_getLogs with one log at the first block of the range and,
// where it isn't the same, one at the last: enough to see that no block was left
// out. Bounds that are no numbers give an empty list.
func Logs() Reply { return LogsUpTo(0, Reply{}) }

// LogsUpTo is Logs for a node that answers with refusal where the range has more
// than maxSpan blocks; 0 means no limit.
func LogsUpTo(maxSpan uint64, refusal Reply) Reply {
	return Handle(func(q Request) Reply {
		from, to, ok := LogRange(q.Params)
		if !ok || from > to {
			return Result([]any{})
		}
		if maxSpan > 0 && to-from >= maxSpan {
			return refusal
		}
		logs := []any{logAt(from)}
		if to != from {
			logs = append(logs, logAt(to))
		}
		return Result(logs)
	})
}

// LogRange reads the bounds of the filter in the params of an eth_getLogs; ok is
// false where they aren't both numbers.
func LogRange(params json.RawMessage) (from, to uint64, ok bool) {
	var filters []struct {
		FromBlock string `json:"fromBlock"`
		ToBlock   string `json:"toBlock"`
	}
	if json.Unmarshal(params, &filters) != nil || len(filters) == 0 {
		return 0, 0, false
	}
	from, okFrom := parseQuantity(filters[0].FromBlock)
	to, okTo := parseQuantity(filters[0].ToBlock)
	return from, to, okFrom && okTo
}

func parseQuantity(text string) (uint64, bool) {
	digits, ok := strings.CutPrefix(text, "0x")
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 16, 64)
	return n, err == nil
}

func quantity(n uint64) string { return "0x" + strconv.FormatUint(n, 16) }

func logAt(block uint64) map[string]any {
	return map[string]any{
		"address":          "0xabababababababababababababababababababab",
		"topics":           []string{},
		"data":             "0x",
		"blockNumber":      quantity(block),
		"blockHash":        fmt.Sprintf("0x%064x", block+1),
		"transactionHash":  fmt.Sprintf("0x%064x", block+2),
		"transactionIndex": "0x0",
		"logIndex":         "0x0",
		"removed":          false,
	}
}
