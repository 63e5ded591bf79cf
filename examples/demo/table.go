package main

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/bomzrpc/rpcpool"
)

// table prints what the journal counted: a column for each RPC, a row for each
// figure. Rows of nothing but zeros are left out.
func (j *journal) table() {
	j.mu.Lock()
	defer j.mu.Unlock()
	names := slices.Sorted(maps.Keys(j.rpcs))
	head := make([]string, len(names))
	for i, name := range names {
		head[i] = nickname(name)
	}
	j.tell.printf("\n%s", j.tell.paint(bold, tableRow("RPC", head)))
	row := func(title string, figure func(*account) int) {
		cells, any := make([]string, len(names)), false
		for i, name := range names {
			n := figure(j.rpcs[name])
			cells[i], any = strconv.Itoa(n), any || n != 0
		}
		if any {
			j.tell.printf("%s", tableRow(title, cells))
		}
	}
	row("attempts", func(of *account) int { return of.attempts })
	for _, verdict := range []rpcpool.Verdict{
		rpcpool.VerdictOK, rpcpool.VerdictCaller, rpcpool.VerdictRPCFail, rpcpool.VerdictIPBlocked,
		rpcpool.VerdictConnFail, rpcpool.VerdictUnsupported, rpcpool.VerdictRange,
	} {
		row("  "+string(verdict), func(of *account) int { return of.verdicts[verdict] })
	}
	row("  conn_fail, undone", func(of *account) int { return of.undone })
	cooling := make([]string, len(names))
	for i, name := range names {
		cooling[i] = "no"
		if len(j.rpcs[name].standing) > 0 {
			cooling[i] = "yes"
		}
	}
	j.tell.printf("%s", tableRow("cooling now", cooling))
}

func tableRow(title string, cells []string) string {
	var b strings.Builder
	b.WriteString("   " + title + strings.Repeat(" ", max(0, 20-len(title))))
	for _, cell := range cells {
		b.WriteString(strings.Repeat(" ", max(0, 9-len(cell))) + cell)
	}
	return b.String() + "\n"
}
