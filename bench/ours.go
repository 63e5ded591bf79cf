package main

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/bomzrpc/rpcpool"
)

// newOurs is rpcpool on a list of one's own. The RPC by which proxies are checked is
// none of those that fail, as where it is another chain's; what a check costs is
// counted as the library's.
func newOurs(s setup) (*client, error) { return s.ours(nil) }

// newResort asks RPCs that cool, too, before it gives up.
func newResort(s setup) (*client, error) {
	return s.ours(func(cfg *rpcpool.Config) { cfg.LastResort = true })
}

// newUnbounded opens as many connections as there are calls.
func newUnbounded(s setup) (*client, error) {
	return s.ours(func(cfg *rpcpool.Config) { cfg.MaxConns = 1 << 20 })
}

// hedgeDelay is when newHedging asks a second RPC.
const hedgeDelay = 100 * time.Millisecond

// newHedging may do so in every call.
func newHedging(s setup) (*client, error) {
	return s.ours(nil, rpcpool.WithHedge(rpcpool.Hedge{Delay: hedgeDelay, MaxExtra: 1}))
}

func (s setup) ours(change func(*rpcpool.Config), options ...rpcpool.ChainOption) (*client, error) {
	list := rpcpool.List{Key: "eip155:1"}
	for _, url := range s.urls {
		list.RPCs = append(list.RPCs, rpcpool.RPC{URL: url})
	}
	directory, err := rpcpool.NewStaticDirectory(list)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(s.ca)
	cfg := rpcpool.Config{
		Proxies: []string{s.proxy}, Directory: directory, RootCAs: roots,
		ProxyCheckURL: "http://" + checkHost + "/", Timeout: s.attempt, MaxConns: s.conns, Logger: slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&cfg)
	}
	pool, err := rpcpool.New(cfg)
	if err != nil {
		return nil, err
	}
	chain := pool.ChainID(1, options...)
	return &client{
		call:  chain.Call,
		close: func() { _ = pool.Close() },
		logs: func(ctx context.Context, from, to, piece uint64, workers int) ([]json.RawMessage, error) {
			return chain.GetLogsChunked(ctx, rpcpool.LogFilter{FromBlock: from, ToBlock: to},
				rpcpool.ChunkSize(piece), rpcpool.Concurrency(workers))
		},
	}, nil
}
