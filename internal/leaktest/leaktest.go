// Package leaktest fails a package's tests when goroutines are left after them.
package leaktest

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// patience is how long goroutines that are ending get to end.
const patience = 5 * time.Second

// Run runs the tests and gives the exit code: not zero where goroutines with a
// frame of this module, or of net/http, outlive them.
func Run(m *testing.M) int {
	code := m.Run()
	if code != 0 {
		return code
	}
	if left := Left(patience); len(left) > 0 {
		_, _ = fmt.Fprintf(os.Stderr, "%d goroutines were left after the tests:\n\n%s\n", len(left), strings.Join(left, "\n\n"))
		return 1
	}
	return 0
}

// Left gives the stacks of the goroutines that still run after wait.
func Left(wait time.Duration) []string {
	deadline := time.Now().Add(wait)
	for {
		left := suspects()
		if len(left) == 0 || time.Now().After(deadline) {
			return left
		}
		time.Sleep(10 * time.Millisecond) // waiting for goroutines outside our control
	}
}

func suspects() (left []string) {
	stacks := make([]byte, 8<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for i, stack := range strings.Split(string(stacks), "\n\n") {
		if i == 0 { // this goroutine
			continue
		}
		if strings.Contains(stack, "github.com/bomzrpc/rpcpool") || strings.Contains(stack, "net/http.") {
			left = append(left, stack)
		}
	}
	return left
}
