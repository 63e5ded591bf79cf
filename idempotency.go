package rpcpool

import (
	"fmt"
	"slices"
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

// repeats says which methods may be sent twice.
type repeats struct{ effects methodSet }

// newRepeats adds a user's methods to the default list.
func newRepeats(more []string) (repeats, error) {
	for i, pattern := range more {
		name := strings.TrimSuffix(pattern, "*")
		if name == "" || strings.Contains(name, "*") {
			return repeats{}, &ConfigError{fmt.Sprintf("NonIdempotent[%d]", i), fmt.Sprintf(
				"%q is no method; give a name such as \"my_pay\", or the beginning of names and an asterisk, \"my_*\"", pattern)}
		}
	}
	return repeats{newMethodSet(effects, more)}, nil
}

// allow tells whether the same request may be sent twice without a second effect.
func (r *repeats) allow(method string) bool { return !r.effects.has(method) }

// methodSet is a set of methods. As it is asked for every request, it compares a method
// only with the beginnings of names in its own namespace, which is all up to the first
// underscore.
type methodSet struct {
	names     map[string]bool
	prefixes  map[string][]string // by namespace
	elsewhere []string            // prefixes that are too short to have one
}

func newMethodSet(patterns ...[]string) methodSet {
	s := methodSet{names: map[string]bool{}, prefixes: map[string][]string{}}
	for _, pattern := range slices.Concat(patterns...) {
		prefix, open := strings.CutSuffix(pattern, "*")
		space, _, spaced := strings.Cut(prefix, "_")
		switch {
		case !open:
			s.names[pattern] = true
		case spaced:
			s.prefixes[space] = append(s.prefixes[space], prefix)
		default:
			s.elsewhere = append(s.elsewhere, prefix)
		}
	}
	return s
}

func (s *methodSet) has(method string) bool {
	begins := func(prefix string) bool { return strings.HasPrefix(method, prefix) }
	space, _, _ := strings.Cut(method, "_")
	return s.names[method] || slices.ContainsFunc(s.prefixes[space], begins) || slices.ContainsFunc(s.elsewhere, begins)
}

// ranPerhaps tells whether a request that must not be sent twice may have had its effect
// when an attempt ended so: some of it was written, and it wasn't refused before it ran.
func (out *outcome) ranPerhaps(written bool) bool {
	return written && !out.refused && (out.verdict == VerdictConnFail || out.verdict == VerdictRPCFail)
}
