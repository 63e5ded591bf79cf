package rpcpool_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// docImports are the packages that a block of the docs may use without importing
// them, by the names that it calls them.
var docImports = map[string]string{
	"context":     "context",
	"errors":      "errors",
	"fmt":         "fmt",
	"http":        "net/http",
	"io":          "io",
	"json":        "encoding/json",
	"log":         "log",
	"os":          "os",
	"regexp":      "regexp",
	"rpcpool":     "github.com/bomzrpc/rpcpool",
	"rpcpooltest": "github.com/bomzrpc/rpcpool/rpcpooltest",
	"slog":        "log/slog",
	"strings":     "strings",
	"sync":        "sync",
	"atomic":      "sync/atomic",
	"synctest":    "testing/synctest",
	"testing":     "testing",
	"time":        "time",
}

// docParams are what a block of statements may use without declaring it.
const docParams = "ctx context.Context, cfg rpcpool.Config, pool *rpcpool.Pool, base, other *rpcpool.Chain, account, poolAddress, poolA, poolB, getReserves, rawTx string, signed []byte"

// docBlock is a block of code in a Markdown page.
type docBlock struct {
	page  string
	line  int    // of its first line
	label string // what stands after the fence: the language
	code  string
}

// Every block of Go in the README, CONTRIBUTING and docs compiles and passes vet. A
// block is a whole file, or a file without its head, or statements in a function
// with docParams; docImports are imported where they are used.
func TestDocsCompile(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs(".")
	require.NoError(t, err)
	blocks := docBlocks(t)
	require.NotEmpty(t, blocks)

	module := docModule(t, root)
	for i, b := range blocks {
		folder := filepath.Join(module, fmt.Sprintf("block%d", i))
		require.NoError(t, os.Mkdir(folder, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(folder, "block.go"), []byte(b.file(root)), 0o600))
	}
	vet := exec.CommandContext(t.Context(), "go", "vet", "-mod=mod", "./...")
	vet.Dir = module
	vet.Env = append(os.Environ(), "GOWORK=off")
	said, err := vet.CombinedOutput()
	require.NoError(t, err, "go vet on the blocks of the docs: %s", said)
}

// docModule makes a module that stands on the library's own tree and needs nothing
// that the library doesn't.
func docModule(t *testing.T, root string) string {
	t.Helper()
	module := t.TempDir()
	mod, err := os.ReadFile("go.mod")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(mod), "module github.com/bomzrpc/rpcpool\n")
	require.True(t, found)
	own := "module docblocks\n" + rest +
		"\nrequire github.com/bomzrpc/rpcpool v0.0.0\n\nreplace github.com/bomzrpc/rpcpool => " + strconv.Quote(root) + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(module, "go.mod"), []byte(own), 0o600))
	sums, err := os.ReadFile("go.sum")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(module, "go.sum"), sums, 0o600))
	return module
}

// Every relative link between the project's Markdown files leads somewhere.
func TestDocsLinks(t *testing.T) {
	t.Parallel()
	said, err := exec.CommandContext(t.Context(), "go", "run", "./scripts/doclinks", ".").CombinedOutput()
	require.NoError(t, err, "%s", said)
}

// Each test that SECURITY.md names exists, and so does each scenario.
func TestDocsSecurityTests(t *testing.T) {
	t.Parallel()
	page := readPage(t, "SECURITY.md")
	tests := testNames(t)
	names := regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w*`).FindAllString(page, -1)
	require.NotEmpty(t, names)
	for _, name := range names {
		require.True(t, tests[name], "SECURITY.md names %s, which isn't there", name)
	}
	for _, scenario := range regexp.MustCompile(`TestConformance/([\w.-]+)`).FindAllStringSubmatch(page, -1) {
		require.FileExists(t, "testdata/conformance/"+scenario[1]+".json")
	}
}

// testNames are the tests and fuzz targets of all modules of the repository.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	err := fs.WalkDir(os.DirFS("."), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules") {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		for _, match := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`).FindAllStringSubmatch(string(text), -1) {
			names[match[1]] = true
		}
		return err
	})
	require.NoError(t, err)
	return names
}

// goPages are the pages whose Go is compiled here.
func goPages(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob("docs/*.md")
	require.NoError(t, err)
	return append([]string{"README.md", "CONTRIBUTING.md"}, pages...)
}

// docBlocks gives the blocks of Go of all pages that users read.
func docBlocks(t *testing.T) (blocks []docBlock) {
	t.Helper()
	for _, page := range goPages(t) {
		blocks = append(blocks, goBlocks(page, readPage(t, page))...)
	}
	return blocks
}

// goBlocks gives the blocks that need no nested module.
func goBlocks(page, text string) []docBlock {
	return slices.DeleteFunc(fencesOf(page, text), func(b docBlock) bool { return b.label != "go" })
}

// fencesOf gives all blocks of a page, those in lists too.
func fencesOf(page, text string) (blocks []docBlock) {
	var inside *docBlock
	for i, line := range strings.Split(text, "\n") {
		label, fence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case inside == nil && fence:
			inside = &docBlock{page: page, line: i + 2, label: label}
		case inside != nil && fence:
			blocks = append(blocks, *inside)
			inside = nil
		case inside != nil:
			inside.code += line + "\n"
		}
	}
	return blocks
}

// file makes a Go file of a block, in which the compiler's complaints name the
// block's page and line.
func (b docBlock) file(root string) string {
	from := fmt.Sprintf("//line %s:%d\n", filepath.Join(root, b.page), b.line)
	if parse(b.code) != nil {
		return from + b.code
	}
	head := "package docblock\n\n"
	if file := parse(head + b.code); file != nil {
		return head + importsOf(file) + from + b.code
	}
	body, ended := useAll(b.code)
	function := "func _(" + docParams + ") error {\n" + from + body
	if !ended {
		function += "return nil\n"
	}
	function += "}\n"
	if file := parse(head + function); file != nil {
		head += importsOf(file)
	}
	return head + function
}

// parse gives nil for what isn't a Go file.
func parse(source string) *ast.File {
	file, err := parser.ParseFile(token.NewFileSet(), "", source, parser.SkipObjectResolution)
	if err != nil {
		return nil
	}
	return file
}

// importsOf declares the imports that a file's selectors want.
func importsOf(file *ast.File) string {
	wanted := map[string]bool{}
	ast.Inspect(file, func(node ast.Node) bool {
		if selector, ok := node.(*ast.SelectorExpr); ok {
			if name, ok := selector.X.(*ast.Ident); ok && docImports[name.Name] != "" {
				wanted[name.Name] = true
			}
		}
		return true
	})
	var lines strings.Builder
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		fmt.Fprintf(&lines, "import %q\n", docImports[name])
	}
	return lines.String()
}

// useAll makes statements use every variable that they declare: a block shows how
// to get a value, not what to do with it. It tells whether they end with a return.
func useAll(code string) (body string, ended bool) {
	const head = "package p; func _() {\n"
	file := parse(head + code + "}")
	if file == nil {
		return code, false // the compiler says what is wrong
	}
	list := file.Decls[0].(*ast.FuncDecl).Body.List
	at := 0
	for _, statement := range list {
		end := int(statement.End()) - 1 - len(head)
		body += code[at:end]
		at = end
		if declared, ok := statement.(*ast.AssignStmt); ok && declared.Tok == token.DEFINE {
			for _, left := range declared.Lhs {
				if name := left.(*ast.Ident).Name; name != "_" {
					body += "; _ = " + name
				}
			}
		}
		_, ended = statement.(*ast.ReturnStmt)
	}
	return body + code[at:], ended
}

// Every entry point of the package has an example that runs: what takes a context, and what
// makes something.
func TestDocsEntryPointsHaveExamples(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	var entries []string
	examples := map[string]bool{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			switch {
			case !ok:
			case strings.HasSuffix(name, "_test.go"):
				examples[f.Name.Name] = true
			case f.Name.IsExported() && isEntryPoint(f):
				entries = append(entries, exampleOf(f))
			}
		}
	}
	require.Greater(t, len(entries), 20)
	for _, name := range entries {
		require.True(t, examples[name], "%s is missing", name)
	}
}

// isEntryPoint tells whether users begin something by a function. CallContext of other types
// than Chain is as there, and a Directory's methods are called by the pool.
func isEntryPoint(f *ast.FuncDecl) bool {
	on := receiverOf(f)
	switch {
	case on == "":
		for _, start := range []string{"New", "Parse", "Read", "With", "Write"} {
			if strings.HasPrefix(f.Name.Name, start) {
				return true
			}
		}
	case !ast.IsExported(on), on == "StaticDirectory", f.Name.Name == "CallContext" && on != "Chain":
		return false
	}
	for _, param := range f.Type.Params.List {
		if selector, ok := param.Type.(*ast.SelectorExpr); ok && selector.Sel.Name == "Context" {
			return true
		}
	}
	return false
}

func receiverOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	on := f.Recv.List[0].Type
	if pointer, ok := on.(*ast.StarExpr); ok {
		on = pointer.X
	}
	if name, ok := on.(*ast.Ident); ok {
		return name.Name
	}
	return ""
}

func exampleOf(f *ast.FuncDecl) string {
	if on := receiverOf(f); on != "" {
		return "Example" + on + "_" + f.Name.Name
	}
	return "Example" + f.Name.Name
}
