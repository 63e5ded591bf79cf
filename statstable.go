package rpcpool

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// WriteStats writes a table of statistics for people, a line an RPC: where its head is,
// failures by class, rate limits, latency, and whether it is asked, with an asterisk at the
// one that the cursor stands on (rule B12). It is plain text, without colours, and rarely
// wider than 120 columns; long names are cut, and "https://" is left out.
//
//	err := rpcpool.WriteStats(os.Stdout, chain.Stats())
func WriteStats(w io.Writer, stats []RPCStats) error {
	rows := [][]string{{"RPC", "HEAD", "LAG", "SERVED", "CONN", "PROTO", "SEMANT", "429", "MEAN", "P95", "EJECT", "STATE"}}
	for i := range stats {
		s := &stats[i]
		rows = append(rows, []string{
			shortLabel(s.RPC), orDash(s.Head, s.Head), orDash(s.Head, s.Lag), count(s.Served),
			count(s.Transport), count(s.Protocol), count(s.Semantic), count(s.RateLimited),
			shortDuration(s.Mean), shortDuration(s.P95), count(s.Ejections), stateOf(s.Current, string(s.State), s.Until),
		})
	}
	return writeTable(w, rows)
}

// WriteProxyStats is [WriteStats] for proxies: what went through each, its own failures
// (FAILED), those of the RPCs behind it by class, and whether it is used, with an asterisk at
// the one in use.
//
//	err := rpcpool.WriteProxyStats(os.Stdout, pool.ProxyStats())
func WriteProxyStats(w io.Writer, stats []ProxyStats) error {
	rows := [][]string{{"PROXY", "SERVED", "FAILED", "DEATHS", "CONN", "PROTO", "SEMANT", "429", "MEAN", "P95", "STATE"}}
	for i := range stats {
		s := &stats[i]
		rows = append(rows, []string{
			shortLabel(s.Proxy), count(s.Served), count(s.Failures), count(s.Deaths),
			count(s.Transport), count(s.Protocol), count(s.Semantic), count(s.RateLimited),
			shortDuration(s.Mean), shortDuration(s.P95), stateOf(s.Current, string(s.State), s.Until),
		})
	}
	return writeTable(w, rows)
}

// writeTable writes rows in columns: the first and the last to the left, numbers to the
// right.
func writeTable(w io.Writer, rows [][]string) error {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		for i, cell := range row {
			space := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			switch i {
			case 0:
				b.WriteString(cell + space)
			case len(row) - 1:
				b.WriteString("  " + cell)
			default:
				b.WriteString("  " + space + cell)
			}
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// maxShownLabel is how much of an RPC's or proxy's name a table has room for.
const maxShownLabel = 29

func shortLabel(label string) string {
	return clip(strings.TrimPrefix(label, "https://"), maxShownLabel)
}

func count(n uint64) string { return strconv.FormatUint(n, 10) }

func stateOf(current bool, state string, until time.Time) string {
	if current {
		state = "* " + state
	}
	if !until.IsZero() {
		state += fmt.Sprintf(" %ds", max(int(time.Until(until).Round(time.Second)/time.Second), 0))
	}
	return state
}

// orDash shows a value, or a dash where it isn't known.
func orDash(known, value uint64) string {
	if known == 0 {
		return "-"
	}
	return count(value)
}

// shortDuration shows a latency in three digits or so.
func shortDuration(d time.Duration) string {
	switch {
	case d == 0:
		return "-"
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < 100*time.Millisecond:
		return d.Round(100 * time.Microsecond).String()
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(10 * time.Millisecond).String()
}
