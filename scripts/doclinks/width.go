package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxWidth is how many characters a line of prose may have, so that two versions of a page
// differ in lines that can be read.
const maxWidth = 120

// generated are the pages that programs write, as wide as it comes.
var generated = []string{"docs/PERFORMANCE.md", "docs/VERDICTS.md"}

// unbreakable is what can't be broken into lines: rows of tables, headings, targets of links.
var unbreakable = regexp.MustCompile(`^\s*(\||#{1,6} |\[[^\]]+\]: )`)

// checkWidth tells of the lines of prose that are too long, but not of those that have no
// place to break them.
func checkWidth(root, path, text string) (problems []string) {
	if name, err := filepath.Rel(root, path); err == nil && slices.Contains(generated, filepath.ToSlash(name)) {
		return nil
	}
	for number, line := range proseLines(text) {
		width := utf8.RuneCountInString(line)
		if width <= maxWidth || unbreakable.MatchString(line) || !strings.Contains(strings.TrimLeft(line, " -*>"), " ") {
			continue
		}
		problems = append(problems, fmt.Sprintf("%s:%d: %d characters, more than %d", path, number, width, maxWidth))
	}
	return problems
}
