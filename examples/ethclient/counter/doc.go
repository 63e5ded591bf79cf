// Package counter is the binding of Counter.sol, as abigen writes it:
//
//	solc --bin --abi --optimize --evm-version paris --no-cbor-metadata Counter.sol -o build
//	abigen --v2 --abi build/Counter.abi --bin build/Counter.bin --pkg counter --type Counter --out counter.go
package counter
