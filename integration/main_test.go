package integration

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"sync"
	"testing"
)

// hostileVariables are the proxy variables that some library or other obeys. The
// whole suite runs with all of them pointing at the tattletale, which nothing
// may ever reach (rule A1.3).
var hostileVariables = []string{
	"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy",
}

// TestMain serves both resolvers, sets the hostile environment and, after the
// tests, checks what must hold for all of them together.
func TestMain(m *testing.M) {
	if os.Getenv("RUN") == "" || os.Getenv("START_SH") == "" {
		fmt.Fprintln(os.Stderr, "these tests need real proxies and nodes: run \"make integration\" in the repository's root")
		os.Exit(1)
	}
	if os.Getenv(childVariable) != "" {
		os.Exit(hostileChild())
	}
	if os.Getenv(botVariable) != "" {
		os.Exit(fleetBot())
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	for _, start := range []func() error{startStallWatch, startResolvers, startTattletale, readStarted, makeTestCA} {
		if err := start(); err != nil {
			fmt.Fprintln(os.Stderr, "integration:", err)
			return 1
		}
	}
	for _, name := range hostileVariables {
		if err := os.Setenv(name, tattletale.url()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	code := m.Run()
	for _, broken := range suiteWide() {
		fmt.Println("--- FAIL: after all tests:", broken)
		code = 1
	}
	if code != 0 {
		stalls.print()
	}
	skips.print()
	return code
}

// suiteWide checks the whole run: no name but the pool's and the proxies' own was
// looked up on this host (rule A1.2), and the environment's proxies stayed
// unused (rule A1.3).
func suiteWide() (broken []string) {
	// First that the traps are set at all.
	if !clientResolver.wasAsked(poolHost) {
		broken = append(broken, "this host doesn't ask the test's resolver, so it can't tell who looks names up")
	}
	obeyed, err := http.ProxyFromEnvironment(httptest.NewRequest(http.MethodGet, "http://"+poolHost, http.NoBody))
	if err != nil || obeyed == nil || obeyed.String() != tattletale.url() {
		broken = append(broken, "the environment's proxy isn't the one that the test watches")
	}
	for _, name := range clientResolver.asked() {
		if name != poolHost && name != goneProxyHost {
			broken = append(broken, "this host looked up "+name+"; names of RPCs are for the proxies to look up")
		}
	}
	if n := tattletale.connections.Load(); n > 0 {
		broken = append(broken, fmt.Sprintf("%d connections went to the proxy named in the environment", n))
	}
	return broken
}

// skipList collects what was skipped for want of a part, so that the end of the
// run says it where it is seen.
type skipList struct {
	mu    sync.Mutex
	tests map[string][]string // part: tests
}

var skips = skipList{tests: map[string][]string{}}

func (s *skipList) add(part, test string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tests[part] = append(s.tests[part], test)
}

func (s *skipList) print() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, part := range slices.Sorted(maps.Keys(s.tests)) {
		tests := s.tests[part]
		slices.Sort(tests)
		fmt.Printf("!! SKIPPED for want of %s: %d tests\n", part, len(tests))
		for _, test := range tests {
			fmt.Println("!!   ", test)
		}
	}
}
