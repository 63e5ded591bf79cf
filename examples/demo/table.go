package main

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/bomzrpc/rpcpool"
)

// verdicts are the rows of the table, the good ones first.
var verdicts = []rpcpool.Verdict{
	rpcpool.VerdictOK, rpcpool.VerdictCaller,
	rpcpool.VerdictRPCFail, rpcpool.VerdictConnFail, rpcpool.VerdictIPBlocked, rpcpool.VerdictProxyFail,
	rpcpool.VerdictUnsupported, rpcpool.VerdictRange, rpcpool.VerdictNoState,
	rpcpool.VerdictStale, rpcpool.VerdictWrongChain,
}

// table gives what the journal counted, as lines: a column for each RPC, a row for
// each figure. Rows with nothing in them are left out.
func (j *journal) table() []string {
	cooling := j.cooling()
	j.mu.Lock()
	defer j.mu.Unlock()
	labels := slices.Sorted(maps.Keys(j.rpcs))
	names, cools := make([]string, len(labels)), make([]string, len(labels))
	for i, label := range labels {
		names[i], cools[i] = nickname(label), "no"
		if slices.Contains(cooling, names[i]) {
			cools[i] = "yes"
		}
	}
	lines := []string{tableRow("RPC", names)}
	add := func(title string, figure func(*account) int) {
		cells, empty := make([]string, len(labels)), true
		for i, label := range labels {
			cells[i] = "-"
			if n := figure(j.rpcs[label]); n > 0 {
				cells[i], empty = strconv.Itoa(n), false
			}
		}
		if !empty {
			lines = append(lines, tableRow(title, cells))
		}
	}
	add("attempts", func(of *account) int { return of.attempts })
	for _, verdict := range verdicts {
		add("  "+string(verdict), func(of *account) int { return of.verdicts[verdict] })
	}
	add("  conn_fail, undone", func(of *account) int { return of.undone })
	return append(lines, tableRow("cooling now", cools))
}

func tableRow(title string, cells []string) string {
	var b strings.Builder
	b.WriteString(title + strings.Repeat(" ", max(0, 20-len(title))))
	for _, cell := range cells {
		b.WriteString(strings.Repeat(" ", max(1, 9-len(cell))) + cell)
	}
	return b.String()
}
