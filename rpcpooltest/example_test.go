package rpcpooltest_test

import (
	"context"
	"fmt"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// A bot is tried out in a world where the best RPC is overloaded. In a test,
// rpcpooltest.New(t) makes the world and closes it.
func Example() {
	world := rpcpooltest.NewWorld(rpcpooltest.NewMemoryNetwork())
	defer world.Close()
	world.Proxy("p1")
	bad := world.Node("bad", rpcpooltest.Status(503))
	good := world.Node("good", rpcpooltest.Result("0x2a"))
	world.List("8453", bad, good)

	pool, err := rpcpool.New(world.Config())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pool.Close()

	head, err := pool.Chain("8453").Call(context.Background(), "eth_blockNumber")
	fmt.Println(string(head), err)
	for _, request := range world.Requests() {
		fmt.Println(request)
	}
	// Output:
	// "0x2a" <nil>
	// bad p1 eth_blockNumber
	// good p1 eth_blockNumber
}

// A proxy dies, and the other one takes over.
func ExampleProxy_Kill() {
	world := rpcpooltest.NewWorld(rpcpooltest.NewMemoryNetwork())
	defer world.Close()
	first := world.Proxy("p1")
	world.ProxyAt("p2", "http://user:password@p2.test:3128")
	world.List("8453", world.Node("r1"))
	pool, err := rpcpool.New(world.Config())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pool.Close()

	first.Kill()
	_, err = pool.Chain("8453").Call(context.Background(), "eth_blockNumber")
	fmt.Println(err, world.Requests())
	// Output:
	// <nil> [r1 p2 eth_blockNumber]
}

// A gate holds an answer back until the test has looked at the request.
func ExampleGate() {
	world := rpcpooltest.NewWorld(rpcpooltest.NewMemoryNetwork())
	defer world.Close()
	world.Proxy("p1")
	gate := rpcpooltest.NewGate()
	world.List("8453", world.Node("r1", rpcpooltest.Result("0x1").Hold(gate)))
	pool, err := rpcpool.New(world.Config())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pool.Close()

	answer := make(chan string)
	go func() {
		result, err := pool.Chain("8453").Call(context.Background(), "eth_gasPrice")
		answer <- fmt.Sprint(string(result), " ", err)
	}()
	held, err := gate.Next(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("the node has", held.Request.Method)
	held.Reply(rpcpooltest.Result("0x3b9aca00"))
	fmt.Println(<-answer)
	// Output:
	// the node has eth_gasPrice
	// "0x3b9aca00" <nil>
}

// A node that is fifty blocks behind serves valid, stale answers.
func ExampleEVM() {
	chain := rpcpooltest.NewEVM(8453, 1000)
	world := rpcpooltest.NewWorld(rpcpooltest.NewMemoryNetwork())
	defer world.Close()
	world.Proxy("p1")
	world.List("8453", world.Node("stale", chain.Serve(rpcpooltest.Lagging(50))), world.Node("good", chain.Serve()))
	pool, err := rpcpool.New(world.Config())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pool.Close()

	head, err := rpcpool.CallAs[string](context.Background(), pool.Chain("8453"), "eth_blockNumber")
	fmt.Println(head, err)
	// Output:
	// 0x3b6 <nil>
}
