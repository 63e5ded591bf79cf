package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
)

// newLean is the least that net/http's transport can be asked with: a copied request,
// an envelope written and taken apart by hand, no copy of the result. It leaves out
// what a library can't: it believes that the body is JSON.
func newLean(s setup) (*client, error) {
	transport, err := s.tunedTransport()
	if err != nil {
		return nil, err
	}
	targets, err := s.targets()
	if err != nil {
		return nil, err
	}
	l := &lean{transport: transport, template: http.Request{
		Method: http.MethodPost, URL: targets[0], Host: targets[0].Host,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}},
	}}
	return &client{call: l.call, close: transport.CloseIdleConnections}, nil
}

type lean struct {
	transport *http.Transport
	template  http.Request
	lastSize  atomic.Int64 // of an answer whose length wasn't said
}

func (l *lean) call(ctx context.Context, method string, params ...any) (json.RawMessage, error) {
	encoded := []byte("[]")
	if len(params) > 0 {
		var err error
		if encoded, err = json.Marshal(params); err != nil {
			return nil, err
		}
	}
	body := make([]byte, 0, 64+len(method)+len(encoded))
	body = append(body, `{"jsonrpc":"2.0","id":1,"method":`...)
	body = strconv.AppendQuote(body, method)
	body = append(body, `,"params":`...)
	body = append(append(body, encoded...), '}')
	req := l.template.WithContext(ctx)
	req.Body = io.NopCloser(bytes.NewReader(body))
	req.ContentLength = int64(len(body))
	res, err := l.transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, errors.New("HTTP status " + res.Status)
	}
	raw, err := l.read(res)
	if err != nil {
		return nil, err
	}
	return resultIn(raw)
}

// read reads a body of unknown length into a buffer as large as the last one needed.
func (l *lean) read(res *http.Response) ([]byte, error) {
	if res.ContentLength >= 0 {
		return readAll(res)
	}
	buffer := bytes.NewBuffer(make([]byte, 0, l.lastSize.Load()+bytes.MinRead))
	_, err := buffer.ReadFrom(res.Body)
	l.lastSize.Store(int64(buffer.Len()))
	return buffer.Bytes(), err
}

var errNoResult = errors.New("the answer has no result")

// resultIn finds the result by brackets and quotes alone.
func resultIn(raw []byte) (json.RawMessage, error) {
	depth, name := 0, -1
	for at := 0; at < len(raw); at++ {
		switch raw[at] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case '"':
			end := closingQuote(raw, at)
			if depth == 1 && string(raw[at:min(end+1, len(raw))]) == `"result"` {
				name = end
			}
			at = end
		case ':':
			if depth == 1 && name >= 0 {
				return valueAt(raw, at+1)
			}
		}
	}
	return nil, errNoResult
}

// closingQuote finds the end of the string that begins at a quote.
func closingQuote(raw []byte, at int) int {
	for at++; at < len(raw); at++ {
		next := bytes.IndexByte(raw[at:], '"')
		if next < 0 {
			return len(raw)
		}
		at += next
		slashes := 0
		for raw[at-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return at
		}
	}
	return len(raw)
}

// valueAt gives the value that begins here, up to the comma or bracket that ends it.
func valueAt(raw []byte, start int) (json.RawMessage, error) {
	depth := 0
	for at := start; at < len(raw); at++ {
		switch raw[at] {
		case '"':
			at = closingQuote(raw, at)
		case '{', '[':
			depth++
		case '}', ']', ',':
			if depth == 0 {
				return bytes.TrimSpace(raw[start:at]), nil
			}
			if raw[at] != ',' {
				depth--
			}
		}
	}
	return nil, errNoResult
}
