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

// The recipes of the cookbook do what they say, run as they are written: where a file of
// testdata/cookbook has a line "//recipe: HEADING", the first block under that heading is put
// in. A block that is a whole file stands beside its test.
func TestDocsRecipes(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs(".")
	require.NoError(t, err)
	files, err := filepath.Glob("testdata/cookbook/*_test.go")
	require.NoError(t, err)

	module := docModule(t, root)
	var run []string
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		folder := filepath.Join(module, packageOf(t, string(text)))
		require.NoError(t, os.MkdirAll(folder, 0o700))
		var code strings.Builder
		for i, line := range strings.Split(string(text), "\n") {
			heading, found := strings.CutPrefix(strings.TrimSpace(line), "//recipe: ")
			if !found {
				code.WriteString(line + "\n")
				continue
			}
			run = append(run, heading)
			recipe := recipeOf(t, heading)
			block := fmt.Sprintf("//line %s:%d\n%s", filepath.Join(root, recipe.page), recipe.line, recipe.code)
			if parse(recipe.code) != nil {
				require.NoError(t, os.WriteFile(filepath.Join(folder, "recipe.go"), []byte(block), 0o600))
				block = ""
			}
			fmt.Fprintf(&code, "%s//line %s:%d\n", block, filepath.Join(root, name), i+2)
		}
		require.NoError(t, os.WriteFile(filepath.Join(folder, filepath.Base(name)), []byte(code.String()), 0o600))
	}
	headings := regexp.MustCompile(`(?m)^## (.+)$`).FindAllStringSubmatch(readPage(t, cookbook), -1)
	for _, heading := range headings {
		require.Contains(t, run, heading[1], "a recipe that is never run")
	}
	test := exec.CommandContext(t.Context(), "go", "test", "-mod=mod", "-count=1", "-timeout=2m", "./...")
	test.Dir = module
	test.Env = append(os.Environ(), "GOWORK=off")
	said, err := test.CombinedOutput()
	require.NoError(t, err, "go test of the recipes: %s", said)
}

const cookbook = "docs/COOKBOOK.md"

// packageOf gives the name of a file's package; files of the same one are built together.
func packageOf(t *testing.T, code string) string {
	t.Helper()
	clause := regexp.MustCompile(`(?m)^package (\w+)$`).FindStringSubmatch(code)
	require.NotNil(t, clause)
	return clause[1]
}

// recipeOf gives the first block of Go under a heading of the cookbook.
func recipeOf(t *testing.T, heading string) docBlock {
	t.Helper()
	text := readPage(t, cookbook)
	at := regexp.MustCompile(`(?m)^## ` + regexp.QuoteMeta(heading) + `$`).FindStringIndex(text)
	require.NotNil(t, at, "%s has no recipe %q", cookbook, heading)
	line := strings.Count(text[:at[0]], "\n")
	section, _, _ := strings.Cut(text[at[1]:], "\n## ")
	blocks := goBlocks(cookbook, section)
	require.NotEmpty(t, blocks, heading)
	blocks[0].line += line
	return blocks[0]
}
