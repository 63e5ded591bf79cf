package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Without the rule the caller gets the words; with it, the next RPC's answer.
func TestRulesChangeWhatAnAnswerMeans(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(t.Context(), &out))
	require.Equal(t, "without rules: rpcpool: the node answered with JSON-RPC error -32000: Account 77: your lease of this box is over\n"+
		"with rules: 0x2a\n", out.String())
}
