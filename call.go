package rpcpool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/bomzrpc/rpcpool/internal/jsonrpc"
	"github.com/bomzrpc/rpcpool/internal/redact"
)

// maxErrorBody is how much of a body that isn't a 2xx answer's is read: enough
// for any JSON-RPC error and for the connection to be used again.
const maxErrorBody = 64 << 10

// maxShownBody is how much of a body an HTTPError keeps.
const maxShownBody = 4 << 10

// NamedParams are params by name: as the only param of a call they are sent as a
// JSON object instead of an array.
type NamedParams map[string]any

// callRequest is one JSON-RPC call.
type callRequest struct {
	pool   *poolState
	name   string
	params []byte // JSON, an array or object
	id     uint64
	body   []byte
	room   [smallRequest]byte // for the body of most
}

// smallRequest is room for a request of an address or two.
const smallRequest = 160

func newCallRequest(p *poolState, method string, params []any) (*callRequest, error) {
	if method == "" {
		return nil, &RequestError{Method: method, Reason: "no method given"}
	}
	encoded, err := encodeParams(params)
	if err != nil {
		return nil, &RequestError{Method: method, Reason: "the params can't be written as JSON", Err: err}
	}
	return newEncodedRequest(p, method, encoded), nil
}

// newEncodedRequest makes a call of params that are JSON already.
func newEncodedRequest(p *poolState, method string, encoded []byte) *callRequest {
	r := &callRequest{pool: p, name: method, params: encoded, id: p.ids.Add(1)}
	room := r.room[:0]
	if size := jsonrpc.RequestSize(method, encoded); size > len(r.room) {
		room = make([]byte, 0, size)
	}
	r.body = jsonrpc.AppendRequest(room, r.id, method, encoded)
	return r
}

// noParams are the params of a call that has none.
const noParams = "[]"

// encodeParams gives the params as the JSON that is sent. Text isn't escaped
// beyond what JSON asks for.
func encodeParams(params []any) ([]byte, error) {
	if len(params) == 0 {
		return []byte(noParams), nil
	}
	var value any = params
	if named, ok := params[0].(NamedParams); ok && len(params) == 1 {
		if named == nil {
			named = NamedParams{}
		}
		value = map[string]any(named)
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

func (r *callRequest) method() string        { return r.name }
func (r *callRequest) encodedParams() []byte { return r.params }
func (*callRequest) piece() logPieceNeeds    { return logPieceNeeds{} }

var jsonHeader = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}}

// send is one attempt. It enters the line by itself, without a function in between: each
// frame on the way holds an outcome, and those who wait in a line hold their stacks.
func (r *callRequest) send(ctx context.Context, to target) (out outcome) {
	given, why := to.enter(ctx)
	if why != "" {
		return notSent(why)
	}
	defer to.leave()
	out = r.sendNow(ctx, to)
	out.hadOnly(given)
	return out
}

func (r *callRequest) sendNow(ctx context.Context, to target) outcome {
	if r.pool.repeats.allow(r.name) {
		out, written := r.exchange(ctx, to, to.proxy.links.roundTrip)
		out.arrived = written
		return out
	}
	out, written := r.exchange(ctx, to, to.proxy.links.roundTripOnce)
	out.mayHaveRun = out.ranPerhaps(written)
	return out
}

// exchange sends the request and judges what comes of it. written tells whether the
// request may have reached the RPC.
func (r *callRequest) exchange(ctx context.Context, to target, trip roundTrip) (out outcome, written bool) {
	res, before, linkFailed := trip(ctx, to.endpoint.post, r.body)
	if linkFailed != nil {
		out = judgeLink(linkFailed, to.proxy.dial.AbsoluteForm())
		out.detail, out.before = to.endpoint.secrets.Scrub(out.detail), before
		return out, linkFailed.written
	}
	defer res.Body.Close()
	if res.StatusCode >= 200 && res.StatusCode <= 299 {
		out = r.judgeAnswer(ctx, to, res)
	} else {
		out = r.judgeStatus(to, res)
	}
	out.before = before
	return out, true
}

// roundTrip sends a request with a body through a proxy, see links.
type roundTrip func(ctx context.Context, pattern *http.Request, body []byte) (res *http.Response, before bool, failed *linkError)

// newPost makes the pattern of a JSON-RPC request: all but its body.
func newPost(to *url.URL) *http.Request {
	header := jsonHeader
	if to.User != nil {
		header = header.Clone()
		password, _ := to.User.Password()
		basic := http.Request{Header: header}
		basic.SetBasicAuth(to.User.Username(), password)
	}
	return &http.Request{
		Method:     http.MethodPost,
		URL:        to,
		Proto:      "HTTP/1.1",
		ProtoMajor: 1,
		ProtoMinor: 1,
		Header:     header,
		Host:       to.Host,
	}
}

// judgeAnswer says what a 2xx answer means.
func (r *callRequest) judgeAnswer(ctx context.Context, to target, res *http.Response) outcome {
	limit := r.pool.maxResponseBytes
	body, more, err := readAnswer(res, &to.endpoint.size, limit)
	switch {
	case err != nil:
		return brokenBody(ctx, err)
	case more:
		return failed(VerdictRPCFail, reportRPC, fmt.Sprintf("the answer is larger than %d bytes", limit))
	}
	return r.judgeBody(to, res.StatusCode, body)
}

// judgeBody says what the body of a 2xx answer means, or the part of a batch's that
// answers this request.
func (r *callRequest) judgeBody(to target, status int, body []byte) outcome {
	answer, err := jsonrpc.ParseAnswer(body)
	switch {
	case err != nil:
		return r.judgeForeign(to, status, body, err)
	case answer.Error != nil && answer.Error.Text:
		return r.judgeForeign(to, status, body, jsonrpc.ErrMalformedError)
	case answer.Error != nil:
		return r.judgeError(to, rpcErrorOf(answer.Error))
	case answer.ID == nil:
		return r.judgeForeign(to, status, body, errForeignID)
	case !answer.HasID(r.id):
		return failed(VerdictRPCFail, reportRPC, errForeignID.Error())
	}
	return outcome{judgement: judgement{verdict: VerdictOK}, result: answer.Result}
}

var errForeignID = errors.New("the answer's id isn't the request's")

// judgeForeign judges an answer that isn't JSON-RPC's: the RPC is at fault, unless
// it says in a form of its own that the request is. Some gateways and REST
// interfaces do, under HTTP 200.
func (r *callRequest) judgeForeign(to target, status int, body []byte, why error) outcome {
	if len(body) <= maxErrorBody {
		if judged, rpcErr := r.pool.classifier.status(to.chain, r.name, status, body); judged.rule != "" {
			if rpcErr == nil {
				rpcErr = &RPCError{Message: clip(string(body), maxReportDetail)}
			}
			return r.rule(to, judged, rpcErr, nil)
		}
	}
	return failed(VerdictRPCFail, reportRPC, why.Error())
}

func rpcErrorOf(e *jsonrpc.Error) *RPCError {
	return &RPCError{Code: e.Code, Message: e.Message, Data: e.Data}
}

// brokenBody says what a body that ended before its time means (rule A5.3).
func brokenBody(ctx context.Context, err error) outcome {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(ctx.Err(), context.DeadlineExceeded) {
		out := failed(VerdictConnFail, reportTimeout, "no answer in time: reading the body")
		out.timedOut = true
		return out
	}
	return failed(VerdictConnFail, reportConn, "the answer's body broke off: "+causeText(err))
}

// judgeError says what a JSON-RPC error under a 2xx status means.
func (r *callRequest) judgeError(to target, rpcErr *RPCError) outcome {
	return r.rule(to, r.pool.classifier.rpcError(to.chain, r.name, rpcErr), rpcErr, nil)
}

// judgeStatus says what an answer with another status means. The status is judged
// before the body: one that breaks off changes nothing.
func (r *callRequest) judgeStatus(to target, res *http.Response) outcome {
	body, _, _ := readLimited(res.Body, maxErrorBody)
	if out, own := judgeProxyStatus(to.proxy, to.endpoint.target.Scheme, res, body); own {
		return out
	}
	judged, rpcErr := r.pool.classifier.status(to.chain, r.name, res.StatusCode, body)
	httpErr := &HTTPError{StatusCode: res.StatusCode, Status: statusText(res.StatusCode), Body: body[:min(len(body), maxShownBody)]}
	out := r.rule(to, judged, rpcErr, httpErr)
	out.limits(res)
	return out
}

// limits takes in what an answer says of rate limits.
func (out *outcome) limits(res *http.Response) {
	out.status, out.retryAfter = res.StatusCode, retryAfter(res.Header, time.Now())
}

// judgeProxyStatus judges what isn't the RPC's answer but its proxy's.
func judgeProxyStatus(p *proxy, scheme string, res *http.Response, body []byte) (outcome, bool) {
	wantsLogin := res.StatusCode == http.StatusProxyAuthRequired
	if scheme != "http" {
		// Inside TLS no proxy can have said it.
		return failed(VerdictRPCFail, reportRPC, "HTTP status 407 from the RPC itself"), wantsLogin
	}
	if p.dial.AbsoluteForm() {
		if who, own := proxyPage(res.Header, body); own {
			return judgeProxyPage(who, res.StatusCode), true
		}
	}
	return failed(VerdictProxyFail, "", "HTTP status 407 to a plain-http request"), wantsLogin
}

// statusText is a status line's text, the words of net/http's table where the
// server's own could be anything.
func statusText(code int) string {
	text := strconv.Itoa(code)
	if words := http.StatusText(code); words != "" {
		text += " " + words
	}
	return text
}

// rule makes the outcome of a judgement. rpcErr is nil where the status decided.
func (r *callRequest) rule(to target, judged judgement, rpcErr *RPCError, httpErr *HTTPError) outcome {
	out := outcome{judgement: judged}
	secrets := redact.Join(to.endpoint.secrets, r.pool.secrets)
	if rpcErr != nil {
		rpcErr.scrub(secrets)
		out.detail = clip(fmt.Sprintf("JSON-RPC error %d: %s", rpcErr.Code, rpcErr.Message), maxReportDetail)
		out.err = rpcErr
	} else {
		out.detail = "HTTP status " + httpErr.Status
		out.err = httpErr
	}
	if judged.sentOK {
		hash, ok := rawTransactionHash(r.params)
		if !ok || strings.HasSuffix(r.name, "Sync") { // whose result is a receipt
			out.judgement = judgement{verdict: VerdictCaller}
			return out
		}
		out.result = hash
	}
	return out
}

// scrub masks what the node repeats of secrets.
func (e *RPCError) scrub(secrets redact.Secrets) {
	e.Message = secrets.Scrub(e.Message)
	if isHexString(e.Data) {
		secrets = secrets.AtLeast(longSecret) // a short one may stand in the data of a revert by chance
	}
	if len(e.Data) > 0 && secrets.In(string(e.Data)) {
		e.Data = json.RawMessage(secrets.Scrub(string(e.Data)))
	}
}

// longSecret is the length from which a text in hex data is no chance.
const longSecret = 16

// isHexString tells whether JSON is a string of bytes in hex, such as revert data.
func isHexString(data json.RawMessage) bool {
	text := string(data)
	return len(text) > 4 && strings.HasPrefix(text, `"0x`) && strings.Trim(text[3:len(text)-1], "0123456789abcdefABCDEF") == ""
}
