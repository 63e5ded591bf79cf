package redis_test

import (
	"context"
	"fmt"

	goredis "github.com/redis/go-redis/v9"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/plugins/redis"
)

// Each bot of the fleet has this in its configuration. The example is compiled and not run, as it
// needs a server; without one, rpcpooltest.NewFleet() is a view for tests.
func Example() {
	client := goredis.NewClient(&goredis.Options{Addr: "redis.internal:6379"})
	defer client.Close()
	pool, err := rpcpool.New(rpcpool.Config{
		Proxies: []string{"socks5://user:password@proxy-a.example.com:1080"},
		APIURL:  "https://pool.example.org", APIKey: "key",
		Shared: redis.New(client, redis.Prefix("traders")),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pool.Close() // before the client
	head, err := rpcpool.CallAs[string](context.Background(), pool.Chain("8453"), "eth_blockNumber")
	fmt.Println(head, err, pool.SharedStats().Connected)
}
