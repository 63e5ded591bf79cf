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
	t := &teller{out: os.Stdout}
	if isTerminal(os.Stdout) {
		t.pause = 300 * time.Millisecond
		t.colours = os.Getenv("NO_COLOR") == ""
	}
	s, err := newStory(ctx, t, rpcpooltest.NewLoopbackNetwork())
	if err != nil {
		return err
	}
	defer s.close()
	return s.play(acts)
}

// isTerminal tells whether somebody is watching, rather than a file or a pipe.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
