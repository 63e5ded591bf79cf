package rpcpooltest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

// PoolAPI is the service that lists RPCs and takes reports. A reference for
// which nothing was scripted is unknown to it (404).
type PoolAPI struct {
	url     *url.URL
	key     string
	network *Network
	server  service
	reports script[PoolReply]

	closing atomic.Bool // after each answer

	mu       sync.Mutex // protects what follows
	lists    map[string]*script[PoolReply]
	asked    []ListRequest
	received []Report
}

// ListRequest is a request for a list.
type ListRequest struct {
	// Chain is the reference, unescaped.
	Chain string
	// Time is when it arrived.
	Time time.Time
}

// Report is a complaint about an RPC, as it arrived.
type Report struct {
	Chain  string `json:"chain"`
	URL    string `json:"url"`
	Error  string `json:"error"`
	Detail string `json:"detail"`
	// Time is when it arrived.
	Time time.Time `json:"-"`
}

// reportErrors are the errors that the pool knows.
var reportErrors = []string{"timeout", "http_403", "http_429", "conn", "rpc_error"}

// detailLimit is how many characters a report's detail may have.
const detailLimit = 500

// NewPoolAPI starts a pool API. Its URL is what rpcpool.Config.APIURL takes, the
// key what APIKey takes; requests without the key are answered 401. It panics
// where the URL can't be used or is taken.
func NewPoolAPI(network *Network, rawURL, key string) *PoolAPI {
	u := parseURL(rawURL, "http", "https")
	p := &PoolAPI{url: u, key: key, network: network, lists: map[string]*script[PoolReply]{}}
	p.server = service{network: network, zone: clientZone, addr: hostPort(u), serve: p.serve}
	p.server.start()
	return p
}

// URL is the pool's URL.
func (p *PoolAPI) URL() string { return p.url.String() }

// Key is the API key that the pool demands.
func (p *PoolAPI) Key() string { return p.key }

// Addr is the pool's "name:port", as [Network.Dials] shows it.
func (p *PoolAPI) Addr() string { return p.server.addr }

// Lists replaces the answers to requests for the list of one reference, such as
// "8453" or "eip155:8453": for each request the first entry whose conditions
// hold, and that isn't used up; 404 where none fits.
func (p *PoolAPI) Lists(ref string, script ...PoolReply) { p.listsOf(ref).set(script) }

// ListsThen adds answers at the end.
func (p *PoolAPI) ListsThen(ref string, script ...PoolReply) { p.listsOf(ref).add(script) }

func (p *PoolAPI) listsOf(ref string) *script[PoolReply] {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lists[ref] == nil {
		p.lists[ref] = &script[PoolReply]{}
	}
	return p.lists[ref]
}

// ScriptReports replaces the answers to reports; 202 where none fits.
func (p *PoolAPI) ScriptReports(script ...PoolReply) { p.reports.set(script) }

// SetKeepAlive decides whether connections stay open after an answer. They do
// unless it is turned off.
func (p *PoolAPI) SetKeepAlive(on bool) { p.closing.Store(!on) }

// Asked gives the requests for lists, in order, whatever was answered.
func (p *PoolAPI) Asked() []ListRequest {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked)
}

// Reports gives the reports that arrived, in order, whatever was answered.
func (p *PoolAPI) Reports() []Report {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.received)
}

// Kill takes the pool off the network: its connections break, new ones are
// refused.
func (p *PoolAPI) Kill() { p.server.stop() }

// Revive brings a killed pool back.
func (p *PoolAPI) Revive() {
	if !p.server.up() {
		p.server.start()
	}
}

func (p *PoolAPI) serve(l *link) {
	if p.url.Scheme == "https" && l.secure(p.network.ca.serverConfig(p.url.Hostname())) != nil {
		return
	}
	for {
		l.settle()
		r, err := http.ReadRequest(l.br)
		if err != nil {
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		reply := p.choose(r, body)
		request := Request{Header: r.Header, Body: body, Method: r.Method + " " + r.URL.RequestURI(), Time: time.Now(), ctx: l.ctx}
		if !l.pause(reply.when.delay) {
			return
		}
		if _, there := reply.when.gate.hold(l, request); !there {
			return
		}
		w := &answer{link: l, request: r, closing: p.closing.Load() || r.Close}
		if !w.give(reply.asReply(), request) {
			return
		}
	}
}

// asReply is the reply in the form in which answers are written.
func (r PoolReply) asReply() Reply {
	reply := Reply{act: r.act, status: r.status, header: r.header}
	return reply.Text(r.body).typed()
}

// typed says application/json unless a header says otherwise.
func (r Reply) typed() Reply {
	if r.header.Get("Content-Type") != "" {
		return r
	}
	return r.Header("Content-Type", "application/json")
}

// choose notes a request and gives the answer to it.
func (p *PoolAPI) choose(r *http.Request, body []byte) PoolReply {
	if r.Header.Get("X-API-Key") != p.key {
		p.network.trace.breach("pool API: %s without the API key", r.Method)
		return PoolStatus(http.StatusUnauthorized)
	}
	path, ours := strings.CutPrefix(r.URL.EscapedPath(), strings.TrimSuffix(p.url.EscapedPath(), "/"))
	if ref, ok := listPath(path); ours && ok && r.Method == http.MethodGet {
		return p.list(r, ref)
	}
	if ours && path == "/v1/report" && r.Method == http.MethodPost {
		return p.report(r, body)
	}
	p.network.trace.breach("pool API: %s %s, which it doesn't serve", r.Method, path)
	return PoolStatus(http.StatusNotFound)
}

// listPath reads the reference out of /v1/chains/{ref}/rpcs.
func listPath(path string) (ref string, ok bool) {
	rest, begins := strings.CutPrefix(path, "/v1/chains/")
	escaped, ends := strings.CutSuffix(rest, "/rpcs")
	if !begins || !ends || strings.Contains(escaped, "/") {
		return "", false
	}
	ref, err := url.PathUnescape(escaped)
	return ref, err == nil && ref != ""
}

func (p *PoolAPI) list(r *http.Request, ref string) PoolReply {
	if r.URL.RawQuery != "transport=http" {
		p.network.trace.breach("pool API: a list was asked for with the query %q instead of transport=http", r.URL.RawQuery)
	}
	p.mu.Lock()
	p.asked = append(p.asked, ListRequest{Chain: ref, Time: time.Now()})
	script := p.lists[ref]
	p.mu.Unlock()
	if script != nil {
		if reply, ok := script.take(question{step: p.network.currentStep()}); ok {
			return reply
		}
	}
	return PoolStatus(http.StatusNotFound)
}

func (p *PoolAPI) report(r *http.Request, body []byte) PoolReply {
	var report Report
	err := json.Unmarshal(body, &report)
	if fault := reportFault(r, report, err); fault != "" {
		p.network.trace.breach("pool API: a report %s", fault)
		return PoolStatus(http.StatusBadRequest)
	}
	report.Time = time.Now()
	p.mu.Lock()
	p.received = append(p.received, report)
	p.mu.Unlock()
	if reply, ok := p.reports.take(question{step: p.network.currentStep()}); ok {
		return reply
	}
	return PoolTake()
}

// reportFault tells what is wrong with a report; empty for nothing.
func reportFault(r *http.Request, report Report, err error) string {
	switch {
	case err != nil:
		return "that can't be read"
	case !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json"):
		return fmt.Sprintf("whose Content-Type is %q", r.Header.Get("Content-Type"))
	case report.Chain == "" || report.URL == "":
		return "without a chain or URL"
	case !slices.Contains(reportErrors, report.Error):
		return fmt.Sprintf("of the unknown error %q", report.Error)
	case utf8.RuneCountInString(report.Detail) > detailLimit:
		return fmt.Sprintf("whose detail has more than %d characters", detailLimit)
	}
	return ""
}
