package main

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"log/slog"

	"github.com/bomzrpc/rpcpool"
)

// newOurs is rpcpool on a list of one's own. The RPC by which proxies are checked is
// none of those that fail, as where it is another chain's; what a check costs is
// counted as the library's.
func newOurs(s setup) (*client, error) {
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
	pool, err := rpcpool.New(rpcpool.Config{
		Proxies: []string{s.proxy}, Directory: directory, RootCAs: roots,
		ProxyCheckURL: "http://" + checkHost + "/", Timeout: s.attempt, MaxInFlight: s.conns, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	chain := pool.ChainID(1)
	return &client{
		call:  chain.Call,
		close: func() { _ = pool.Close() },
		logs: func(ctx context.Context, from, to, piece uint64, workers int) ([]json.RawMessage, error) {
			return chain.GetLogsChunked(ctx, rpcpool.LogFilter{FromBlock: from, ToBlock: to},
				rpcpool.ChunkSize(piece), rpcpool.Concurrency(workers))
		},
	}, nil
}
