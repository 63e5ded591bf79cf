package rpcpool

import (
	"os"
	"testing"

	"github.com/bomzrpc/rpcpool/internal/leaktest"
)

// No goroutine outlives the tests. A child process of the cache's test is another
// program in the same binary.
func TestMain(m *testing.M) {
	if dir := os.Getenv(cacheWriterDir); dir != "" {
		writeCacheForEver(dir)
	}
	os.Exit(leaktest.Run(m))
}
