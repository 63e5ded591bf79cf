package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// doer sends a request: an http.Client, or what a library has in its place.
type doer func(*http.Request) (*http.Response, error)

// ask makes one call over HTTP by hand, with encoding/json.
func ask(ctx context.Context, do doer, url, method string, params []any) (json.RawMessage, error) {
	body, err := encodeRequest(method, params)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := do(req)
	if err != nil {
		return nil, err
	}
	return readAnswer(res)
}

// readAnswer reads all of an answer, so that its connection can be used again.
func readAnswer(res *http.Response) (json.RawMessage, error) {
	defer res.Body.Close()
	raw, err := readAll(res)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("HTTP status %s", res.Status)
	}
	return decodeAnswer(raw)
}

// readAll reads into a buffer of the right size where the server says it.
func readAll(res *http.Response) ([]byte, error) {
	if res.ContentLength < 0 {
		return io.ReadAll(res.Body)
	}
	raw := make([]byte, res.ContentLength)
	_, err := io.ReadFull(res.Body, raw)
	return raw, err
}

// newTuned is an http.Client on a tuned transport, for one endpoint.
func newTuned(s setup) (*client, error) {
	transport, err := s.tunedTransport()
	if err != nil {
		return nil, err
	}
	return bareClient(s, transport), nil
}

// newDefault is an http.Client on the transport that comes with it.
func newDefault(s setup) (*client, error) {
	transport, err := s.defaultTransport()
	if err != nil {
		return nil, err
	}
	return bareClient(s, transport), nil
}

func bareClient(s setup, transport *http.Transport) *client {
	do := (&http.Client{Transport: transport}).Do
	return &client{
		call: func(ctx context.Context, method string, params ...any) (json.RawMessage, error) {
			return ask(ctx, do, s.urls[0], method, params)
		},
		close: transport.CloseIdleConnections,
	}
}

// newLoop asks one endpoint after the other, from the first, at each call.
func newLoop(s setup) (*client, error) { return newBareRing(s, 0) }

// newSticky passes over endpoints that failed, for 30 s, unless all have.
func newSticky(s setup) (*client, error) { return newBareRing(s, 30*time.Second) }

func newBareRing(s setup, passOver time.Duration) (*client, error) {
	transport, err := s.tunedTransport()
	if err != nil {
		return nil, err
	}
	ring := &bareRing{setup: s, do: (&http.Client{Transport: transport}).Do, passOver: passOver, failed: make([]atomic.Int64, len(s.urls))}
	return &client{call: ring.call, close: transport.CloseIdleConnections}, nil
}

// bareRing is failover as one writes it by hand.
type bareRing struct {
	setup
	do       doer
	passOver time.Duration
	failed   []atomic.Int64 // when each endpoint failed last, in Unix nanoseconds
}

func (r *bareRing) call(ctx context.Context, method string, params ...any) (json.RawMessage, error) {
	var errs []error
	held := make([]bool, len(r.urls)) // those that failed lately are asked last
	for i := range held {
		held[i] = r.lately(i)
	}
	for _, last := range []bool{false, true} {
		for i, url := range r.urls {
			if held[i] != last {
				continue
			}
			result, err := r.attemptAt(ctx, url, method, params)
			if err == nil {
				return result, nil
			}
			if r.passOver > 0 {
				r.failed[i].Store(time.Now().UnixNano())
			}
			errs = append(errs, err)
			if ctx.Err() != nil {
				return nil, errors.Join(errs...)
			}
		}
		if r.passOver == 0 {
			break
		}
	}
	return nil, errors.Join(errs...)
}

func (r *bareRing) lately(endpoint int) bool {
	if r.passOver == 0 {
		return false
	}
	failed := r.failed[endpoint].Load()
	return failed != 0 && time.Since(time.Unix(0, failed)) < r.passOver
}

func (r *bareRing) attemptAt(ctx context.Context, url, method string, params []any) (json.RawMessage, error) {
	if r.attempt > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.attempt)
		defer cancel()
	}
	return ask(ctx, r.do, url, method, params)
}
