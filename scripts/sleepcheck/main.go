// Command sleepcheck finds every time.Sleep in the tests under the folders it is
// given (default: the current one) that may be spent in real time. A sleep is
// free, and exact, inside a testing/synctest bubble; outside it makes a test slow
// on a fast machine and wrong on a slow one.
//
// A sleep counts as inside a bubble where it stands in a function literal given
// to synctest.Test or to a helper with "bubble" in its name, or in a function
// whose name or doc comment says "bubble" (a helper called from inside one).
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

func check(root string) ([]token.Position, error) {
	var all []token.Position
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && skipDir(d.Name()):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		sleeps, err := checkFile(path, source)
		all = append(all, sleeps...)
		return err
	})
	return all, err
}

func skipDir(name string) bool {
	return name == "testdata" || name == "node_modules" || strings.HasPrefix(name, ".")
}

func checkFile(path string, source []byte) ([]token.Position, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, source, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	var sleeps []token.Position
	var above []ast.Node
	ast.Inspect(file, func(n ast.Node) bool {
		if n == nil {
			above = above[:len(above)-1]
			return true
		}
		if isSelector(n, "time", "Sleep") && !inBubble(above) {
			sleeps = append(sleeps, files.Position(n.Pos()))
		}
		above = append(above, n)
		return true
	})
	return sleeps, nil
}

func inBubble(above []ast.Node) bool {
	for _, n := range above {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if saysBubble(n.Name.Name) || saysBubble(n.Doc.Text()) {
				return true
			}
		case *ast.CallExpr:
			if startsBubble(n.Fun) {
				return true
			}
		}
	}
	return false
}

func startsBubble(fun ast.Expr) bool {
	switch fun := fun.(type) {
	case *ast.Ident:
		return saysBubble(fun.Name)
	case *ast.SelectorExpr:
		return isSelector(fun, "synctest", "Test") || saysBubble(fun.Sel.Name)
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
