package rpcpool_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// docModules are the folders of the nested modules whose TestDocsCompile has the blocks that
// need what the library doesn't, by the word after "go".
var docModules = map[string]string{
	"ethclient":  "examples/ethclient",
	"otel":       "plugins/otel",
	"prometheus": "plugins/prometheus",
	"redis":      "plugins/redis",
}

// otherLabels are those of blocks that aren't Go.
var otherLabels = []string{"", "bash", "json", "python", "sh", "text"}

// No block of Go escapes the compiler: one without the label is refused, and one for a nested
// module stands on a page that the module's own test reads.
func TestDocsLabelGo(t *testing.T) {
	t.Parallel()
	for _, page := range allPages(t) {
		for _, b := range fencesOf(page, readPage(t, page)) {
			word, isGo := strings.CutPrefix(b.label, "go ")
			switch {
			case b.label == "go":
				require.Contains(t, goPages(t), page, "%s:%d: TestDocsCompile doesn't read this page", page, b.line)
			case isGo:
				require.Contains(t, docModules, word, "%s:%d: no module has blocks of this label", page, b.line)
				test := readPage(t, docModules[word]+"/docs_test.go")
				require.Contains(t, test, "```go "+word+`\n`, "%s/docs_test.go", docModules[word])
				require.Contains(t, test, `"../../`+page+`"`, "%s:%d: %s/docs_test.go doesn't read this page", page, b.line, docModules[word])
			default:
				require.Contains(t, otherLabels, b.label, "%s:%d", page, b.line)
				require.False(t, looksLikeGo(b.code), "%s:%d: this is Go; begin the block with ```go, or ```go MODULE:\n%s", page, b.line, b.code)
			}
		}
	}
}

// looksLikeGo tells whether a block has Go in it: it is Go, or has what nothing else on the
// pages has.
func looksLikeGo(code string) bool {
	if strings.TrimSpace(code) == "" {
		return false
	}
	return parse(code) != nil || parse("package p\n"+code) != nil || parse("package p; func _() {\n"+code+"}") != nil ||
		regexp.MustCompile(`\brpcpool(test|otel|prom)?\.[A-Z]|\w := `).MatchString(code)
}

// What the test above goes by tells Go from the commands, logs and drawings of the pages.
func TestDocsLookLikeGo(t *testing.T) {
	t.Parallel()
	for _, code := range []string{
		"client := rpc.NewClient()\n…\n", "cfg.Shared = redis.New(client)\n", "package main\n", "func f() {}\n",
		"cfg := rpcpool.Config{\n", "for chunk := range chunks {\n", "return err\n",
	} {
		require.True(t, looksLikeGo(code), code)
	}
	for _, code := range []string{
		"make test\n", "go run ./examples/demo\n", "go get github.com/bomzrpc/rpcpool\n", "call -file x.json -chain 8453 eth_blockNumber\n",
		"rpcpool.json:3:30: rpcs[0].caps: unknown field\n", "level=DEBUG msg=\"rpcpool: attempt\" chain=8453\n", " cursor\n    |\n    v\n", "",
	} {
		require.False(t, looksLikeGo(code), code)
	}
}

// CI runs the commands that the README names, as they stand there; all but the one that
// installs the library in another module.
func TestDocsCommandsRunInCI(t *testing.T) {
	t.Parallel()
	script := readPage(t, ".ci/run")
	script = regexp.MustCompile(`(?m)^\s*#.*$`).ReplaceAllString(script, "")
	script = regexp.MustCompile(`'[^']*'`).ReplaceAllString(script, "") // headings and flags aren't commands
	var commands []string
	for _, b := range fencesOf("README.md", readPage(t, "README.md")) {
		if slices.Contains([]string{"", "bash", "sh"}, b.label) {
			commands = append(commands, strings.Split(strings.TrimSpace(b.code), "\n")...)
		}
	}
	require.Equal(t, []string{"go run ./examples/demo", "make test", "go get github.com/bomzrpc/rpcpool"}, commands)
	for _, command := range commands[:2] {
		require.Regexp(t, `(?m)(^|\s)`+regexp.QuoteMeta(command)+`(\s|$)`, script, "CI doesn't run what the README says")
	}
}

// allPages are the Markdown pages of the repository.
func allPages(t *testing.T) (pages []string) {
	t.Helper()
	for _, pattern := range []string{"*.md", "docs/*.md", "examples/*/*.md", "plugins/*/*.md"} {
		found, err := filepath.Glob(pattern)
		require.NoError(t, err)
		pages = append(pages, found...)
	}
	require.Contains(t, pages, "examples/gateway/README.md")
	return pages
}
