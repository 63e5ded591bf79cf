package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// writeTable writes the result for people.
func (m *measurement) writeTable(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "RPC\tHEAD\tLAG\tWORST\tANSWERS\tTRANSPORT\tPROTOCOL\tSEMANTIC\t429\tMEAN MS\tP95 MS\tEJECTED\tSTATE")
	for _, r := range m.rows {
		head, lag, worst := m.heights(r)
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%s\t%s\t%d\t%s\n",
			r.RPC, orDash(head), orDash(lag), orDash(worst), r.Served, r.Transport, r.Protocol, r.Semantic, r.RateLimited,
			orDash(milliseconds(r.Mean)), orDash(milliseconds(r.P95)), r.Ejections, r.shownState(m.at))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(out, m.notes())
	return err
}

// notes are what doesn't fit into a table.
func (m *measurement) notes() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%d samples in %s", m.samples, m.took.Round(100*time.Millisecond))
	if m.mark > 0 {
		fmt.Fprintf(&b, ", up to block %d. LAG is the mean over the samples, in blocks", m.mark)
	}
	b.WriteString(".\n")
	if m.silent > 0 {
		fmt.Fprintf(&b, "In %d of them no RPC answered: that may be a proxy's fault, or this machine's, not the RPCs'.\n", m.silent)
	}
	if n := m.proxyFailures(); n > 0 {
		fmt.Fprintf(&b, "%d more attempts failed by the proxies' own fault.\n", n)
	}
	return b.String()
}

// heights gives an RPC's head, the mean of its lags and the worst of them; empty is what
// isn't known. Where heads are asked for, what only the list says of them doesn't count.
func (m *measurement) heights(r *row) (head, lag, worst string) {
	switch {
	case r.said > 0:
		lag = strconv.FormatFloat(float64(r.lags)/float64(r.said), 'f', 1, 64)
		return strconv.FormatUint(r.Head, 10), lag, strconv.FormatUint(r.worstLag, 10)
	case r.Head > 0 && !m.heads:
		return strconv.FormatUint(r.Head, 10), strconv.FormatUint(r.Lag, 10), ""
	}
	return "", "", ""
}

// shownState is the state, with the time that it still lasts.
func (r *row) shownState(now time.Time) string {
	state := string(r.State)
	if r.State != stateUnlisted && now.Before(r.Until) {
		state += fmt.Sprintf(" %ds", int(r.Until.Sub(now).Round(time.Second)/time.Second))
	}
	return state
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// milliseconds shows a latency; empty for none.
func milliseconds(d time.Duration) string {
	if d <= 0 {
		return ""
	}
	return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', 1, 64)
}

// csvHeader names the columns. What isn't known is empty.
var csvHeader = []string{
	"position", "rpc", "head", "lag_mean", "lag_worst", "attempts", "answers", "transport", "protocol", "semantic",
	"rate_limited", "proxy_failures", "mean_ms", "p50_ms", "p95_ms", "p99_ms", "ejections", "state",
}

// writeCSV writes the result for spreadsheets.
func (m *measurement) writeCSV(out io.Writer) error {
	w := csv.NewWriter(out)
	_ = w.Write(csvHeader) // Flush has the error
	for i, r := range m.rows {
		head, lag, worst := m.heights(r)
		record := []string{strconv.Itoa(i + 1), r.RPC, head, lag, worst}
		for _, n := range []uint64{r.Attempts, r.Served, r.Transport, r.Protocol, r.Semantic, r.RateLimited, r.ProxyFailures} {
			record = append(record, strconv.FormatUint(n, 10))
		}
		for _, d := range []time.Duration{r.Mean, r.P50, r.P95, r.P99} {
			record = append(record, milliseconds(d))
		}
		_ = w.Write(append(record, strconv.FormatUint(r.Ejections, 10), string(r.State)))
	}
	w.Flush()
	return w.Error()
}

// csvFile is the file of -csv. It is written anew after each sample, so that a program
// which is killed after a day has not measured in vain.
type csvFile struct{ file *os.File } // nil: none is wanted

// openCSV sees to it, before anything is measured, that the file can be written. What
// stands in it stays there until there is something better.
func openCSV(path string) (*csvFile, error) {
	if path == "" {
		return &csvFile{}, nil
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, &usageError{"-csv: " + err.Error()}
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		file.Close()
		return nil, &usageError{"-csv takes a file; the table is on standard output anyway"}
	}
	return &csvFile{file}, nil
}

func (f *csvFile) write(m *measurement) error {
	if f.file == nil {
		return nil
	}
	var text strings.Builder
	err := m.writeCSV(&text)
	if err == nil {
		_, err = f.file.WriteAt([]byte(text.String()), 0)
	}
	if err == nil {
		err = f.file.Truncate(int64(text.Len()))
	}
	return err
}

func (f *csvFile) close() {
	if f.file != nil {
		f.file.Close() // what was written is judged by write
	}
}
