package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/cristalhq/hedgedhttp"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/failsafe-go/failsafe-go/timeout"
	"github.com/hashicorp/go-retryablehttp"
)

// The libraries stand on the same tuned transport as what is written by hand. Where
// they have no list of endpoints, they get one in the way that costs them least: the
// attempts of a call go round it. None waits between attempts.

// longAttempt bounds an attempt where nothing else does and a library asks for a time.
const longAttempt = 10 * time.Second

func (s setup) attemptOr(fallback time.Duration) time.Duration {
	if s.attempt > 0 {
		return s.attempt
	}
	return fallback
}

// newGeth is go-ethereum's own client. It has no failover.
func newGeth(s setup) (*client, error) {
	transport, err := s.tunedTransport()
	if err != nil {
		return nil, err
	}
	c, err := rpc.DialOptions(context.Background(), s.urls[0], rpc.WithHTTPClient(&http.Client{Transport: transport}))
	if err != nil {
		return nil, err
	}
	return &client{
		call: func(ctx context.Context, method string, params ...any) (result json.RawMessage, err error) {
			err = c.CallContext(ctx, &result, method, params...)
			return result, err
		},
		close: func() {
			c.Close()
			transport.CloseIdleConnections()
		},
	}, nil
}

// newRetryable is go-retryablehttp with its own rules of what is tried again.
func newRetryable(s setup) (*client, error) {
	transport, targets, err := s.parts()
	if err != nil {
		return nil, err
	}
	c := retryablehttp.NewClient()
	c.Logger = nil
	c.HTTPClient = &http.Client{Transport: transport, Timeout: s.attempt}
	c.RetryMax = len(targets) - 1
	c.Backoff = func(_, _ time.Duration, _ int, _ *http.Response) time.Duration { return 0 }
	c.PrepareRetry = func(req *http.Request) error {
		aim(req, targets, attemptsOf(req.Context()))
		return nil
	}
	return &client{
		call: func(ctx context.Context, method string, params ...any) (json.RawMessage, error) {
			body, err := encodeRequest(method, params)
			if err != nil {
				return nil, err
			}
			if len(targets) > 1 {
				ctx = countAttempts(ctx, 1)
			}
			req, err := retryablehttp.NewRequestWithContext(ctx, http.MethodPost, s.urls[0], body)
			if err != nil {
				return nil, err
			}
			req.Header.Set("Content-Type", "application/json")
			res, err := c.Do(req)
			if err != nil {
				return nil, err
			}
			return readAnswer(res)
		},
		close: transport.CloseIdleConnections,
	}, nil
}

// newFailsafe is failsafe-go with its policy of retries for HTTP, and one for timeouts
// where an attempt is bounded.
func newFailsafe(s setup) (*client, error) {
	transport, targets, err := s.parts()
	if err != nil {
		return nil, err
	}
	around := failsafehttp.NewRoundTripper(rotate(transport, targets, false), s.failsafePolicies()...) //nolint:bodyclose // the same as there
	return s.rotating(&http.Client{Transport: around}, transport), nil
}

//nolint:bodyclose // it takes a type parameter for a response; drainLast closes those there are
func (s setup) failsafePolicies() []failsafe.Policy[*http.Response] {
	policies := []failsafe.Policy[*http.Response]{
		failsafehttp.NewRetryPolicyBuilder().WithMaxRetries(max(2, len(s.urls)-1)).OnRetry(drainLast).Build(),
	}
	if s.attempt > 0 {
		policies = append(policies, timeout.New[*http.Response](s.attempt))
	}
	return policies
}

// drainLast frees the connection of an answer that is tried again: the library leaves
// it open, and a bound on connections would be used up.
func drainLast(e failsafe.ExecutionEvent[*http.Response]) {
	if res := e.LastResult(); res != nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, maxDrained))
		_ = res.Body.Close()
	}
}

// maxDrained is how much of a failed answer is read for its connection's sake.
const maxDrained = 4 << 10

// newHedged is hedgedhttp. With one endpoint it hedges after a time that never comes;
// with more an error, or an attempt's time, has it go on to the next.
func newHedged(s setup) (*client, error) {
	transport, targets, err := s.parts()
	if err != nil {
		return nil, err
	}
	c, err := hedgedhttp.NewClient(s.attemptOr(longAttempt), max(2, len(targets)), &http.Client{Transport: rotate(transport, targets, true)})
	if err != nil {
		return nil, err
	}
	return s.rotating(c, transport), nil
}

func (s setup) parts() (*http.Transport, []*url.URL, error) {
	transport, err := s.tunedTransport()
	if err != nil {
		return nil, nil, err
	}
	targets, err := s.targets()
	return transport, targets, err
}

// rotating is a client whose attempts a rotation underneath sends round the endpoints.
func (s setup) rotating(c *http.Client, transport *http.Transport) *client {
	return &client{
		call: func(ctx context.Context, method string, params ...any) (json.RawMessage, error) {
			if len(s.urls) > 1 {
				ctx = countAttempts(ctx, 0)
			}
			return ask(ctx, c.Do, s.urls[0], method, params)
		},
		close: transport.CloseIdleConnections,
	}
}

type attemptsKey struct{}

// countAttempts has a call's attempts counted from so many on.
func countAttempts(ctx context.Context, from int32) context.Context {
	count := new(atomic.Int32)
	count.Store(from)
	return context.WithValue(ctx, attemptsKey{}, count)
}

// attemptsOf gives the number of this attempt of the call.
func attemptsOf(ctx context.Context) int {
	count, ok := ctx.Value(attemptsKey{}).(*atomic.Int32)
	if !ok {
		return 0
	}
	return int(count.Add(1) - 1)
}

func aim(req *http.Request, targets []*url.URL, attempt int) {
	target := targets[attempt%len(targets)]
	req.URL, req.Host = target, target.Host
}

// rotate puts a rotation over the endpoints under a library; with one endpoint there
// is nothing to rotate.
func rotate(transport *http.Transport, targets []*url.URL, statusFails bool) http.RoundTripper {
	if len(targets) == 1 {
		return transport
	}
	return &rotation{next: transport, targets: targets, statusFails: statusFails}
}

// rotation sends each attempt of a call to the next endpoint.
type rotation struct {
	next        http.RoundTripper
	targets     []*url.URL
	statusFails bool // a status other than 200 is given as an error
}

func (r *rotation) RoundTrip(req *http.Request) (*http.Response, error) {
	attempt := attemptsOf(req.Context())
	aimed := *req
	if attempt > 0 && req.GetBody != nil {
		body, err := req.GetBody()
		if err != nil {
			return nil, err
		}
		aimed.Body = body
	}
	aim(&aimed, r.targets, attempt)
	res, err := r.next.RoundTrip(&aimed)
	if err != nil || !r.statusFails || res.StatusCode == http.StatusOK {
		return res, err
	}
	_, err = io.Copy(io.Discard, io.LimitReader(res.Body, maxDrained))
	_ = res.Body.Close()
	if err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("HTTP status %s", res.Status)
}
