package rpcpool_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
)

// configPage is the page that has every setting.
const configPage = "docs/CONFIG.md"

// configStructs are the types whose fields the page has in a table of its own, under a
// heading with the type's name.
var configStructs = []string{"Config", "Freshness", "Hedge", "Budget"}

// Each exported field of the settings has a row in its table, and each row a field.
func TestDocsConfigFields(t *testing.T) {
	t.Parallel()
	page := readPage(t, configPage)
	fields := exportedFields(t)
	for _, name := range configStructs {
		require.ElementsMatch(t, fields[name], firstCells(section(t, page, name)), "the fields of %s and the rows of %s", name, configPage)
	}
}

// Each exported function that gives an option, and each that puts a setting into a
// context, has a row or a sentence of its own.
func TestDocsConfigOptions(t *testing.T) {
	t.Parallel()
	page := readPage(t, configPage)
	options := exportedOptions(t)
	require.Contains(t, options, "WithFreshness") // that something was found
	require.Contains(t, options, "WithBudget")
	for _, name := range options {
		named := regexp.MustCompile("`([a-z =]+rpcpool\\.)?" + name + "\\(").MatchString(page)
		require.True(t, named, "%s doesn't have the option %s", configPage, name)
	}
}

// The texts of the errors are those that the page has, in its order.
func TestDocsConfigErrors(t *testing.T) {
	t.Setenv(rpcpool.EnvAPIURL, "")
	t.Setenv(rpcpool.EnvAPIKey, "")
	t.Setenv("HOME", "")
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("LocalAppData", "")
	table := section(t, readPage(t, configPage), "Errors")
	var said []string
	for _, row := range regexp.MustCompile("(?m)^\\| .* \\| `(rpcpool: [^`]+)` \\|$").FindAllStringSubmatch(table, -1) {
		said = append(said, row[1])
	}
	texts := configErrors(t)
	require.Len(t, said, len(texts))
	for i, text := range texts {
		beginning, _, cut := strings.Cut(said[i], "…")
		if cut {
			require.True(t, strings.HasPrefix(text, beginning), "%s has %q, and the error is %q", configPage, said[i], text)
		} else {
			require.Equal(t, text, said[i])
		}
	}
}

// configErrors are the texts of what can't be used, in the order of the page.
func configErrors(t *testing.T) (texts []string) {
	t.Helper()
	good := rpcpool.Config{
		Proxies: []string{"socks5://p.test:1080"}, APIURL: "https://pool.test", APIKey: "key", CacheDir: t.TempDir(),
	}
	note := func(err error) {
		var refused *rpcpool.ConfigError
		require.ErrorAs(t, err, &refused)
		texts = append(texts, err.Error())
	}
	for _, change := range []func(*rpcpool.Config){
		func(c *rpcpool.Config) { c.Proxies = nil },
		func(c *rpcpool.Config) { c.Proxies = []string{"proxy:1080"} },
		func(c *rpcpool.Config) { c.Proxies = []string{"ftp://proxy"} },
		func(c *rpcpool.Config) { c.APIURL = "" },
		func(c *rpcpool.Config) { c.APIURL = "pool.example.org" },
		func(c *rpcpool.Config) { c.APIKey = "" },
		func(c *rpcpool.Config) { c.APIKey = "key\n" },
		func(c *rpcpool.Config) { c.CacheDir = "" },
		func(c *rpcpool.Config) { c.ProxyCheckURL = "ws://rpc" },
		func(c *rpcpool.Config) { c.Mode = 9 },
		func(c *rpcpool.Config) { c.Timeout = -time.Second },
		func(c *rpcpool.Config) { c.MaxRounds = -1 },
		func(c *rpcpool.Config) { c.NonIdempotent = []string{"*"} },
		func(c *rpcpool.Config) { c.Rules = []rpcpool.Rule{{Verdict: rpcpool.VerdictOK}} },
		func(c *rpcpool.Config) { c.Rules = []rpcpool.Rule{{Verdict: rpcpool.VerdictCaller}} },
	} {
		cfg := good
		change(&cfg)
		_, err := rpcpool.New(cfg)
		note(err)
	}
	pool, err := rpcpool.New(good)
	require.NoError(t, err)
	defer pool.Close()
	for _, chain := range []*rpcpool.Chain{
		pool.Chain(""),
		pool.Chain("1", rpcpool.WithArchive(9)),
		pool.Chain("1", rpcpool.WithFreshness(rpcpool.Freshness{SampleEvery: -time.Second})),
		pool.Chain("1", rpcpool.WithFreshness(rpcpool.Freshness{BlockTime: -time.Second})),
		pool.Chain("1", rpcpool.WithFreshness(rpcpool.Freshness{MaxLag: 5, EjectLag: 2})),
		pool.Chain("1", rpcpool.WithHedge(rpcpool.Hedge{Delay: -time.Second})),
		pool.Chain("1", rpcpool.WithHedge(rpcpool.Hedge{MaxExtra: 2})),
	} {
		_, err := chain.Call(t.Context(), "eth_chainId")
		note(err)
	}
	return texts
}

func readPage(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// section gives what stands under a heading, up to the next one.
func section(t *testing.T, page, heading string) string {
	t.Helper()
	at := regexp.MustCompile("(?m)^##+ `?" + heading + "`?$").FindStringIndex(page)
	require.NotNil(t, at, "there is no heading %s", heading)
	rest, _, _ := strings.Cut(page[at[1]:], "\n#")
	return rest
}

// firstCells gives the names in code that are alone in the first cell of a row.
func firstCells(text string) (names []string) {
	for _, match := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(text, -1) {
		names = append(names, match[1])
	}
	return names
}

// exportedFields are the fields of the package's structs, by the names of these.
func exportedFields(t *testing.T) map[string][]string {
	t.Helper()
	fields := map[string][]string{}
	for _, decl := range packageDecls(t) {
		types, ok := decl.(*ast.GenDecl)
		if !ok || types.Tok != token.TYPE {
			continue
		}
		for _, spec := range types.Specs {
			named := spec.(*ast.TypeSpec)
			form, ok := named.Type.(*ast.StructType)
			if !ok {
				continue
			}
			for _, field := range form.Fields.List {
				for _, name := range field.Names {
					if name.IsExported() {
						fields[named.Name.Name] = append(fields[named.Name.Name], name.Name)
					}
				}
			}
		}
	}
	for _, name := range configStructs {
		require.NotEmpty(t, fields[name])
	}
	return fields
}

// exportedOptions are the functions whose result is an option, by the ending of its
// type's name, and those that make a context of one.
func exportedOptions(t *testing.T) (names []string) {
	t.Helper()
	for _, decl := range packageDecls(t) {
		function, ok := decl.(*ast.FuncDecl)
		if !ok || function.Recv != nil || !function.Name.IsExported() || function.Type.Results.NumFields() != 1 {
			continue
		}
		switch result := function.Type.Results.List[0].Type.(type) {
		case *ast.Ident:
			if strings.HasSuffix(result.Name, "Option") {
				names = append(names, function.Name.Name)
			}
		case *ast.SelectorExpr:
			if result.Sel.Name == "Context" {
				names = append(names, function.Name.Name)
			}
		}
	}
	return names
}

// packageDecls are the declarations of the package, without its tests.
func packageDecls(t *testing.T) (decls []ast.Decl) {
	t.Helper()
	entries, err := os.ReadDir(".")
	require.NoError(t, err)
	for _, entry := range entries {
		name := entry.Name()
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		decls = append(decls, file.Decls...)
	}
	return decls
}
