package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

// How long a program may take to send a request's body, and to take an answer.
const (
	bodyTime  = 30 * time.Second
	writeTime = time.Minute
)

// calls counts what went through. A batch is one.
type calls struct {
	inFlight        atomic.Int64
	served, refused atomic.Uint64
}

// rpc answers a JSON-RPC POST to a chain.
func (g *gateway) rpc(w http.ResponseWriter, r *http.Request) {
	g.calls.inFlight.Add(1)
	defer g.calls.inFlight.Add(-1)
	body, f := g.readBody(w, r)
	if f != nil {
		g.answerFault(w, body, f)
		return
	}
	to, f := g.routes.find(r.PathValue("chain"), r.URL.Query().Get("archive"))
	if f != nil {
		g.answerFault(w, body, f)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), g.limit)
	defer cancel()
	res, err := pass(ctx, to, body)
	if err != nil {
		f := to.unserved(body)
		if f == nil {
			f = faultOf(err)
		}
		to.note(f)
		g.answerFault(w, body, f)
		return
	}
	defer res.Body.Close()
	if res.StatusCode > 299 {
		f := refusedBy(res.StatusCode)
		to.note(f)
		g.answerFault(w, body, f)
		return
	}
	to.note(nil)
	g.calls.served.Add(1)
	giveBack(w, res)
}

// readBody takes the request in whole: it may have to be sent several times.
func (g *gateway) readBody(w http.ResponseWriter, r *http.Request) ([]byte, *fault) {
	if kind := r.Header.Get("Content-Type"); kind != "" {
		if media, _, err := mime.ParseMediaType(kind); err != nil || media != "application/json" {
			return nil, badRequest(http.StatusUnsupportedMediaType,
				"the Content-Type must be application/json (curl: -H 'content-type: application/json')")
		}
	}
	if coding := r.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return nil, badRequest(http.StatusUnsupportedMediaType, "send the request as it is, without a Content-Encoding")
	}
	// A deadline for the body alone: one for the whole request would end long calls.
	connection := http.NewResponseController(w)
	_ = connection.SetReadDeadline(time.Now().Add(bodyTime))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, g.maxBody))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return nil, badRequest(http.StatusRequestEntityTooLarge,
			fmt.Sprintf("the request is larger than %d bytes; -max-body allows more", g.maxBody))
	}
	if err != nil {
		return nil, badRequest(http.StatusBadRequest, "the request's body broke off, or took too long")
	}
	_ = connection.SetReadDeadline(time.Time{})
	return body, nil
}

// pass sends the request round the chain's ring. The URL is a label only.
func pass(ctx context.Context, to *route, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://ring.invalid"+to.path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	return to.client.RoundTrip(req)
}

// giveBack hands an answer on, byte for byte.
func giveBack(w http.ResponseWriter, res *http.Response) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTime))
	header := w.Header()
	if kind := res.Header.Get("Content-Type"); kind != "" {
		header.Set("Content-Type", kind)
	}
	if res.ContentLength >= 0 && res.StatusCode != http.StatusNoContent {
		header.Set("Content-Length", strconv.FormatInt(res.ContentLength, 10))
	}
	w.WriteHeader(res.StatusCode)
	_, _ = io.Copy(w, res.Body) // a program that has gone needs nothing more
}

// answerFault answers with a JSON-RPC error.
func (g *gateway) answerFault(w http.ResponseWriter, request []byte, f *fault) {
	if f.status == http.StatusOK {
		g.calls.served.Add(1)
	} else {
		g.calls.refused.Add(1)
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTime))
	header := w.Header()
	header.Set("Content-Type", "application/json")
	if wait := time.Until(f.retryAt); !f.retryAt.IsZero() && wait > 0 {
		header.Set("Retry-After", strconv.Itoa(int(wait/time.Second)+1))
	}
	w.WriteHeader(f.status)
	_, _ = w.Write(append(f.body(request), '\n'))
}
