// Command sleepcheck finds every time.Sleep in the tests under the folders it is
// given (default: the current one) that may be spent in real time. A sleep is
// free, and exact, inside a testing/synctest bubble; outside it makes a test slow
// on a fast machine and wrong on a slow one.
//
// A sleep counts as inside a bubble where it stands in a function literal given
// to synctest.Test, or to a helper of the same folder's tests that calls it; and
// in a function whose name or doc comment says "bubble" (a helper that is only
// called from inside one).
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	roots := os.Args[1:]
	if len(roots) == 0 {
		roots = []string{"."}
	}
	found := 0
	for _, root := range roots {
		sleeps, err := check(root)
		if err != nil {
			fmt.Fprintln(os.Stderr, "sleepcheck:", err)
			os.Exit(1)
		}
		for _, position := range sleeps {
			fmt.Printf("%s: time.Sleep outside a synctest bubble; run the test in synctest.Test, "+
				"or say \"bubble\" in the doc comment of a helper that is only called inside one\n", position)
		}
		found += len(sleeps)
	}
	if found > 0 {
		os.Exit(1)
	}
}

// check gives the place of every sleep in real time in the tests under root.
func check(root string) ([]token.Position, error) {
	var all []token.Position
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !d.IsDir():
			return nil
		case path != root && skipDir(d.Name()):
			return filepath.SkipDir
		}
		sleeps, err := checkFolder(path)
		all = append(all, sleeps...)
		return err
	})
	return all, err
}

func checkFolder(dir string) ([]token.Position, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		file, err := parser.ParseFile(set, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	openers := findOpeners(files)
	var sleeps []token.Position
	for _, file := range files {
		for _, pos := range openers.sleepsOutside(file) {
			sleeps = append(sleeps, set.Position(pos))
		}
	}
	return sleeps, nil
}

func skipDir(name string) bool {
	return name == "testdata" || name == "node_modules" || strings.HasPrefix(name, ".")
}

// openers names the functions that run a function given to them in a bubble.
type openers map[string]bool

// findOpeners collects what calls synctest.Test, what calls that, and so on.
func findOpeners(files []*ast.File) openers {
	found := openers{}
	for before := -1; before < len(found); {
		before = len(found)
		for _, file := range files {
			for _, decl := range file.Decls {
				if function, ok := decl.(*ast.FuncDecl); ok && found.calledIn(function) {
					found[function.Name.Name] = true
				}
			}
		}
	}
	return found
}

func (o openers) calledIn(function *ast.FuncDecl) bool {
	called := false
	ast.Inspect(function, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && o.has(call.Fun) {
			called = true
		}
		return !called
	})
	return called
}

func (o openers) has(function ast.Expr) bool {
	switch function := function.(type) {
	case *ast.Ident:
		return o[function.Name]
	case *ast.SelectorExpr:
		return isSelector(function, "synctest", "Test") || o[function.Sel.Name]
	}
	return false
}

func (o openers) sleepsOutside(file *ast.File) []token.Pos {
	var sleeps []token.Pos
	var above []ast.Node
	ast.Inspect(file, func(n ast.Node) bool {
		if n == nil {
			above = above[:len(above)-1]
			return true
		}
		if isSelector(n, "time", "Sleep") && !o.inBubble(above) {
			sleeps = append(sleeps, n.Pos())
		}
		above = append(above, n)
		return true
	})
	return sleeps
}

// inBubble judges by the nodes that a sleep stands in, the outermost first.
func (o openers) inBubble(above []ast.Node) bool {
	for _, n := range above {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if saysBubble(n.Name.Name) || saysBubble(n.Doc.Text()) {
				return true
			}
		case *ast.CallExpr:
			if o.has(n.Fun) {
				return true
			}
		}
	}
	return false
}

func saysBubble(text string) bool { return strings.Contains(strings.ToLower(text), "bubble") }

func isSelector(n ast.Node, pkg, name string) bool {
	selector, ok := n.(*ast.SelectorExpr)
	if !ok || selector.Sel.Name != name {
		return false
	}
	ident, ok := selector.X.(*ast.Ident)
	return ok && ident.Name == pkg
}
