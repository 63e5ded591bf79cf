// Package sdk has the tests of go-ethereum's ethclient on the ring, against real
// nodes: thousands of mixed calls, through SOCKS and HTTP proxies on loopback, over RPCs of
// which two of five fail at random, and every answer is compared byte by byte with
// what the node says directly.
//
//	go test              a short run
//	./run.sh             the long run, 10,000 calls a node
//
// The nodes are those that scripts/integration/install.sh puts into its cache. A
// module of its own keeps go-ethereum out of the other integration tests.
package sdk
