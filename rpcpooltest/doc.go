// Package rpcpooltest is a world to test bots in that use rpcpool, in the manner
// of net/http/httptest: a pool API, SOCKS and HTTP proxies and RPC nodes that
// speak the real protocols and fail as they are told to. Nothing of it leaves
// the machine.
//
// A test takes a few lines:
//
//	world := rpcpooltest.New(t)
//	world.Proxy("p1")
//	bad := world.Node("bad", rpcpooltest.Status(503))
//	good := world.Node("good", rpcpooltest.Result("0x2a"))
//	world.List("8453", bad, good)
//
//	pool, err := rpcpool.New(world.Config())
//	…
//	result, err := pool.Chain("8453").Call(ctx, "eth_blockNumber") // "0x2a", from good
//
// # Time
//
// [New] makes its world on a memory network. Inside a testing/synctest bubble
// cooldowns, timeouts and refreshes of minutes pass at once, and exactly:
//
//	synctest.Test(t, func(t *testing.T) {
//		world := rpcpooltest.New(t)
//		…
//		time.Sleep(61 * time.Second) // the cooldown is over
//	})
//
// Close the pool inside the bubble, too. [NewLoopbackNetwork] has real TCP
// connections instead; see [NewWorld].
//
// # Scripts
//
// Nodes, proxies and the pool API follow scripts: lists of entries, of which the
// first serves whose conditions hold and that isn't used up.
//
//	node.Script(
//		rpcpooltest.Error(-32601, "method not found").Method("eth_getLogs"),
//		rpcpooltest.Hang().Via("p1").Times(2),
//		rpcpooltest.Result("0x10").Delay(3 * time.Second),
//	)
//
// A [Gate] holds answers back until the test lets them go, one by one. [Handle]
// computes answers; [EVM] is a small chain whose nodes can lag, fork or lie.
//
// # What happened
//
// [World.Requests] tells which node was asked through which proxy for what;
// [Network.Exchanges], [Node.Requests], [PoolAPI.Asked] and [PoolAPI.Reports]
// have the details. [Network.Breaches] names what the client did against the
// rules; a world made by [New] fails the test for it. [Network.OpenConns] and
// [Network.PendingDials] show what was left behind.
package rpcpooltest
