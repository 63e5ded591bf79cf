package redis_test

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
	goredis "github.com/redis/go-redis/v9"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/plugins/redis"
)

func _(cfg rpcpool.Config) rpcpool.Config {
%s
	return cfg
}
`

// The block of FLEET.md that needs this module compiles, and passes vet. The library's own
// test leaves it out, as it has no Redis.
func TestDocsCompile(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/FLEET.md")
	require.NoError(t, err)
	blocks := strings.Split(string(page), "\n```go redis\n")[1:]
	require.Len(t, blocks, 1)
	code, _, closed := strings.Cut(blocks[0], "\n```\n")
	require.True(t, closed)
	file := filepath.Join(t.TempDir(), "block.go")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, docFile, code), 0o600))
	// Run in this folder, for the module's go.mod and go.sum.
	said, err := exec.CommandContext(t.Context(), "go", "vet", file).CombinedOutput()
	require.NoError(t, err, "go vet on the block: %s", said)
}
