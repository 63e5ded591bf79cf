package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Lines of prose that are too long are told of, in characters and not in bytes; what can't be
// broken and pages that programs write aren't.
func TestCheckWidth(t *testing.T) {
	line := func(n int) string { return strings.Repeat("é ", n/2) + strings.Repeat("x", n%2) }
	cases := map[string]struct {
		page, text string
		want       []string
	}{
		"as long as may be":  {"README.md", line(120), nil},
		"one more":           {"README.md", "first\n" + line(121), []string{"2: 121 characters, more than 120"}},
		"in a list":          {"docs/X.md", "- " + line(119), []string{"1: 121 characters, more than 120"}},
		"a row of a table":   {"README.md", "| " + line(150) + "|", nil},
		"a heading":          {"README.md", "## " + line(150), nil},
		"code":               {"README.md", "```\n" + line(150) + "\n```", nil},
		"one long word":      {"README.md", "- " + strings.Repeat("x", 150), nil},
		"a target of a link": {"README.md", "[here]: https://example.org/" + line(150), nil},
		"a generated page":   {"docs/VERDICTS.md", line(150), nil},
		"another's page":     {"VERDICTS.md", line(150), []string{"1: 150 characters, more than 120"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			root := tree(t, map[string]string{c.page: c.text})
			problems, _, err := check(root)
			require.NoError(t, err)
			var want []string
			for _, problem := range c.want {
				want = append(want, filepath.Join(root, filepath.FromSlash(c.page))+":"+problem)
			}
			assert.Equal(t, want, problems)
		})
	}
}
