// Command solana is a bot on solana-go whose requests go round a ring of RPCs. What
// it took to move it there is in connect; the rest of the bot (bot.go) is as it would
// be with a single RPC. It reads the slot and its balance, several balances in one
// batch, sends a transfer and waits until it is confirmed:
//
//	go run . -demo
//
// runs it in a world of its own, with RPCs that answer as Solana's do; two of the
// three fail. Nothing leaves the machine. With proxies, and a pool or a list of your
// own, it only reads, unless it is given a key file that may pay:
//
//	export RPC_POOL_URL=https://pool.example.org RPC_POOL_API_KEY=…
//	export RPCPOOL_PROXIES=socks5://user:password@proxy-a.example.com:1080
//	go run . -chain solana:devnet
//	go run . -chain solana:devnet -file rpcpool.json
//	go run . -chain solana:devnet -key ~/.config/solana/id.json
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/bomzrpc/rpcpool"
	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"
	"github.com/gagliardetto/solana-go/rpc/jsonrpc"
)

// envProxies holds proxies, separated by commas. The variables of the pool API are
// read by the library.
const envProxies = "RPCPOOL_PROXIES"

// options are the flags.
type options struct {
	demo             bool
	chain, file, key string
}

func main() {
	var opts options
	flag.BoolVar(&opts.demo, "demo", false, "run in a world of its own, in this process")
	flag.StringVar(&opts.chain, "chain", "", "chain key, such as solana:mainnet")
	flag.StringVar(&opts.file, "file", "", "a list of RPCs of your own, such as ../rpcpool.json, instead of the pool API")
	flag.StringVar(&opts.key, "key", "", "file with the key of the account that sends 1 lamport to itself")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, opts, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "solana:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, opts options, out io.Writer) error {
	switch {
	case opts.demo:
		return runDemo(ctx, out)
	case opts.chain == "":
		return errors.New("give -demo, or a chain: -chain solana:mainnet")
	}
	var key solana.PrivateKey
	if opts.key != "" {
		var err error
		if key, err = solana.PrivateKeyFromSolanaKeygenFile(opts.key); err != nil {
			return errors.New("the file given by -key has no key in the form of solana-keygen")
		}
	}
	pool, err := openPool(opts.file)
	if err != nil {
		return err
	}
	defer pool.Close()
	b := &bot{client: connect(pool.Chain(opts.chain)), key: key, out: out}
	return b.run(ctx)
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
func connect(chain *rpcpool.Chain) *rpc.Client {
	return rpc.NewWithCustomRPCClient(jsonrpc.NewClientWithOpts("http://ring", &jsonrpc.RPCClientOpts{
		HTTPClient: chain.HTTPClient(),
	}))
}
