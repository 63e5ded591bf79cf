package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"

	"github.com/bomzrpc/rpcpool"
)

// logFile is a file of logs, with a second one beside it that says how much of the
// first counts. Logs are added to the first and synced, then the second is replaced
// at once by a rename. So whenever the program ends, what the second says is in the
// first, and what stands behind it there is a piece that will be asked for again:
// it is cut off before anything is added.
type logFile struct {
	logs *os.File
	path string
	done progress
}

// progress is what FILE.progress says.
type progress struct {
	Query  logQuery `json:"query"`
	Next   uint64   `json:"next"`   // the first block that isn't covered
	Length int64    `json:"length"` // bytes of FILE that are of the blocks before Next
	Logs   int      `json:"logs"`   // lines in them
}

// openLogFile opens a file to go on with, or makes a new one. It refuses one that
// isn't its own, or is of another query.
func openLogFile(path string, query logQuery) (*logFile, error) {
	f := &logFile{path: path}
	known, err := f.load(query)
	if err != nil {
		return nil, err
	}
	f.logs, err = os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := f.begin(known, query); err != nil {
		f.logs.Close()
		return nil, err
	}
	return f, nil
}

// load reads how far the file has come; known is false for a file that is new.
func (f *logFile) load(query logQuery) (known bool, err error) {
	text, err := os.ReadFile(f.progressPath())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := json.Unmarshal(text, &f.done); err != nil {
		return false, fmt.Errorf("%s isn't a file of this program: %w", f.progressPath(), err)
	}
	if !reflect.DeepEqual(f.done.Query, query) {
		return false, fmt.Errorf("%s has the logs of another query; use the same flags, or another file", f.path)
	}
	return true, nil
}

// begin puts the file's end where what counts ends.
func (f *logFile) begin(known bool, query logQuery) error {
	info, err := f.logs.Stat()
	switch {
	case err != nil:
		return err
	case !known && info.Size() > 0:
		return fmt.Errorf("%s is there already, and %s isn't; use another file", f.path, f.progressPath())
	case info.Size() < f.done.Length:
		return fmt.Errorf("%s is shorter than %s says; somebody else has written to it", f.path, f.progressPath())
	case !known:
		f.done = progress{Query: query, Next: query.From}
		return f.store()
	}
	if err := f.logs.Truncate(f.done.Length); err != nil {
		return err
	}
	_, err = f.logs.Seek(f.done.Length, 0)
	return err
}

// add writes a piece, and then that it is there.
func (f *logFile) add(chunk rpcpool.LogChunk) error {
	var lines bytes.Buffer
	for _, log := range chunk.Logs {
		if err := json.Compact(&lines, log); err != nil { // a line each, whatever an RPC's habits
			return err
		}
		lines.WriteByte('\n')
	}
	if _, err := f.logs.Write(lines.Bytes()); err != nil {
		return err
	}
	if err := f.logs.Sync(); err != nil {
		return err
	}
	f.done.Next = chunk.To + 1
	f.done.Length += int64(lines.Len())
	f.done.Logs += len(chunk.Logs)
	return f.store()
}

// store replaces what is known of the file, at once: a reader finds the old text or
// the new one.
func (f *logFile) store() error {
	text, err := json.Marshal(f.done)
	if err != nil {
		return err
	}
	temporary, err := os.Create(f.progressPath() + ".new")
	if err != nil {
		return err
	}
	_, err = temporary.Write(append(text, '\n'))
	if err == nil {
		err = temporary.Sync() // before the rename, or after a power cut there may be an empty file of that name
	}
	if closed := temporary.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(temporary.Name(), f.progressPath())
}

func (f *logFile) progressPath() string { return f.path + ".progress" }

// close ends the writing. The second time it does nothing.
func (f *logFile) close() error {
	if err := f.logs.Close(); !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}
