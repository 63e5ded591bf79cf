package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/bomzrpc/rpcpool"
)

// maxRoutes bounds how many chains are served where any may be asked for: each
// costs memory for as long as the program runs.
const maxRoutes = 100

// reserved are paths of the gateway's own.
var reserved = []string{"status.json", "events", "healthz", "favicon.ico", "robots.txt"}

// route is a chain as the gateway serves it.
type route struct {
	name   string // as the page shows it: the reference, and the archive level where there is one
	path   string // under which it is called
	chain  *rpcpool.Chain
	client http.RoundTripper // JSON-RPC over the chain's ring

	trouble atomic.Pointer[string] // why the last request had no answer; nil where it had one
}

// note keeps, for the page, why a request couldn't be answered; nil where it was.
func (r *route) note(f *fault) {
	if f == nil || f.status < http.StatusInternalServerError && f.data.Kind != kindUnknownChain {
		r.trouble.Store(nil)
		return
	}
	r.trouble.Store(&f.message)
}

// routes are the chains that are served, in the order in which they were first
// asked for.
type routes struct {
	pool  *rpcpool.Pool
	only  []string // the references that may be asked for; none: any
	reach func(*rpcpool.Chain) http.RoundTripper

	mu    sync.Mutex // protects list
	list  []*route
	known map[string]*route // by name
}

// unserved is the fault of a request whose method no RPC of the chain serves. Programs
// ask for such methods to find out, and go on without: it must not look like an outage.
func (r *route) unserved(request []byte) *fault {
	var called struct {
		Method string `json:"method"`
	}
	if json.Unmarshal(request, &called) != nil || called.Method == "" {
		return nil
	}
	rpcs := r.chain.Stats()
	for _, rpc := range rpcs {
		if !slices.Contains(rpc.Unsupported, called.Method) {
			return nil
		}
	}
	if len(rpcs) == 0 {
		return nil
	}
	return &fault{
		status: http.StatusOK, code: codeUnknownMethod,
		message: fmt.Sprintf("the method %s isn't served by any of the %d RPCs", clip(called.Method, longestName), len(rpcs)),
		data:    faultData{Kind: "unsupported"},
	}
}

func newRoutes(pool *rpcpool.Pool, only []string, reach func(*rpcpool.Chain) http.RoundTripper) *routes {
	t := &routes{pool: pool, only: only, reach: reach, known: map[string]*route{}}
	for _, ref := range only {
		t.add(ref, rpcpool.ArchiveNone)
	}
	return t
}

// find gives the route of a chain; where it isn't served, what to answer.
func (t *routes) find(ref, archive string) (*route, *fault) {
	if !usableRef(ref) {
		return nil, notServed("the path isn't a chain; call /8453, /eip155:8453 or /aptos:mainnet")
	}
	if len(t.only) > 0 && !slices.Contains(t.only, ref) {
		return nil, notServed("the gateway doesn't serve this chain; -chains says which it does")
	}
	level := rpcpool.ArchiveNone
	switch archive {
	case "", "none":
	case "recent":
		level = rpcpool.ArchiveRecent
	case "full":
		level = rpcpool.ArchiveFull
	default:
		return nil, notServed("archive takes recent or full")
	}
	if r := t.add(ref, level); r != nil {
		return r, nil
	}
	return nil, notServed("the gateway serves as many chains as it can; name those that you need by -chains")
}

// add gives the route, which it makes where it is new; nil where there are too many.
func (t *routes) add(ref string, level rpcpool.Archive) *route {
	name, path := ref, "/"+ref
	if level != rpcpool.ArchiveNone {
		name, path = ref+" (archive "+level.String()+")", path+"?archive="+level.String()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.known[name]
	if r != nil || len(t.list) >= maxRoutes {
		return r
	}
	chain := t.pool.Chain(ref, rpcpool.WithArchive(level))
	r = &route{name: name, path: path, chain: chain, client: t.reach(chain)}
	t.known[name] = r
	t.list = append(t.list, r)
	return r
}

// all gives the routes at a moment.
func (t *routes) all() []*route {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.list)
}

// usableRef tells whether a reference can be a chain's, and stand in a path.
func usableRef(ref string) bool {
	const marks = ":._-"
	if ref == "" || len(ref) > 100 || slices.Contains(reserved, ref) || strings.Contains(marks, ref[:1]) {
		return false
	}
	for _, c := range []byte(ref) {
		digit, letter := c >= '0' && c <= '9', c|0x20 >= 'a' && c|0x20 <= 'z'
		if !digit && !letter && !strings.ContainsRune(marks, rune(c)) {
			return false
		}
	}
	return true
}
