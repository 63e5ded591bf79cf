package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// folder writes the files of a small project and returns its folder.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, source := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(source), 0o600))
	}
	return dir
}

// Each case is the body of a test file, and the lines of the sleeps that must be
// found, counted from the body's first.
func TestCheckSleeps(t *testing.T) {
	const helpers = "func inWorld(t *testing.T, f func()) { inBox(t, f) }\n" +
		"func inBox(t *testing.T, f func()) { synctest.Test(t, func(*testing.T) { f() }) }\n"
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
			"func TestA(t *testing.T) {\n\tinBox(t, func() { time.Sleep(1) })\n}",
			nil,
		},
		"in a helper of that helper": {
			"func TestA(t *testing.T) {\n\tinWorld(t, func() { time.Sleep(1) })\n}",
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
			dir := folder(t, map[string]string{
				"a_test.go":       "package a\n" + c.body,
				"helpers_test.go": "package a\n" + helpers,
			})
			sleeps, err := check(dir)
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
	const source = "package a; var wait = time.Sleep"
	dir := folder(t, map[string]string{
		"a_test.go": source, "a.go": source, "sub/b_test.go": source,
		"testdata/c_test.go": source, ".cache/d_test.go": source,
	})
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
