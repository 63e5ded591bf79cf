package rpcpool

// file-length: a table; a row a kind of wording, with where it was seen.

// What a log query can have too many of, and how that is said.
const (
	saidRange   = "{range_|ranges_|blocks|block range|distance|span|window}"
	saidResults = "{results|logs|events|records|entries|result|result set|response|payload|log count|query result}"
	saidBeyond  = "{exceed|over|larger than|greater than|bigger than|more than|limit|max|at most|up to|wider|longer|must be|must not}"
	saidLarge   = "{large|wide|big|high|long|broad|great|many}"
)

var rangeSection = section{
	step: stepRange, verdict: VerdictRange, wins: true,
	title: "A log query is too large",
	about: "Only in answer to a log query. The range, the result or the time it takes is too much for this node: fewer blocks help.",
	unless: []string{
		// rates and quotas
		"{request|requests|call|calls|queries|credits} {per_|a_|in #}", "per second", "rate limit", "compute unit", "quota", "too many requests", "concurrent", "usage limit", "daily request", "request count",
		// other limits of the request
		"batch", "{address|addresses}_", "topics", "query parameters", "contains # filters", "tags", "page size", "filters per connection", "filter pool", "creating filter", "maximum call stack",
		// from after to
		"invalid block range params", "= {request id # |}invalid block{s|} {range|bounds} {given|requested|params|}", "= {request id # |}invalid block range", "invalid blocks bounds", "must be after", "is after end", "from block ..20 {greater|after|higher|than|to block_|less} ..20 to block", "begin block ..20 end block", "invalid block range from",
		// the connection, and a node that is behind
		"upstream connect error", "client error", "syncing",
	},
	rows: []row{
		{
			name: "range-too-wide", on: logQueries,
			say: []string{
				"range_ ..20 too " + saidLarge, "too " + saidLarge + " ..20 " + saidRange, "too many {blocks|epochs}", saidRange + " ..40 " + saidBeyond, saidBeyond + " ..40 " + saidRange, "maximum allowed duration", "query must be smaller", "to block from block must", "# blocks at a time", "range size",
			},
			who: "every node and provider", seen: says("eth_getLogs", -32000, "exceed maximum block range: 5000"), where: "observed on bsc geth 1.7.8",
		},
		{
			name: "range-suggested", on: logQueries,
			say: []string{"block range should work", "suggested ..12 range", "{narrow|reduce|smaller|narrowing|restricted|fewer} ..30 {range|filter|query|criteria|it_|blocks|size}"},
			who: "Alchemy, Confura, Filecoin, zkSync", seen: says("eth_getLogs", -32000, "the query set is too large, please narrow down your filter condition: a suggested epoch range is [90000000, 90001000]"), where: "Conflux-Chain/confura rpc/handler/cfx_logs.go",
		},
		{
			name: "too-many-results", on: logQueries,
			say: []string{
				"{more than|max|limit of} # {results|logs|events}", saidResults + " ..30 {exceed|too large|too big|too many|larger than|more than|is limited|size should}", "too many {results|logs|events|records}", "exceed{ed|s|} ..20 {max |}{results|logs|log count|size limit}", "max results", "pagination count", "returned more than", "response size",
			},
			who: "Infura, Nethermind, rskj, Hedera, Alchemy, Arbitrum", seen: says("eth_getLogs", -32005, "query returned more than 10000 results"), where: "aurora-is-near/relayer2-base db/badger/blockHandler.go",
		},
		{
			name: "took-too-long", on: logQueries, not: inRun,
			say:    []string{"time out", "timeout", "timed out", "deadline exceeded"},
			unless: []string{"connection", "connect"},
			who:    "geth, Kaia, Besu, Nethermind", seen: says("eth_getLogs", -32000, "query timeout exceeded"), where: "kaiachain/kaia node/cn/filters/filter.go",
		},
		{
			name: "limit-exceeded", on: logQueries, not: inRun, codes: []int{-32005},
			say: []string{"= limit exceeded"},
			who: "bsc's public nodes", seen: says("eth_getLogs", -32005, "limit exceeded"), where: "https://github.com/AlphaWallet/alpha-wallet-ios/issues/5021",
		},
		{
			name: "range-refused", on: logQueries,
			say:    []string{"{block|blocks} range", "range of parameters"},
			unless: []string{"invalid", "out of", "is configured"},
			who:    "whoever says no more than that it is the range", seen: says("eth_getLogs", -32602, "This range of parameters is not supported"), where: "a public probe of publicnode's endpoints",
		},
		{
			name: "epoch-range", on: logQueries,
			say: []string{"= invalid epoch range"},
			who: "Lotus, of a range that is too wide", seen: says("eth_getLogs", 1, "invalid epoch range"), where: "filecoin-project/lotus node/impl/eth/events.go",
		},
	},
}
