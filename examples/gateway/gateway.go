package main

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bomzrpc/rpcpool"
)

// gateway serves the chains of a pool to programs, and its own state to people.
type gateway struct {
	pool      *rpcpool.Pool
	routes    *routes
	journal   *journal
	admission admission
	mode      rpcpool.Mode
	demo      bool
	limit     time.Duration // for one request altogether
	maxBody   int64
	started   time.Time

	calls    calls
	watchers atomic.Int64
	closing  chan struct{} // closed when the program is about to end
	closed   sync.Once
}

func newGateway(opts *options, pool *rpcpool.Pool, j *journal) *gateway {
	return &gateway{
		pool:      pool,
		routes:    newRoutes(pool, opts.chains, overRing),
		journal:   j,
		admission: newAdmission(opts.listen, opts.hosts, opts.cors),
		mode:      opts.config.Mode,
		demo:      opts.demo,
		limit:     opts.limit,
		maxBody:   opts.maxBody,
		started:   time.Now(),
		closing:   make(chan struct{}),
	}
}

// handler gives everything that is served.
func (g *gateway) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /{$}", newPage())
	mux.HandleFunc("GET /status.json", g.statusJSON)
	mux.HandleFunc("GET /events", g.events)
	mux.HandleFunc("GET /healthz", g.health)
	mux.HandleFunc("POST /{chain}", g.rpc)
	mux.HandleFunc("POST /{chain}/{$}", g.rpc)
	mux.HandleFunc("/{chain}", onlyPost)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusNotFound, "there is nothing here; chains are at /8453 and the like, the status is at /")
	})
	return g.admission.guard(mux)
}

// onlyPost answers who opens a chain in a browser, or tries a WebSocket.
func onlyPost(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Allow", http.MethodPost)
	text := "a chain is called by POST, with a JSON-RPC request as the body"
	if r.Header.Get("Upgrade") != "" {
		text = "there are no WebSockets here, and no subscriptions: call the chain by POST, over http"
	}
	refuse(w, http.StatusMethodNotAllowed, text)
}

// end has event streams end and health checks fail. Requests go on.
func (g *gateway) end() { g.closed.Do(func() { close(g.closing) }) }
