package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each case is a test file's body; the lines of the sleeps that must be found
// are counted from its first line.
func TestCheckFile(t *testing.T) {
	cases := map[string]struct {
		body string
		want []int
	}{
		"in a test": {
			"func TestA(t *testing.T) {\n\ttime.Sleep(1)\n}",
			[]int{2},
		},
		"handed on as a value": {
			"var wait = time.Sleep",
			[]int{1},
		},
		"in synctest.Test": {
			"func TestA(t *testing.T) {\n\tsynctest.Test(t, func(t *testing.T) { go func() { time.Sleep(1) }() })\n}",
			nil,
		},
		"after synctest.Test": {
			"func TestA(t *testing.T) {\n\tsynctest.Test(t, nil)\n\ttime.Sleep(1)\n}",
			[]int{3},
		},
		"in t.Run": {
			"func TestA(t *testing.T) {\n\tt.Run(\"x\", func(t *testing.T) { time.Sleep(1) })\n}",
			[]int{2},
		},
		"in a helper that opens a bubble": {
			"func TestA(t *testing.T) {\n\tinBubble(t, func() { time.Sleep(1) })\n}",
			nil,
		},
		"in a helper whose comment says so": {
			"// pause may only be called inside a bubble.\nfunc pause() { time.Sleep(1) }",
			nil,
		},
		"another Sleep": {
			"func TestA(t *testing.T) { clock.Sleep(1) }",
			nil,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			const head = "package a\n"
			sleeps, err := checkFile("a_test.go", []byte(head+c.body))
			require.NoError(t, err)
			var lines []int
			for _, position := range sleeps {
				lines = append(lines, position.Line-1)
			}
			assert.Equal(t, c.want, lines)
		})
	}
}

// Only tests are read, and neither testdata nor hidden folders.
func TestCheckWalksTests(t *testing.T) {
	dir := t.TempDir()
	source := []byte("package a; var wait = time.Sleep")
	for _, name := range []string{"a_test.go", "a.go", "sub/b_test.go", "testdata/c_test.go", ".cache/d_test.go"} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, source, 0o600))
	}
	sleeps, err := check(dir)
	require.NoError(t, err)
	var found []string
	for _, position := range sleeps {
		name, err := filepath.Rel(dir, position.Filename)
		require.NoError(t, err)
		found = append(found, filepath.ToSlash(name))
	}
	assert.Equal(t, []string{"a_test.go", "sub/b_test.go"}, found)
}
