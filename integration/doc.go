// Package integration has no code of its own: its tests drive rpcpool, through
// its public API, against real proxies (dante, microsocks, tinyproxy, squid,
// privoxy, ssh -D), real nodes (anvil, geth, hardhat) and Prometheus. They need what
// scripts/integration/run.sh starts; "make integration" runs them.
package integration
