module github.com/bomzrpc/rpcpool

go 1.26.0

require (
	github.com/stretchr/testify v1.12.1 // indirect
	golang.org/x/crypto v0.59.0 // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/sync v0.25.0 // indirect
)
