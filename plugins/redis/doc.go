// Package redis lets the bots of a fleet share what they find out about RPCs and proxies
// over a Redis or Valkey server, 6.2 or later: a cooldown that one of them sees has the
// others leave the RPC alone within a second.
//
//	client := goredis.NewClient(&goredis.Options{Addr: "redis.internal:6379"})
//	defer client.Close()
//	cfg.Shared = redis.New(client)
//
// The client is the user's, with its own address, login, TLS and timeouts; the package only
// sends commands. What a fleet makes of the facts, and what happens when the server is lost
// (nothing but that each bot goes on alone), is in docs/FLEET.md.
//
// # What is in the server
//
// Two streams: {rpcpool}:facts, the last 10,000 entries or so, and {rpcpool}:heads, the last
// 200. The braces keep both on one node of a cluster. An entry has one field, "facts": some
// facts in JSON, with ids that are sums, masked URLs, methods and block numbers, and no
// secret. Streams end by themselves an hour after the last entry. [Prefix] gives other names,
// for several fleets on one server.
//
// Ages are told by the clock of the server that has the streams, which gave the entries their
// ids: neither the clocks of the bots' machines matter nor those of a cluster's other nodes.
// Where another node takes over, what was kept is older or younger by as much as the two
// clocks differ.
//
// The login may be limited to these two keys, and to XADD, EXPIRE, XREAD, EVAL and TIME.
//
// # Load
//
// A process sends one XREAD a second where nobody says anything, and at most ten, each with
// an EVAL for the time, whatever the others say. One that has something to say sends ten XADD
// a second at most, with all that came together in each.
package redis
