package rpcpool

import (
	"fmt"
	"strings"
)

// effects are the methods that may act twice when they are asked twice (rule C2): they
// make a node sign and send, mine, or change itself. An asterisk stands for any end. All
// others are repeated. That is right for eth_sendRawTransaction and its kin on other
// chains: what is signed has one identity, however often it arrives.
var effects = []string{
	"eth_sendTransaction", "wallet_send*", "wallet_grant*", "wallet_revoke*",

	// What it tells it doesn't tell again.
	"eth_getFilterChanges",

	// Management of nodes: geth's documentation of its namespaces, and of the
	// development nodes.
	"personal_*", "miner_*", "admin_*", "clique_*", "engine_*", "les_*", "parity_set*", "parity_remove*",
	"debug_set*", "debug_chaindbCompact", "debug_freeOSMemory", "debug_start*", "debug_stop*",
	"evm_*", "hardhat_*", "anvil_*", "ganache_*", "tenderly_*",

	// Bitcoin's wallet, Solana's faucet.
	"sendtoaddress", "sendmany", "sendfrom", "send", "sendall", "generate*", "bumpfee", "move",
	"requestAirdrop",
}

// repeats says which methods may be sent twice. The zero value knows the default list.
type repeats struct{ more []string }

// newRepeats adds a user's methods to the default list.
func newRepeats(more []string) (repeats, error) {
	for i, pattern := range more {
		name := strings.TrimSuffix(pattern, "*")
		if name == "" || strings.Contains(name, "*") {
			return repeats{}, &ConfigError{fmt.Sprintf("NonIdempotent[%d]", i), fmt.Sprintf(
				"%q is no method; give a name such as \"my_pay\", or the beginning of names and an asterisk, \"my_*\"", pattern)}
		}
	}
	return repeats{append([]string(nil), more...)}, nil
}

// allow tells whether the same request may be sent twice without a second effect.
func (r *repeats) allow(method string) bool {
	return !matchesAny(effects, method) && !matchesAny(r.more, method)
}

func matchesAny(patterns []string, method string) bool {
	for _, pattern := range patterns {
		if prefix, open := strings.CutSuffix(pattern, "*"); pattern == method || open && strings.HasPrefix(method, prefix) {
			return true
		}
	}
	return false
}

// ranPerhaps tells whether a request that must not be sent twice may have had its effect
// when an attempt ended so: some of it was written, and it wasn't refused before it ran.
func (out *outcome) ranPerhaps(written bool) bool {
	return written && !out.refused && (out.verdict == VerdictConnFail || out.verdict == VerdictRPCFail)
}
