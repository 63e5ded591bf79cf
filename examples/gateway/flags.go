package main

import (
	"errors"
	"flag"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/bomzrpc/rpcpool"
)

// envProxies holds proxies, separated by commas, where no -proxy is given. The
// variables of the pool API are read by the library itself.
const envProxies = "RPCPOOL_PROXIES"

// Defaults of the flags.
const (
	defaultListen  = "127.0.0.1:8645"
	defaultLimit   = 2 * time.Minute
	defaultMaxBody = 10 << 20
)

const usage = `gateway passes JSON-RPC over HTTP on to the RPCs of a chain, through your proxies:
for programs in other languages (viem, ethers, web3.js, web3.py, curl). A program
calls http://127.0.0.1:8645/8453; a browser at http://127.0.0.1:8645/ shows what
goes on.

usage: gateway [flags]

  -proxy URL      socks5://user:password@host:1080 or http://…; may be repeated
                  (else RPCPOOL_PROXIES, separated by commas)
  -pool URL       the pool API (else RPC_POOL_URL)
  -key KEY        its key (else RPC_POOL_API_KEY, which others on this machine
                  can't see in the list of processes)
  -file PATH      a list of your own instead of the pool API, such as
                  examples/rpcpool.json; docs/DIRECTORY.md has its form
  -mode MODE      sticky (default) or round_robin
  -timeout TIME   for one attempt (default 15s)
  -limit TIME     for one request altogether (default 2m)
  -max-body SIZE  of a request, in bytes (default 10485760)
  -chains LIST    serve these chains only, such as 1,8453 (default: any that the
                  pool knows)
  -listen ADDR    host and port (default 127.0.0.1:8645). On another address than
                  loopback, whoever reaches it uses your proxies and keys.
  -host NAME      one more name that programs may call it by; may be repeated
                  (localhost, 127.0.0.1 and [::1] always work)
  -cors ORIGIN    a web page that may call it, such as http://localhost:3000; may
                  be repeated; * lets every page that you open use it
  -demo           shows itself with a pool, proxies and failing RPCs of its own:
                  no key, no internet
  -v              print every attempt to stderr

  gateway -chains 8453
  gateway -demo
  curl http://127.0.0.1:8645/8453 -H 'content-type: application/json' \
       -d '{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}'

exit status: 0 ended by a signal, 2 bad usage or configuration, 3 it can't listen
`

// options are what the command line and the environment come to.
type options struct {
	listen  string
	hosts   []string
	cors    []string
	chains  []string
	file    string
	limit   time.Duration
	maxBody int64
	demo    bool
	verbose bool
	config  rpcpool.Config
}

// usageError says what is wrong with the command line, without repeating any of
// it: a login or key may stand anywhere in it.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func parse(args []string, getenv func(string) string) (*options, error) {
	opts := &options{}
	var chains, mode, timeout, limit, maxBody string
	flags := flag.NewFlagSet("gateway", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // its messages quote the arguments
	flags.StringVar(&opts.listen, "listen", defaultListen, "")
	flags.StringVar(&opts.config.APIURL, "pool", "", "")
	flags.StringVar(&opts.config.APIKey, "key", "", "")
	flags.StringVar(&opts.file, "file", "", "")
	flags.StringVar(&chains, "chains", "", "")
	flags.StringVar(&mode, "mode", "", "")
	flags.StringVar(&timeout, "timeout", "", "")
	flags.StringVar(&limit, "limit", "", "")
	flags.StringVar(&maxBody, "max-body", "", "")
	flags.BoolVar(&opts.demo, "demo", false, "")
	flags.BoolVar(&opts.verbose, "v", false, "")
	flags.Func("proxy", "", appendTo(&opts.config.Proxies))
	flags.Func("host", "", appendTo(&opts.hosts))
	flags.Func("cors", "", appendTo(&opts.cors))
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil, flag.ErrHelp
	} else if err != nil {
		return nil, &usageError{"a flag isn't known, or lacks its value"}
	}
	if flags.NArg() > 0 {
		return nil, &usageError{"there is an argument that belongs to no flag"}
	}
	if opts.demo && (opts.config.APIURL != "" || opts.config.APIKey != "" || opts.file != "" || len(opts.config.Proxies) > 0) {
		return nil, &usageError{"-demo has a pool and proxies of its own; leave -pool, -key, -file and -proxy out"}
	}
	if opts.file != "" && (opts.config.APIURL != "" || opts.config.APIKey != "") {
		return nil, &usageError{"-file is instead of the pool API; leave -pool and -key out"}
	}
	if len(opts.config.Proxies) == 0 && !opts.demo {
		opts.config.Proxies = strings.FieldsFunc(getenv(envProxies), separates)
	}
	opts.chains = strings.FieldsFunc(chains, separates)
	for _, check := range []func() error{
		func() error { return opts.choose(mode) },
		func() error { return duration("-timeout", timeout, &opts.config.Timeout, 0) },
		func() error { return duration("-limit", limit, &opts.limit, defaultLimit) },
		func() error { return opts.size(maxBody) },
		opts.checkNames,
	} {
		if err := check(); err != nil {
			return nil, err
		}
	}
	return opts, nil
}

func appendTo(list *[]string) func(string) error {
	return func(value string) error {
		*list = append(*list, value)
		return nil
	}
}

func (o *options) choose(mode string) error {
	switch mode {
	case "", rpcpool.Sticky.String():
	case rpcpool.RoundRobin.String():
		o.config.Mode = rpcpool.RoundRobin
	default:
		return &usageError{"-mode takes sticky or round_robin"}
	}
	return nil
}

func duration(name, text string, to *time.Duration, fallback time.Duration) (err error) {
	if text == "" {
		*to = fallback
		return nil
	}
	if *to, err = time.ParseDuration(text); err != nil || *to <= 0 {
		return &usageError{name + " takes a positive duration such as 15s or 500ms"}
	}
	return nil
}

func (o *options) size(text string) (err error) {
	if text == "" {
		o.maxBody = defaultMaxBody
		return nil
	}
	if o.maxBody, err = strconv.ParseInt(text, 10, 64); err != nil || o.maxBody <= 0 {
		return &usageError{"-max-body takes a positive number of bytes"}
	}
	return nil
}

// checkNames looks at addresses, names and origins.
func (o *options) checkNames() error {
	if _, _, err := net.SplitHostPort(o.listen); err != nil {
		return &usageError{"-listen takes a host and a port, such as 127.0.0.1:8645 or :8645"}
	}
	for _, ref := range o.chains {
		if !usableRef(ref) {
			return &usageError{"-chains takes references such as 8453, eip155:8453 or aptos:mainnet, separated by commas"}
		}
	}
	for _, host := range o.hosts {
		if host == "" || strings.ContainsAny(host, "/@ ") {
			return &usageError{"-host takes a name alone, such as gateway.example.org"}
		}
	}
	for _, origin := range o.cors {
		if origin != anyOrigin && !isOrigin(origin) {
			return &usageError{"-cors takes an origin, such as http://localhost:3000, without a path; or *"}
		}
	}
	return nil
}

// separates tells whether a rune stands between the items of a list.
func separates(r rune) bool { return r == ',' || unicode.IsSpace(r) }
