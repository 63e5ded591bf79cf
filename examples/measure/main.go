// Command measure says how good your own RPCs are, as seen through your own proxies:
// where each one's head is and how far behind the others, how often it failed and in
// which way, how long it takes, and how often a bot would have left it alone.
//
//	go run ./examples/measure -demo
//
// has a chain, RPCs and proxies that are parts of it, on loopback: no key, no internet.
// With a list of your own, for a day, as a table and for a spreadsheet:
//
//	export RPCPOOL_PROXIES=socks5://user:password@proxy-a.example.com:1080
//	go run ./examples/measure -file rpcpool.json -chain 8453 -every 10s -for 24h -csv base.csv
//
// Without -file the RPCs are those that the pool service of the environment lists.
// Ctrl-C ends it early, with the table of what was measured until then. Its exit status
// tells what happened: 0 it was measured, 2 flags or a configuration that can't work,
// 3 trouble with the pool, the proxies or FILE, or no RPC answered at all.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/bomzrpc/rpcpool"
)

// Exit statuses.
const (
	statusOK      = 0
	statusUsage   = 2
	statusTrouble = 3
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// run is the program, with everything that it touches as an argument but the
// environment.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	opts, err := parse(args, os.Getenv)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, usage)
		return statusOK
	}
	if err != nil {
		return explain(stderr, err)
	}
	if opts.demo {
		world := startDemo(opts)
		defer world.Close()
	}
	if err := measureAndShow(ctx, opts, stdout, stderr); err != nil {
		return explain(stderr, err)
	}
	return statusOK
}

func measureAndShow(ctx context.Context, opts *options, stdout, stderr io.Writer) error {
	file, err := openCSV(opts.csv)
	if err != nil {
		return err
	}
	defer file.close()
	progress := newDisplay(stderr, opts.chain, opts.plan)
	config := opts.config
	opts.plan.configure(&config)
	config.Logger = slog.New(slog.NewTextHandler(progress, &slog.HandlerOptions{Level: slog.LevelWarn}))
	pool, err := rpcpool.New(config)
	if err != nil {
		return err
	}
	defer pool.Close() // gives reports about bad RPCs up to 2 s

	m, err := measure(ctx, pool.Chain(opts.chain, opts.plan.chainOptions()...), opts.plan, func(m *measurement) {
		_ = file.write(m) // whether it can be written is asked in the end
		progress.show(m)
	})
	progress.end()
	if err != nil {
		return err
	}
	if err := m.writeTable(stdout); err != nil {
		return err
	}
	if err := file.write(m); err != nil {
		return err
	}
	return m.verdict()
}

// explain tells what went wrong, and what can be done about it. It gives the exit
// status.
func explain(out io.Writer, err error) int {
	var (
		flags   *usageError
		list    *rpcpool.ListFileError
		config  *rpcpool.ConfigError
		proxies *rpcpool.ProxyError
		api     *rpcpool.PoolAPIError
	)
	status, advice := statusTrouble, ""
	switch {
	case errors.As(err, &flags):
		status, advice = statusUsage, "measure -h tells how to use it"
	case errors.As(err, &list):
		status, advice = statusUsage, "docs/DIRECTORY.md has the form of -file"
	case errors.As(err, &config):
		status = statusUsage
		switch config.Field {
		case "APIURL", "APIKey":
			advice = "give a list of your own by -file PATH, or a pool service in " + rpcpool.EnvAPIURL + " and " + rpcpool.EnvAPIKey
		default:
			advice = "proxies are given by -proxy URL, or in " + envProxies
		}
	case errors.As(err, &proxies):
		advice = "check that the proxies run, and their logins: nothing is sent without one"
	case errors.As(err, &api):
		advice = "check -chain, and the file or the pool service"
	}
	fmt.Fprintln(out, "measure:", err)
	if advice != "" {
		fmt.Fprintln(out, advice)
	}
	return status
}
