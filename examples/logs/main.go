// Command logs writes the logs of contracts into a file, one JSON object a line, over
// any range of blocks: it streams them by LogChunks, so that it holds a few pieces at
// most, and it may be killed at any time. It stores how far it has come beside the
// file after each piece; run again with the same flags it goes on there, and no log
// is lost or written twice. On a terminal it shows a progress bar, else plain lines.
//
// It is a module of its own, because of the progress bar. With RPCs, proxies and a
// chain that are parts of it, on loopback, without a key or the internet:
//
//	go -C examples/logs run . -demo -out /tmp/logs.jsonl
//
// Break it off with Ctrl-C, or kill -9, and run it again. With the real pool:
//
//	export RPC_POOL_URL=https://pool.example.org RPC_POOL_API_KEY=…
//	export RPCPOOL_PROXIES=socks5://user:password@proxy-a.example.com:1080
//	go -C examples/logs run . -chain 8453 -from 40000000 -to finalized -at-once 4 \
//	    -address 0x4200000000000000000000000000000000000006 -out /tmp/weth.jsonl
//
// Up to "finalized", which is what -to is by default, what is in the file stays true;
// up to "latest" a reorganisation may come later and change the last blocks. Run it
// again from time to time: with a tag for -to it takes the new blocks each time. Two
// of it must not write the same file at once.
//
// Its exit status tells what happened: 0 all is written, 1 it ended before that and
// says why and where, 2 flags that can't work.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/bomzrpc/rpcpool"
)

// Exit statuses.
const (
	statusDone    = 0
	statusTrouble = 1
	statusUsage   = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	status := run(ctx, os.Args[1:], os.Stderr)
	stop()
	os.Exit(status)
}

// run is the program, but for the environment.
func run(ctx context.Context, args []string, stderr io.Writer) int {
	opts, err := parse(args, os.Getenv)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stderr, usage)
		return statusDone
	case err != nil:
		fmt.Fprintln(stderr, "logs:", err)
		return statusUsage
	}
	if opts.demo {
		world := startDemo(opts)
		defer world.Close()
	}
	if err := write(ctx, opts, stderr); err != nil {
		fmt.Fprintln(stderr, "logs:", err)
		return statusTrouble
	}
	return statusDone
}

// write brings the file up to date.
func write(ctx context.Context, opts *options, stderr io.Writer) error {
	pool, err := rpcpool.New(opts.config)
	if err != nil {
		return err
	}
	defer pool.Close() // gives reports about bad RPCs up to 2 s
	file, err := openLogFile(opts.out, opts.query)
	if err != nil {
		return err
	}
	defer func() { _ = file.close() }() // where it ends earlier; what counts is synced
	if file.done.Next > opts.query.From {
		fmt.Fprintf(stderr, "%s has the logs up to block %d; going on there\n", opts.out, file.done.Next-1)
	}

	bar := newDisplay(stderr, opts.query.From, file.done.Logs, opts.every)
	filter := opts.query.filter()
	filter.FromBlock, filter.ToBlock = file.done.Next, opts.to
	// The piece is in the file, and that it is has been stored, before the next one is
	// asked for: the loop's body decides how fast the RPCs are asked.
	for chunk, err := range pool.Chain(opts.query.Chain).LogChunks(ctx, filter,
		rpcpool.ChunkSize(opts.chunk),
		rpcpool.Concurrency(opts.atOnce),
		rpcpool.CheckHeads(), // an RPC that lags must not answer for blocks that it hasn't got
		rpcpool.OnProgress(bar.show),
	) {
		if err == nil {
			err = file.add(chunk)
		}
		if err != nil {
			bar.end()
			return fmt.Errorf("ended before block %d, run it again to go on: %w", file.done.Next, err)
		}
	}
	bar.end()
	fmt.Fprintf(stderr, "%s has %d logs of the blocks before %d\n", opts.out, file.done.Logs, file.done.Next)
	return file.close()
}
