/*
Package rpcpool calls public blockchain RPCs, which fail all the time, through the
user's own proxies, and fails over until one answers.

A pool service lists the RPCs of each chain, best first. A [Pool] holds the lists
in rings, sends every request through a proxy and never directly, judges each
failure (the RPC's, the proxy's, the request's own), leaves alone for a while what
is at fault, repeats the same request on the next RPC, takes its verdicts back when
the proxy turns out to be dead, tells the pool of bad RPCs, and lives on from memory
and disk when the pool is down.

	pool, err := rpcpool.New(rpcpool.Config{
		Proxies: []string{"socks5://user:password@proxy-a.example.com:1080"},
		APIURL:  "https://pool.example.org", // or RPC_POOL_URL
		APIKey:  key,                        // or RPC_POOL_API_KEY
	})
	if err != nil {
		return err
	}
	defer pool.Close()
	base := pool.Chain("8453")
	head, err := rpcpool.CallAs[string](ctx, base, "eth_blockNumber")

# Calls

[Chain.Call] sends a JSON-RPC request, [Chain.GetLogsChunked] and [Chain.LogChunks]
ask for logs over any range, and [Chain.Run] carries a function of your own round
the ring, for REST APIs and other protocols. [Chain.HTTPClient] puts the ring under
go-ethereum's client and other SDKs that take an *http.Client.

# Errors

The node's own answers (a revert, a nonce too low, HTTP 400) come back as *[RPCError]
and *[HTTPError], without failover: another RPC would say the same. *[NoHealthyRPCError],
*[NoCapableRPCError] and *[LogsRangeTooLargeError] say why no RPC served the request,
*[ProxyError] that every proxy is down, *[PoolAPIError] that there is no list. All of
them satisfy [Error], name RPCs and proxies by masked labels, and list each attempt.

No URL of a proxy or RPC is ever shown whole: logins, paths and queries, where
providers put their keys, are masked in errors, logs and every printed form.

# Observability

[Chain.Stats] and [Pool.ProxyStats] tell what is known of RPCs and proxies, [Config.Logger]
gets a record of every attempt, and [Config.Hooks] are told what happens, for metrics and
traces: see [Hook].

# Tests

Package rpcpooltest has RPCs, proxies and a pool API with scripted faults, on
loopback or in memory inside a testing/synctest bubble.
*/
package rpcpool
