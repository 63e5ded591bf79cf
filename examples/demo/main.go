// Command demo tells a story of failing RPCs and proxies, and of a bot that goes
// on working. The pool API, the proxies and the RPCs are parts of this program;
// they speak the real protocols over 127.0.0.1, so it needs no key and no
// internet. It takes a few seconds and ends with status 1 if anything didn't turn
// out as it tells.
//
//	go run ./examples/demo
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// longest is how long the demo may take, whatever happens.
const longest = 15 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	ctx, cancel := context.WithTimeout(ctx, longest)
	err := run(ctx)
	cancel()
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	watched := isTerminal(os.Stdout)
	t := &teller{out: os.Stdout, colours: watched && os.Getenv("NO_COLOR") == ""}
	s, err := newStory(ctx, t, rpcpooltest.NewLoopbackNetwork())
	if err != nil {
		return err
	}
	defer s.close()
	if watched {
		s.pause = 300 * time.Millisecond
	}
	if err := s.play(acts); err != nil {
		return err
	}
	t.printf("With your own proxies and the real pool: go run ./examples/call -h\n")
	return nil
}

// isTerminal tells whether somebody is watching, rather than a file or a pipe.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
