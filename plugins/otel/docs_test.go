package rpcpoolotel_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// docFile is what the block of statements stands in.
const docFile = `package block

import (
	"github.com/bomzrpc/rpcpool"
	rpcpoolotel "github.com/bomzrpc/rpcpool/plugins/otel"
)

func _(cfg rpcpool.Config) error {
%s
	return err
}
`

// The block of OBSERVABILITY.md that needs this module compiles, and passes vet. The
// library's own test leaves it out, as it has no OpenTelemetry.
func TestDocsCompile(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/OBSERVABILITY.md")
	require.NoError(t, err)
	blocks := strings.Split(string(page), "\n```go otel\n")[1:]
	require.Len(t, blocks, 1)
	code, _, closed := strings.Cut(blocks[0], "\n```\n")
	require.True(t, closed)
	file := filepath.Join(t.TempDir(), "block.go")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, docFile, code), 0o600))
	// Run in this folder, for the module's go.mod and go.sum.
	said, err := exec.CommandContext(t.Context(), "go", "vet", file).CombinedOutput()
	require.NoError(t, err, "go vet on the block: %s", said)
}
