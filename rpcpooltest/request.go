package rpcpooltest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"time"
)

// Request is a request as it arrived at a [Node].
type Request struct {
	// Node is the node's name.
	Node string
	// Via is the name of the proxy that carried it; empty for [Node.Client].
	Via string
	// Method is the JSON-RPC method. Of a request that isn't JSON-RPC, on a node
	// that takes such ones, it is the HTTP method and the path with its query,
	// such as "GET /v1/accounts?limit=5".
	Method string
	// Params and ID are the request's, as they came; nil where absent.
	Params, ID json.RawMessage
	// Header is the HTTP header.
	Header http.Header
	// Body is the whole body; of one request of a batch the batch's.
	Body []byte
	// Time is when it had arrived.
	Time time.Time

	ctx context.Context
}

// Context ends when the client has gone or the node is closed. A function given
// to [Handle] that waits must wait for it, too.
func (r Request) Context() context.Context {
	if r.ctx == nil {
		return context.Background()
	}
	return r.ctx
}

// Param decodes the param at position i, from 0, into v.
func (r Request) Param(i int, v any) error {
	var params []json.RawMessage
	if err := json.Unmarshal(r.Params, &params); err != nil {
		return fmt.Errorf("rpcpooltest: params of %s: %w", r.Method, err)
	}
	if i >= len(params) {
		return fmt.Errorf("rpcpooltest: %s has %d params, asked for number %d", r.Method, len(params), i)
	}
	return json.Unmarshal(params[i], v)
}

// envelope is a JSON-RPC request on the wire.
type envelope struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
}

// fault is what is wrong with a request: what a client must not do, and the
// HTTP status that it gets for it.
type fault struct {
	status int
	text   string
}

func (f *fault) Error() string { return f.text }

// checkHTTP tells what is wrong with a JSON-RPC request's head.
func checkHTTP(r *http.Request, path string) *fault {
	if r.URL.RequestURI() != path {
		return &fault{http.StatusNotFound, "a request for another path than the node's"}
	}
	if r.Method != http.MethodPost {
		return &fault{http.StatusMethodNotAllowed, "HTTP method " + r.Method + " instead of POST"}
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return &fault{http.StatusUnsupportedMediaType,
			fmt.Sprintf("Content-Type %q instead of application/json", r.Header.Get("Content-Type"))}
	}
	return nil
}

// decode reads a body as a request, or a batch of them.
func decode(body []byte) (requests []envelope, batch bool, f *fault) {
	body = bytes.TrimSpace(body)
	if len(body) > 0 && body[0] == '[' {
		batch = true
		if json.Unmarshal(body, &requests) != nil || len(requests) == 0 {
			return nil, true, &fault{http.StatusBadRequest, "a batch that can't be read"}
		}
	} else {
		requests = make([]envelope, 1)
		if json.Unmarshal(body, &requests[0]) != nil {
			return nil, false, &fault{http.StatusBadRequest, "a body that isn't a JSON-RPC request"}
		}
	}
	for _, e := range requests {
		switch {
		case e.Version != "2.0":
			return nil, batch, &fault{http.StatusBadRequest, fmt.Sprintf("jsonrpc %q instead of 2.0", e.Version)}
		case len(e.ID) == 0 || string(e.ID) == "null":
			return nil, batch, &fault{http.StatusBadRequest, "a request without an id"}
		case e.Method == "":
			return nil, batch, &fault{http.StatusBadRequest, "a request without a method"}
		}
	}
	return requests, batch, nil
}
