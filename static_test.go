package rpcpool_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// listed gives a chain's list of a directory, which must have it.
func listed(t *testing.T, d rpcpool.Directory, ref string) *rpcpool.List {
	t.Helper()
	list, err := d.RPCs(t.Context(), ref)
	require.NoError(t, err)
	return list
}

// urlsOf gives the URLs of a list, in order.
func urlsOf(list *rpcpool.List) []string {
	urls := make([]string, len(list.RPCs))
	for i, rpc := range list.RPCs {
		urls[i] = rpc.URL
	}
	return urls
}

// said writes capabilities in a line, "-" for unknown.
func said(caps rpcpool.Caps) string {
	send, logs, archive := "-", "-", "-"
	if caps.SendTx != nil {
		send = fmt.Sprint(*caps.SendTx)
	}
	if caps.Logs != nil {
		logs = fmt.Sprint(*caps.Logs)
	}
	if caps.Archive != nil {
		archive = caps.Archive.String()
	}
	return send + " " + logs + " " + archive
}

func parsed(t *testing.T, text string) *rpcpool.StaticDirectory {
	t.Helper()
	d, err := rpcpool.ParseStaticDirectory([]byte(text))
	require.NoError(t, err)
	return d
}

// Each broken file in testdata/static/broken is refused with the place, the field,
// what was found and what is wanted, as broken.txt has it; none of the errors shows
// the secret that is in most of the files.
//
//	go test -run TestStaticFileErrors -update .
//
// writes broken.txt anew: read what changed.
func TestStaticFileErrors(t *testing.T) {
	const golden = "testdata/static/broken.txt"
	files, err := filepath.Glob("testdata/static/broken/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var got strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		_, err = rpcpool.ParseStaticDirectory(text)
		var fault *rpcpool.ListFileError
		require.ErrorAs(t, err, &fault, file)
		var own rpcpool.Error
		require.ErrorAs(t, err, &own)
		require.NotContains(t, err.Error(), "s3cret", file)
		require.NotContains(t, err.Error(), "S3CRET", file)
		fault.File = filepath.Base(file)
		fmt.Fprintln(&got, strings.TrimPrefix(fault.Error(), "rpcpool: "))
	}
	if flag.Lookup("update").Value.String() == "true" {
		require.NoError(t, os.WriteFile(golden, []byte(got.String()), 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, strings.Split(string(want), "\n"), strings.Split(got.String(), "\n"))
}

// One chain, a list of chains and an object that has them are three ways to say the
// same; notes and a saved answer's policy are passed over, and so is a byte order mark.
func TestStaticFileForms(t *testing.T) {
	const (
		base = `{"chain": {"key": "eip155:8453", "aliases": ["base"], "_": 1}, "policy": {"x": []}, "_note": {"a": [1, "]"]}, "rpcs": [
			{"url": "https://a.test/key", "score": 97.5, "height": 24000000, "caps": {"send_tx": true, "logs": 10000, "archive": "recent"}},
			{"url": "http://b.test", "score": null, "height": null, "_ends": "in May"}]}`
		aptos = `{"chain": {"key": "aptos:mainnet"}, "rpcs": [{"url": "https://c.test/v1"}]}`
	)
	for name, c := range map[string]struct {
		text   string
		chains []string
	}{
		"one":       {base, []string{"eip155:8453"}},
		"list":      {"[" + aptos + "," + base + "]", []string{"aptos:mainnet", "eip155:8453"}},
		"object":    {`{"_note": 1, "chains": [` + base + "," + aptos + `]}`, []string{"eip155:8453", "aptos:mainnet"}},
		"with mark": {"\ufeff" + base, []string{"eip155:8453"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := parsed(t, c.text)
			require.Equal(t, c.chains, d.Chains())
			list := listed(t, d, "base")
			require.Equal(t, "eip155:8453", list.Key)
			require.Equal(t, []string{"https://a.test/key", "http://b.test"}, urlsOf(list))
			first := list.RPCs[0]
			require.InDelta(t, 97.5, first.Score, 0)
			require.Equal(t, uint64(24000000), first.Height)
			require.Equal(t, "true 10000 recent", said(first.Caps))
		})
	}
}

// What an RPC doesn't say of its capabilities the chain says, and what neither says
// is assumed; null is said to be unknown, and nothing fills it in (rule A3.1).
func TestStaticFileCapabilities(t *testing.T) {
	for _, c := range []struct{ chain, rpc, want string }{
		{``, ``, "true 1000 none"},
		{``, `{}`, "true 1000 none"},
		{``, `{"archive": "full"}`, "true 1000 full"},
		{``, `{"send_tx": false, "logs": 0}`, "false 0 none"},
		{``, `{"send_tx": null}`, "- 1000 none"},
		{``, `null`, "- - -"},
		{`{"logs": 10000}`, ``, "true 10000 none"},
		{`{"logs": 10000, "archive": "recent"}`, `{"archive": "none"}`, "true 10000 none"},
		{`{"logs": 10000}`, `{"logs": null, "send_tx": true}`, "true - none"},
		{`null`, ``, "- - -"},
		{`null`, `{"send_tx": true}`, "true - -"},
		{`{"logs": 2500}`, ``, "true 2500 none"},
	} {
		text := `{"chain": {"key": "eip155:1"}, `
		if c.chain != "" {
			text += `"caps": ` + c.chain + `, `
		}
		text += `"rpcs": [{"url": "https://a.test"`
		if c.rpc != "" {
			text += `, "caps": ` + c.rpc
		}
		list := listed(t, parsed(t, text+`}]}`), "1")
		require.Equal(t, c.want, said(list.RPCs[0].Caps), "chain %s, RPC %s", c.chain, c.rpc)
	}
}

// A chain is found by its key, by the id of an eip155 key, and by its aliases, given
// in code too; no name leads to another chain, and no id can be made to.
func TestStaticDirectoryLookup(t *testing.T) {
	d, err := rpcpool.NewStaticDirectory(
		rpcpool.List{Key: "eip155:8453", RPCs: []rpcpool.RPC{{URL: "https://a.test"}}},
		rpcpool.List{Key: "1", RPCs: []rpcpool.RPC{{URL: "https://b.test"}}},
		rpcpool.List{Key: "aptos:mainnet", RPCs: []rpcpool.RPC{{URL: "https://c.test"}}},
	)
	require.NoError(t, err)
	require.NoError(t, d.Alias("base", "8453"))
	require.NoError(t, d.Alias("Base mainnet", "base"))
	require.NoError(t, d.Alias("aptos", "aptos:mainnet"))
	for ref, key := range map[string]string{
		"eip155:8453": "eip155:8453", "8453": "eip155:8453", "base": "eip155:8453", "Base mainnet": "eip155:8453",
		"eip155:1": "eip155:1", "1": "eip155:1", "aptos:mainnet": "aptos:mainnet", "aptos": "aptos:mainnet",
	} {
		require.Equal(t, key, listed(t, d, ref).Key, ref)
	}
	for _, ref := range []string{"", "mainnet", "BASE", "eip155:", "84530", "eip155:08453", "0x2105", "10"} {
		_, err := d.RPCs(t.Context(), ref)
		wantUnknownChain(t, err, ref)
	}
	for _, c := range []struct{ name, ref, field string }{
		{"", "1", "name"}, {"base", "1", "name"}, {"8453", "1", "name"}, {"10", "1", "name"}, {"eip155:10", "1", "name"},
		{" x", "1", "name"}, {strings.Repeat("x", 65), "1", "name"}, {"x", "10", "ref"}, {"x", "", "ref"},
	} {
		var fault *rpcpool.ConfigError
		require.ErrorAs(t, d.Alias(c.name, c.ref), &fault)
		require.Equal(t, c.field, fault.Field, "alias %q of %q", c.name, c.ref)
	}
}

// Of many chains the refusal of an unknown one names some, and how many more there are.
func TestStaticDirectoryOfManyChains(t *testing.T) {
	var lists []rpcpool.List
	for id := range 25 {
		lists = append(lists, rpcpool.List{Key: fmt.Sprint(id + 1), RPCs: []rpcpool.RPC{{URL: "https://a.test"}}})
	}
	d, err := rpcpool.NewStaticDirectory(lists...)
	require.NoError(t, err)
	_, err = d.RPCs(t.Context(), "100")
	require.ErrorContains(t, err, "eip155:20 and 5 more")
	require.NotContains(t, err.Error(), "eip155:21")
}

// A request whose time is over gets the context's error.
func TestStaticDirectoryMindsTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := parsed(t, oneChain("eip155:1", "https://a.test")).RPCs(ctx, "1")
	require.ErrorIs(t, err, context.Canceled)
}

// wantUnknownChain checks that an error is a refusal that names the chains there are.
func wantUnknownChain(t *testing.T, err error, ref string) {
	t.Helper()
	var refusal *rpcpool.PoolAPIError
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, http.StatusNotFound, refusal.StatusCode)
	require.Equal(t, ref, refusal.Chain)
	require.Contains(t, refusal.Reason, "it has eip155:8453, eip155:1, aptos:mainnet")
	require.NotContains(t, refusal.Reason, "base")
}

// Lists given in code are checked like a file's: the error names the entry, and shows
// nothing of a URL but what may be shown.
func TestNewStaticDirectoryRefusesWhatCantBeUsed(t *testing.T) {
	good := rpcpool.List{Key: "eip155:1", RPCs: []rpcpool.RPC{{URL: "https://a.test/s3cret"}}}
	with := func(urls ...string) []rpcpool.List {
		list := rpcpool.List{Key: "eip155:10"}
		for _, u := range urls {
			list.RPCs = append(list.RPCs, rpcpool.RPC{URL: u})
		}
		return []rpcpool.List{good, list}
	}
	for name, c := range map[string]struct {
		lists []rpcpool.List
		field string
	}{
		"no list":        {nil, "lists"},
		"no key":         {[]rpcpool.List{good, {RPCs: good.RPCs}}, "lists[1].Key"},
		"key of no form": {[]rpcpool.List{{Key: "s3cret", RPCs: good.RPCs}}, "lists[0].Key"},
		"key twice":      {[]rpcpool.List{good, {Key: "1", RPCs: good.RPCs}}, "lists[1].Key"},
		"no RPC":         {with(), "lists[1].RPCs"},
		"no URL":         {with("https://a.test", ""), "lists[1].RPCs[1].URL"},
		"WebSocket":      {with("wss://a.test/s3cret"), "lists[1].RPCs[0].URL"},
		"placeholder":    {with("https://a.test/<s3cret>"), "lists[1].RPCs[0].URL"},
		"fragment":       {with("https://a.test/#s3cret"), "lists[1].RPCs[0].URL"},
		"no host":        {with("https://user:s3cret@/x"), "lists[1].RPCs[0].URL"},
		"login for port": {with("https://user:65536"), "lists[1].RPCs[0].URL"},
		"twice":          {with("https://a.test/s3cret", "https://b.test", "HTTPS://A.test:443/s3cret"), "lists[1].RPCs[2].URL"},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := rpcpool.NewStaticDirectory(c.lists...)
			require.Nil(t, d)
			var fault *rpcpool.ConfigError
			require.ErrorAs(t, err, &fault)
			require.Equal(t, c.field, fault.Field)
			require.NotContains(t, err.Error(), "s3cret")
			require.NotContains(t, err.Error(), "65536")
		})
	}
}

// URLs that differ in more than the way they are written are different RPCs.
func TestStaticDirectoryKeepsDifferentURLs(t *testing.T) {
	urls := []string{
		"https://a.test", "http://a.test", "https://a.test:8545", "https://a.test/x", "https://a.test/X", "https://a.test/?x",
		"https://user@a.test", "http://a.test:443", "https://a.test/x/", "http://[::1]:8545", "https://a.test/%78",
	}
	list := rpcpool.List{Key: "1"}
	for _, u := range urls {
		list.RPCs = append(list.RPCs, rpcpool.RPC{URL: u})
	}
	d, err := rpcpool.NewStaticDirectory(list)
	require.NoError(t, err)
	require.Equal(t, urls, urlsOf(listed(t, d, "1")))
}

// Lists are copied in and out: neither the caller's later changes nor those to a list
// that was handed out change the directory. What code leaves nil is assumed.
func TestStaticDirectoryCopies(t *testing.T) {
	logs, full := uint64(0), rpcpool.ArchiveFull
	given := rpcpool.List{Key: "eip155:1", RPCs: []rpcpool.RPC{{URL: "https://a.test"}, {URL: "https://b.test", Caps: rpcpool.Caps{Logs: &logs, Archive: &full}}}}
	d, err := rpcpool.NewStaticDirectory(given)
	require.NoError(t, err)
	require.Nil(t, given.RPCs[0].Caps.SendTx, "the caller's list is left alone")
	given.RPCs[0].URL, logs, full = "https://changed.test", 5, rpcpool.ArchiveNone

	out := listed(t, d, "1")
	*out.RPCs[0].Caps.SendTx, *out.RPCs[1].Caps.Archive = false, rpcpool.ArchiveRecent
	out.RPCs[0].URL = "https://changed.test"

	list := listed(t, d, "1")
	require.Equal(t, []string{"https://a.test", "https://b.test"}, urlsOf(list))
	require.Equal(t, "true 1000 none", said(list.RPCs[0].Caps))
	require.Equal(t, "true 0 full", said(list.RPCs[1].Caps))
}

// No printed, logged or JSON form of a directory shows more than chains and counts.
func TestStaticDirectoryShowsNoURL(t *testing.T) {
	d := parsed(t, `{"chain": {"key": "eip155:1"}, "rpcs": [{"url": "https://user-s3cret@a.test/s3cret?s3cret"}]}`)
	r := &room{t: t, w: rpcpooltest.New(t)}
	for _, value := range []any{d, *d, struct{ D *rpcpool.StaticDirectory }{d}, rpcpool.StaticDirectory{}} {
		r.forms("a directory", value)
		require.NotContains(t, fmt.Sprintf("%v %+v %#v %s %q %x %d", value, value, value, value, value, value, value), "s3cret")
	}
	require.NotContains(t, r.logged.String(), "s3cret")
	require.Equal(t, "rpcpool.StaticDirectory(eip155:1: 1 RPCs)", d.String())
}

// A directory that no constructor made, as after an error that was ignored, says so.
func TestStaticDirectoryNotMade(t *testing.T) {
	ignored, err := rpcpool.ReadStaticDirectory(filepath.Join(t.TempDir(), "none.json"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	for _, d := range []*rpcpool.StaticDirectory{ignored, {}} {
		_, err := d.RPCs(t.Context(), "1")
		var refusal *rpcpool.PoolAPIError
		require.ErrorAs(t, err, &refusal)
		require.Contains(t, refusal.Reason, "look at their error")
		require.Error(t, d.Alias("x", "1"))
		require.NoError(t, d.Report(t.Context(), rpcpool.Report{}))
		require.Empty(t, d.Chains())
	}
}

// listFile is a file of lists that a test edits.
type listFile struct {
	t    *testing.T
	path string
}

func newListFile(t *testing.T, text string) *listFile {
	t.Helper()
	f := &listFile{t, filepath.Join(t.TempDir(), "rpcpool.json")}
	f.edit(text)
	return f
}

func (f *listFile) edit(text string) {
	f.t.Helper()
	require.NoError(f.t, os.WriteFile(f.path, []byte(text), 0o600))
}

func (f *listFile) directory() *rpcpool.StaticDirectory {
	f.t.Helper()
	d, err := rpcpool.ReadStaticDirectory(f.path)
	require.NoError(f.t, err)
	return d
}

// oneChain is a file's text with one chain and these URLs.
func oneChain(key string, urls ...string) string {
	entries := make([]string, len(urls))
	for i, u := range urls {
		entries[i] = fmt.Sprintf("{%q: %q}", "url", u)
	}
	return fmt.Sprintf(`{"chain": {"key": %q}, "rpcs": [%s]}`, key, strings.Join(entries, ", "))
}

// An edit counts at the next request, be it of the same size and at the same time; a
// chain that was taken out is unknown, and what code has added stays.
func TestStaticFileEdited(t *testing.T) {
	f := newListFile(t, oneChain("eip155:1", "https://a.test"))
	d := f.directory()
	require.NoError(t, d.Alias("eth", "1"))
	before, err := os.Stat(f.path)
	require.NoError(t, err)

	f.edit(oneChain("eip155:1", "https://b.test"))
	require.NoError(t, os.Chtimes(f.path, before.ModTime(), before.ModTime()))
	require.Equal(t, []string{"https://b.test"}, urlsOf(listed(t, d, "eth")))

	f.edit(oneChain("eip155:10", "https://c.test"))
	_, err = d.RPCs(t.Context(), "1")
	var refusal *rpcpool.PoolAPIError
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, f.path+" has no such chain; it has eip155:10", refusal.Reason)
	require.Equal(t, []string{"eip155:10"}, d.Chains())

	f.edit(oneChain("eip155:1", "https://a.test"))
	require.Equal(t, []string{"https://a.test"}, urlsOf(listed(t, d, "eth")))
}

// An edit that can't be used keeps the lists read before, and each request says what
// is wrong, and where, until it is put right; a chain that isn't known may be in it,
// so that isn't a refusal.
func TestStaticFileBrokenByAnEdit(t *testing.T) {
	good := oneChain("eip155:1", "https://a.test/s3cret")
	for name, c := range map[string]struct {
		spoil func(f *listFile)
		want  string
	}{
		"typo":    {func(f *listFile) { f.edit("\n" + strings.Replace(good, "rpcs", "rpsc", 1)) }, `:2:32: unknown field "rpsc"; did you mean "rpcs"?`},
		"torn":    {func(f *listFile) { f.edit(good[:20]) }, ":1:21: it ends too early"},
		"emptied": {func(f *listFile) { f.edit("") }, ":1:1: there is nothing in it"},
		"removed": {func(f *listFile) { require.NoError(f.t, os.Remove(f.path)) }, ": the list can't be read: "},
		"a folder": {func(f *listFile) {
			require.NoError(f.t, os.Remove(f.path))
			require.NoError(f.t, os.Mkdir(f.path, 0o700))
		}, ": the list can't be read: it isn't a regular file any more"},
		"too large": {func(f *listFile) { f.edit(strings.Repeat(" ", 4<<20) + good) }, ": the list can't be read: it is larger than 4 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newListFile(t, good)
			d := f.directory()
			c.spoil(f)
			for range 2 {
				list, err := d.RPCs(t.Context(), "1")
				var fault *rpcpool.ListFileError
				require.ErrorAs(t, err, &fault)
				require.Equal(t, f.path, fault.File)
				require.True(t, strings.HasPrefix(err.Error(), "rpcpool: "+f.path+c.want), "%v", err)
				require.NotContains(t, err.Error(), "s3cret")
				require.NotNil(t, list)
				require.Equal(t, []string{"https://a.test/s3cret"}, urlsOf(list))
			}
			list, err := d.RPCs(t.Context(), "10")
			require.Nil(t, list)
			require.Error(t, err)
			var refusal *rpcpool.PoolAPIError
			require.NotErrorAs(t, err, &refusal)

			require.NoError(t, os.RemoveAll(f.path))
			f.edit(good)
			listed(t, d, "1")
		})
	}
}

// A relative path stays the same file where the program goes to another folder, and
// errors name it as it was given.
func TestStaticFileByRelativePath(t *testing.T) {
	f := newListFile(t, oneChain("eip155:1", "https://a.test"))
	t.Chdir(filepath.Dir(f.path))
	d, err := rpcpool.ReadStaticDirectory("rpcpool.json")
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	listed(t, d, "1")
	f.edit("{")
	_, err = d.RPCs(t.Context(), "1")
	require.EqualError(t, err, "rpcpool: rpcpool.json:1:2: it ends too early: the { of line 1 isn't closed")
	require.NoError(t, os.Remove(f.path))
	_, err = d.RPCs(t.Context(), "1")
	require.EqualError(t, err, "rpcpool: rpcpool.json: the list can't be read: no such file or directory")
}

// A pipe is read once: a list that is decrypted on the fly can be given too.
func TestStaticFileFromAPipe(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	path := fmt.Sprintf("/dev/fd/%d", r.Fd())
	if _, err := os.Stat(path); err != nil {
		t.Skip("this system has no /dev/fd")
	}
	_, err = w.WriteString(oneChain("eip155:1", "https://a.test"))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	d, err := rpcpool.ReadStaticDirectory(path)
	require.NoError(t, err)
	for range 2 {
		require.Equal(t, []string{"https://a.test"}, urlsOf(listed(t, d, "1")))
	}
}

// A file may be edited while many goroutines ask: each gets one of its versions whole.
func TestStaticFileEditedWhileRead(t *testing.T) {
	f := newListFile(t, oneChain("eip155:1", "https://a1.test", "https://a2.test"))
	d := f.directory()
	var readers sync.WaitGroup
	done := make(chan struct{})
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				list, err := d.RPCs(context.Background(), "1")
				if !assert.NoError(t, err) || !assert.Len(t, list.RPCs, 2) {
					return
				}
				assert.Equal(t, list.RPCs[0].URL[:9], list.RPCs[1].URL[:9])
				assert.Contains(t, d.String(), "eip155:1: 2 RPCs")
			}
		})
	}
	for i := range 100 {
		name := "ab"[i%2 : i%2+1]
		next := f.path + ".new"
		require.NoError(t, os.WriteFile(next, []byte(oneChain("eip155:1", "https://"+name+"1.test", "https://"+name+"2.test")), 0o600))
		require.NoError(t, os.Rename(next, f.path))
	}
	close(done)
	readers.Wait()
}

// staticPool makes a pool of a world's proxies and a directory, with its log.
func staticPool(t *testing.T, w *rpcpooltest.World, d rpcpool.Directory, change ...func(*rpcpool.Config)) (*rpcpool.Pool, *room) {
	t.Helper()
	r := newRoom(t, w)
	return r.open(append([]func(*rpcpool.Config){func(cfg *rpcpool.Config) {
		cfg.APIURL, cfg.APIKey = "", ""
		cfg.Directory = d
	}}, change...)...), r
}

// With nothing but URLs in the list reads, sends and log queries go round the ring;
// what nobody said to be had, old state, is refused. The pool service isn't asked.
func TestPoolOnAStaticDirectory(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		bad, good := w.Node("bad", rpcpooltest.Status(503)), w.Node("good", rpcpooltest.Result([]string{}))
		d := newListFile(t, oneChain("eip155:8453", bad.URL(), good.URL())).directory()
		var reports []rpcpool.Report
		d.OnReport = func(report rpcpool.Report) { reports = append(reports, report) }
		pool, r := staticPool(t, w, d)
		chain := pool.Chain("8453")
		for _, method := range []string{"eth_getBalance", "eth_sendRawTransaction"} {
			_, err := chain.Call(t.Context(), method, "0x00", "0x1")
			require.NoError(t, err, method)
		}
		_, err := chain.GetLogsChunked(t.Context(), rpcpool.LogFilter{FromBlock: 1, ToBlock: 2})
		require.NoError(t, err)
		require.Equal(t, []string{
			"bad p1 eth_getBalance", "good p1 eth_getBalance", "good p1 eth_sendRawTransaction", "good p1 eth_getLogs",
		}, w.Requests())

		var incapable *rpcpool.NoCapableRPCError
		_, err = pool.Chain("8453", rpcpool.WithArchive(rpcpool.ArchiveFull)).Call(t.Context(), "eth_getBalance")
		require.ErrorAs(t, err, &incapable)

		r.end(pool)
		require.Len(t, reports, 1)
		require.Equal(t, rpcpool.Report{Chain: "eip155:8453", URL: bad.URL(), Error: "rpc_error", Detail: reports[0].Detail}, reports[0])
		require.Empty(t, w.Pool.Asked())
		require.Empty(t, w.Pool.Reports())
	})
}

// A chain that isn't in the list is refused, though an earlier run left a cache file
// for it (rule A2.4).
func TestPoolOnAStaticDirectoryHidesNoUnknownChain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		node := w.Node("r1")
		w.List("10", node)
		_, err := open(t, w).Chain("10").Call(t.Context(), "eth_chainId")
		require.NoError(t, err)

		pool, _ := staticPool(t, w, parsed(t, oneChain("eip155:8453", node.URL())))
		_, err = pool.Chain("10").Call(t.Context(), "eth_chainId")
		var refusal *rpcpool.PoolAPIError
		require.ErrorAs(t, err, &refusal)
		require.Equal(t, http.StatusNotFound, refusal.StatusCode)
		require.ErrorContains(t, err, "it has eip155:8453")
	})
}

// An edit reaches a pool at its next refresh; a broken one is a warning, and calls go
// on with the list from before.
func TestPoolOnAnEditedFile(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		first, second := w.Node("first"), w.Node("second")
		f := newListFile(t, oneChain("eip155:1", first.URL()))
		pool, r := staticPool(t, w, f.directory())
		call := func() string {
			t.Helper()
			_, err := pool.Chain("1").Call(t.Context(), "eth_chainId")
			require.NoError(t, err)
			requests := w.Requests()
			return requests[len(requests)-1]
		}
		require.Equal(t, "first p1 eth_chainId", call())

		f.edit(strings.Replace(oneChain("eip155:1", second.URL()), "url", "ulr", 1))
		require.Equal(t, "first p1 eth_chainId", call())
		require.NotContains(t, r.logged.String(), "did you mean")
		time.Sleep(rpcpool.DefaultRefreshInterval)
		require.Equal(t, "first p1 eth_chainId", call())
		require.Contains(t, r.logged.String(), `:1:42: rpcs[0]: unknown field \"ulr\"; did you mean \"url\"?`)

		f.edit(oneChain("eip155:1", second.URL()))
		time.Sleep(rpcpool.DefaultRefreshInterval)
		require.Equal(t, "second p1 eth_chainId", call())
		for _, secret := range w.Secrets() {
			require.NotContains(t, r.logged.String(), secret)
		}
	})
}

// Proxies are checked by the best RPCs of eip155:1 where the list has that chain, or
// by ProxyCheckURL; with neither a proxy counts as alive, and its failures stay the
// RPCs' (rule A7.2).
func TestProxyChecksOnAStaticDirectory(t *testing.T) {
	for name, c := range map[string]struct {
		ethereum, configured bool
		dead                 bool
	}{
		"eip155:1 listed": {ethereum: true, dead: true},
		"ProxyCheckURL":   {configured: true, dead: true},
		"neither":         {dead: false},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				w.Proxy("dark", rpcpooltest.ProxyBlackHole())
				w.Proxy("p2")
				node, check := w.Node("r1"), w.Node("check")
				chains := "[" + oneChain("eip155:8453", node.URL())
				if c.ethereum {
					chains += ", " + oneChain("eip155:1", check.URL())
				}
				pool, _ := staticPool(t, w, parsed(t, chains+"]"), func(cfg *rpcpool.Config) {
					if c.configured {
						cfg.ProxyCheckURL = check.URL()
					}
				})
				_, err := pool.Chain("8453").Call(t.Context(), "eth_chainId")
				if c.dead {
					require.NoError(t, err)
					return
				}
				var unhealthy *rpcpool.NoHealthyRPCError
				require.ErrorAs(t, err, &unhealthy)
			})
		})
	}
}

func ExampleNewStaticDirectory() {
	lists, err := rpcpool.NewStaticDirectory(rpcpool.List{Key: "eip155:8453", RPCs: []rpcpool.RPC{
		{URL: "https://rpc-1.example.org/v2/your-key", Caps: rpcpool.Caps{Archive: new(rpcpool.ArchiveFull)}},
		{URL: "https://rpc-2.example.com"},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	pool, err := rpcpool.New(rpcpool.Config{Proxies: []string{"socks5://proxy-a.example.com:1080"}, Directory: lists})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pool.Close()
	fmt.Println(lists)
	// Output: rpcpool.StaticDirectory(eip155:8453: 2 RPCs)
}

func ExampleParseStaticDirectory() {
	_, err := rpcpool.ParseStaticDirectory([]byte(`{
	"chain": {"key": "eip155:8453"},
	"rpcs": [{"url": "https://rpc-1.example.org/v2/your-key", "caps": {"archve": "full"}}]
}`))
	fmt.Println(err)
	// Output: rpcpool: line 3, column 69: rpcs[0].caps: unknown field "archve"; did you mean "archive"?
}

// The example file, and every list in the page about them and in the README, can be
// read as they stand.
func TestStaticFilesOfTheDocs(t *testing.T) {
	d, err := rpcpool.ReadStaticDirectory("examples/rpcpool.json")
	require.NoError(t, err)
	require.Equal(t, "eip155:8453", listed(t, d, "base").Key)
	require.Contains(t, d.Chains(), "eip155:1", "proxies are checked by it")
	blocks := 0
	for _, page := range []string{"README.md", "docs/DIRECTORY.md"} {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, part := range strings.Split(string(text), "```json\n")[1:] {
			block, _, _ := strings.Cut(part, "```")
			if !strings.Contains(block, `"rpcs"`) {
				continue
			}
			_, err := rpcpool.ParseStaticDirectory([]byte(block))
			require.NoError(t, err, "%s:\n%s", page, block)
			blocks++
		}
	}
	require.GreaterOrEqual(t, blocks, 3)
}

// Whatever is in a file: it is read or refused without a panic; what is accepted has
// chains, each with a key, and RPCs with http(s) URLs that have a host, none twice;
// what is refused has a place in the file, and no text of the file is shown.
func FuzzStaticFile(f *testing.F) {
	files, err := filepath.Glob("testdata/static/broken/*.json")
	require.NoError(f, err)
	for _, file := range append(files, "examples/rpcpool.json") {
		text, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(text)
	}
	f.Add([]byte(`[{"chain":{"key":"1"},"caps":null,"rpcs":[{"url":"http://[::1]:1/?a","caps":{"logs":null}}]}]`))
	f.Add([]byte(strings.Repeat("[", 12000)))
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := rpcpool.ParseStaticDirectory(text)
		if err != nil {
			require.Nil(t, d)
			var fault *rpcpool.ListFileError
			require.ErrorAs(t, err, &fault)
			require.Positive(t, fault.Line)
			require.Positive(t, fault.Column)
			require.LessOrEqual(t, fault.Line, 1+strings.Count(string(text), "\n"))
			wantHidden(t, text, err)
			return
		}
		require.NotEmpty(t, d.Chains())
		for _, key := range d.Chains() {
			list := listed(t, d, key)
			require.Equal(t, key, list.Key)
			require.NotEmpty(t, list.RPCs)
			seen := map[string]bool{}
			for _, rpc := range list.RPCs {
				u, err := url.Parse(rpc.URL)
				require.NoError(t, err)
				require.Contains(t, []string{"http", "https"}, u.Scheme)
				require.NotEmpty(t, u.Hostname())
				require.False(t, seen[rpc.URL])
				seen[rpc.URL] = true
			}
		}
	})
}

// wantHidden checks that an error shows none of the texts that are a file's values,
// as far as they look like secrets. A chain's key may be shown, and a field's name.
func wantHidden(t *testing.T, text []byte, err error) {
	t.Helper()
	var root any
	if json.Unmarshal(text, &root) != nil {
		return
	}
	values, names := textsIn(root)
	for _, value := range values {
		switch {
		case len(value) < 8 || !strings.ContainsAny(value, "0123456789") || names[value]:
		case keyLike.MatchString(value):
		default:
			require.NotContains(t, err.Error(), value)
		}
	}
}

var keyLike = regexp.MustCompile(`^[a-z0-9-]+:[0-9A-Za-z._-]+$|^\d+$`)

// textsIn gives the texts in a decoded JSON value, and the names of its fields.
func textsIn(value any) (values []string, names map[string]bool) {
	names = map[string]bool{}
	var walk func(any)
	walk = func(value any) {
		switch value := value.(type) {
		case string:
			values = append(values, value)
		case []any:
			for _, item := range value {
				walk(item)
			}
		case map[string]any:
			for name, item := range value {
				names[name] = true
				walk(item)
			}
		}
	}
	walk(value)
	return values, names
}
