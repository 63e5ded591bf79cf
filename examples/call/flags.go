package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/bomzrpc/rpcpool"
)

// envProxies holds proxies, separated by commas, where no -proxy is given. The
// variables of the pool API are read by the library itself.
const envProxies = "RPCPOOL_PROXIES"

const usage = `call sends one JSON-RPC request to the RPCs of a chain, through your proxies.

usage: call -chain REF [flags] METHOD [PARAM]...

  -chain REF      chain id or key: 8453, eip155:8453, aptos:mainnet
  -proxy URL      socks5://user:password@host:1080 or http://…; may be repeated
                  (else RPCPOOL_PROXIES, separated by commas)
  -pool URL       the pool API (else RPC_POOL_URL)
  -key KEY        its key (else RPC_POOL_API_KEY, which others on this machine
                  can't see in the list of processes)
  -file PATH      a list of your own instead of the pool API, such as
                  examples/rpcpool.json; docs/DIRECTORY.md has its form
  -archive LEVEL  only RPCs that keep old state: recent or full
  -mode MODE      sticky (default) or round_robin
  -timeout TIME   for one attempt (default 15s)
  -v              print every attempt to stderr

PARAMs are JSON where they can be read as JSON, else strings. A string that looks
like JSON needs its quotes: '"123"'.

  call -chain 8453 eth_blockNumber
  call -chain 8453 -v eth_getBlockByNumber latest false
  call -chain 8453 eth_call '{"to":"0x4200000000000000000000000000000000000006","data":"0x18160ddd"}' latest

exit status: 0 result, 1 the node's own error, 2 bad usage or configuration,
             3 no healthy RPC, or trouble with the pool or the proxies
`

// options are what the command line and the environment come to.
type options struct {
	chain   string
	file    string // where the lists are from, instead of the pool API; "" for none
	archive rpcpool.Archive
	verbose bool
	config  rpcpool.Config
	method  string
	params  []any
}

// usageError says what is wrong with the command line, without repeating any of
// it: a login or key may stand anywhere in it.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func parse(args []string, getenv func(string) string) (*options, error) {
	opts := &options{}
	var archive, mode, timeout string
	flags := flag.NewFlagSet("call", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // its messages quote the arguments
	flags.StringVar(&opts.chain, "chain", "", "")
	flags.StringVar(&opts.config.APIURL, "pool", "", "")
	flags.StringVar(&opts.config.APIKey, "key", "", "")
	flags.StringVar(&opts.file, "file", "", "")
	flags.StringVar(&archive, "archive", "", "")
	flags.StringVar(&mode, "mode", "", "")
	flags.StringVar(&timeout, "timeout", "", "")
	flags.BoolVar(&opts.verbose, "v", false, "")
	flags.Func("proxy", "", func(raw string) error {
		opts.config.Proxies = append(opts.config.Proxies, raw)
		return nil
	})
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil, flag.ErrHelp
	} else if err != nil {
		return nil, &usageError{"a flag isn't known, or lacks its value"}
	}
	if len(opts.config.Proxies) == 0 {
		opts.config.Proxies = strings.FieldsFunc(getenv(envProxies), func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
	}
	if opts.chain == "" {
		return nil, &usageError{"-chain is missing; give a chain id such as 8453, or a key such as aptos:mainnet"}
	}
	if err := opts.choose(archive, mode, timeout); err != nil {
		return nil, err
	}
	if err := opts.request(flags); err != nil {
		return nil, err
	}
	return opts, opts.readFile()
}

// choose reads the flags that take certain words only.
func (o *options) choose(archive, mode, timeout string) error {
	switch archive {
	case "", "none":
	case "recent":
		o.archive = rpcpool.ArchiveRecent
	case "full":
		o.archive = rpcpool.ArchiveFull
	default:
		return &usageError{"-archive takes recent or full"}
	}
	switch mode {
	case "", rpcpool.Sticky.String():
	case rpcpool.RoundRobin.String():
		o.config.Mode = rpcpool.RoundRobin
	default:
		return &usageError{"-mode takes sticky or round_robin"}
	}
	if timeout == "" {
		return nil
	}
	var err error
	if o.config.Timeout, err = time.ParseDuration(timeout); err != nil || o.config.Timeout <= 0 {
		return &usageError{"-timeout takes a positive duration such as 15s or 500ms"}
	}
	return nil
}

// request reads the method and its params.
func (o *options) request(flags *flag.FlagSet) error {
	if o.method = flags.Arg(0); o.method == "" {
		return &usageError{"no METHOD given, such as eth_blockNumber"}
	}
	for _, arg := range flags.Args()[1:] {
		name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if strings.HasPrefix(arg, "-") && flags.Lookup(name) != nil {
			return &usageError{fmt.Sprintf("-%s stands behind METHOD, where it is a PARAM; flags go before METHOD "+
				"(if it is meant as a PARAM, give it as JSON, in quotes)", name)}
		}
		o.params = append(o.params, param(arg))
	}
	return nil
}

// readFile reads the lists, where they are given in a file.
func (o *options) readFile() error {
	if o.file == "" {
		return nil
	}
	if o.config.APIURL != "" || o.config.APIKey != "" {
		return &usageError{"-file stands instead of -pool and -key; give either"}
	}
	directory, err := rpcpool.ReadStaticDirectory(o.file)
	if err != nil {
		return err
	}
	o.config.Directory = directory
	return nil
}

// param is an argument as JSON where it is JSON, else as a string.
func param(arg string) any {
	if json.Valid([]byte(arg)) {
		return json.RawMessage(arg)
	}
	return arg
}
