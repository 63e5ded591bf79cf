module github.com/bomzrpc/rpcpool/examples/rest

go 1.26.0

require (
	github.com/bomzrpc/rpcpool v0.0.0
	github.com/stretchr/testify v1.12.1
)

require (
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/crypto v0.59.0 // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/sync v0.25.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
)

replace github.com/bomzrpc/rpcpool => ../..
