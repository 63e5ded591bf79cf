package rpcpool

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// cacheFolder is the folder under the user's cache directory.
const cacheFolder = "rpc_pool_client"

// cacheFile is where one handle's list outlives an outage of the pool (rule A2.5).
type cacheFile struct {
	path    string
	ref     string
	require string
}

// cached is the content of a cache file. It names what it is for, so that a file
// copied to another handle's name counts as absent.
type cached struct {
	Ref     string    `json:"ref"`
	Require string    `json:"require"`
	SavedAt time.Time `json:"saved_at"`
	listing
}

// cachedRPC is an RPC as the file has it: in the pool's form, with its URL.
type cachedRPC struct {
	URL    string     `json:"url"`
	Score  float64    `json:"score"`
	Height uint64     `json:"height"`
	Caps   cachedCaps `json:"caps"`
}

type cachedCaps struct {
	SendTx  *bool   `json:"send_tx"`
	Logs    *uint64 `json:"logs"`
	Archive *string `json:"archive"`
}

var unsafeInNames = regexp.MustCompile(`[^A-Za-z0-9.-]`)

func newCacheFile(dir, ref string, archive Archive) cacheFile {
	require := "any"
	switch archive {
	case ArchiveNone:
	case ArchiveRecent:
		require = "archive"
	case ArchiveFull:
		require = "archive-full"
	}
	name := unsafeInNames.ReplaceAllString(ref, "_") + "__http__" + require + ".json"
	return cacheFile{path: filepath.Join(dir, name), ref: ref, require: require}
}

// write replaces the file, whole or not at all: a reader sees the old file or the
// new one, whenever the writer is killed.
func (f cacheFile) write(list *List, now time.Time) error {
	body, err := f.encode(list, now)
	if err != nil {
		return err
	}
	dir := filepath.Dir(f.path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	removeAbandoned(dir, now)
	temp, err := os.CreateTemp(dir, tempPattern) // created with mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name()) // fails once it is renamed, which is well
	_, err = temp.Write(body)
	if err == nil {
		err = temp.Sync()
	}
	if closeErr := temp.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	return os.Rename(temp.Name(), f.path)
}

// Temporary files of writers that were killed are swept up once no writer can be
// at work on them any more.
const (
	tempPattern  = ".tmp-*"
	abandonedFor = time.Hour
)

func removeAbandoned(dir string, now time.Time) {
	temps, _ := filepath.Glob(filepath.Join(dir, tempPattern))
	for _, temp := range temps {
		if info, err := os.Stat(temp); err == nil && now.Sub(info.ModTime()) > abandonedFor {
			_ = os.Remove(temp)
		}
	}
}

func (f cacheFile) encode(list *List, now time.Time) ([]byte, error) {
	rpcs := make([]cachedRPC, len(list.RPCs))
	for i, rpc := range list.RPCs {
		caps := cachedCaps{SendTx: rpc.Caps.SendTx, Logs: rpc.Caps.Logs}
		if rpc.Caps.Archive != nil {
			word := rpc.Caps.Archive.String()
			caps.Archive = &word
		}
		rpcs[i] = cachedRPC{URL: rpc.URL, Score: rpc.Score, Height: rpc.Height, Caps: caps}
	}
	encoded, err := json.Marshal(rpcs)
	if err != nil {
		return nil, err
	}
	content := cached{Ref: f.ref, Require: f.require, SavedAt: now.UTC(), listing: listing{RPCs: encoded}}
	content.Chain.Key = list.Key
	return json.Marshal(content)
}

// errNoCache says that there is no file, which is nothing to warn of.
var errNoCache = errors.New("there is no cached list")

// read gives the file's list and when it was written. A file that is torn,
// corrupt or another handle's is an error, as is none (errNoCache). The error
// doesn't quote the content, which has keys in it.
func (f cacheFile) read() (*List, time.Time, error) {
	body, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, time.Time{}, errNoCache
	}
	if err != nil {
		return nil, time.Time{}, err
	}
	return f.decode(body)
}

func (f cacheFile) decode(body []byte) (*List, time.Time, error) {
	var content cached
	if json.Unmarshal(body, &content) != nil {
		return nil, time.Time{}, errors.New("it isn't whole, or isn't JSON of the expected form")
	}
	if content.Ref != f.ref || content.Require != f.require {
		return nil, time.Time{}, errors.New("it belongs to another chain reference")
	}
	list, err := content.list()
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("it has no list: %w", err)
	}
	return list, content.SavedAt, nil
}
