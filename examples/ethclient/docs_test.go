package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// docHead and docTail make a file of a block of statements.
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

func _(ctx context.Context, proxies []string, base *rpcpool.Chain, client *ethclient.Client, tx *types.Transaction,
	msg ethereum.CallMsg, err error) error {
	{
`
	docTail = `
		_, _ = client, err
	}
	return err
}
`
)

// The blocks of MIGRATION.md that need go-ethereum compile, and pass vet. The library's own
// test leaves them out, as it has no go-ethereum.
func TestDocsCompile(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/MIGRATION.md")
	require.NoError(t, err)
	blocks := strings.Split(string(page), "\n```go ethclient\n")[1:]
	require.NotEmpty(t, blocks)

	module := t.TempDir()
	for i, block := range blocks {
		code, _, closed := strings.Cut(block, "\n```\n")
		require.True(t, closed)
		folder := filepath.Join(module, fmt.Sprintf("block%d", i))
		require.NoError(t, os.Mkdir(folder, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(folder, "block.go"), []byte(docHead+code+docTail), 0o600))
	}
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	mod, err := os.ReadFile("go.mod")
	require.NoError(t, err)
	own := strings.Replace(string(mod), "=> ../..", fmt.Sprintf("=> %q", root), 1)
	require.NotEqual(t, string(mod), own)
	require.NoError(t, os.WriteFile(filepath.Join(module, "go.mod"), []byte(own), 0o600))
	sums, err := os.ReadFile("go.sum")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(module, "go.sum"), sums, 0o600))

	vet := exec.CommandContext(t.Context(), "go", "vet", "-mod=mod", "./...")
	vet.Dir = module
	vet.Env = append(os.Environ(), "GOWORK=off")
	said, err := vet.CombinedOutput()
	require.NoError(t, err, "go vet on the blocks: %s", said)
}
