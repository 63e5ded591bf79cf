package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/bomzrpc/rpcpool"
)

// envProxies holds proxies, separated by commas. The variables of the pool API are
// read by the library itself.
const envProxies = "RPCPOOL_PROXIES"

const usage = `logs writes the logs of contracts into a file, and goes on where it ended.

usage: logs -chain REF -from BLOCK -out FILE [flags]

  -chain REF      chain id or key: 8453, eip155:8453
  -address LIST   contracts, separated by commas (default: every contract)
  -topic LIST     first topics, any of them, separated by commas (default: any)
  -from BLOCK     first block, a number
  -to BLOCK       last block, a number or a tag (default finalized)
  -out FILE       where the logs go, a line each; FILE.progress says how far
  -chunk N        blocks of a piece at most (default 10000: what RPCs refuse is learned)
  -at-once N      pieces asked for at once (default 4)
  -every TIME     how often a line is printed where there is no terminal (default 5s)
  -file PATH      a list of RPCs of your own instead of the pool API
  -demo           a chain, RPCs and proxies that are parts of this program

environment: RPC_POOL_URL, RPC_POOL_API_KEY, RPCPOOL_PROXIES (separated by commas)
`

// options are what the command line and the environment come to.
type options struct {
	query  logQuery
	to     string
	out    string
	chunk  uint64
	atOnce int
	every  time.Duration
	demo   bool
	config rpcpool.Config
}

// logQuery is what a file's logs are of. It is stored with them, so that a file
// isn't gone on with by other flags.
type logQuery struct {
	Chain     string   `json:"chain"`
	Addresses []string `json:"addresses,omitempty"`
	Topics    []string `json:"topics,omitempty"`
	From      uint64   `json:"from"`
}

// filter is the query without its bounds.
func (q *logQuery) filter() (f rpcpool.LogFilter) {
	if len(q.Addresses) > 0 {
		f.Address = q.Addresses
	}
	if len(q.Topics) > 0 {
		f.Topics = []any{q.Topics}
	}
	return f
}

func parse(args []string, getenv func(string) string) (*options, error) {
	opts := &options{}
	var addresses, topics, from, file string
	flags := flag.NewFlagSet("logs", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&opts.query.Chain, "chain", "", "")
	flags.StringVar(&addresses, "address", "", "")
	flags.StringVar(&topics, "topic", "", "")
	flags.StringVar(&from, "from", "", "")
	flags.StringVar(&opts.to, "to", "finalized", "")
	flags.StringVar(&opts.out, "out", "", "")
	flags.Uint64Var(&opts.chunk, "chunk", 10_000, "")
	flags.IntVar(&opts.atOnce, "at-once", 4, "")
	flags.DurationVar(&opts.every, "every", 5*time.Second, "")
	flags.StringVar(&file, "file", "", "")
	flags.BoolVar(&opts.demo, "demo", false, "")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return nil, err
	case err != nil || flags.NArg() > 0:
		return nil, errors.New("a flag isn't known, or has no value that it takes; -h lists them")
	case opts.out == "":
		return nil, errors.New("-out is missing: the file that the logs go to")
	}
	// Appended, they are nil where there are none, as in a query that a file has.
	opts.query.Addresses = append(opts.query.Addresses, strings.FieldsFunc(addresses, separates)...)
	opts.query.Topics = append(opts.query.Topics, strings.FieldsFunc(topics, separates)...)
	opts.config.Proxies = strings.FieldsFunc(getenv(envProxies), separates)
	if opts.demo {
		return opts, nil
	}
	if opts.query.Chain == "" || from == "" {
		return nil, errors.New("-chain and -from are needed, such as -chain 8453 -from 40000000")
	}
	var err error
	if opts.query.From, err = strconv.ParseUint(from, 0, 64); err != nil {
		return nil, fmt.Errorf("-from is %q; a block number is wanted", from)
	}
	if file != "" {
		opts.config.Directory, err = rpcpool.ReadStaticDirectory(file)
	}
	return opts, err
}

// separates tells whether a rune stands between the items of a list.
func separates(r rune) bool { return r == ',' || unicode.IsSpace(r) }
