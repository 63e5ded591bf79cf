package rpcpool

// The keys of log records. The same thing has the same key in all of them;
// docs/OBSERVABILITY.md says what they mean. They stay.
const (
	keyAge         = "age"
	keyBlock       = "block"
	keyBlocks      = "blocks"
	keyChain       = "chain"
	keyDetail      = "detail"
	keyDropped     = "dropped"
	keyDuration    = "duration"
	keyEntry       = "entry"
	keyError       = "error"
	keyFile        = "file"
	keyHook        = "hook"
	keyMethod      = "method"
	keyOther       = "other"
	keyPanic       = "panic"
	keyProxy       = "proxy"
	keyRPC         = "rpc"
	keyRPCs        = "rpcs"
	keyStack       = "stack"
	keyTransaction = "transaction"
	keyVerdict     = "verdict"
)
