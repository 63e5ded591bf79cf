package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tree writes the files of a small project and returns its folder.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return root
}

// Each case is the README of a project that has a guide beside it, and what must
// be said of it, without the README's own path.
func TestCheckMarkdown(t *testing.T) {
	const guide = "# The guide\n\n## What's `New`, and why?\n\n## Notes\n\n## Notes\n\n<a id=\"here\"></a>\n"
	cases := map[string]struct {
		readme string
		want   []string
	}{
		"a file":                    {"[g](docs/GUIDE.md)", nil},
		"a folder":                  {"[d](docs/)", nil},
		"a file with a title":       {"[g](docs/GUIDE.md \"the guide\")", nil},
		"a missing file":            {"[g](docs/GIUDE.md)", []string{"1: docs/GIUDE.md: no such file"}},
		"an image":                  {"![i](docs/i.png)", []string{"1: docs/i.png: no such file"}},
		"a heading":                 {"[g](docs/GUIDE.md#the-guide)", nil},
		"a heading with marks":      {"[g](docs/GUIDE.md#whats-new-and-why)", nil},
		"the second of its name":    {"[g](docs/GUIDE.md#notes-1)", nil},
		"an HTML id":                {"[g](docs/GUIDE.md#here)", nil},
		"a missing heading":         {"[g](docs/GUIDE.md#old)", []string{"1: docs/GUIDE.md#old: no such heading"}},
		"its own heading":           {"# Top\n[g](#top) [h](#bottom)", []string{"2: #bottom: no such heading"}},
		"a reference":               {"[g]: docs/GUIDE.md\n[h]: nowhere.md", []string{"2: nowhere.md: no such file"}},
		"the web":                   {"[w](https://example.org/x#y) <mailto:a@example.org>", nil},
		"outside the project":       {"[o](../other/README.md)", []string{"1: ../other/README.md: leads out of the project"}},
		"in code":                   {"`[a](b.md)`\n```\n[a](b.md)\n```\n~~~\n[a](b.md)\n~~~", nil},
		"two on a line, one broken": {"[g](docs/GUIDE.md) [h](x.md)", []string{"1: x.md: no such file"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			root := tree(t, map[string]string{"README.md": c.readme, "docs/GUIDE.md": guide})
			problems, files, err := check(root)
			require.NoError(t, err)
			assert.Equal(t, 2, files)
			var want []string
			for _, problem := range c.want {
				want = append(want, filepath.Join(root, "README.md")+":"+problem)
			}
			assert.Equal(t, want, problems)
		})
	}
}

// A Go comment may only speak of a page that exists; strings are free.
func TestCheckGoComments(t *testing.T) {
	root := tree(t, map[string]string{
		"docs/GUIDE.md": "# The guide\n",
		"a.go": "package a\n\n// See docs/GUIDE.md.\n// See docs/GONE.md.\n" +
			"const page = \"// docs/STRING.md\"\n",
		"testdata/b.go": "// See docs/GONE.md.\n",
	})
	problems, _, err := check(root)
	require.NoError(t, err)
	assert.Equal(t, []string{filepath.Join(root, "a.go") + ":4: docs/GONE.md: no such file"}, problems)
}
