package rpcpool

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func sampleList() *List {
	return &List{Key: "eip155:8453", RPCs: []RPC{
		{URL: "https://a.test/key-a", Score: 99.5, Height: 12, Caps: capsOf(true, 10000, ArchiveFull)},
		{URL: "https://b.test/key-b"},
	}}
}

// What is written is what is read, unknown capabilities included, and the file is
// for its owner only (rule A2.5).
func TestCacheFileGivesBackWhatWasWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "for", "it")
	f := newCacheFile(dir, "eip155:8453", ArchiveRecent)
	require.Equal(t, filepath.Join(dir, "eip155_8453__http__archive.json"), f.path)
	require.NoError(t, f.write(sampleList(), at(5)))
	list, savedAt, err := f.read()
	require.NoError(t, err)
	require.Equal(t, at(5), savedAt)
	require.Equal(t, sampleList(), list)
	info, err := os.Stat(f.path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	info, err = os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "no temporary file is left")
}

// A file that is another handle's, torn anywhere, or corrupt is an error that
// doesn't quote it; none at all is errNoCache (rule A2.5).
func TestCacheFileUnusable(t *testing.T) {
	dir := t.TempDir()
	f := newCacheFile(dir, "8453", ArchiveNone)
	_, _, err := f.read()
	require.ErrorIs(t, err, errNoCache)

	require.NoError(t, f.write(sampleList(), at(0)))
	body, err := os.ReadFile(f.path)
	require.NoError(t, err)
	for cut := range len(body) {
		_, _, err := f.decode(body[:cut])
		require.Error(t, err, "cut at %d", cut)
		require.NotErrorIs(t, err, errNoCache)
		require.NotContains(t, err.Error(), "key-a")
	}
	for _, other := range []cacheFile{newCacheFile(dir, "1", ArchiveNone), newCacheFile(dir, "8453", ArchiveFull)} {
		_, _, err := other.decode(body)
		require.ErrorContains(t, err, "another chain reference")
	}
	require.NoError(t, os.Remove(f.path))
	require.NoError(t, os.Mkdir(f.path, 0o700))
	_, _, err = f.read()
	require.Error(t, err)
	require.NotErrorIs(t, err, errNoCache)
}

// A folder that can't be made, and a name that no file can have, are errors, not
// panics.
func TestCacheFileThatCantBeWritten(t *testing.T) {
	blocked := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(blocked, nil, 0o600))
	require.Error(t, newCacheFile(filepath.Join(blocked, "dir"), "1", 0).write(sampleList(), at(0)))
	require.Error(t, newCacheFile(t.TempDir(), strings.Repeat("x", 300), 0).write(sampleList(), at(0)))
}

// Names are safe whatever the reference is: nothing leaves the folder.
func TestCacheFileNamesStayInTheirFolder(t *testing.T) {
	for _, ref := range []string{"../../etc/passwd", "a/b", `a\b`, "..", "\x00", "chain é", " "} {
		f := newCacheFile("/dir", ref, ArchiveNone)
		require.Equal(t, "/dir", filepath.Dir(f.path), "%q", ref)
	}
}

// Temporary files that killed writers left are removed, those of writers that may
// still be at work are not.
func TestCacheFileSweepsUpAfterKilledWriters(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{".tmp-old", ".tmp-new", "other"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	require.NoError(t, os.Chtimes(filepath.Join(dir, ".tmp-old"), at(0), at(0)))
	require.NoError(t, os.Chtimes(filepath.Join(dir, ".tmp-new"), at(3600), at(3600)))
	require.NoError(t, os.Chtimes(filepath.Join(dir, "other"), at(0), at(0)))
	require.NoError(t, newCacheFile(dir, "1", 0).write(sampleList(), at(7200)))
	require.NoFileExists(t, filepath.Join(dir, ".tmp-old"))
	require.FileExists(t, filepath.Join(dir, ".tmp-new"))
	require.FileExists(t, filepath.Join(dir, "other"))
}
