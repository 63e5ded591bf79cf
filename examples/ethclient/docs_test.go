package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// docHead begins a file of the blocks, and each block stands between docOpen and docClose.
const (
	docHead = `package block

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/bomzrpc/rpcpool"
	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/rpc"
)

var _ = []any{json.Unmarshal, errors.New, fmt.Sprint, rpc.DialOptions, rpcpool.New}
`
	docOpen = `
func _(ctx context.Context, proxies []string, base *rpcpool.Chain, client *ethclient.Client, tx *types.Transaction,
	msg ethereum.CallMsg, err error) error {
	{
`
	docClose = `
		_, _ = client, err
	}
	return err
}
`
)

// The blocks of the README and of MIGRATION.md that need go-ethereum compile, and pass vet. The
// library's own test leaves them out, as it has no go-ethereum.
func TestDocsCompile(t *testing.T) {
	t.Parallel()
	var blocks []string
	for _, name := range []string{"../../README.md", "../../docs/MIGRATION.md"} {
		page, err := os.ReadFile(name)
		require.NoError(t, err)
		found := strings.Split(string(page), "\n```go ethclient\n")[1:]
		require.NotEmpty(t, found, name)
		blocks = append(blocks, found...)
	}
	file := docHead
	for _, block := range blocks {
		code, _, closed := strings.Cut(block, "\n```\n")
		require.True(t, closed)
		file += docOpen + code + docClose
	}
	path := filepath.Join(t.TempDir(), "blocks.go")
	require.NoError(t, os.WriteFile(path, []byte(file), 0o600))
	// Run in this folder, for the module's go.mod and go.sum.
	said, err := exec.CommandContext(t.Context(), "go", "vet", path).CombinedOutput()
	require.NoError(t, err, "go vet on the blocks: %s", said)
}
