package rpcpool

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ListFileError says what in a file of lists can't be used, and where. It shows no
// URL's secret.
type ListFileError struct {
	// File is the path as it was given; empty for lists that aren't from a file.
	File string
	// Line and Column say where, both from 1; columns count characters. 0 where the
	// file couldn't be read.
	Line, Column int
	// Field is the way to the field, such as "chains[0].rpcs[2].caps.archive"; empty
	// where the error is about the whole.
	Field string
	// Reason says what was found, and what is wanted.
	Reason string
	// Err is why the file couldn't be read; nil where it could.
	Err error
}

func (e *ListFileError) Error() string {
	var b strings.Builder
	b.WriteString("rpcpool: ")
	switch {
	case e.File != "" && e.Line > 0:
		fmt.Fprintf(&b, "%s:%d:%d: ", e.File, e.Line, e.Column)
	case e.File != "":
		b.WriteString(e.File + ": ")
	case e.Line > 0:
		fmt.Fprintf(&b, "line %d, column %d: ", e.Line, e.Column)
	}
	if e.Field != "" {
		b.WriteString(e.Field + ": ")
	}
	b.WriteString(e.Reason)
	return b.String()
}

// Unwrap gives the error of the file system: errors.Is finds fs.ErrNotExist in it.
func (e *ListFileError) Unwrap() error { return e.Err }

func (*ListFileError) rpcPoolError() {}

// ReadStaticDirectory makes a directory of a JSON file, such as rpcpool.json, whose
// form docs/DIRECTORY.md has. In short, either of
//
//	{"chain": {"key": "eip155:8453"}, "rpcs": [{"url": "https://rpc-1.example.org"}, …]}
//	{"chains": [{"chain": …, "rpcs": …}, …]}
//
// What isn't known is refused, down to misspelt names: a capability that is written
// wrongly would cost money. The error is a *ListFileError. The file is read again
// whenever a list is asked for, see [StaticDirectory.RPCs]; a pipe is read once.
func ReadStaticDirectory(path string) (*StaticDirectory, error) {
	file := listFile{given: path, path: path}
	if absolute, err := filepath.Abs(path); err == nil {
		file.path = absolute // where the program goes to another folder meanwhile
	}
	info, err := os.Stat(file.path)
	if err != nil {
		return nil, file.unreadable(err)
	}
	file.rereadable = info.Mode().IsRegular()
	text, err := file.read()
	if err != nil {
		return nil, err
	}
	lists, err := file.parse(text)
	if err != nil {
		return nil, err
	}
	return &StaticDirectory{s: &staticState{file: file, lists: lists, text: text}}, nil
}

// ParseStaticDirectory is [ReadStaticDirectory] for a text that the program has: an
// embedded file, a secret store's answer. The text isn't kept.
func ParseStaticDirectory(text []byte) (*StaticDirectory, error) {
	lists, err := (&listFile{}).parse(text)
	if err != nil {
		return nil, err
	}
	return &StaticDirectory{s: &staticState{lists: lists}}, nil
}

// maxListFile bounds a file: ten thousand RPCs have about 1 MB. Something larger is
// another file, or none.
const maxListFile = 4 << 20

// listFile is where a directory's lists are read from. The zero listFile stands for
// lists that are from no file.
type listFile struct {
	given, path string // as the user wrote it, and absolute
	rereadable  bool   // a regular file, which can be read more than once
}

// name is what the user calls it.
func (f *listFile) name() string {
	if f.given == "" {
		return "the directory"
	}
	return f.given
}

// again reads a file that has been read before.
func (f *listFile) again() ([]byte, error) {
	if !f.rereadable {
		return nil, nil
	}
	// To open what has become a pipe might take for ever.
	if info, err := os.Stat(f.path); err != nil {
		return nil, f.unreadable(err)
	} else if !info.Mode().IsRegular() {
		return nil, f.unreadable(errors.New("it isn't a regular file any more"))
	}
	return f.read()
}

func (f *listFile) read() ([]byte, error) {
	file, err := os.Open(f.path)
	if err != nil {
		return nil, f.unreadable(err)
	}
	defer func() { _ = file.Close() }() // it was only read
	text, more, err := readLimited(file, maxListFile)
	switch {
	case err != nil:
		return nil, f.unreadable(err)
	case more:
		return nil, f.unreadable(fmt.Errorf("it is larger than %d MiB", maxListFile>>20))
	}
	return text, nil
}

func (f *listFile) unreadable(err error) error {
	cause := err
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		cause = at.Err // without the absolute path
	}
	return &ListFileError{File: f.given, Reason: "the list can't be read: " + cause.Error(), Err: err}
}

// parse reads the file's text. The error is a *ListFileError.
func (f *listFile) parse(text []byte) (*staticLists, error) {
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // which some editors put before UTF-8
	reader := listReader{text: text, lists: &staticLists{names: map[string]int{}}}
	err := reader.read()
	if fault, ok := errors.AsType[*ListFileError](err); ok {
		fault.File = f.given
	}
	if err != nil {
		return nil, err
	}
	return reader.lists, nil
}
