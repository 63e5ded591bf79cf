// Command rest is a bot on a REST API, here Aptos', whose requests go round a ring of
// RPCs. It shows both ways to get there, with the standard library alone:
//
//   - by function (readLedger): [rpcpool.RunAs] calls a function with the URL of an RPC
//     and a client, on one RPC after another until it succeeds;
//   - by client (connect): an SDK that takes an *http.Client, such as sdk.go, is given
//     one that sends its requests round the ring, and knows nothing of it.
//
// Run it with
//
//	go run . -demo
//
// in a world of its own, with RPCs that answer as Aptos' do, of which two out of
// three fail; nothing leaves the machine. With proxies, and a pool or
// a list of your own, it only reads:
//
//	export RPC_POOL_URL=https://pool.example.org RPC_POOL_API_KEY=…
//	export RPCPOOL_PROXIES=socks5://user:password@proxy-a.example.com:1080
//	go run . -chain aptos:mainnet
//	go run . -chain aptos:mainnet -file rpcpool.json
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"

	"github.com/bomzrpc/rpcpool"
)

// envProxies holds proxies, separated by commas. The variables of the pool API are
// read by the library.
const envProxies = "RPCPOOL_PROXIES"

// options are the flags.
type options struct {
	demo        bool
	chain, file string
}

func main() {
	var opts options
	flag.BoolVar(&opts.demo, "demo", false, "run in a world of its own, in this process")
	flag.StringVar(&opts.chain, "chain", "", "chain key, such as aptos:mainnet")
	flag.StringVar(&opts.file, "file", "", "a list of RPCs of your own, such as ../rpcpool.json, instead of the pool API")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, opts, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "rest:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, opts options, out io.Writer) error {
	switch {
	case opts.demo:
		return runDemo(ctx, out)
	case opts.chain == "":
		return errors.New("give -demo, or a chain: -chain aptos:mainnet")
	}
	pool, err := openPool(opts.file)
	if err != nil {
		return err
	}
	defer pool.Close()
	return runBot(ctx, pool.Chain(opts.chain), nil, out)
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

// runBot reads by function and by client; with a signed transaction it sends that, too.
func runBot(ctx context.Context, chain *rpcpool.Chain, signed []byte, out io.Writer) error {
	before, err := readLedger(ctx, chain)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "by function: chain %d is at block %s\n", before.ChainID, before.BlockHeight)

	client := connect(chain)
	account, err := client.account(ctx, "0x1")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "by client: account 0x1 has sent %s transactions\n", account.SequenceNumber)
	if len(signed) == 0 {
		return nil
	}
	hash, err := client.submit(ctx, signed)
	if err != nil {
		return err
	}
	version, err := client.wait(ctx, hash)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "by client: sent a transaction, it has version %s\n", version)
	return nil
}

// connect gives the SDK a client of the chain's ring. The URL is only a label: which
// RPC is asked is the ring's business. Views only read, and a signed transaction takes
// effect once however often it is submitted: both may be repeated.
func connect(chain *rpcpool.Chain) *sdk {
	return newSDK("http://ring/v1", chain.HTTPClient(
		rpcpool.REST(rpcpool.JoinAptos),
		rpcpool.SafeToRepeat(func(req *http.Request) bool {
			return strings.HasSuffix(req.URL.Path, "/view") || strings.HasSuffix(req.URL.Path, "/transactions")
		}),
	))
}

// readLedger needs no SDK. The function may be called several times, each time with
// another RPC; the status that it returns decides whether it is. A 404 means that
// the RPC isn't one of this API. Where it can mean that a thing doesn't exist, the
// function should return an error of its own instead, which ends the call.
func readLedger(ctx context.Context, chain *rpcpool.Chain) (ledger, error) {
	return rpcpool.RunAs(ctx, chain, func(ctx context.Context, url string, client *http.Client) (info ledger, err error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(url, "/")+"/v1", http.NoBody)
		if err != nil {
			return info, err
		}
		res, err := client.Do(req)
		if err != nil {
			return info, err
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			return info, err
		}
		if res.StatusCode != http.StatusOK {
			return info, &rpcpool.HTTPError{StatusCode: res.StatusCode, Status: res.Status, Body: body}
		}
		return info, json.Unmarshal(body, &info)
	})
}
