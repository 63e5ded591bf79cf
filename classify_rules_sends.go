package rpcpool

// file-length: a table; a row a kind of wording, with where it was seen.

var knownSection = section{
	step: stepKnown, verdict: VerdictOK, wins: true,
	title: "Already known",
	about: "Only in answer to a raw send. The node has this very transaction: success, and the hash is computed here (rule A6.3). " +
		"Another transaction with the same nonce isn't it.",
	rows: []row{
		{
			name: "already-known", on: rawSends,
			say: []string{"already known", "known {transaction|tx|txn}_"},
			who: "geth, Nethermind, Besu, Erigon, zkSync", seen: says("eth_sendRawTransaction", -32000, "already known"), where: "ethereum/go-ethereum core/txpool/errors.go",
		},
		{
			name: "already-in-pool", on: rawSends, unless: []string{"nonce", "different"},
			say: []string{
				"already {been |}{imported|submitted|received|processed|added}",
				"{transaction|tx|txn} ..40 already {been |}{exist|pending|queued|present|included|seen}",
				"already in {the |our |}{mempool|txpool|tx pool|transaction pool|pool|cache|queue|system}",
			},
			who: "OpenEthereum, Anvil, Flow, Sei, Moonbeam, geth's forks", seen: says("eth_sendRawTransaction", -32000, "tx already exists in cache"), where: "sei-protocol/sei-chain sei-tendermint/internal/mempool/mempool.go",
		},
		{
			name: "same-hash", on: rawSends, unless: []string{"nonce"},
			say: []string{"existing {transaction|tx|txn} with {the |}same hash"},
			who: "Erigon, RSK, OpenEthereum", seen: says("eth_sendRawTransaction", -32000, "INTERNAL_ERROR: existing txn with same hash"), where: "ledgerwatch/erigon erigon-lib/txpool/txpoolcfg/txpoolcfg.go",
		},
		{
			name: "already-mined", on: rawSends, unless: []string{"nonce"},
			say: []string{"= {internal error |}mined", "{transaction|tx|txn} ..20 already {been |}{mined|finalized|confirmed|executed|in {a |the |}block}"},
			who: "Erigon, Harmony", seen: says("eth_sendRawTransaction", -32000, "transaction already finalized"), where: "harmony-one/harmony core/tx_pool.go",
		},
		{
			name: "pooled-not-mined", on: rawSends, codes: []int{4},
			say: []string{"{transaction|tx} ..80 was added to the {mempool|transaction pool|txpool|pool}", "receipt not available within"},
			who: "geth, reth, Monad: eth_sendRawTransactionSync whose wait ended", seen: says("eth_sendRawTransactionSync", 4, "The transaction was added to the transaction pool but wasn't processed in 2s."), where: "ethereum/go-ethereum internal/ethapi/errors.go",
		},
	},
}

var poolSection = section{
	step: stepPool, verdict: VerdictRPCFail,
	title: "Pool full, or node not ready",
	about: "Only in answer to a raw send, and before the transaction's own faults, because nodes dress a full pool up as one. Another node may take the transaction.",
	rows: []row{
		{
			name: "pool-full", on: rawSends,
			say: []string{
				"{txpool|mempool|pool|queue} {is |was |}{currently |}full", "pool {size |}{constraints|limit_}", "limit in {txpool|pool|mempool} is full",
			},
			who: "geth, Erigon, reth, Monad, Arbitrum, Metis, Kaia", seen: says("eth_sendRawTransaction", -32000, "txpool is full"), where: "ethereum/go-ethereum core/txpool/legacypool/legacypool.go",
		},
		{
			name: "dropped-at-once", on: rawSends,
			say: []string{"immediately dropped", "dropped ..20 congestion"},
			who: "Moonbeam, Arbitrum", seen: says("eth_sendRawTransaction", -32603, "submit transaction to pool failed: Pool(ImmediatelyDropped)"), where: "polkadot-evm/frontier client/rpc/src/eth/format.rs",
		},
		{
			name: "not-accepting", on: rawSends,
			say: []string{"not {currently |}accepting {new |}{transactions|txs}", "{txpool|tx pool|transaction pool|mempool} {is |}not {enabled|initialized|ready|available|started}"},
			who: "Arbitrum, Besu", seen: says("eth_sendRawTransaction", -32000, "currently not accepting transactions due to expected surplus being below threshold"), where: "OffchainLabs/nitro execution/gethexec/sequencer.go",
		},
		{
			name: "node-syncing", on: rawSends,
			say: []string{"syncing", "not {yet |fully |}{in sync|synced|synchronized}"},
			who: "Nethermind, Besu", seen: says("eth_sendRawTransaction", -32010, "Syncing"), where: "https://github.com/NethermindEth/nethermind/issues/3925",
		},
		{
			name: "pool-race", on: rawSends,
			say: []string{"same nonce is in progress", "error getting account"},
			who: "zkSync, Erigon", seen: says("eth_sendRawTransaction", 3, "insertion of another transaction with the same nonce is in progress"), where: "matter-labs/zksync-era core/node/api_server/src/tx_sender/result.rs",
		},
		{
			name: "banned-here", on: rawSends,
			say: []string{"banned in local queue", "account exceeds quota"},
			who: "OpenEthereum, RSK: this node's own ban or quota", seen: says("eth_sendRawTransaction", -32010, "Sender is banned in local queue."), where: "openethereum/openethereum crates/rpc/src/v1/helpers/errors.rs",
		},
	},
}

// What is wrong with a number of a transaction.
const (
	saidTooSmall = "{too low|too small|below|less than|lower than|lower then|under_|insufficient|not enough}"
	saidTooLarge = "{too high|too large|too big|exceed|higher than|greater than|bigger than|above|beyond|over_}"
	saidFee      = "{gas price|gasprice|fee|fees|tip|tip cap|fee cap|feecap|unit price|max fee per gas|max priority fee per gas|gas prices|fee per gas|pubdata price}"
	saidSize     = "{initcode|init code|calldata|call data|code size|data size|payload|transaction size|tx size|transaction data}"
	saidTx       = "{transaction|tx|txn}"
	saidParty    = "{sender|signer|from address|to address|account|deployer address|recipient}"
)

var txSection = section{
	step: stepTx, verdict: VerdictCaller, wins: true,
	title: "The transaction's own fault",
	about: "Deterministic: every node would say so.",
	rows: []row{
		{
			name: "mined-block", on: minedReads, verdict: VerdictRPCFail,
			say: []string{"nonce too high", "insufficient funds", "invalid transaction nonce"},
			who: "Erigon, Starknet: a mined transaction can't be at fault, so the node read it on a wrong state", seen: says("eth_getBlockReceipts", -32000, "getReceipts error: nonce too high"), where: "https://github.com/erigontech/erigon/issues/2202",
		},
		{
			name: "nonce", not: minedReads,
			say: []string{
				"nonce {is |}{too|has max|mismatch|gap|already|not}", "nonce ..20 " + saidTooSmall, "nonce ..20 " + saidTooLarge, "{invalid|incorrect|wrong|bad|old|stale|future|lower|correct|same|own|existing|expected} {transaction |account |sender |tx |}nonce",
				"minimum expected nonce", "sequence mismatch", "incorrect account sequence", "delegation nonce", "too stale nonce",
			},
			who: "every node", seen: says("eth_sendRawTransaction", -32000, "nonce too low: next nonce 12, tx nonce 11"), where: "paradigmxyz/reth crates/rpc/rpc-eth-types/src/error/mod.rs",
		},
		{
			name: "funds", not: minedReads,
			say: []string{
				"insufficient ..12 {funds|fund|balance|fee|gas}", "{not|doesn't have|does not have} enough {funds|balance|gas|eth}", "upfront cost exceeds", "exceeds {account |the |}balance", "balance {is |}{too low|smaller|not enough|less than}", "inability to pay", "not enough balance", "not enough ..12 {balance|funds|counters}",
				"would cause overdraft", "bandwith error", "account resource insufficient", "insufficient payer",
			},
			who: "every node", seen: says("eth_sendRawTransaction", -32000, "insufficient funds for gas * price + value: balance 0, tx cost 9327080000000000, overshot 9327080000000000"), where: "ethereum/go-ethereum core/txpool/validation.go",
		},
		{
			name: "fee",
			say: []string{
				"underpriced", saidFee + " ..24 " + saidTooSmall, saidFee + " ..24 " + saidTooLarge, "{invalid|insufficient|unacceptable} {gas |priority |}{fee|fees|price|unit price|fee cap}", "fee too low to compete", "min fee not met", "min relay fee", "fee cap exceeded", "fee exceeds", "fee per gas needs to be",
				"{could not|can't|cannot} replace", "can't be replaced", "higher priority", "replaced by transaction", "to bump", "priority is too low", "too low priority", "gas price is # which is below", "minimum accepted gas price", "increasing the fee",
			},
			who: "every node", seen: says("eth_sendRawTransaction", -32000, "replacement transaction underpriced"), where: "ethereum/go-ethereum core/txpool/errors.go",
		},
		{
			name: "gas",
			say: []string{
				"intrinsic gas", "gas limit ..40 " + saidTooLarge, "gas limit ..40 " + saidTooSmall, "gas limit reached", "{exceeds|exceeded} ..20 {gas limit|gas cap|blob gas|max gas}", "supplied gas is beyond", "gas {uint64 |uint |uint64|}overflow", "gasuint overflow", "requires {at least|gas floor}", "{total|max} blob gas", "out of counters", "line count for module", "current gas limit",
			},
			who: "every node", seen: says("eth_sendRawTransaction", -32000, "intrinsic gas too low: gas 20000, minimum needed 21000"), where: "ethereum/go-ethereum core/txpool/validation.go",
		},
		{
			name: "chain-id",
			say:  []string{"{invalid|wrong|incorrect} {tx |}chain id", "chain id ..30 {not supported|is required|does not match|doesn't match|mismatch}", "should not have a chain id", "signed for another chain", "replay protected", "invalid tx chain id"},
			who:  "every node", seen: says("eth_sendRawTransaction", -32000, "invalid chain id for signer: have 5 want 1"), where: "ethereum/go-ethereum core/types/transaction_signing.go",
		},
		{
			name: "signature",
			say: []string{
				"{invalid|bad|missing|miss} {tx |transaction |}{signature|sender|signer|sig_}", "signature ..12 {verification|error|mismatch|is invalid|validation|must be}", "sigerror", "{recover|resolve} {the |}{sender|signer}", "invalid transaction v", "decode signature", "precompile verification failure", "invalid ec signature",
			},
			who: "every node", seen: says("eth_sendRawTransaction", -32000, "invalid transaction v, r, s values"), where: "ethereum/go-ethereum core/types/transaction.go",
		},
		{
			name: "type", on: sends,
			say: []string{
				"{unknown|unsupported|invalid|unrecognized|conflicting} {private |}" + saidTx + " type", "unsupported tx_", saidTx + " type ..40 {not|conflict|rejected|unknown}", "type conflict", "{transactions|lists|list|parameters|params|fields|blobs|blob gas|versioned hashes|hashes|" + saidTx + "|sidecar} ..40 not {yet |}{supported|enabled|activated|allowed|permitted|active}",
				"eip # ..40 not {supported|activated|enabled|active}", "permission denied for tx type", "not allowed create transaction", "operation is not supported when", "contract class version", "before {spurious dragon|berlin|london|cancun|prague}", "sponsor",
			},
			unless: []string{"method", "submission", "publishing transactions", "future transactions"},
			who:    "every node", seen: says("eth_sendRawTransaction", -32000, "transaction type not supported: tx type 3 not supported by this pool"), where: "ethereum/go-ethereum core/txpool/validation.go",
		},
		{
			name: "encoding", on: sends,
			say: []string{
				"rlp", "transaction too short", "{decode|deserialize|serialize|parse} {the |a |private |signed |}" + saidTx, "{decode|deserialize|parse} ..20 raw {transaction|tx}", saidTx + " {decode|decoding|parse}", "{empty|invalid|malformed} {raw |}" + saidTx + " data", saidTx + " data is empty", "oversized data", "input too short", "invalid message format", saidSize + " ..40 " + saidTooLarge,
				"{transaction|tx|extrinsic} ..8 {too large|too big}", "too big transaction", "max initcode size", "negative value", "{int256|transaction} overflow", "transaction {hash is null|invalid}", "missing enveloped", "invalid format", "{deserialize|decoding} ..30 transaction",
			},
			who: "every node", seen: says("eth_sendRawTransaction", -32000, "typed transaction too short"), where: "ethereum/go-ethereum core/types/transaction.go",
		},
		{
			name: "blobs", on: sends,
			say: []string{
				"blob ..60 {missing|not found|exceed|limit|must|failed|invalid|incorrect|mismatch|create|can't}", "blobless", "{missing|wrong|unexpected|invalid|incomplete|no|too many|at least one|number of} ..20 {sidecar|blob}", "kzg", "blob hashes", "must have blobs", "form of a create transaction", "{authorization|authority|set code|auth list} ..30 {list|tuple|reserved|empty|invalid|pending}", "set code tx",
			},
			who: "geth, reth, Erigon, Besu, Nethermind", seen: says("eth_sendRawTransaction", -32000, "missing sidecar in blob transaction"), where: "ethereum/go-ethereum core/txpool/validation.go",
		},
		{
			name: "sender", on: sends,
			say: []string{
				saidParty + " ..60 {blacklist|whitelist|allow list|allowlist|not authorized|not an eoa|is contract|is blocked|prohibited|doesn't exist}", "{blocked|forbidden} sender", "sender is contract", "spammer", "plugin has marked", "= transaction rejected",
			},
			who: "Linea, Arbitrum, Harmony, Besu: rules of the chain, rather than of the node", seen: says("eth_sendRawTransaction", -32000, "transaction sender is not on the whitelist"), where: "OffchainLabs/nitro execution/gethexec/sequencer.go",
		},
		{
			name: "sender-limit", on: sends,
			say: []string{"account limit exceeded", "in flight transaction limit", "too many pending ..20 for", "has reached the tx limit", "already reserved", "future transaction tries", "unconfirmed ancestors"},
			who: "geth, Lotus, OpenEthereum, Polygon zkEVM: this sender's share of the pool", seen: says("eth_sendRawTransaction", -32000, "account limit exceeded: pooled 16 txs"), where: "ethereum/go-ethereum core/txpool/errors.go",
		},
		{
			name: "condition", on: sends,
			say: []string{
				"condition not met", "conditional", "timestamp assertion", "cyclic", "cycle detected", "mempool conflict", "missing or spent", "missingorspent", "missing inputs", "non final", "non bip", "script", "bad txns", "dust", "tapos", saidTx + " expir", "is outdated", "staking message", "invalid shard", "paymaster", "factory dependencies", "include transaction in the system", "validate the transaction",
			},
			who: "bsc, zkSync, Bitcoin, Tron, Harmony", seen: says("eth_sendRawTransactionConditional", -32000, "BlockNumberMax condition not met"), where: "bnb-chain/bsc internal/ethapi/transaction_opts_utils.go",
		},
		{
			name: "other-chains", on: sends, unless: []string{"overload", "busy"},
			say: []string{
				"tx # is invalid", "tx ..80 is invalid", "invalid tx error", "invalid transaction", saidTx + " ..12 {rejected|invalid|is invalid|validation}", "already {in mempool|in block chain|imported|in utxo|been processed|known|in cache}", "tx already exist", "same hash already", "dup transaction", "already exists in", "pool stale", "is discarded",
				"non recoverable errors", "equivocated", "signer does not exist",
			},
			who: "CometBFT, NEAR, Sui, Conflux, Starknet, Bitcoin", seen: example{"broadcast_tx_sync", -32603, "Internal error", `"broadcast error on transaction validation: tx 25B9641DD282EC1CDCFF19F96297234CED0FE2E1A0DAC82E47E08739E3F55D82 is invalid: code=2, data=, log='', codespace=''"`}, where: "observed on CometBFT 1.0.1",
		},
	},
}
