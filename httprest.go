package rpcpool

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// REST makes [Chain.HTTPClient] one for SDKs of REST APIs (rule E1.1). Method, query,
// headers and body of a request go out as they are, to an RPC's URL whose path join
// has joined with the request's: rpcPath is the path of the RPC's URL without a slash
// at its end, path that of the request; both and the result are escaped. See
// [JoinPath], [JoinAptos] and [JoinTron]; nil means JoinPath.
//
//	aptos.NewClient(config, pool.Chain("aptos:mainnet").HTTPClient(rpcpool.REST(rpcpool.JoinAptos)))
//
// A response is the SDK's, whatever its status, unless that speaks of the RPC or the
// proxy: 401, 403, 407, 408, 429, 5xx. These fail over, and so do connections and
// bodies that break off; a body that names the request's own fault makes a 5xx the
// SDK's after all. A response which says that the RPC lacks old state, or doesn't serve
// this part of the API, is tried elsewhere first, and is the SDK's if nobody does
// better; so is a 4xx that blames the node. Where no RPC answers, the error is a *[NoHealthyRPCError].
//
// Only GET and HEAD are sent again after a request that may have reached an RPC. Others
// end with an *[AmbiguousError] then, unless [SafeToRepeat] says that they may be
// repeated (rule C2).
//
// Each response is held in memory whole, so streams don't work. Redirects aren't
// followed, cookies aren't taken from RPCs, and headers for the connection itself stay
// behind. What else the SDK puts into its headers goes to every RPC: no keys there.
func REST(join func(rpcPath, path string) string) HTTPOption {
	if join == nil {
		join = JoinPath
	}
	return func(o *httpOptions) { o.join = join }
}

// SafeToRepeat says which requests of a [REST] client may be sent twice besides GET and
// HEAD: those that only read, and those whose effect comes once however often they
// arrive, as that of a signed transaction. The function must not read the body.
func SafeToRepeat(is func(req *http.Request) bool) HTTPOption {
	return func(o *httpOptions) { o.repeatable = is }
}

// JoinPath puts the request's path behind the RPC's, which is right for the REST API of
// Cosmos chains (LCD) and most others. For [REST].
func JoinPath(rpcPath, path string) string { return rpcPath + path }

// JoinAptos is JoinPath with "/v1" in between once, whether the RPC's URL ends in it,
// the request's path begins with it, both or neither. For [REST].
func JoinAptos(rpcPath, path string) string {
	rpcPath = strings.TrimSuffix(rpcPath, "/v1")
	if rest, found := strings.CutPrefix(path, "/v1"); found && (rest == "" || rest[0] == '/') {
		path = rest
	}
	if path == "/" {
		path = ""
	}
	return rpcPath + "/v1" + path
}

// JoinTron is JoinPath for Tron's HTTP API ("/wallet/…", "/walletsolidity/…", "/v1/…"),
// also where an RPC is listed by the address of its JSON-RPC. For [REST].
func JoinTron(rpcPath, path string) string {
	rpcPath = strings.TrimSuffix(rpcPath, "/jsonrpc")
	if strings.HasPrefix(path, "/wallet") {
		rpcPath = strings.TrimSuffix(rpcPath, "/wallet")
	}
	return rpcPath + path
}

// restTransport carries an SDK's REST requests round the ring.
type restTransport struct {
	chain   *chainState
	options httpOptions
}

// RoundTrip gives the response of an RPC.
func (t *restTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := checkREST(req); err != nil {
		closeBody(req)
		return nil, err
	}
	body, err := readBody(req)
	if err != nil {
		return nil, err
	}
	r := &restRequest{pool: t.chain.pool, join: t.options.join, asked: req, header: endToEnd(req.Header), body: body}
	r.header.Del("Host")
	r.header.Del("Expect")
	switch req.Method {
	case "", http.MethodGet, http.MethodHead:
		r.repeatable = true
	default:
		r.repeatable = t.options.repeatable != nil && t.options.repeatable(req)
	}
	_, err = t.chain.do(req.Context(), r)
	if r.answer != nil {
		return r.answer, nil
	}
	if _, none := errors.AsType[*NoHealthyRPCError](err); none && r.kept != nil {
		return r.kept, nil
	}
	if open, ok := errors.AsType[*AmbiguousError](err); ok {
		open.Method = req.Method
	}
	return nil, err
}

// checkREST refuses what net/http wouldn't send: found out later it would look like the
// RPC's fault.
func checkREST(req *http.Request) error {
	if isWebSocket(req) {
		return misuse("RPCs are reached over HTTP only, not by WebSocket")
	}
	if req.URL == nil || !isToken(orGET(req.Method)) || req.Method == http.MethodConnect {
		return misuse(fmt.Sprintf("a request by %q can't be sent", req.Method))
	}
	for name, values := range req.Header {
		if !isToken(name) || strings.ContainsFunc(strings.Join(values, ""), isControl) {
			return misuse(fmt.Sprintf("the header %q has a character that headers can't have", name))
		}
	}
	return nil
}

// isToken tells whether a text may be a header's name, or a method.
func isToken(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`()<>@,;:\"/[]?={}`, r)
	})
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// restRequest is an SDK's request on its way round the ring.
type restRequest struct {
	pool       *poolState
	join       func(rpcPath, path string) string
	asked      *http.Request // the SDK's, not to be changed
	header     http.Header
	body       []byte
	repeatable bool

	answer *http.Response // what the SDK gets
	kept   *http.Response // what it gets if nobody does better
}

func (*restRequest) method() string        { return "" }
func (*restRequest) encodedParams() []byte { return nil }
func (*restRequest) piece() logPieceNeeds  { return logPieceNeeds{} }

// send is one attempt.
func (r *restRequest) send(ctx context.Context, to target) (out outcome) {
	given, why := to.enter(ctx)
	if why != "" {
		return notSent(why)
	}
	defer to.leave()
	out = r.sendNow(ctx, to)
	out.hadOnly(given)
	return out
}

func (r *restRequest) sendNow(ctx context.Context, to target) outcome {
	req, err := r.requestTo(to.endpoint.target)
	if err != nil {
		return outcome{judgement: judgement{verdict: VerdictCaller}, err: err, detail: "no URL could be made"}
	}
	trip := to.proxy.links.roundTrip
	if !r.repeatable {
		trip = to.proxy.links.roundTripOnce
	}
	res, _, linkFailed := trip(ctx, req, r.body)
	if linkFailed != nil {
		out := judgeLink(linkFailed, to.proxy.dial.AbsoluteForm())
		out.detail = to.endpoint.secrets.Scrub(out.detail)
		return r.mayHaveRun(out, linkFailed.written)
	}
	defer res.Body.Close()
	body, more, err := readAnswer(res, &to.endpoint.size, r.pool.maxResponseBytes)
	if res.StatusCode >= 300 {
		if out, own := judgeProxyStatus(to.proxy, to.endpoint.target.Scheme, res, body); own {
			return r.mayHaveRun(out, true)
		}
	}
	switch {
	case faultyStatus(res.StatusCode):
	case err != nil:
		return r.mayHaveRun(brokenBody(ctx, err), true)
	case more:
		tooLarge := fmt.Sprintf("the answer is larger than %d bytes", r.pool.maxResponseBytes)
		return r.mayHaveRun(failed(VerdictRPCFail, reportRPC, tooLarge), true)
	}
	return r.judge(to, res, body)
}

// mayHaveRun marks the outcome of a request that must not be repeated, as far as the
// RPC may have acted upon it. What a proxy or an RPC refused hasn't run.
func (r *restRequest) mayHaveRun(out outcome, written bool) outcome {
	out.mayHaveRun = !r.repeatable && out.ranPerhaps(written)
	return out
}

// judge says what a response means: whether it is the SDK's, or to be had elsewhere.
func (r *restRequest) judge(to target, res *http.Response, body []byte) outcome {
	response := r.response(to, res, body) //nolint:bodyclose // it is in memory, and the SDK closes it
	status := res.StatusCode
	if status < 400 {
		r.answer = response
		return outcome{judgement: judgement{verdict: VerdictOK}}
	}
	head := body[:min(len(body), maxErrorBody)]
	judged, rpcErr := r.pool.classifier.status(to.chain, r.asked.URL.Path, status, head)
	out := (&callRequest{pool: r.pool}).rule(to, judged, rpcErr, &HTTPError{StatusCode: status, Status: statusText(status)})
	out.limits(res)
	words := judged.rule != ""
	switch {
	case out.verdict == VerdictCaller,
		!words && !faultyStatus(status),
		out.verdict == VerdictNoState && !out.pruned && !faultyStatus(status),
		out.verdict == VerdictRPCFail && !r.repeatable && !faultyStatus(status):
		r.answer = response
		return outcome{judgement: judgement{verdict: VerdictCaller}, err: out.err, detail: out.detail}
	case words:
		r.kept = response
	}
	return r.mayHaveRun(out, true)
}

// requestTo makes the request to one RPC.
func (r *restRequest) requestTo(base *url.URL) (*http.Request, error) {
	escaped := "/" + strings.TrimLeft(r.join(strings.TrimRight(base.EscapedPath(), "/"), r.asked.URL.EscapedPath()), "/")
	path, err := url.PathUnescape(escaped)
	if err != nil {
		return nil, misuse("the function given to REST made a path of what can't be one")
	}
	u := &url.URL{Scheme: base.Scheme, Host: base.Host, Path: path, RawPath: escaped, RawQuery: base.RawQuery}
	if asked := r.asked.URL.RawQuery; asked != "" {
		u.RawQuery = strings.TrimPrefix(u.RawQuery+"&"+asked, "&")
	}
	req := &http.Request{
		Method: r.asked.Method,
		URL:    u,
		Proto:  "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: r.header.Clone(),
		Host:   u.Host,
	}
	if base.User != nil {
		password, _ := base.User.Password()
		req.SetBasicAuth(base.User.Username(), password)
	}
	return req, nil
}

// response is what the SDK gets: the RPC's own, held in memory.
func (r *restRequest) response(to target, res *http.Response, body []byte) *http.Response {
	header := endToEnd(res.Header)
	header.Del("Set-Cookie") // for one RPC; a jar would give it to the others
	for name, values := range header {
		for i := range values {
			header[name][i] = to.endpoint.secrets.Scrub(values[i])
		}
	}
	own := &http.Response{
		Status:     to.endpoint.secrets.Scrub(res.Status),
		StatusCode: res.StatusCode,
		Proto:      "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        header,
		Body:          http.NoBody,
		ContentLength: int64(len(body)),
		Uncompressed:  res.Uncompressed,
		Request:       r.asked,
	}
	switch {
	case r.asked.Method == http.MethodHead:
		own.ContentLength = res.ContentLength
	case len(body) > 0:
		own.Body = &partsBody{parts: [][]byte{body}}
	}
	return own
}

// hopByHop are the headers that speak of one connection.
var hopByHop = []string{
	"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade",
}

// endToEnd gives a copy of headers without those that speak of one connection.
func endToEnd(header http.Header) http.Header {
	own := header.Clone()
	if own == nil {
		return http.Header{}
	}
	for _, line := range header["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			own.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range hopByHop {
		own.Del(name)
	}
	return own
}
