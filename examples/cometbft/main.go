// Command cometbft is a bot on CometBFT's HTTP client, as Cosmos chains have it, whose
// requests go round a ring of RPCs. What it took to move it there is in connect; the
// rest of the bot (bot.go) is as it would be with a single RPC. It asks for the node's
// status, several things in one batch, and sends a transaction and waits for it:
//
//	go run . -demo
//
// runs it on a CometBFT node of its own, in this process, in front of which two of
// three RPCs are broken. Nothing leaves the machine. With proxies, and a pool or
// a list of your own, it only reads, unless it is given a transaction:
//
//	export RPC_POOL_URL=https://pool.example.org RPC_POOL_API_KEY=…
//	export RPCPOOL_PROXIES=socks5://user:password@proxy-a.example.com:1080
//	go run . -chain cosmos:cosmoshub-4
//	go run . -chain cosmos:cosmoshub-4 -file rpcpool.json
//	go run . -chain cosmos:cosmoshub-4 -tx 0a9f01…
package main

import (
	"context"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/bomzrpc/rpcpool"
	comethttp "github.com/cometbft/cometbft/rpc/client/http"
)

// envProxies holds proxies, separated by commas. The variables of the pool API are
// read by the library.
const envProxies = "RPCPOOL_PROXIES"

// options are the flags.
type options struct {
	demo            bool
	chain, file, tx string
}

func main() {
	var opts options
	flag.BoolVar(&opts.demo, "demo", false, "run in a world of its own, in this process")
	flag.StringVar(&opts.chain, "chain", "", "chain key, such as cosmos:cosmoshub-4")
	flag.StringVar(&opts.file, "file", "", "a list of RPCs of your own, such as ../rpcpool.json, instead of the pool API")
	flag.StringVar(&opts.tx, "tx", "", "a signed transaction to send, in hex")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, opts, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "cometbft:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, opts options, out io.Writer) error {
	switch {
	case opts.demo:
		return runDemo(ctx, out)
	case opts.chain == "":
		return errors.New("give -demo, or a chain: -chain cosmos:cosmoshub-4")
	}
	raw, err := hex.DecodeString(opts.tx)
	if err != nil {
		return errors.New("the transaction given by -tx isn't hex")
	}
	pool, err := openPool(opts.file)
	if err != nil {
		return err
	}
	defer pool.Close()
	return runBot(ctx, pool.Chain(opts.chain), raw, out)
}

// openPool makes a pool of the environment's proxies. The lists are the file's, where
// there is one, else the pool API's.
func openPool(file string) (*rpcpool.Pool, error) {
	config := rpcpool.Config{
		Proxies: strings.FieldsFunc(os.Getenv(envProxies), func(r rune) bool { return r == ',' }),
	}
	if file != "" {
		lists, err := rpcpool.ReadStaticDirectory(file)
		if err != nil {
			return nil, err
		}
		config.Directory = lists
	}
	return rpcpool.New(config)
}

// connect gives a client of the chain's ring. The URL is only a label: which RPC is
// asked is the ring's business.
func connect(chain *rpcpool.Chain) (*comethttp.HTTP, error) {
	return comethttp.NewWithClient("http://ring", chain.HTTPClient())
}

func runBot(ctx context.Context, chain *rpcpool.Chain, tx []byte, out io.Writer) error {
	client, err := connect(chain)
	if err != nil {
		return err
	}
	b := &bot{client: client, tx: tx, out: out}
	return b.run(ctx)
}
