// Command bench compares rpcpool with what one would write by hand and with other
// libraries, over loopback: what a call costs, what a failing RPC costs, large
// answers, logs in pieces, and a crowd of callers while RPCs come and go.
//
//	go run .                            everything, in a quarter of an hour
//	go run . -quick                     fewer and shorter passes, in two or three minutes
//	go run . -out FILE.md               writes a page about it, too
//	go run . -only large,crowd          some of it: engine, steady, failover, blackhole, large, logs, crowd, js
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"
)

// longest is how long all of it may take, whatever happens.
const longest = 25 * time.Minute

// The words by which the program starts itself again: what serves, and what is
// measured in a process of its own, is apart from the rest.
const (
	serveWord = "serve"
	onceWord  = "once"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	ctx, cancel := context.WithTimeout(ctx, longest)
	err := dispatch(ctx, os.Args[1:])
	cancel()
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func dispatch(ctx context.Context, args []string) error {
	switch {
	case slices.Equal(args, []string{serveWord}):
		return serve(ctx, os.Stdin, os.Stdout)
	case slices.Equal(args, []string{onceWord}):
		return once(ctx, os.Stdin, os.Stdout)
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	quick := flags.Bool("quick", false, "fewer and shorter passes")
	out := flags.String("out", "", "the Markdown `file` to write")
	only := flags.String("only", "", "the `workloads` to run, with commas between; all where empty")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen, err := choose(*only)
	if err != nil {
		return err
	}
	return compare(ctx, chosen, *quick, *out, os.Stdout)
}

// workload is one kind of load.
type workload struct {
	name string
	run  func(ctx context.Context, b *bench) ([]table, error)
}

var workloads = []workload{
	{"engine", engine},
	{"steady", steady},
	{"failover", failover},
	{"blackhole", blackhole},
	{"large", large},
	{"logs", logs},
	{"crowd", crowd},
	{"js", javaScript},
}

// choose gives the workloads of these names.
func choose(names string) ([]workload, error) {
	if names == "" {
		return workloads, nil
	}
	var chosen []workload
	for name := range strings.SplitSeq(names, ",") {
		at := slices.IndexFunc(workloads, func(w workload) bool { return w.name == name })
		if at < 0 {
			return nil, fmt.Errorf("no workload is called %q", name)
		}
		chosen = append(chosen, workloads[at])
	}
	return chosen, nil
}

// bench is what all workloads have in common.
type bench struct {
	addrs    addrs
	control  *control
	quick    bool
	versions []string  // of what isn't in Go's modules
	facts    facts     // what the goals are checked against
	log      io.Writer // what goes on, for who waits
}

// pick gives the first value, or the second in a quick run.
func pick[T any](b *bench, full, quick T) T {
	if b.quick {
		return quick
	}
	return full
}

// compare runs workloads against servers in another process, and reports.
func compare(ctx context.Context, chosen []workload, quick bool, out string, w io.Writer) error {
	servers, err := startServers(ctx)
	if err != nil {
		return err
	}
	defer servers.stop()
	began := time.Now()
	b := &bench{addrs: servers.addrs, control: servers.control, quick: quick, facts: facts{}, log: os.Stderr}
	var tables []table
	for _, workload := range chosen {
		fmt.Fprintf(b.log, "%5.0f s  %s\n", time.Since(began).Seconds(), workload.name)
		measured, err := workload.run(ctx, b)
		if err != nil {
			return fmt.Errorf("%s: %w", workload.name, err)
		}
		for _, t := range measured {
			t.print(w)
		}
		tables = append(tables, measured...)
	}
	goals := goalsTable(b.facts)
	printGoals(w, &goals)
	report := report{machine: thisMachine(b.versions...), goals: goals, tables: tables, quick: quick, took: time.Since(began)}
	report.printFoot(w)
	if out == "" {
		return nil
	}
	return os.WriteFile(out, report.markdown(), 0o644)
}
