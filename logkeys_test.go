package rpcpool_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// logKeys gives the keys in logkeys.go, by the names of their constants.
func logKeys(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "logkeys.go", nil, 0)
	require.NoError(t, err)
	keys := map[string]string{}
	ast.Inspect(file, func(node ast.Node) bool {
		if spec, ok := node.(*ast.ValueSpec); ok {
			key, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			require.NoError(t, err)
			keys[spec.Names[0].Name] = key
		}
		return true
	})
	require.NotEmpty(t, keys)
	return keys
}

// Every key of a log record is one of logkeys.go, each of these is used, and all of them
// and no other stand in the table of docs/OBSERVABILITY.md (rule A11).
func TestLogKeysAreDocumented(t *testing.T) {
	keys := logKeys(t)
	used := map[string]bool{}
	sources, err := filepath.Glob("*.go")
	require.NoError(t, err)
	calls := 0
	for _, source := range sources {
		if strings.HasSuffix(source, "_test.go") {
			continue
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, source, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok {
				return true
			}
			for _, key := range keysOf(call) {
				calls++
				name, isName := key.(*ast.Ident)
				require.True(t, isName && keys[name.Name] != "", "%s: a log record's key is one of logkeys.go", files.Position(key.Pos()))
				used[keys[name.Name]] = true
			}
			return true
		})
	}
	require.Greater(t, calls, 30, "the records are found")

	page, err := os.ReadFile("docs/OBSERVABILITY.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(page), "\n| key | value |\n|---|---|\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	var documented []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z]+)` \\|").FindAllStringSubmatch(table, -1) {
		documented = append(documented, row[1])
	}
	require.Equal(t, slices.Sorted(maps.Values(keys)), documented, "the table has every key, in order")
	require.Equal(t, documented, slices.Sorted(maps.Keys(used)), "every key is used")
}

// keysOf gives the keys in a call that writes a record, or a part of one.
func keysOf(call *ast.CallExpr) (keys []ast.Expr) {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	first := 1 // after the message
	switch selector.Sel.Name {
	case "String", "Duration", "Int", "Any", "Uint64":
		if pkg, ok := selector.X.(*ast.Ident); ok && pkg.Name == "slog" {
			return call.Args[:1]
		}
		return nil
	case "With":
		first = 0
	case "Debug", "Info", "Warn", "Error":
		if len(call.Args) == 0 {
			return nil
		}
	default:
		return nil
	}
	for i := first; i < len(call.Args); i += 2 {
		keys = append(keys, call.Args[i])
	}
	return keys
}

// The table of docs/OBSERVABILITY.md has every interface of a hook.
func TestHookInterfacesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("docs/OBSERVABILITY.md")
	require.NoError(t, err)
	file, err := parser.ParseFile(token.NewFileSet(), "hooks.go", nil, 0)
	require.NoError(t, err)
	var declared, documented []string
	ast.Inspect(file, func(node ast.Node) bool {
		if spec, ok := node.(*ast.TypeSpec); ok && strings.HasSuffix(spec.Name.Name, "Hook") && spec.Name.Name != "Hook" {
			declared = append(declared, spec.Name.Name)
		}
		return true
	})
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Za-z]+Hook)` \\|").FindAllStringSubmatch(string(page), -1) {
		documented = append(documented, row[1])
	}
	require.Equal(t, declared, documented)
}
