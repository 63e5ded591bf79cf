package rpcpool_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Recipes of the cookbook do what they say, run as they are written: each file of
// testdata/cookbook is a test with a line "//recipe: HEADING", in whose place it has the
// first block under that heading. A block that is a whole program stands beside its test.
func TestDocsRecipes(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs(".")
	require.NoError(t, err)
	tests, err := filepath.Glob("testdata/cookbook/*_test.go")
	require.NoError(t, err)
	require.NotEmpty(t, tests)

	module := docModule(t, root)
	for _, name := range tests {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		before, rest, found := strings.Cut(string(text), "//recipe: ")
		require.True(t, found, name)
		heading, after, _ := strings.Cut(rest, "\n")
		recipe := recipeOf(t, heading)

		folder := filepath.Join(module, strings.TrimSuffix(filepath.Base(name), "_test.go"))
		require.NoError(t, os.Mkdir(folder, 0o700))
		code := fmt.Sprintf("//line %s:%d\n%s", filepath.Join(root, recipe.page), recipe.line, recipe.code)
		if parse(recipe.code) != nil {
			require.NoError(t, os.WriteFile(filepath.Join(folder, "recipe.go"), []byte(code), 0o600))
			code = ""
		}
		back := fmt.Sprintf("//line %s:%d\n", filepath.Join(root, name), strings.Count(before, "\n")+2)
		test := strings.TrimRight(before, "\t") + code + back + after
		require.NoError(t, os.WriteFile(filepath.Join(folder, "recipe_test.go"), []byte(test), 0o600))
	}
	run := exec.CommandContext(t.Context(), "go", "test", "-mod=mod", "-count=1", "-timeout=2m", "./...")
	run.Dir = module
	run.Env = append(os.Environ(), "GOWORK=off")
	said, err := run.CombinedOutput()
	require.NoError(t, err, "go test of the recipes: %s", said)
}

// recipeOf gives the first block of Go under a heading of the cookbook.
func recipeOf(t *testing.T, heading string) docBlock {
	t.Helper()
	const page = "docs/COOKBOOK.md"
	text := readPage(t, page)
	at := regexp.MustCompile(`(?m)^## ` + regexp.QuoteMeta(heading) + `$`).FindStringIndex(text)
	require.NotNil(t, at, "%s has no recipe %q", page, heading)
	line := strings.Count(text[:at[0]], "\n")
	section, _, _ := strings.Cut(text[at[1]:], "\n## ")
	blocks := goBlocks(page, section)
	require.NotEmpty(t, blocks, heading)
	blocks[0].line += line
	return blocks[0]
}
