package main

import (
	"encoding/json"
	"errors"
	"flag"
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/bomzrpc/rpcpool"
)

// envProxies holds proxies, separated by commas, where no -proxy is given. The
// variables of the pool service are read by the library itself.
const envProxies = "RPCPOOL_PROXIES"

// Defaults of the flags, and the shortest time between two samples: a public RPC that is
// asked more often says 429, and that is all that would be learned.
const (
	defaultEvery  = 10 * time.Second
	defaultLength = 10 * time.Minute
	shortestEvery = 100 * time.Millisecond
)

const usage = `measure says how good the RPCs of a chain are, as seen through your proxies: head and
lag, failures by class, rate limits, latency, and how often each was left alone.

usage: measure -chain REF [flags] [PARAM]...

  -chain REF      chain id or key: 8453, eip155:8453, aptos:mainnet
  -file PATH      a list of your RPCs, such as examples/rpcpool.json (else the pool
                  service of RPC_POOL_URL); docs/DIRECTORY.md has its form.
                  -config PATH is the same
  -proxy URL      socks5://user:password@host:1080 or http://…; may be repeated
                  (else RPCPOOL_PROXIES, separated by commas)
  -every TIME     between two samples (default 10s)
  -for TIME       how long it is measured (default 10m); Ctrl-C ends it early
  -csv FILE       writes the table there as CSV, too, anew after each sample
  -method METHOD  what is asked for (default eth_blockNumber); PARAMs are JSON, or else
                  strings. With another method heads aren't asked for, and lags
                  aren't seen: such as getSlot, for chains that aren't EVM
  -timeout TIME   for one attempt (default 15s)
  -demo           shows itself with a chain, RPCs and proxies of its own, in 10 s

A semantic failure is a head more than 3 blocks behind, or another chain. EJECTED counts
cooldowns: a rate limit is none, the RPC is left alone for as long as it asks.

  measure -demo
  measure -file rpcpool.json -chain 8453 -every 10s -for 24h -csv base.csv
  measure -chain solana:mainnet -method getSlot

environment: RPC_POOL_URL, RPC_POOL_API_KEY, RPCPOOL_PROXIES

exit status: 0 measured, 2 bad usage or configuration, 3 trouble with the pool, the
             proxies or FILE, or no RPC answered at all
`

// options are what the command line and the environment come to.
type options struct {
	chain  string
	file   string
	csv    string
	demo   bool
	plan   plan
	config rpcpool.Config

	every, length, timeout string // as they are given
}

// usageError says what is wrong with the command line, without repeating any of
// it: a login or key may stand anywhere in it.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

// newFlags gives the flags, which fill in o.
func newFlags(o *options) *flag.FlagSet {
	flags := flag.NewFlagSet("measure", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // its messages quote the arguments
	flags.StringVar(&o.chain, "chain", "", "")
	flags.StringVar(&o.file, "file", "", "")
	flags.StringVar(&o.file, "config", "", "")
	flags.StringVar(&o.csv, "csv", "", "")
	flags.StringVar(&o.plan.method, "method", headMethod, "")
	flags.StringVar(&o.every, "every", "", "")
	flags.StringVar(&o.length, "for", "", "")
	flags.StringVar(&o.timeout, "timeout", "", "")
	flags.BoolVar(&o.demo, "demo", false, "")
	flags.Func("proxy", "", func(raw string) error {
		o.config.Proxies = append(o.config.Proxies, raw)
		return nil
	})
	return flags
}

func parse(args []string, getenv func(string) string) (*options, error) {
	opts := &options{}
	flags := newFlags(opts)
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil, flag.ErrHelp
	} else if err != nil {
		return nil, &usageError{"a flag isn't known, or lacks its value"}
	}
	for _, arg := range flags.Args() {
		opts.plan.params = append(opts.plan.params, param(arg))
	}
	everyDefault, lengthDefault := defaultEvery, defaultLength
	if opts.demo {
		everyDefault, lengthDefault = demoEvery, demoLength
	}
	for _, err := range []error{
		duration("-every", opts.every, &opts.plan.every, everyDefault),
		duration("-for", opts.length, &opts.plan.length, lengthDefault),
		duration("-timeout", opts.timeout, &opts.config.Timeout, 0),
		opts.check(),
	} {
		if err != nil {
			return nil, err
		}
	}
	return opts, opts.find(getenv)
}

func duration(name, text string, to *time.Duration, fallback time.Duration) (err error) {
	if text == "" {
		*to = fallback
		return nil
	}
	if *to, err = time.ParseDuration(text); err != nil || *to <= 0 {
		return &usageError{name + " takes a positive duration such as 10s or 24h"}
	}
	return nil
}

// check looks at what must fit together.
func (o *options) check() error {
	switch {
	case o.demo && (o.chain != "" || o.file != "" || len(o.config.Proxies) > 0):
		return &usageError{"-demo has a chain, RPCs and proxies of its own; leave -chain, -file and -proxy out"}
	case !o.demo && o.chain == "":
		return &usageError{"-chain is missing; give a chain id such as 8453, or a key such as aptos:mainnet; or see -demo"}
	case o.plan.every < shortestEvery:
		return &usageError{"-every takes at least " + shortestEvery.String()}
	case o.plan.length < o.plan.every:
		return &usageError{"-for is shorter than -every: there would be no sample"}
	case o.plan.method == "":
		return &usageError{"-method takes the name of a method"}
	case len(o.plan.params) > 0 && o.plan.samplesHeads():
		return &usageError{"there is an argument that belongs to no flag; PARAMs are those of another -method"}
	}
	return nil
}

// find sees where the lists and the proxies come from.
func (o *options) find(getenv func(string) string) (err error) {
	if len(o.config.Proxies) == 0 && !o.demo {
		o.config.Proxies = strings.FieldsFunc(getenv(envProxies), func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
	}
	if o.file != "" {
		o.config.Directory, err = rpcpool.ReadStaticDirectory(o.file)
	}
	return err
}

// param is an argument as JSON where it is JSON, else as a string.
func param(arg string) any {
	if json.Valid([]byte(arg)) {
		return json.RawMessage(arg)
	}
	return arg
}
