package rpcpool

// file-length: a table; a row a kind of wording, with where it was seen.

var requestSection = section{
	step: stepRequest, verdict: VerdictCaller,
	title: "The request's own fault, in words of the node's",
	about: "Before the node's faults, whose words these answers use: limits of batches, filters and bodies; parameters that aren't served; accounts.",
	rows: []row{
		{
			name: "batch", wins: true,
			say: []string{"{batch|batched} {request|requests|size|limit|of_|too|response|rpc|call|is_}", "in {the |}batch", "= empty batch"},
			who: "geth, Erigon, Besu, jsonrpsee, CometBFT", seen: says("eth_call", -32600, "batch too large"), where: "ethereum/go-ethereum rpc/errors.go",
		},
		{
			name: "filter-too-complex", on: logQueries,
			say: []string{"{max|number of|less number of|up to #} ..20 {address|addresses|topics}", "query parameters the limit", "contains # filters"},
			who: "geth, Confura, Infura, Sonic", seen: says("eth_getLogs", -32000, "exceed max addresses or topics per search position"), where: "ethereum/go-ethereum eth/filters/api.go",
		},
		{
			name: "range-of-another-query", not: logQueries,
			say: []string{"range_ ..12 too {wide|large|big}"},
			who: "Moonbeam, of trace_filter: nothing that is split here", seen: says("trace_filter", -32603, "block range is too wide (maximum 5000)"), where: "moonbeam-foundation/moonbeam client/rpc/trace/src/lib.rs",
		},
		{
			name: "body-too-large",
			say:  []string{"request {body |}{is |}too large", "content length too large"},
			who:  "1RPC, proxyd, geth", seen: says("eth_call", -32600, "JSON RPC Request is too large"), where: "https://docs.1rpc.io/using-the-web3-api/errors",
		},
		{
			name: "parameter-not-served",
			say:  []string{"quorum is not supported", "address is not allowed", "pending state is not supported", "local wallet is disabled"},
			who:  "dRPC, Pocket, rskj", seen: says("eth_call", -32010, "quorum is not supported for this request"), where: "drpcorg/nodecore internal/protocol/errors.go",
		},
		{
			name: "height-zero",
			say:  []string{"must be greater than"},
			who:  "CometBFT", seen: example{"block", -32603, "Internal error", `"height must be greater than 0, but got 0"`}, where: "observed on CometBFT 1.0.1",
		},
		{
			name: "account-unknown", wins: true,
			say: []string{"{account|access key} ..60 {does not exist|not found}", "unknown account", "no signer", "{account is|password or} {locked|unlock}"},
			who: "NEAR, Aptos, geth, Anvil", seen: example{"query", -32000, "Server error", `"account alice.example does not exist while viewing"`}, where: "https://github.com/near/nearcore/issues/2195",
		},
		{
			name: "subscription-unknown",
			say:  []string{"{filter|subscription} not found"},
			who:  "geth, Besu: it lives on the node that made it", seen: says("eth_getFilterChanges", -32000, "filter not found"), where: "ethereum/go-ethereum eth/filters/api.go",
		},
	},
}

var nodeSection = section{
	step: stepNode, verdict: VerdictRPCFail,
	title: "The node is at fault, or can't answer now",
	about: "Rates, quotas, keys, capacity, lag, backends.",
	rows: []row{
		{
			name: "header-not-found",
			say:  []string{"header not found", "missing trie node"},
			who:  "geth and its forks; fixed by rule A5", seen: says("eth_getBalance", -32000, "header not found"), where: "observed on geth 1.17.10",
		},
		{
			name: "rate", refuses: true,
			say: []string{
				"rate limit", "ratelimit", "rate exceeded", "request rate", "{many|concurrent} requests", "{request|requests|call|calls|cups|compute unit|units|throughput|rps|qps|daily|connection|credits|plan} ..20 {limit|limited|per second|per day}", "limit of requests", "{per|#} {second|minute|hour|day}_", "max ..12 requests", "exceeded ..20 {requests|quota|capacity}", "throughput", "throttl", "slow down", "= limit exceeded", "excessive requests", "resource exhausted", "not enough {cups|cu|credits}", "soft limit",
			},
			who: "every provider", seen: says("eth_call", -32005, "Rate limit exceeded. Please retry after 1 second."), where: "https://nodewell.io (error codes)",
		},
		{
			name: "quota", refuses: true,
			say: []string{"quota", "usage limit", "max usage", "capacity", "free{ |}tier", "{free|paid|this|current} plan", "upgrade ..20 {plan|account}", "payment", "subscription expired", "suspended", "is already expired", "unpaid", "{requests|credits|units|balance} exhausted", "top up", "account {is |}{inactive|disabled}", "app is paused", "endpoint {has |}expired", "contact {support|sales|us_}", "pricing", "credits"},
			who: "every provider", seen: says("eth_getLogs", -32001, "You've reached the usage limit for your current plan. To continue with higher limits and uninterrupted access, please upgrade here: https://www.1rpc.io/#pricing"), where: "https://docs.1rpc.io/using-the-web3-api/errors",
		},
		{
			name: "key", refuses: true,
			say: []string{
				"api key", "project id", "unauthorized", "not enabled for your", "origin not allowed", "ip blocked", "authenticat", "access denied", "forbidden", "permission denied", "not authorized", "invalid {key|credentials}", "{access|auth|bearer|jwt} token", "illegal ip", "ips # are not allowed", "project scope", "invalid host specified", "did not identify", "specify {an |}address in your request",
			},
			who: "ankr, Infura, Chainnodes, BlockVision, dRPC", seen: says("eth_call", 401, "invalid api key"), where: "https://www.chainnodes.org/docs/FAQs/error_codes",
		},
		{
			name: "chain-not-served", refuses: true,
			say: []string{"unsupported {chain|blockchain|network}", "chain_ ..30 not {supported|available}", "does not support chain"},
			who: "dRPC, and gateways to many chains", seen: says("eth_call", 2, "chain xyz is not supported"), where: "drpcorg/nodecore internal/protocol/errors.go",
		},
		{
			name: "busy",
			say: []string{
				"overload", "busy", "congest", "too much load", "high load", "load exceeded", "too many connections", "try again", "please retry", "{retry|retrying} {later|after|in_|on_}", "resubmit", "immediately dropped", "queue limit", "{queue|pool|mempool} {is |}full", "considered as full", "too many {subscriptions|filters}", "max limit reached", "allowed subscriptions", "not enough rpcs", "queue depth",
			},
			who: "every node", seen: says("eth_call", -32603, "overloaded, try again later"), where: "category-labs/monad-bft monad-rpc/src/types/jsonrpc.rs",
		},
		{
			name: "timeout",
			say:  []string{"timeout", "timed out", "deadline exceeded", "context cancel", "execution aborted", "cancellation", "canceled", "attempts exhausted"},
			who:  "every node", seen: says("eth_call", -32000, "execution aborted (timeout = 5s)"), where: "ethereum/go-ethereum internal/ethapi/api.go",
		},
		{
			name: "backend",
			say: []string{
				"upstream", "backend", "bad gateway", "unavailable", "no healthy", "no {available |}{nodes|full node|sources|working|servers}", "service not available", "temporarily not available", "no response", "providers", "route your request", "sequencer", "forwarding {request|targets}", "dependent service", "mirror node", "agreement among", "json rpc response", "response body", "invalid {json |}response", "json structure",
				"executor", "scheduler", "proxy request", "status code", "non success status", "decode body", "source was empty", "acquire",
			},
			who: "every provider", seen: says("eth_call", -32603, "all upstream attempts failed (2 syncing nodes)"), where: "erpc/erpc common/errors.go",
		},
		{
			name: "connection",
			say: []string{
				"connection ..20 {refused|reset|closed|terminated|lost}", "disconnect", "unreachable", "networking", "protocol error", "{channel|engine} closed", "closed {channel|already}", "finish connect", "finishconnect", "assign requested address", "no connection", "could not connect", "max retries", "effective connection", "not connected", "econn", "enotfound", "broken pipe", "no such host", "server sent goaway", "rst stream", "socket hang up", "fetch failed", "network error", "total failure", "subscription dropped", "desc eof_", "certificate has expired",
			},
			who: "gateways, about the node behind them", seen: says("eth_call", -32603, `Post "": dial tcp 10.0.0.1:443: connect: connection refused`), where: "a public test table of provider errors (subsquid/squid-sdk)",
		},
		{
			name: "behind",
			say: []string{
				"syncing", "not {yet |fully |}{in sync|synced|synchronized}", "fully synchronized", "sync is still", "initial sync", "is {lagged|lagging|behind}", "{finalized|safe} block not found", "latest block could not be found", "min{imum|} context slot", "scan aborted", "{node|service|server|consensus} {is |}not ready", "no blocks", "unhealthy", "{no|not enough} peers", "starting up", "not {running|started}", "indexing is in progress", "unsolidified", "available only after",
				"{loading|verifying|rewinding} block", "get {the |}latest", "retrieving latest",
			},
			who: "Solana, geth, Lava, Bitcoin, Hedera", seen: says("getAccountInfo", -32005, "Node is behind by 42 slots"), where: "erpc/erpc architecture/svm/error_normalizer_test.go",
		},
		{
			name: "broken",
			say: []string{
				"internal server error", "unexpected error", "unknown error", "panic", "crash", "corrupt", "database {error|is locked}", "nil pointer", "too many open files", "no space left", "offline", "leveldb", "pebble", "shutting down", "maintenance", "deprecated as of", "empty reader set", "can't execute this request", "unable to complete", "unable to perform", "uniqueness constrain", "failed to inject", "failed to {handle|process} request", "failed to {get|fetch|query|retrieve|connect|read_|reach|forward|publish|load|proxy|acquire|open|write} ", "{cannot|can't|unable to} {serve|process|handle|connect|fetch|execute}", "temporarily {disabled|down|blocked|closed}", "currently disabled", "{gateway|node|server|service|backend} is down", "unable to determine", "disabled or not yet up", "load evm config", "block from disk", "lack of computing", "returndata limit", "unknown transaction validity", "failed to write transaction", "plain http request was sent to https port", "null value", "bad response",
			},
			who: "every node", seen: says("eth_call", -32603, "method handler crashed"), where: "ethereum/go-ethereum rpc/service.go",
		},
		{
			name: "answer-too-large", not: logQueries,
			say: []string{"{response|results} ..12 {too large|exceed|size}"},
			who: "geth, proxyd, Monad, 1RPC: another node may send it", seen: says("debug_traceBlockByNumber", -32003, "response too large"), where: "ethereum/go-ethereum rpc/errors.go",
		},
	},
}

var paramsSection = section{
	step: stepParams, verdict: VerdictCaller,
	title: "The request's own fault",
	about: "Named because some nodes send it with the code of a fault of theirs.",
	rows: []row{
		{
			name: "invalid-request",
			say: []string{
				"{invalid|bad|missing|wrong|unknown} ..8 {param|argument|request|value|syntax|json|order}", "parse error", "unmarshal", "{should|must} be", "converting", "offset # ", "not valid", "javascript based tracing",
			},
			who: "Monad, CometBFT, IoTeX, Moonbeam", seen: says("eth_call", -32601, "Invalid request"), where: "category-labs/monad-bft monad-rpc/src/types/jsonrpc.rs",
		},
		{
			name: "internal-error", verdict: VerdictRPCFail,
			say: []string{"internal {json rpc |rpc |}error"},
			who: "every node; after the rest, because CometBFT says it of everything", seen: says("eth_blockNumber", -32000, "internal error"), where: "ethereum-optimism/infra proxyd/backend.go",
		},
	},
}

var codeSection = section{
	step:  stepCode,
	title: "The code, where no words decide",
	about: "No other code decides by itself: providers give them meanings of their own.",
	rows: []row{
		{name: "code-3", codes: []int{3}, verdict: VerdictCaller, wins: true, who: "geth: a revert", seen: says("eth_call", 3, "error"), where: "ethereum/go-ethereum internal/ethapi/errors.go"},
		{name: "code-32601", codes: []int{-32601}, verdict: VerdictUnsupported, wins: true, who: "JSON-RPC 2.0: method not found", seen: says("eth_subscribe", -32601, `no "newHeads" subscription in eth namespace`), where: "ethereum/go-ethereum rpc/errors.go"},
		{name: "code-32005", codes: []int{-32005}, verdict: VerdictRPCFail, who: "EIP-1474: limit exceeded", seen: says("eth_call", -32005, "Exceeded"), where: "https://eips.ethereum.org/EIPS/eip-1474"},
		{name: "code-32603", codes: []int{-32603}, verdict: VerdictRPCFail, who: "JSON-RPC 2.0: internal error", seen: says("eth_call", -32603, "json: unsupported value"), where: "https://www.jsonrpc.org/specification"},
	},
}
