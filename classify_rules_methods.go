package rpcpool

// file-length: a table; a row a kind of wording, with where it was seen.

// How it is said that a method isn't served.
const (
	saidMethod    = "{method|methods|function|procedure|endpoint_|@}"
	saidNotServed = "{not {yet |currently |}{supported|allowed|available|enabled|implemented|permitted|whitelisted|included|part of|found|recognized|exist|authorized|registered|exposed|offered|provided|accessible|active|configured|in the {whitelist|allowlist|list}}|{doesn't|isn't} {exist|supported|available|enabled|allowed|implemented}|no longer {supported|available}|unavailable|unsupported|disabled|deprecated|ignored|restricted|denied|forbidden|prohibited|blocked|removed|unimplemented|only available|turned off|can't be used|cannot be used|missing}"
)

var unsupportedSection = section{
	step: stepUnsupported, verdict: VerdictUnsupported, wins: true,
	title: "The node doesn't serve the method",
	about: "Only where it is the method that isn't served: not a type of transaction, a tag, a fork, a chain, a tracer or a parameter.",
	unless: []string{
		"{tag|tags|type|types|parameter|parameters|argument|option|tracer|tracers|fork|hardfork|override|overrides|field|fields|version|block|range|address|context|chain} {is |are |}not {supported|allowed|available|enabled|permitted}",
		"batch", "http method", "method {post|get|put}", "post method", "all upstream attempts", "is active", "method {param|params|parameter|argument|handler}", "unavailable for key",
	},
	rows: []row{
		{
			name: "method-not-served",
			say: []string{
				saidMethod + " ..24 " + saidNotServed, "{unsupported|unknown|invalid|unauthorized|restricted|disabled|unrecognized|no such|forbidden} {json rpc |rpc |}{method|function|@}", "can't find {method|service}", "does not have a @", "{not allowed to|access to} ..12 {method|@}", "{namespace|module} ..20 {disabled|not enabled|not available}", "not a {valid|supported|known|registered} ..8 method",
			},
			unless: []string{"rate limit", "no response for", "quorum"},
			who:    "every node and provider", seen: says("debug_traceBlockByNumber", -32601, "the method debug_traceBlockByNumber does not exist/is not available"), where: "ethereum/go-ethereum rpc/errors.go",
		},
		{
			name: "method-gated",
			say:  []string{"{method|@} requires {a|an} {upgrade|paid|higher|premium|plan|subscription}", "required for method", "process method"},
			who:  "dRPC, and gateways by plan", seen: says("debug_traceBlockByHash", -32401, "authenticated API key required for method"), where: "a public test table of provider errors (subsquid/squid-sdk)",
		},
		{
			name: "not-implemented",
			say:  []string{"= {request id # |}{internal error |}not {yet |}implemented{ api|}", "{command|request} {is |}{unimplemented|not implemented}", "^ unimplemented", "^ not supported by", "not implement wallet"},
			who:  "OpenEthereum, Anvil, btcd, Erigon, Hardhat", seen: says("eth_compileLLL", -32000, "This request is not implemented yet. Please create an issue on Github repo."), where: "openethereum/openethereum crates/rpc/src/v1/helpers/errors.rs",
		},
		{
			name: "subscriptions",
			say:  []string{"notifications not supported", "unsupported subscription"},
			who:  "geth, Ganache, dRPC, over HTTP", seen: says("eth_subscribe", -32601, "notifications not supported"), where: "ethereum/go-ethereum rpc/errors.go",
		},
		{
			name: "trace-plan", on: traces,
			say: []string{"archival debug or trace data", "tracing is not enabled"},
			who: "dRPC", seen: says("trace_block", -32000, "Access to archival, debug, or trace data is not included in your current plan"), where: "drpcorg/nodecore pkg/errors_config/errors.yaml",
		},
		{
			name: "feature-off",
			say: []string{
				"{indexing|indexer} is disabled", "api is {disabled|unavailable|not available|closed}", "allowlist has not been enabled", "txpool disabled", "does not have console", "only parlia engine", "forwarding not configured", "smartcard wallet", "publishing transactions not supported", "submission not allowed", "does not support receipt", "custom traces", "blocked parameter", "unsafe to be called",
			},
			who: "CometBFT, Lotus, Besu, Arbitrum, Tron, Flow", seen: example{"tx", -32603, "Internal error", `"transaction indexing is disabled"`}, where: "cometbft/cometbft rpc/core/tx.go",
		},
	},
}
