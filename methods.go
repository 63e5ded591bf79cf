package rpcpool

// Methods that the library itself asks, or knows the answers of. Tables of methods name
// theirs in full.
const (
	methodBlockNumber   = "eth_blockNumber"
	methodBlockByNumber = "eth_getBlockByNumber"
	methodBlockByHash   = "eth_getBlockByHash"
	methodChainID       = "eth_chainId"
	methodLogs          = "eth_getLogs"
	methodNonce         = "eth_getTransactionCount"
	methodReceipt       = "eth_getTransactionReceipt"
	methodSendRaw       = "eth_sendRawTransaction"
	methodTransaction   = "eth_getTransactionByHash"
)

// Tags that stand for a block.
const (
	tagLatest    = "latest"
	tagSafe      = "safe"
	tagFinalized = "finalized"
	tagPending   = "pending"
	tagEarliest  = "earliest"
)
