package rpcpool_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each rule that the pages of behaviour have a heading for is named by a test that shows
// it: in a comment, or as a scenario of testdata/conformance. A rule that is in parts is
// named by its parts.
func TestDocsRulesHaveTests(t *testing.T) {
	t.Parallel()
	named := rulesOfTests(t)
	for page, atLeast := range map[string]int{"docs/FAILOVER.md": 40, "docs/FRESHNESS.md": 15, "docs/SENDS.md": 6} {
		var rules []string
		for _, heading := range regexp.MustCompile(`(?m)^##+ ([A-E]\d+(?:\.\d+)?[a-z]?) `).FindAllStringSubmatch(readPage(t, page), -1) {
			rules = append(rules, heading[1])
		}
		require.GreaterOrEqual(t, len(rules), atLeast, "headings of %s", page)
		for i, rule := range rules {
			inParts := i+1 < len(rules) && strings.HasPrefix(rules[i+1], rule+".")
			require.True(t, named[rule] || inParts, "%s has rule %s, which no test names", page, rule)
		}
	}
}

// rulesOfTests are the rules that are named in comments of the library's tests that speak
// of a rule, and in the names of scenarios.
func rulesOfTests(t *testing.T) map[string]bool {
	t.Helper()
	rule := regexp.MustCompile(`\b[A-E]\d+(?:\.\d+)?[a-z]?\b`)
	named := map[string]bool{}
	scenarios, err := filepath.Glob("testdata/conformance/*.json")
	require.NoError(t, err)
	for _, path := range scenarios {
		named[rule.FindString(filepath.Base(path))] = true
	}
	err = fs.WalkDir(os.DirFS("."), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && path != "rpcpooltest" && path != "internal" && !strings.HasPrefix(path, "internal/"):
			return fs.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, comment := range file.Comments {
			if text := comment.Text(); strings.Contains(strings.ToLower(text), "rule") {
				for _, name := range rule.FindAllString(text, -1) {
					named[name] = true
				}
			}
		}
		return nil
	})
	require.NoError(t, err)
	return named
}
