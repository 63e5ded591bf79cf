package rpcpool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// RunOption changes what [Chain.Run] does.
type RunOption func(*runRequest)

// NonIdempotent says that the function has effects which must not come twice. It is
// called again only after an attempt of which no request can have reached an RPC, or whose
// only request was refused before it ran (401, 403, 429, a method that isn't served);
// otherwise Run ends with an *[AmbiguousError] (rule C2).
func NonIdempotent() RunOption { return func(r *runRequest) { r.once = true } }

// NotAfterFirstByte says that the function must not be called again once it has read a
// byte of an answer: a stream would begin anew, and what was handed on already would come
// twice. Run ends with a *[PartialAnswerError] then (rule C5).
func NotAfterFirstByte() RunOption { return func(r *runRequest) { r.noReplay = true } }

// Run carries a function round the ring: it is called with the URL of an RPC and
// a client that is bound to a proxy, on one RPC after another until it succeeds.
// It is what REST APIs (Aptos, Tron, Cosmos) and other protocols are built on.
//
// fn must use the given ctx and client and no other client, which would bypass the
// proxies. It may be called several times, so it must be repeatable: a stream that
// it has begun to consume starts from the beginning (see [NotAfterFirstByte]), and an
// effect may come twice (see [NonIdempotent]). For every status that isn't
// 2xx it returns an *[HTTPError], for a JSON-RPC error an *[RPCError]: they are
// judged as an answer to [Chain.Call] is. Errors of the client are judged as what
// they are. Of any other error the client's last exchange decides, so that an SDK
// which hides statuses still fails over: after a failed connection, a 401, 403, 407,
// 408, 429 or 5xx it is judged by that, else it is fn's own and returned as it is.
//
// The client doesn't follow redirects, for they would carry the RPC's URL, which
// often has a key in it, to another host. It refuses to work once fn has returned.
func (c *Chain) Run(ctx context.Context, fn func(ctx context.Context, url string, client *http.Client) error, opts ...RunOption) error {
	if fn == nil {
		return &RequestError{Method: "Run", Reason: "the function is nil"}
	}
	req := &runRequest{pool: c.s.pool, fn: fn}
	for _, opt := range opts {
		if opt != nil {
			opt(req)
		}
	}
	_, err := c.s.do(ctx, req)
	return err
}

// RunAs is [Chain.Run] for a function that gives a value.
func RunAs[T any](ctx context.Context, c *Chain, fn func(ctx context.Context, url string, client *http.Client) (T, error), opts ...RunOption) (T, error) {
	var value, zero T
	err := c.Run(ctx, func(ctx context.Context, url string, client *http.Client) (err error) {
		value, err = fn(ctx, url, client)
		return err
	}, opts...)
	if err != nil {
		return zero, err
	}
	return value, nil
}

// runRequest is a user's function on its way round the ring.
type runRequest struct {
	pool *poolState
	fn   func(ctx context.Context, url string, client *http.Client) error

	once     bool // the function has effects
	noReplay bool // it isn't called again once it has read of an answer
}

func (*runRequest) method() string        { return "" }
func (*runRequest) encodedParams() []byte { return nil }
func (*runRequest) piece() logPieceNeeds  { return logPieceNeeds{} }

// send calls the function; once more where a kept connection turned out to be dead,
// with nothing received on it, which is nobody's failure (rule A5.3).
func (r *runRequest) send(ctx context.Context, to target) outcome {
	fare := &fare{budget: budgetOf(ctx)}
	out, last := r.call(ctx, to, fare)
	if out.verdict == VerdictConnFail && last.failed != nil && last.failed.diedIdle() && ctx.Err() == nil &&
		!out.mayHaveRun && !out.partial {
		to.proxy.links.dropIdle()
		out, _ = r.call(ctx, to, fare)
	}
	return out
}

// fare pays for the requests of an attempt. The first is paid for with the attempt.
type fare struct {
	budget *budget
	first  atomic.Bool
}

func (f *fare) pay() error {
	if f.first.CompareAndSwap(false, true) {
		return nil
	}
	return f.budget.spend()
}

func (r *runRequest) call(ctx context.Context, to target, fare *fare) (outcome, exchange) {
	watch := &watchedTransport{
		ctx: ctx, proxy: to.proxy, base: to.endpoint.target, conns: to.endpoint.conns, stays: to.stays, limit: r.pool.maxResponseBytes, once: r.once, fare: fare,
	}
	defer watch.retire()
	err := r.fn(ctx, to.endpoint.url, &http.Client{
		Transport:     watch,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	})
	last := watch.lastExchange()
	if err == nil {
		return outcome{judgement: judgement{verdict: VerdictOK}}, last
	}
	out := r.judge(ctx, to, last, err)
	out.hadOnly(watch.timeGiven())
	if out.verdict != VerdictCaller {
		out.mayHaveRun = r.once && (last.earlier || out.ranPerhaps(last.written))
		out.partial = r.noReplay && last.handedOut
	}
	return out, last
}

// judge says what the function's error means.
func (r *runRequest) judge(ctx context.Context, to target, last exchange, err error) outcome {
	call := callRequest{pool: r.pool}
	var rpcErr *RPCError
	var httpErr *HTTPError
	var over *BudgetError
	switch {
	case errors.As(err, &over):
		return outcome{judgement: judgement{verdict: VerdictCaller}, err: err, detail: "its budget has run out"}
	case errors.As(err, &rpcErr):
		out := call.judgeError(to, &RPCError{Code: rpcErr.Code, Message: rpcErr.Message, Data: rpcErr.Data})
		out.err = err
		return out
	case errors.As(err, &httpErr):
		return r.judgeHTTP(to, last, httpErr, err)
	case last.failed != nil:
		return judgeLink(last.failed, to.proxy.dial.AbsoluteForm())
	case last.bodyErr != nil:
		return brokenBody(ctx, last.bodyErr)
	case last.response == nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		out := failed(VerdictConnFail, reportTimeout, "the function didn't return in time")
		out.timedOut = true
		return out
	case last.tooLarge:
		return failed(VerdictRPCFail, reportRPC, fmt.Sprintf("the answer is larger than %d bytes", r.pool.maxResponseBytes))
	case last.response != nil && faultyStatus(last.response.StatusCode):
		return r.judgeHTTP(to, last, &HTTPError{StatusCode: last.response.StatusCode, Status: statusText(last.response.StatusCode)}, err)
	}
	return outcome{judgement: judgement{verdict: VerdictCaller}, err: err, detail: "an error of the function's own"}
}

// faultyStatus tells whether a status is held against the RPC or the proxy even
// where the function says nothing of it.
func faultyStatus(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired,
		http.StatusRequestTimeout, http.StatusTooManyRequests:
		return true
	}
	return status >= 500
}

// judgeHTTP judges a status that the function returned, or that its last exchange
// had. The user's error is what the caller gets.
func (r *runRequest) judgeHTTP(to target, last exchange, httpErr *HTTPError, err error) outcome {
	if last.response != nil && last.response.StatusCode == httpErr.StatusCode {
		if out, own := judgeProxyStatus(to.proxy, last.scheme, last.response, httpErr.Body); own {
			return out
		}
	}
	judged, rpcErr := r.pool.classifier.status(to.chain, last.call, httpErr.StatusCode, httpErr.Body)
	status := &HTTPError{StatusCode: httpErr.StatusCode, Status: statusText(httpErr.StatusCode)}
	out := (&callRequest{pool: r.pool}).rule(to, judged, rpcErr, status)
	if last.response != nil && last.response.StatusCode == httpErr.StatusCode {
		out.limits(last.response)
	}
	out.err = err
	return out
}

// exchange is the last thing that went over a bound client.
type exchange struct {
	scheme   string
	call     string         // what was called of a REST API: the path under the RPC's URL
	response *http.Response // its head; nil where there was no answer
	failed   *linkError     // why there was none
	bodyErr  error          // why the body broke off
	tooLarge bool
	written  bool // the request may have reached the RPC

	earlier   bool // a request of the attempt before may have reached the RPC
	handedOut bool // the function has read of an answer in the attempt
}

// follow takes in the next exchange of the attempt.
func (x *exchange) follow(next exchange) {
	next.earlier, next.handedOut = x.earlier || x.written, x.handedOut
	*x = next
}

// watchedTransport is bound to one attempt: it goes through the attempt's proxy,
// ends with the attempt, and remembers what went over it last.
type watchedTransport struct {
	ctx   context.Context // ends with the attempt
	proxy *proxy
	base  *url.URL // the RPC's
	limit int64
	once  bool // the function has effects
	fare  *fare
	conns *connLine
	stays bool // see target

	mu      sync.Mutex // protects what follows
	retired bool
	last    exchange
	left    []func()      // what gives the connections back
	given   time.Duration // what was left of the attempt when one was had; 0 where there was no line
}

var errRetired = &RequestError{Method: "Run", Reason: "the client was used after the function that it was given to had returned"}

func (t *watchedTransport) retire() {
	t.mu.Lock()
	t.retired = true
	left := t.left
	t.mu.Unlock()
	for _, leave := range left {
		leave()
	}
}

func (t *watchedTransport) timeGiven() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.given
}

func (t *watchedTransport) lastExchange() exchange {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

func (t *watchedTransport) change(change func(last *exchange)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change(&t.last)
}

// RoundTrip sends a request of the user's function.
func (t *watchedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	t.mu.Lock()
	retired := t.retired
	t.mu.Unlock()
	err := t.refuse(req, retired)
	leave := func() {}
	if err == nil {
		leave, err = t.enter(req)
	}
	if err == nil {
		err = t.fare.pay()
	}
	if err != nil {
		leave()
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, err
	}
	ctx, cancel := context.WithCancel(req.Context())
	stop := context.AfterFunc(t.ctx, cancel)
	release := func() { stop(); cancel(); leave() }
	res, failed := t.send(ctx, req)
	if failed != nil {
		release()
		t.change(func(last *exchange) {
			last.follow(exchange{scheme: req.URL.Scheme, failed: failed, written: failed.written})
		})
		return nil, failed
	}
	call, _ := strings.CutPrefix(req.URL.Path, strings.TrimRight(t.base.Path, "/"))
	t.change(func(last *exchange) {
		last.follow(exchange{scheme: req.URL.Scheme, call: call, response: res, written: true})
	})
	res.Request = req
	res.Body = &watchedBody{body: res.Body, transport: t, left: t.limit, release: release}
	return res, nil
}

// enter waits for a connection to the RPC. leave gives it back, at the latest when the
// function has returned.
func (t *watchedTransport) enter(req *http.Request) (leave func(), err error) {
	given, why := t.conns.enter(t.ctx, t.stays)
	if why != "" {
		failed := &linkError{crowded: why, err: errors.New(why)}
		t.change(func(last *exchange) { last.follow(exchange{scheme: req.URL.Scheme, failed: failed}) })
		return func() {}, failed
	}
	leave = sync.OnceFunc(t.conns.leave)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.left = append(t.left, leave)
	if given > 0 {
		t.given = given
	}
	return leave, nil
}

func (t *watchedTransport) refuse(req *http.Request, retired bool) error {
	switch {
	case retired:
		return errRetired
	case req.URL == nil || (req.URL.Scheme != "http" && req.URL.Scheme != "https") || req.URL.Host == "":
		return &RequestError{Method: "Run", Reason: "the client sends http and https requests only"}
	}
	return nil
}

// send sends a request, and repeats it on a fresh connection where it can have no effect:
// else the function is called again instead, see runRequest.send.
func (t *watchedTransport) send(ctx context.Context, req *http.Request) (*http.Response, *linkError) {
	links := t.proxy.links
	req = req.Clone(ctx)
	switch {
	case t.once:
		return links.trip(ctx, req, nil, true)
	case hasNoBody(req) && (req.Method == "" || req.Method == http.MethodGet || req.Method == http.MethodHead):
		res, _, failed := links.roundTrip(ctx, req, nil)
		return res, failed
	}
	return links.trip(ctx, req, nil, false)
}

// Error makes a linkError what the user's function gets from the client. It says
// no more than may be shown.
func (f *linkError) Error() string {
	if f.crowded != "" {
		return "rpcpool: " + f.crowded
	}
	if f.proxy != nil {
		return "rpcpool: " + f.proxy.Error()
	}
	if f.timedOut {
		return "rpcpool: no answer in time: " + f.phase.String()
	}
	return "rpcpool: " + linkText(f)
}

// Unwrap gives the cause.
func (f *linkError) Unwrap() error { return f.err }

// Timeout satisfies net.Error's half that SDKs ask for.
func (f *linkError) Timeout() bool { return f.timedOut }

// watchedBody is an answer's body: it notices where it breaks off, ends at the
// limit, and releases the attempt's hold when it is closed.
type watchedBody struct {
	body      io.ReadCloser
	transport *watchedTransport
	left      int64
	begun     bool
	release   func()
}

func (b *watchedBody) Read(into []byte) (int, error) {
	n, err := b.body.Read(into)
	if n > 0 && !b.begun {
		b.begun = true
		b.transport.change(func(last *exchange) { last.handedOut = true })
	}
	b.left -= int64(n)
	if b.left < 0 {
		b.transport.change(func(last *exchange) { last.tooLarge = true })
		return n, &RequestError{Method: "Run", Reason: "the answer is larger than Config.MaxResponseBytes"}
	}
	if err != nil && err != io.EOF {
		b.transport.change(func(last *exchange) { last.bodyErr = err })
	}
	return n, err
}

func (b *watchedBody) Close() error {
	defer b.release()
	return b.body.Close()
}
