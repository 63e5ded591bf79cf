package rpcpool

// file-length: a table; a row a kind of wording, with where it was seen.

var haltSection = section{
	step: stepHalt, verdict: VerdictCaller, wins: true,
	title: "Reverts and other ends of a contract's run",
	about: "Whatever else the error says: the words may be the contract's own.",
	rows: []row{
		{
			name: "revert",
			say:  []string{"revert"},
			who:  "every EVM node", seen: says("eth_call", 3, "execution reverted: Dai/insufficient-balance"), where: "ethereum/go-ethereum internal/ethapi/errors.go",
		},
		{
			name: "revert-data",
			say:  []string{"!"},
			who:  "nodes that hide the message; ! stands for data that is Solidity's Error or Panic, or, with code 3, any selector", seen: example{"eth_call", -32000, "server error", `"0x4e487b710000000000000000000000000000000000000000000000000000000000000011"`}, where: "jaxernst/lasso-rpc test/lasso/core/support/error_classification_test.exs",
		},
		{
			name: "out-of-gas",
			say:  []string{"out of gas", "gas required exceeds", "always failing transaction", "memory expansion"},
			who:  "geth, Hardhat, reth, Lotus, XDC", seen: says("eth_estimateGas", -32000, "gas required exceeds allowance (30000000)"), where: "ethereum/go-ethereum eth/gasestimator/gasestimator.go",
		},
		{
			name: "evm-halt",
			say: []string{
				"vm exception", "vm {execution |}error", "evm error", "{invalid|bad|undefined} {opcode|jump|instruction|bytecode}", "stack {underflow|overflow|limit reached}", "max call depth", "write protection", "contract address collision", "insufficient balance for transfer",
				"return data out of bounds", "max {init|}code size", "exceeds code size limit", "execution failed due to an exception",
			},
			unless: []string{"call stack"}, not: rawSends,
			who: "geth, Ganache, Anvil, reth, Monad", seen: says("eth_call", -32603, "EVM error InvalidJump"), where: "observed on Anvil 1.7.1",
		},
		{
			name: "contract-fault",
			say: []string{
				"simulation failed", "custom program error", "contract error", "transaction execution error", "message execution failed", "function call error", "method resolve error", "wasm execution failed", "smart contract panicked", "transaction processing could not be completed", "contract {validate|validation}", "external message was not accepted",
			},
			who: "Solana, Starknet, Lotus, NEAR, Tron, Besu", seen: says("sendTransaction", -32002, "Transaction simulation failed: Error processing Instruction 0: custom program error: 0x1"), where: "https://github.com/michaelhly/solana-py/issues/552",
		},
	},
}

// What a node says of something that it hasn't got.
const (
	saidMissing = "{not found|cannot be found|could not be found|does not exist|doesn't exist|not available|is not available|unavailable|not stored|missing|unknown}"
	saidBlock   = "{block_|blocks_|header|headers|tipset|epoch|slot|height|blockhash|block hash|block number|checkpoint|batch}"
)

var noStateSection = section{
	step: stepNoState, verdict: VerdictNoState, wins: true,
	unless: []string{"missing trie node", "header not found", "{node |}{is |}{still |}syncing", "{finalized|safe} block not found", "latest block could not be found", "rate limit", "too many requests"},
	title:  "The node lacks the block or state",
	about:  "Pruned, or beyond its head; otherwise the node is fine. `missing trie node` and `header not found` are the node's fault by rule A5.",
	rows: []row{
		{
			name: "pruned", pruned: true, not: sends,
			say: []string{"pruned", "pruning", "purged", "state ..12 discarded", "garbage collected", "cleaned up", "ancient block", "ancient blocks"},
			who: "reth, Besu, publicnode, Sei, Cosmos, Solana, Substrate, OpenEthereum", seen: says("eth_getLogs", -32701, "History has been pruned for this block. To remove restrictions, order a dedicated full node here: https://www.allnodes.com/bsc-testnet/host"), where: "a public test of provider errors, with the exact body of bsc-testnet-rpc.publicnode.com",
		},
		{
			name: "historical-state", pruned: true, not: sends,
			say: []string{
				"historical {state|data|block|proof|rpc|backend|query|execution} ..80 {not|unavailable|unsupported|error|require|only}", "unsupported historical", "no historical", "historical backend", "historical state", "state histories", "{world |account |}state ..90 " + saidMissing, "missing state", "unknown state", "unexpected state root", "no state {available|for|found|data}", "failed to {load|compute} {state|tipset}", "loading messages for tipset", "layer stale",
				"missing node at", "required data unavailable",
			},
			unless: []string{"historical balance", "override", "pending state is not supported", "resource"},
			who:    "geth, bsc, Besu, dRPC, Lotus, Diem, Arbitrum", seen: says("eth_getBalance", -32000, "historical state b4b233ad9e5e4fb6b7fcf79f833739efdf7d7fe597ed65bf3ee3e40680c84bde is not available"), where: "observed on geth 1.17.10, pruned",
		},
		{
			name: "archive", pruned: true, not: sends,
			say:    []string{"archive {node|data|state|request|access|mode|required|is required|history}", "{no|non|not an|require|requires|maintain} archive"},
			unless: []string{"debug or trace data", "archive error", "archive block"},
			who:    "ankr, Infura, publicnode, llamanodes, Fantom", seen: says("eth_getBalance", -32061, "No archive nodes available"), where: "https://www.ankr.com/docs/rpc-service/errors/overview/",
		},
		{
			name: "archive-plan", pruned: true, not: traces,
			say: []string{"archival debug or trace data"},
			who: "dRPC; in answer to a trace it is the method", seen: says("eth_call", -32000, "Access to archival, debug, or trace data is not included in your current plan"), where: "drpcorg/nodecore pkg/errors_config/errors.yaml",
		},
		{
			name: "too-old", pruned: true, not: sends,
			say: []string{
				"{block|blocks|state|data|height|epoch|tipset|range|logs|history} ..40 {too {old|stale|far in the past}|older than}", "lookback", "before {the |}{earliest|oldest|first} ..20 block", "data before ..12 is not available", "{state|block|data|history} ..20 no longer {available|stored|kept}", "{earliest|oldest|lowest|first} {available|retained|height} ..20 is", "proof window", "only {the |}{last|latest|recent} # blocks", "not in available range", "does not exist on height",
			},
			who: "Erigon, Sei, Lotus, reth, Flow, CometBFT, Cloudflare", seen: says("eth_getProof", -32000, "requested block is too old, block must be within 100000 blocks of the head block number (currently 21000000)"), where: "ledgerwatch/erigon turbo/jsonrpc/eth_call.go",
		},
		{
			name: "no-index", pruned: true, not: sends,
			say: []string{
				"use txindex", "transaction index must be enabled", "not stored on this node", "does not track", "transaction history is not available", "missing in long term storage", "ledger jump", "local ledger", "secondary indexes", "lite fullnode", "not in db", "db not found", "body not found", "unknown block or tx index", "no information available about transaction", "excluded from secondary index", "no {block|tx|transaction|transactions|receipts|receipt|log|logs} {data|snapshot}", "metadata is not found", "proof is missing", "receipt ..90 never been observed",
			},
			who: "bitcoind, Solana, NEAR, Tron, TON, Lotus", seen: says("getrawtransaction", -5, "No such mempool transaction. Use -txindex to enable blockchain transaction queries. Use gettransaction for wallet transactions."), where: "https://github.com/bitcoin/bitcoin/pull/10275",
		},
		{
			name: "beyond-head", not: sends,
			say: []string{
				"beyond {the |}{current |latest |chain |node |}{head|latest|tip}", "after {the |}{last|latest} {accepted |available |}block", "{block|height|epoch|number} ..30 in the future", "future {block|epoch|height}", "ahead of ..20 head", "{block|height} {is |}not yet synced", "too far in the future", "unfinalized data", "{block|toblock|fromblock|height|epoch|slot|number} ..20 {greater|higher} than {the |}{current|latest|last|head|top|highest}",
				"less than or equal to the current", "{currently|non|not} canonical", "{block|height|number} ..20 out of range", "block out of range", "{requested block|epoch} ..20 out of bounds", "{block|height|slot|status|number|to block} ..60 {not yet available|not available yet}", "exist yet",
			},
			unless: []string{"upstream does not have", "historical balance"},
			who:    "geth, reth, Avalanche, Sei, Hedera, CometBFT, Bitcoin", seen: says("eth_getLogs", -32602, "block range extends beyond current head block: requested 20, head 10"), where: "paradigmxyz/reth crates/rpc/rpc-eth-types/src/error/mod.rs",
		},
		{
			name: "unknown-block", not: sends,
			say: []string{
				saidBlock + " ..90 " + saidMissing, "unknown {block|header|tipset|slot|epoch}", "no {such |}block {found|with|at|for}", "{cannot|can't|could not|couldn't|unable to} {find|get|compute} {newest |}block", "could not find results for height", "= # could not be found", "slot ..20 skipped", "missing block_", "shard id ..12 does not exist", "unsupported block number",
			},
			unless: []string{"method", "access list", "containing transaction", "logs for block", "block tag", "block range", "invalid block tag", "invalid params", "parameters", "batch {request|size|limit}"},
			who:    "geth, Besu, Erigon, reth, Anvil, zkSync, Substrate", seen: says("debug_traceBlockByNumber", -32000, "block #123 not found"), where: "ethereum/go-ethereum eth/tracers/api.go",
		},
		{
			name: "unknown-height", not: sends,
			say: []string{"= invalid block height #"},
			who: "Hyperliquid: a height that it doesn't serve", seen: says("eth_getBalance", -32000, "invalid block height: 100"), where: "https://github.com/ponder-sh/ponder/issues/1364",
		},
		{
			name: "unknown-data", not: sends,
			say: []string{"{requested |}data ..20 {is not available|not available|unavailable}", "= {resource|record|receipts} not found", "no trace available", "no snapshot"},
			who: "llamanodes, Lava, BlockVision, Anvil, Starknet", seen: says("eth_getLogs", -32001, "Requested data is not available"), where: "llamanodes/web3-proxy web3_proxy/src/rpcs/many.rs",
		},
		{
			name: "unknown-transaction", not: sends | evm,
			say: []string{"{transaction|tx|hash} ..80 {not found|doesn't exist}", "find the referenced transaction"},
			who: "Starknet, Sui, NEAR, CometBFT: nodes that don't keep every transaction", seen: says("starknet_getTransactionReceipt", 29, "Transaction hash not found"), where: "eqlabs/pathfinder crates/rpc/src/error.rs",
			unless: []string{"class hash", "header hash", "mempool or blockchain"},
		},
	},
}
