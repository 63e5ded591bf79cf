// Command call sends one JSON-RPC request through your proxies to the RPCs that
// the pool lists for a chain, and prints the result as one line of JSON:
//
//	export RPC_POOL_URL=https://pool.example.org RPC_POOL_API_KEY=…
//	export RPCPOOL_PROXIES=socks5://user:password@proxy-a.example.com:1080
//	go run ./examples/call -chain 8453 eth_getBlockByNumber latest false
//
// Without a pool, -file takes a list of your own. With -h it says more. Its exit status tells what happened: 0 a result, 1 the
// node's own error, 2 a usage that can't work, 3 trouble with RPCs, proxies or pool.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"

	"github.com/bomzrpc/rpcpool"
)

// Exit statuses.
const (
	statusOK      = 0
	statusNode    = 1 // the node's own error: about the request
	statusUsage   = 2 // flags, configuration or params that can't work
	statusTrouble = 3 // no healthy RPC, dead proxies, no pool, broken off
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// run is the program, with everything that it touches as an argument but the
// environment.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	stderr = &lockedWriter{out: stderr}
	opts, err := parse(args, os.Getenv)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, usage)
		return statusOK
	}
	if err != nil {
		return explain(stderr, err, &options{})
	}
	config := opts.config
	config.Logger = slog.New(&attemptLog{out: stderr, verbose: opts.verbose})
	pool, err := rpcpool.New(config)
	if err != nil {
		return explain(stderr, err, opts)
	}
	defer pool.Close() // gives reports about bad RPCs up to 2 s

	chain := pool.Chain(opts.chain, rpcpool.WithArchive(opts.archive))
	result, err := chain.Call(ctx, opts.method, opts.params...)
	if err != nil {
		return explain(stderr, err, opts)
	}
	// Compact changes white space only: one line, whatever the node's habits.
	var line bytes.Buffer
	if err := json.Compact(&line, result); err != nil {
		return explain(stderr, err, opts)
	}
	if _, err := fmt.Fprintln(stdout, line.String()); err != nil {
		return explain(stderr, err, opts)
	}
	return statusOK
}
