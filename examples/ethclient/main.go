// Command ethclient is a bot on go-ethereum's ethclient whose requests go round a
// ring of RPCs. What it took to move it there is one line, in connect:
//
//	rpc.DialOptions(ctx, "http://ring", rpc.WithHTTPClient(chain.HTTPClient()))
//
// The rest of the bot (bot.go) is as it would be with a single RPC. It reads a block,
// sends a transaction and waits for its receipt, deploys a contract by its abigen
// binding, calls it, decodes its reverts and reads its logs:
//
//	go run . -demo
//
// runs it in a world of its own: the chain is go-ethereum's simulated backend, and
// of the three RPCs in front of it two are broken. Nothing leaves the machine. With
// proxies, and a pool or a list of your own, it only reads, unless it is told to spend money:
//
//	export RPC_POOL_URL=https://pool.example.org RPC_POOL_API_KEY=…
//	export RPCPOOL_PROXIES=socks5://user:password@proxy-a.example.com:1080
//	go run . -chain 8453
//	go run . -chain 8453 -file ../rpcpool.json
//	ETH_PRIVATE_KEY=… go run . -chain 84532 -send
package main

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/bomzrpc/rpcpool"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/rpc"
)

// The environment variables of the program itself; those of the pool API are read
// by the library.
const (
	envProxies = "RPCPOOL_PROXIES" // separated by commas
	envKey     = "ETH_PRIVATE_KEY" // 64 hex digits
)

// options are the flags.
type options struct {
	demo, send  bool
	chain, file string
}

func main() {
	var opts options
	flag.BoolVar(&opts.demo, "demo", false, "run in a world of its own, in this process")
	flag.StringVar(&opts.chain, "chain", "", "chain id or key, such as 8453 or eip155:8453")
	flag.StringVar(&opts.file, "file", "", "a list of RPCs of your own, such as ../rpcpool.json, instead of the pool API")
	flag.BoolVar(&opts.send, "send", false, "send transactions, too; they cost gas of the account of "+envKey)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, opts, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "ethclient:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, opts options, out io.Writer) error {
	switch {
	case opts.demo:
		return runDemo(ctx, out)
	case opts.chain == "":
		return errors.New("give -demo, or a chain: -chain 8453")
	}
	key, err := keyOf(os.Getenv(envKey), opts.send)
	if err != nil {
		return err
	}
	pool, err := openPool(opts.file)
	if err != nil {
		return err
	}
	defer pool.Close()
	return runBot(ctx, pool.Chain(opts.chain), key, out)
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

// keyOf reads the key of the account that pays; there is none for reading only.
func keyOf(hex string, send bool) (*ecdsa.PrivateKey, error) {
	if !send {
		return nil, nil
	}
	key, err := crypto.HexToECDSA(strings.TrimPrefix(hex, "0x"))
	if err != nil {
		return nil, errors.New("-send needs a private key of 64 hex digits in " + envKey) // err may quote the key
	}
	return key, nil
}

// connect gives a client of the chain's ring. The URL is only a label: which RPC is
// asked is the ring's business.
func connect(ctx context.Context, chain *rpcpool.Chain) (*ethclient.Client, error) {
	client, err := rpc.DialOptions(ctx, "http://ring", rpc.WithHTTPClient(chain.HTTPClient()))
	if err != nil {
		return nil, err
	}
	return ethclient.NewClient(client), nil
}

func runBot(ctx context.Context, chain *rpcpool.Chain, key *ecdsa.PrivateKey, out io.Writer) error {
	client, err := connect(ctx, chain)
	if err != nil {
		return err
	}
	defer client.Close()
	b := &bot{client: client, key: key, out: out}
	return b.run(ctx)
}
