// Command doclinks checks the links between the files of the project at the
// folder it is given (default: the current one): every relative link of a
// Markdown file must lead to a file or folder, its #anchor to a heading, and
// every page under docs that a Go comment names by its path must exist. Links to the web
// aren't followed. Lines of prose have at most 120 characters.
package main

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	problems, files, err := check(root)
	if err != nil {
		fmt.Fprintln(os.Stderr, "doclinks:", err)
		os.Exit(1)
	}
	for _, problem := range problems {
		fmt.Println(problem)
	}
	if len(problems) > 0 {
		os.Exit(1)
	}
	fmt.Printf("doclinks: the links of %d Markdown files resolve\n", files)
}

// check returns a line for every broken link and every line that is too long, and the number of Markdown files
// read.
func check(root string) (problems []string, files int, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if path != root && skipDir(d.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		extension := filepath.Ext(path)
		if extension != ".md" && extension != ".go" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if extension == ".md" {
			files++
			problems = append(problems, checkMarkdown(root, path, string(text))...)
			problems = append(problems, checkWidth(root, path, string(text))...)
		} else {
			problems = append(problems, checkGo(root, path, string(text))...)
		}
		return nil
	})
	return problems, files, err
}

func skipDir(name string) bool {
	return name == "testdata" || name == "node_modules" || strings.HasPrefix(name, ".")
}

var (
	codeSpan   = regexp.MustCompile("`[^`]*`")
	inlineLink = regexp.MustCompile(`\]\(\s*<?([^)\s>]+)>?(?:\s+"[^"]*")?\s*\)`)
	refLink    = regexp.MustCompile(`^\s{0,3}\[[^\]]+\]:\s+<?([^\s>]+)>?`)
	scheme     = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9+.-]*:`)
)

func checkMarkdown(root, path, text string) []string {
	var problems []string
	for number, line := range proseLines(text) {
		line = codeSpan.ReplaceAllString(line, "``")
		for _, match := range slices.Concat(inlineLink.FindAllStringSubmatch(line, -1), refLink.FindAllStringSubmatch(line, -1)) {
			if problem := checkTarget(root, path, match[1]); problem != "" {
				problems = append(problems, fmt.Sprintf("%s:%d: %s: %s", path, number, match[1], problem))
			}
		}
	}
	return problems
}

// proseLines gives the numbered lines that stand outside fenced code.
func proseLines(text string) func(yield func(int, string) bool) {
	return func(yield func(int, string) bool) {
		fence := ""
		for i, line := range strings.Split(text, "\n") {
			trimmed := strings.TrimSpace(line)
			switch {
			case fence != "":
				if strings.HasPrefix(trimmed, fence) {
					fence = ""
				}
			case strings.HasPrefix(trimmed, "```"), strings.HasPrefix(trimmed, "~~~"):
				fence = trimmed[:3]
			default:
				if !yield(i+1, line) {
					return
				}
			}
		}
	}
}

// checkTarget says what is wrong with a link's target; empty where nothing is.
func checkTarget(root, from, target string) string {
	if scheme.MatchString(target) || strings.HasPrefix(target, "//") {
		return ""
	}
	name, anchor, _ := strings.Cut(target, "#")
	name, err := url.PathUnescape(name)
	if err != nil {
		return "can't be read as a path"
	}
	path := from
	if name != "" {
		path = filepath.Join(filepath.Dir(from), filepath.FromSlash(name))
	}
	if inside, err := filepath.Rel(root, path); err != nil || inside == ".." || strings.HasPrefix(inside, "../") {
		return "leads out of the project"
	}
	info, err := os.Stat(path)
	if err != nil {
		return "no such file"
	}
	if anchor == "" || info.IsDir() || filepath.Ext(path) != ".md" {
		return ""
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "can't be read"
	}
	if !slices.Contains(anchors(string(text)), anchor) {
		return "no such heading"
	}
	return ""
}

var (
	heading  = regexp.MustCompile(`^#{1,6}\s+(.*?)\s*#*\s*$`)
	linkText = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	htmlID   = regexp.MustCompile(`<[a-z][a-z0-9]*\s[^>]*\b(?:id|name)="([^"]+)"`)
)

// anchors lists what can be linked to in a Markdown file: its headings, named as
// the usual renderers name them, and the ids of HTML elements.
func anchors(text string) []string {
	var names []string
	seen := map[string]int{}
	for _, line := range proseLines(text) {
		for _, match := range htmlID.FindAllStringSubmatch(line, -1) {
			names = append(names, match[1])
		}
		match := heading.FindStringSubmatch(line)
		if match == nil {
			continue
		}
		name := slug(match[1])
		if n := seen[name]; n > 0 {
			names = append(names, name+"-"+strconv.Itoa(n))
		} else {
			names = append(names, name)
		}
		seen[name]++
	}
	return names
}

func slug(title string) string {
	title = linkText.ReplaceAllString(title, "$1")
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		case r == ' ':
			return '-'
		}
		return -1
	}, title)
}

var docsFile = regexp.MustCompile(`\bdocs/[A-Za-z0-9_./-]+\.md\b`)

// checkGo looks at comments only. A file that doesn't parse is the compiler's
// business; what could be read of it is checked.
func checkGo(root, path, text string) []string {
	var problems []string
	files := token.NewFileSet()
	file, _ := parser.ParseFile(files, path, text, parser.ParseComments|parser.SkipObjectResolution)
	if file == nil {
		return nil
	}
	for _, group := range file.Comments {
		for _, comment := range group.List {
			for _, name := range docsFile.FindAllString(comment.Text, -1) {
				if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(name))); err != nil {
					line := files.Position(comment.Pos()).Line
					problems = append(problems, fmt.Sprintf("%s:%d: %s: no such file", path, line, name))
				}
			}
		}
	}
	return problems
}
