package proxydial_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/bomzrpc/rpcpool/internal/proxydial"
)

// cannedConn says data, chunk by chunk, and then EOF, whatever is written to it.
type cannedConn struct {
	net.Conn
	data   []byte
	chunk  int
	closed bool
}

func (c *cannedConn) Read(b []byte) (int, error) {
	if len(c.data) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), c.chunk)], c.data)
	c.data = c.data[n:]
	return n, nil
}

func (c *cannedConn) Write(b []byte) (int, error) { return len(b), nil }
func (c *cannedConn) SetDeadline(time.Time) error { return nil }
func (c *cannedConn) Close() error {
	c.closed = true
	return nil
}

// tunnelOver gives what remains in the tunnel after the handshake, or the error.
func tunnelOver(t *testing.T, url string, data []byte, chunk int) ([]byte, *proxydial.Error) {
	canned := &cannedConn{data: data, chunk: chunk}
	conn, err := dialerWith(t, url, func() (net.Conn, error) { return canned, nil }).Tunnel(context.Background(), target)
	if err == nil {
		if canned.closed {
			t.Error("the tunnel is closed")
		}
		rest, err := io.ReadAll(conn)
		if err != nil {
			t.Error(err)
		}
		return rest, nil
	}
	var own *proxydial.Error
	if !errors.As(err, &own) {
		t.Fatalf("%T isn't an *Error", err)
	}
	if !canned.closed {
		t.Error("the connection was left open")
	}
	return nil, own
}

// outcome is what a SOCKS5 conversation must end in.
type outcome struct {
	phase  proxydial.Phase
	reason proxydial.Reason // 0: a tunnel, whose bytes begin at length
	code   int
	length int
}

// judge5 says by RFC 1928 and 1929 what data, the bytes from a SOCKS5 proxy to a
// client with a login, must lead to.
func judge5(data []byte) outcome {
	at := func(i int) int {
		if i < len(data) {
			return int(data[i])
		}
		return -1
	}
	fail := func(i int, phase proxydial.Phase, reason proxydial.Reason) outcome {
		if at(i) < 0 {
			reason = proxydial.Closed
		}
		return outcome{phase: phase, reason: reason}
	}
	next := 2
	switch {
	case at(0) != 5:
		return fail(0, greeting, proxydial.Garbage)
	case at(1) == 2:
		if at(2) != 1 {
			return fail(2, greeting, proxydial.Garbage)
		}
		if at(3) != 0 {
			return fail(3, greeting, proxydial.AuthRefused)
		}
		next = 4
	case at(1) != 0:
		return fail(1, greeting, proxydial.AuthRefused)
	}
	if at(next) != 5 {
		return fail(next, asking, proxydial.Garbage)
	}
	if code := at(next + 1); code != 0 {
		o := fail(next+1, asking, proxydial.Reply)
		o.code = max(code, 0)
		return o
	}
	length := map[int]int{1: 10, 3: 7 + max(at(next+4), 0), 4: 22}[at(next+3)]
	switch {
	case length == 0:
		return fail(next+3, asking, proxydial.Garbage)
	case len(data) < next+length:
		return outcome{phase: asking, reason: proxydial.Closed}
	}
	return outcome{length: next + length}
}

// Whatever a SOCKS5 proxy answers, in pieces of any size, the outcome is the one of
// the RFCs, and a tunnel begins exactly behind the reply.
func FuzzSOCKS5Reply(f *testing.F) {
	for _, conv := range conversations {
		if strings.HasPrefix(conv.url, "socks5") {
			f.Add([]byte(conv.said()+"tunnel"), uint8(0))
			f.Add([]byte(conv.said()[:len(conv.said())-1]), uint8(1))
		}
	}
	for _, a := range answers {
		if strings.HasPrefix(a.url, "socks5") {
			f.Add([]byte(a.greets+a.words), uint8(2))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, chunk uint8) {
		want := judge5(data)
		rest, err := tunnelOver(t, "socks5://jo:pw@p.test", data, int(chunk)+1)
		switch {
		case err == nil && want.reason != 0:
			t.Errorf("got a tunnel, want %+v", want)
		case err == nil && !bytes.Equal(rest, data[want.length:]):
			t.Errorf("tunnel has %q, want %q", rest, data[want.length:])
		case err != nil && want != outcome{phase: err.Phase, reason: err.Reason, code: err.Code}:
			t.Errorf("got %#v, want %+v", err, want)
		}
	})
}

// Whatever a proxy answers to CONNECT: where net/http finds a final status of
// HTTP/1, so do we, and a tunnel's bytes are those behind an empty line; and pieces
// of any size make no difference.
func FuzzCONNECTAnswer(f *testing.F) {
	for _, conv := range conversations {
		if strings.HasPrefix(conv.url, "http") {
			f.Add([]byte(conv.said()+"tunnel"), uint8(0))
			f.Add([]byte(conv.said()[:len(conv.said())-1]), uint8(9))
		}
	}
	for _, a := range answers {
		if strings.HasPrefix(a.url, "http") {
			f.Add([]byte(a.words), uint8(2))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, chunk uint8) {
		rest, err := tunnelOver(t, "http://p.test", data, int(chunk)+1)
		restWhole, errWhole := tunnelOver(t, "http://p.test", data, len(data)+1)
		if !bytes.Equal(rest, restWhole) || (err == nil) != (errWhole == nil) {
			t.Fatalf("in pieces %q %v, whole %q %v", rest, err, restWhole, errWhole)
		}
		if err == nil {
			head, isSuffix := bytes.CutSuffix(data, rest)
			if !isSuffix || !bytes.HasPrefix(head, []byte("HTTP/1.")) || !bytes.HasSuffix(head, []byte("\n")) || len(head) > 64<<10 {
				t.Errorf("tunnel %q behind head %q", rest, head)
			}
		} else if err.Phase != asking || err.Reason != errWhole.Reason || err.StatusCode != errWhole.StatusCode ||
			err.Reason != proxydial.Closed && err.Reason != proxydial.Garbage && err.Reason != proxydial.Status {
			t.Errorf("got %#v, whole %#v", err, errWhole)
		}
		if len(data) < 64<<10 {
			compareWithNetHTTP(t, data, rest, err)
		}
	})
}

func compareWithNetHTTP(t *testing.T, data, rest []byte, err *proxydial.Error) {
	r := bufio.NewReaderSize(bytes.NewReader(data), len(data)+16)
	status := 0
	for status < 200 {
		answer, theirs := http.ReadResponse(r, &http.Request{Method: http.MethodConnect})
		if theirs != nil || answer.ProtoMajor != 1 || answer.StatusCode < 100 {
			return
		}
		status = answer.StatusCode
	}
	if status >= 300 {
		if err == nil || err.StatusCode != status {
			t.Errorf("got %#v, net/http status %d", err, status)
		}
		return
	}
	theirRest, _ := io.ReadAll(r)
	if err != nil || !bytes.Equal(rest, theirRest) {
		t.Errorf("got %#v and tunnel %q, net/http %d and %q", err, rest, status, theirRest)
	}
}
