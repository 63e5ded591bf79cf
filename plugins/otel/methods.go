package rpcpoolotel

import "strings"

// knownMethods are the methods that keep their names without WithMethods. They are a table:
// prefixes and what follows them.
var knownMethods = methodsOf(map[string]string{
	"eth_": `accounts blobBaseFee blockNumber call chainId createAccessList estimateGas feeHistory gasPrice getAccount
		getBalance getBlockByHash getBlockByNumber getBlockReceipts getBlockTransactionCountByHash
		getBlockTransactionCountByNumber getCode getFilterChanges getFilterLogs getHeaderByHash getHeaderByNumber getLogs
		getProof getRawTransactionByHash getStorageAt getTransactionByBlockHashAndIndex
		getTransactionByBlockNumberAndIndex getTransactionByHash getTransactionCount getTransactionReceipt
		getUncleByBlockHashAndIndex getUncleByBlockNumberAndIndex getUncleCountByBlockHash getUncleCountByBlockNumber
		maxPriorityFeePerGas newBlockFilter newFilter newPendingTransactionFilter protocolVersion sendRawTransaction
		sendRawTransactionConditional sendRawTransactionSync sendTransaction simulateV1 syncing uninstallFilter`,
	"net_":  "listening peerCount version",
	"web3_": "clientVersion sha3",
	"debug_": `getRawBlock getRawHeader getRawReceipts getRawTransaction storageRangeAt traceBlockByHash
		traceBlockByNumber traceCall traceTransaction`,
	"trace_":  "block call callMany filter get rawTransaction replayBlockTransactions replayTransaction transaction",
	"txpool_": "content contentFrom inspect status",
	"starknet_": `addDeclareTransaction addDeployAccountTransaction addInvokeTransaction blockHashAndNumber blockNumber
		call chainId estimateFee estimateMessageFee getBlockTransactionCount getBlockWithReceipts getBlockWithTxHashes
		getBlockWithTxs getClass getClassAt getClassHashAt getEvents getNonce getStateUpdate getStorageAt
		getTransactionByBlockIdAndIndex getTransactionByHash getTransactionReceipt getTransactionStatus
		simulateTransactions specVersion syncing traceBlockTransactions traceTransaction`,
	"sui_": `devInspectTransactionBlock dryRunTransactionBlock executeTransactionBlock getChainIdentifier getCheckpoint
		getCheckpoints getEvents getLatestCheckpointSequenceNumber getObject getProtocolConfig
		getTotalTransactionBlocks getTransactionBlock multiGetObjects multiGetTransactionBlocks tryGetPastObject`,
	"suix_": `getAllBalances getAllCoins getBalance getCoinMetadata getCoins getDynamicFieldObject getDynamicFields
		getLatestSuiSystemState getOwnedObjects getReferenceGasPrice getTotalSupply queryEvents
		queryTransactionBlocks`,
	// Solana.
	"": `getAccountInfo getBalance getBlock getBlockCommitment getBlockHeight getBlockProduction getBlockTime getBlocks
		getBlocksWithLimit getClusterNodes getEpochInfo getEpochSchedule getFeeForMessage getFirstAvailableBlock
		getGenesisHash getHealth getHighestSnapshotSlot getIdentity getInflationGovernor getInflationRate
		getInflationReward getLargestAccounts getLatestBlockhash getLeaderSchedule getMaxRetransmitSlot
		getMaxShredInsertSlot getMinimumBalanceForRentExemption getMultipleAccounts getProgramAccounts
		getRecentPerformanceSamples getRecentPrioritizationFees getSignatureStatuses getSignaturesForAddress getSlot
		getSlotLeader getSlotLeaders getStakeMinimumDelegation getSupply getTokenAccountBalance
		getTokenAccountsByDelegate getTokenAccountsByOwner getTokenLargestAccounts getTokenSupply getTransaction
		getTransactionCount getVersion getVoteAccounts isBlockhashValid minimumLedgerSlot requestAirdrop
		sendTransaction simulateTransaction ` +
		// CometBFT.
		`abci_info abci_query block block_by_hash block_results block_search blockchain broadcast_evidence
		broadcast_tx_async broadcast_tx_commit broadcast_tx_sync check_tx commit consensus_params consensus_state
		dump_consensus_state genesis genesis_chunked header header_by_hash health net_info num_unconfirmed_txs status tx
		tx_search unconfirmed_txs validators`,
})

func methodsOf(table map[string]string) (methods []string) {
	for prefix, names := range table {
		for name := range strings.FieldsSeq(names) {
			methods = append(methods, prefix+name)
		}
	}
	return methods
}
