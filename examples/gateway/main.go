// Command gateway gives programs in any language the ring: they send JSON-RPC to
// http://127.0.0.1:8645/{chain}, and it goes through your proxies to an RPC that
// answers. A page at http://127.0.0.1:8645/ shows what happens, live.
//
//	export RPC_POOL_URL=https://pool.example.org RPC_POOL_API_KEY=…
//	export RPCPOOL_PROXIES=socks5://user:password@proxy-a.example.com:1080
//	go run ./examples/gateway
//
// Without a pool, proxies and keys there is something to look at as well:
//
//	go run ./examples/gateway -demo
//
// With -h it says more; README.md beside it has clients, errors and safety.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/bomzrpc/rpcpool"
)

// Exit statuses.
const (
	statusOK     = 0 // ended by a signal
	statusUsage  = 2 // flags or configuration that can't work
	statusListen = 3 // the address can't be listened on
)

// grace is how long requests that are under way may take once a signal has come.
const grace = 10 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// run is the program, with everything that it touches as an argument but the
// environment. It ends when ctx does.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	opts, err := parse(args, os.Getenv)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, usage)
		return statusOK
	}
	if err != nil {
		return explain(stderr, err)
	}
	j := newJournal(stderr, opts.verbose)
	config := opts.config
	var show *demo
	if opts.demo {
		show = newDemo()
		defer show.close()
		config = show.config(config)
	}
	config.Logger = slog.New(j)
	if opts.file != "" {
		if config.Directory, err = rpcpool.ReadStaticDirectory(opts.file); err != nil {
			return explain(stderr, err)
		}
	}
	pool, err := rpcpool.New(config)
	if err != nil {
		return explain(stderr, err)
	}
	defer pool.Close() // gives reports about bad RPCs up to 2 s

	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", opts.listen)
	if err != nil {
		fmt.Fprintf(stderr, "gateway: it can't listen: %v\n-listen gives another address\n", err)
		return statusListen
	}
	g := newGateway(opts, pool, j)
	where := announce(stdout, stderr, listener.Addr(), opts)
	if show != nil {
		stopShow := show.start(pool, where)
		defer stopShow()
	}
	serve(ctx, g, listener)
	return statusOK
}

// announce says where the gateway is, and warns where others can reach it. It gives
// the URL by which this machine does.
func announce(stdout, stderr io.Writer, addr net.Addr, opts *options) string {
	where := "http://" + addr.String()
	tcp, ok := addr.(*net.TCPAddr)
	if ok && (tcp.IP.IsUnspecified() || tcp.IP.IsLoopback()) {
		where = fmt.Sprintf("http://127.0.0.1:%d", tcp.Port)
		if tcp.IP.To4() == nil && !tcp.IP.IsUnspecified() {
			where = fmt.Sprintf("http://[::1]:%d", tcp.Port)
		}
	}
	if ok && !tcp.IP.IsLoopback() {
		fmt.Fprintf(stderr, "gateway: warning: it listens on %s, not on loopback alone: anyone who reaches it "+
			"uses your proxies and the keys of your RPCs, and sees the status page\n", addr)
	}
	for _, origin := range opts.cors {
		if origin == anyOrigin {
			fmt.Fprintln(stderr, "gateway: warning: with -cors '*' every web page that you open can use your proxies and the keys of your RPCs")
		}
	}
	fmt.Fprintf(stdout, "status page: %s/\n", where)
	for _, chain := range opts.chains {
		fmt.Fprintf(stdout, "programs call: %s/%s\n", where, chain)
	}
	if len(opts.chains) == 0 {
		fmt.Fprintf(stdout, "programs call: %s/8453, or another chain\n", where)
	}
	if opts.demo {
		fmt.Fprintln(stdout, "demo: the pool, the proxies and the RPCs of chains 8453 and 1 are parts of this program; something fails every few seconds")
	}
	return where
}

// serve serves until ctx ends; then it lets requests that are under way end, but
// not for longer than the grace.
func serve(ctx context.Context, g *gateway, listener net.Listener) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	requests, endRequests := context.WithCancel(context.Background())
	defer endRequests()
	server := &http.Server{
		Handler:           g.handler(),
		ReadHeaderTimeout: 10 * time.Second, // bodies and answers have deadlines of their own
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		BaseContext:       func(net.Listener) context.Context { return requests },
		ErrorLog:          slog.NewLogLogger(g.journal, slog.LevelDebug), // broken connections: nobody's business
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		<-ctx.Done()
		g.end()
		patience, cancel := context.WithTimeout(context.Background(), grace)
		defer cancel()
		if server.Shutdown(patience) != nil {
			endRequests()
			_ = server.Close()
		}
	}()
	_ = server.Serve(listener) // ends by Shutdown, or because nothing can be accepted any more
	stop()
	<-ended
}

// explain prints an error of the usage or configuration.
func explain(stderr io.Writer, err error) int {
	var (
		flags  *usageError
		config *rpcpool.ConfigError
	)
	switch {
	case errors.As(err, &flags):
		fmt.Fprintf(stderr, "gateway: %s\ngateway -h tells how to use it\n", flags.text)
	case errors.As(err, &config):
		fmt.Fprintf(stderr, "gateway: %s: %s\n", config.Field, config.Reason)
		if advice := giveInstead(config.Field); advice != "" {
			fmt.Fprintln(stderr, advice)
		}
	default:
		fmt.Fprintf(stderr, "gateway: %v\n", err)
	}
	return statusUsage
}

// giveInstead says where a field of the configuration is given here.
func giveInstead(field string) string {
	field, _, _ = strings.Cut(field, "[")
	switch field {
	case "Proxies":
		return "proxies are given by -proxy URL, or in " + envProxies + "; -demo needs none"
	case "APIURL":
		return "the pool is given by -pool URL, or in " + rpcpool.EnvAPIURL + "; -file takes a list of your own"
	case "APIKey":
		return "the key is given by -key KEY, or in " + rpcpool.EnvAPIKey
	}
	return ""
}
