package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// mode is how an endpoint behaves.
type mode string

const (
	modeOK        mode = "ok"
	modeRefused   mode = "refused" // connections are refused, and those that are open end
	mode500       mode = "500"
	mode429       mode = "429"
	modeBlackhole mode = "blackhole" // takes requests and never answers
)

// flapping are the modes that an endpoint steps through, each endpoint one step ahead
// of the one before: some are well at any time.
var flapping = []mode{modeOK, mode500, modeOK, mode429, modeOK, modeRefused}

// endpoint is one node.
type endpoint struct {
	requests, dials atomic.Int64

	mu   sync.Mutex // protects what follows
	mode mode
	open map[net.Conn]struct{}
}

func newEndpoint() *endpoint { return &endpoint{mode: modeOK, open: map[net.Conn]struct{}{}} }

func (e *endpoint) set(m mode) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mode = m
	if m == modeRefused {
		for conn := range e.open {
			_ = conn.Close()
		}
	}
}

func (e *endpoint) now() mode {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.mode
}

// accept counts a connection in; false where the endpoint refuses it.
func (e *endpoint) accept(conn net.Conn) bool {
	e.dials.Add(1)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.mode == modeRefused {
		return false
	}
	e.open[conn] = struct{}{}
	return true
}

func (e *endpoint) forget(conn net.Conn) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.open, conn)
}

// requestHead is what matters of a request's head.
type requestHead struct {
	target string // the path, or for CONNECT the host and port
	length int
}

var lengthField = []byte("Content-Length: ")

func readHead(br *bufio.Reader) (head requestHead, err error) {
	line, err := br.ReadSlice('\n')
	if err != nil {
		return head, err
	}
	_, rest, _ := bytes.Cut(line, []byte(" "))
	target, _, _ := bytes.Cut(rest, []byte(" "))
	head.target = string(target)
	for {
		line, err := br.ReadSlice('\n')
		if err != nil {
			return head, err
		}
		if len(line) <= 2 {
			return head, nil
		}
		if len(line) > len(lengthField) && bytes.EqualFold(line[:len(lengthField)], lengthField) {
			if head.length, err = strconv.Atoi(string(bytes.TrimSpace(line[len(lengthField):]))); err != nil {
				return head, err
			}
		}
	}
}

// answer answers JSON-RPC requests by what the endpoint is and the path says. Where no
// endpoint is given, each request says for which it is.
func (s *servers) answer(e *endpoint, conn net.Conn, br *bufio.Reader) {
	var body []byte
	for {
		head, err := readHead(br)
		if err != nil {
			return
		}
		body = append(body[:0], make([]byte, head.length)...)
		if _, err := io.ReadFull(br, body); err != nil {
			return
		}
		to, target := e, head.target
		if to == nil {
			if to, target = s.forwardTo(target); to == nil {
				return
			}
		}
		to.requests.Add(1)
		if err := s.respond(conn, to.now(), target, body); err != nil {
			return
		}
	}
}

// The paths under which an endpoint has more than a block number to give.
const (
	pathKnown   = "/known"   // eth_getLogs gives a large answer of known length
	pathChunked = "/chunked" // the same in chunks
	pathLogs    = "/logs"    // eth_getLogs gives a few logs, late
)

func (s *servers) respond(conn net.Conn, m mode, target string, body []byte) error {
	switch m {
	case modeRefused:
		return io.EOF
	case modeBlackhole:
		_, err := io.Copy(io.Discard, conn) // until the client gives up
		return err
	case mode500:
		return write(conn, "500 Internal Server Error", "text/plain", []byte("internal server error\n"))
	case mode429:
		return write(conn, "429 Too Many Requests", "text/plain", []byte("too many requests\n"))
	}
	if bytes.HasPrefix(body, []byte("[")) {
		return write(conn, "200 OK", "application/json", blockNumbers(body))
	}
	id := fieldOf(body, "id")
	if target == "/" || !bytes.Contains(body, []byte(`"eth_getLogs"`)) {
		return write(conn, "200 OK", "application/json", fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":"0x13f2a5b"}`, id))
	}
	path, size, _ := strings.Cut(target, "?")
	if path == pathLogs {
		time.Sleep(logsLatency)
		return write(conn, "200 OK", "application/json", fewLogs(id, body))
	}
	return s.large.write(conn, id, path, size)
}

// blockNumbers answers a batch.
func blockNumbers(batch []byte) []byte {
	answer := []byte("[")
	for i := 0; ; i++ {
		at := bytes.Index(batch, []byte(`"id":`))
		if at < 0 {
			return append(answer, ']')
		}
		if i > 0 {
			answer = append(answer, ',')
		}
		batch = batch[at:]
		answer = fmt.Appendf(answer, `{"jsonrpc":"2.0","id":%s,"result":"0x13f2a5b"}`, fieldOf(batch, "id"))
		batch = batch[1:]
	}
}

// fieldOf gives a field of the request as it stands there; it is no list or object.
func fieldOf(body []byte, name string) []byte {
	_, rest, _ := bytes.Cut(body, []byte(`"`+name+`":`))
	if end := bytes.IndexAny(rest, ",}"); end >= 0 {
		return rest[:end]
	}
	return []byte("null")
}

func write(conn net.Conn, status, kind string, body []byte) error {
	answer := make([]byte, 0, 256+len(body))
	answer = fmt.Appendf(answer, "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n", status, kind, len(body))
	_, err := conn.Write(append(answer, body...))
	return err
}
