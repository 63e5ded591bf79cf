package rpcpool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/bomzrpc/rpcpool/internal/jsonrpc"
)

// HTTPOption changes what [Chain.HTTPClient] gives.
type HTTPOption func(*httpOptions)

type httpOptions struct {
	join       func(rpcPath, path string) string // of a REST client; nil for JSON-RPC
	repeatable func(*http.Request) bool          // nil: GET and HEAD only
}

// HTTPClient gives a client for any SDK that takes an *http.Client: what the SDK sends
// goes round the ring (rule E1). The URL that the SDK is given is a label; no request
// goes to it. Each client is a new one, so the SDK may change it; they share the
// handle's list, cursor and cooldowns.
//
//	client, err := rpc.DialOptions(ctx, "http://base", rpc.WithHTTPClient(chain.HTTPClient()))
//
// The client takes JSON-RPC POSTs, single requests and batches; for REST APIs see
// [REST]. Method and params go out as they came, whatever they are; the answer has the
// caller's own id, byte for byte, and the result as the node wrote it.
//
//   - An [*RPCError] is answered as the JSON-RPC error that it is, under HTTP 200.
//   - An [*HTTPError] is answered with its status and a text of ours.
//   - Any other error is the request's error. The client wraps it in an *url.Error, in
//     which errors.As finds it.
//   - What isn't JSON is answered by error −32700, an empty batch or what is no request
//     by −32600, as servers do.
//   - A notification (no id) is sent and answered by an empty 204.
//   - In a batch every request has a failover of its own (see [Chain.BatchCallContext]).
//     One that fails while others are answered gets error −32603, or −32600 where it is
//     at fault itself; if none is answered, the error is the whole request's.
//   - Anything but a JSON-RPC POST is a *[RequestError], and so is a subscription,
//     which needs a WebSocket.
//
// Request context, http.Client.Timeout and closing the body early work as with a real
// server. Answers are never compressed, whatever the SDK's Accept-Encoding says.
func (c *Chain) HTTPClient(opts ...HTTPOption) *http.Client {
	var options httpOptions
	for _, opt := range opts {
		if opt != nil {
			opt(&options)
		}
	}
	if options.join != nil {
		return &http.Client{
			Transport: &restTransport{chain: c.s, options: options},
			// A redirect carries the address of one RPC, which isn't another's.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	return &http.Client{Transport: &rpcTransport{chain: c.s}}
}

// rpcTransport carries an SDK's JSON-RPC requests round the ring.
type rpcTransport struct {
	chain    *chainState
	snapshot *snapshotState // of which all reads are; nil: none
}

// RoundTrip answers a JSON-RPC POST.
func (t *rpcTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := checkRPCPost(req); err != nil {
		closeBody(req)
		return nil, err
	}
	body, err := readBody(req)
	if err != nil {
		return nil, err
	}
	requests, batch, fault := jsonrpc.ParseRequests(body)
	switch {
	case fault != nil:
		return jsonResponse(req, failureAnswer(jsonrpc.Null, rpcErrorOf(fault))), nil
	case batch:
		return t.answerBatch(req, requests)
	}
	return t.answerOne(req, &requests[0])
}

func (t *rpcTransport) answerOne(req *http.Request, r *jsonrpc.Request) (*http.Response, error) {
	if r.Fault != nil {
		return jsonResponse(req, failureAnswer(r.ID, rpcErrorOf(r.Fault))), nil
	}
	result, err := t.call(req.Context(), r)
	if refused, ok := errors.AsType[*HTTPError](err); ok {
		return textResponse(req, refused.StatusCode, refused.Error()), nil
	}
	if !isAnswer(err) {
		return nil, err
	}
	return jsonResponse(req, answerTo(r, result, err)), nil
}

// call carries one request round the ring.
func (t *rpcTransport) call(ctx context.Context, r *jsonrpc.Request) (json.RawMessage, error) {
	if t.snapshot != nil {
		return t.snapshot.call(ctx, r.Method, r.Params)
	}
	call, err := newRawCall(t.chain.pool, r)
	if err != nil {
		return nil, err
	}
	return t.chain.do(t.chain.pool.asKind(ctx, KindHTTP), call)
}

// callAll carries the requests of a batch round the ring.
func (t *rpcTransport) callAll(ctx context.Context, requests []jsonrpc.Request) []batchElement {
	calls := make([]batchElement, len(requests))
	var each errgroup.Group // of a snapshot each is a read of its own
	each.SetLimit(singlesAtOnce)
	for i := range requests {
		switch r := &requests[i]; {
		case r.Fault != nil:
			calls[i].err = rpcErrorOf(r.Fault)
		case t.snapshot != nil:
			each.Go(func() error {
				calls[i].result, calls[i].err = t.call(ctx, r)
				return nil
			})
		default:
			calls[i].call, calls[i].err = newRawCall(t.chain.pool, r)
		}
	}
	if t.snapshot == nil {
		t.chain.doBatch(ctx, calls)
	}
	_ = each.Wait()
	return calls
}

func (t *rpcTransport) answerBatch(req *http.Request, requests []jsonrpc.Request) (*http.Response, error) {
	calls := t.callAll(req.Context(), requests)
	if err := batchError(calls); err != nil {
		return nil, err
	}
	var parts [][]byte
	for i := range requests {
		answer := answerTo(&requests[i], calls[i].result, calls[i].err)
		if len(answer) == 0 {
			continue
		}
		separator := ","
		if len(parts) == 0 {
			separator = "["
		}
		parts = append(append(parts, []byte(separator)), answer...)
	}
	if len(parts) > 0 {
		parts = append(parts, []byte("]"))
	}
	return jsonResponse(req, parts), nil
}

// newRawCall makes a call of a request that a caller wrote himself: the params are sent
// as the bytes that they are, absent ones not at all.
func newRawCall(p *poolState, r *jsonrpc.Request) (*callRequest, error) {
	if subscribes(r.Method) {
		return nil, &RequestError{
			Method: r.Method,
			Reason: "subscriptions need a WebSocket, and RPCs are reached over HTTP only; poll instead, by eth_blockNumber or eth_getLogs",
		}
	}
	id := p.ids.Add(1)
	return &callRequest{
		pool: p, name: r.Method, params: r.Params, id: id,
		body: jsonrpc.AppendRawRequest(nil, id, r.Method, r.Params),
	}, nil
}

// subscribes tells whether a method asks for, or ends, a stream of messages. Chains call
// theirs eth_subscribe, accountSubscribe, suix_subscribeEvent, subscribe …
func subscribes(method string) bool {
	name := strings.ToLower(method)
	return strings.HasSuffix(name, "subscribe") || strings.Contains(name, "_subscribe")
}

// answerTo gives the answer to a request in parts, of which the result is one, so that a
// large one isn't copied (rule F2). A notification has none.
func answerTo(r *jsonrpc.Request, result json.RawMessage, err error) [][]byte {
	switch {
	case r.ID == nil:
		return nil
	case err != nil:
		return failureAnswer(r.ID, err)
	}
	return [][]byte{jsonrpc.AppendResultHead(nil, r.ID), result, []byte("}")}
}

// failureAnswer says in an answer why there is no result.
func failureAnswer(id json.RawMessage, err error) [][]byte {
	if e, ok := errors.AsType[*RPCError](err); ok {
		return [][]byte{jsonrpc.AppendErrorAnswer(nil, id, e.Code, e.Message, e.Data)}
	}
	code := jsonrpc.CodeInternal
	_, unsendable := errors.AsType[*RequestError](err)
	if _, refused := errors.AsType[*HTTPError](err); refused || unsendable {
		code = jsonrpc.CodeNotRequest
	}
	return [][]byte{jsonrpc.AppendErrorAnswer(nil, id, code, err.Error(), nil)}
}

func misuse(reason string) error { return &RequestError{Method: "HTTPClient", Reason: reason} }

// checkRPCPost refuses what can't be a JSON-RPC POST.
func checkRPCPost(req *http.Request) error {
	kind := req.Header.Get("Content-Type")
	encoding := req.Header.Get("Content-Encoding")
	switch {
	case isWebSocket(req):
		return misuse("RPCs are reached over HTTP only, not by WebSocket; give the SDK an http:// URL, and poll instead of subscribing")
	case req.Method != http.MethodPost:
		return misuse(fmt.Sprintf("JSON-RPC is sent by POST, not by %s; for a REST API use HTTPClient(REST(…))", orGET(req.Method)))
	case req.Body == nil || req.Body == http.NoBody:
		return misuse("the POST has no body")
	case encoding != "" && encoding != "identity":
		return misuse(fmt.Sprintf("the body is compressed (Content-Encoding %q); send it plain", encoding))
	case !isJSONType(kind):
		return misuse(fmt.Sprintf("Content-Type %q isn't JSON", kind))
	}
	return nil
}

// isWebSocket tells whether a request wants to become a WebSocket.
func isWebSocket(req *http.Request) bool {
	return req.Header.Get("Upgrade") != "" || req.URL != nil && (req.URL.Scheme == "ws" || req.URL.Scheme == "wss")
}

func orGET(method string) string {
	if method == "" {
		return http.MethodGet
	}
	return method
}

// isJSONType tells whether a body of this type may be JSON. Clients of Bitcoin's kin say
// text/plain.
func isJSONType(header string) bool {
	if header == "" {
		return true
	}
	kind, _, err := mime.ParseMediaType(header)
	if err != nil {
		return false
	}
	switch kind {
	case "application/json", "application/json-rpc", "application/jsonrequest", "text/json", "text/plain":
		return true
	}
	return strings.HasSuffix(kind, "+json")
}

// readBody reads and closes a request's body. The request's context ends it.
func readBody(req *http.Request) ([]byte, error) {
	if req.Body == nil {
		return nil, nil
	}
	stop := context.AfterFunc(req.Context(), func() { _ = req.Body.Close() })
	defer func() {
		if stop() {
			_ = req.Body.Close()
		}
	}()
	var body bytes.Buffer
	body.Grow(int(min(max(req.ContentLength, 0), 1<<20)) + bytes.MinRead)
	_, err := body.ReadFrom(req.Body)
	switch {
	case req.Context().Err() != nil:
		return nil, &InterruptedError{Err: req.Context().Err()}
	case err != nil:
		return nil, &RequestError{Method: "HTTPClient", Reason: "the body can't be read", Err: err}
	}
	return body.Bytes(), nil
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}

// jsonResponse is the answer to an SDK's request; an empty one where there are no parts,
// for notifications have no answer.
func jsonResponse(req *http.Request, parts [][]byte) *http.Response {
	if len(parts) == 0 {
		return newResponse(req, http.StatusNoContent, http.Header{}, nil)
	}
	return newResponse(req, http.StatusOK, http.Header{"Content-Type": {"application/json"}}, parts)
}

func textResponse(req *http.Request, status int, text string) *http.Response {
	return newResponse(req, status, http.Header{"Content-Type": {"text/plain; charset=utf-8"}}, [][]byte{[]byte(text)})
}

// newResponse makes a response as complete as net/http's own: SDKs read all of it.
func newResponse(req *http.Request, status int, header http.Header, parts [][]byte) *http.Response {
	length := 0
	for _, part := range parts {
		length += len(part)
	}
	res := &http.Response{
		Status:     strings.TrimSpace(strconv.Itoa(status) + " " + http.StatusText(status)),
		StatusCode: status,
		Proto:      "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        header,
		Body:          http.NoBody,
		ContentLength: int64(length),
		Request:       req,
	}
	if status != http.StatusNoContent {
		header.Set("Content-Length", strconv.Itoa(length))
	}
	if length > 0 {
		res.Body = &partsBody{parts: parts}
	}
	return res
}

// partsBody is a response's body out of memory. It may be closed while it is read.
type partsBody struct {
	mu     sync.Mutex // protects what follows
	parts  [][]byte
	closed bool
}

func (b *partsBody) Read(into []byte) (n int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return 0, http.ErrBodyReadAfterClose
	}
	for len(b.parts) > 0 && n < len(into) {
		copied := copy(into[n:], b.parts[0])
		n += copied
		if b.parts[0] = b.parts[0][copied:]; len(b.parts[0]) == 0 {
			b.parts = b.parts[1:]
		}
	}
	if n == 0 && len(b.parts) == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (b *partsBody) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed, b.parts = true, nil
	return nil
}
