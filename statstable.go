package rpcpool

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// WriteStats writes a table of statistics for people, a line an RPC: where its head is,
// failures by class, rate limits, latency, and whether it is asked (rule B12).
//
//	err := rpcpool.WriteStats(os.Stdout, chain.Stats())
func WriteStats(w io.Writer, stats []RPCStats) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "RPC\tHEAD\tLAG\tSERVED\tTRANSPORT\tPROTOCOL\tSEMANTIC\t429\tMEAN\tP95\tEJECTED\tSTATE")
	for i := range stats {
		s := &stats[i]
		state := string(s.State)
		if s.Current {
			state = "* " + state
		}
		if !s.Until.IsZero() {
			state += fmt.Sprintf(" %ds", max(int(time.Until(s.Until).Round(time.Second)/time.Second), 0))
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%s\t%s\t%d\t%s\n",
			s.RPC, orDash(s.Head, s.Head), orDash(s.Head, s.Lag), s.Served,
			s.Transport, s.Protocol, s.Semantic, s.RateLimited,
			shortDuration(s.Mean), shortDuration(s.P95), s.Ejections, state)
	}
	return table.Flush()
}

// orDash shows a value, or a dash where it isn't known.
func orDash(known, value uint64) string {
	if known == 0 {
		return "-"
	}
	return fmt.Sprint(value)
}

// shortDuration shows a latency in three digits or so.
func shortDuration(d time.Duration) string {
	switch {
	case d == 0:
		return "-"
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Round(100 * time.Microsecond).String()
	}
	return d.Round(10 * time.Millisecond).String()
}
