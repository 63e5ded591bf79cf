package proxydial

import (
	"bufio"
	"bytes"
	"errors"
	"net"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
	"sync"
)

// maxHead is how many bytes of status lines and headers a proxy may answer to
// CONNECT, interim answers included.
const maxHead = 64 << 10

// headStart is what the answer of every HTTP/1 proxy begins with.
const headStart = "HTTP/1."

var (
	errNotHTTP    = findingError("the answer to CONNECT isn't HTTP/1")
	errHeadTooBig = findingError("the answer to CONNECT has more than 64 KiB of header")
)

// askCONNECT is RFC 9110, section 9.3.6.
func (s *session) askCONNECT(to target) error {
	if err := s.startAsking(); err != nil {
		return err
	}
	s.send(connectRequest(to, s.proxy.Authorization()))
	r := bufio.NewReader(s.conn)
	status, header, err := readAnswer(r)
	if status >= 300 {
		// Judged before err: a refusal counts even if its header broke off.
		refusal := &Error{Phase: s.phase, Reason: Status, StatusCode: status, Header: header}
		if err != nil {
			refusal.Err = s.broke(err).Err
		}
		return refusal
	}
	var why findingError
	switch {
	case errors.As(err, &why):
		return s.found(Garbage, why)
	case err != nil:
		return s.broke(err)
	}
	if early, _ := r.Peek(r.Buffered()); len(early) > 0 {
		s.conn = &prefixedConn{Conn: s.conn, prefix: early}
	}
	return nil
}

func connectRequest(to target, authorization string) []byte {
	request := "CONNECT " + to.String() + " HTTP/1.1\r\nHost: " + to.String() + "\r\nUser-Agent: rpcpool\r\n"
	if authorization != "" {
		request += "Proxy-Authorization: " + authorization + "\r\n"
	}
	return []byte(request + "\r\n")
}

// readAnswer reads the final answer to CONNECT, passing over interim ones (1xx),
// and leaves what follows its header in r. The error is a findingError where the
// answer isn't HTTP, else the reader's. The status is given with an error too,
// where only the header was bad or broke off.
func readAnswer(r *bufio.Reader) (status int, header http.Header, err error) {
	for budget := maxHead; ; {
		if err = expectHTTP(r); err != nil {
			return 0, nil, err
		}
		line, err := readLine(r, &budget)
		if err != nil {
			return 0, nil, err
		}
		if status, err = parseStatusLine(line); err != nil {
			return 0, nil, err
		}
		raw, err := readHeader(r, &budget)
		switch {
		case errors.Is(err, errHeadTooBig):
			return 0, nil, err
		case err != nil:
			return status, nil, err
		case status >= 200:
			header, err = parseHeader(raw)
			return status, header, err
		}
	}
}

// expectHTTP looks at the first bytes as they come. To wait for the end of a line
// would be to wait for ever: what isn't HTTP may have none.
func expectHTTP(r *bufio.Reader) error {
	for n := 1; n <= len(headStart); n++ {
		start, err := r.Peek(n)
		if !strings.HasPrefix(headStart, string(start)) {
			return errNotHTTP
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readLine reads a line with its end, and takes its length off the budget.
func readLine(r *bufio.Reader, budget *int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		*budget -= len(part)
		switch {
		case *budget < 0:
			return nil, errHeadTooBig
		case err == nil:
			return line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// readHeader reads up to the empty line that ends a header, which it includes.
func readHeader(r *bufio.Reader, budget *int) ([]byte, error) {
	var header []byte
	for {
		line, err := readLine(r, budget)
		if err != nil {
			return nil, err
		}
		header = append(header, line...)
		if len(bytes.TrimRight(line, "\r\n")) == 0 {
			return header, nil
		}
	}
}

// parseStatusLine takes "HTTP/1.x NNN", with or without a reason after it.
func parseStatusLine(line []byte) (int, error) {
	version, rest, _ := strings.Cut(strings.TrimRight(string(line), "\r\n"), " ")
	code, _, _ := strings.Cut(strings.TrimLeft(rest, " "), " ")
	status, err := strconv.ParseUint(code, 10, 16)
	if err != nil || len(code) != 3 || status < 100 || len(version) != len(headStart)+1 {
		return 0, errNotHTTP
	}
	return int(status), nil
}

func parseHeader(raw []byte) (http.Header, error) {
	header, err := textproto.NewReader(bufio.NewReader(bytes.NewReader(raw))).ReadMIMEHeader()
	if err != nil {
		err = errNotHTTP // the reader's own error quotes the line
	}
	return http.Header(header), err
}

// prefixedConn gives back what was read too much, before it goes on.
type prefixedConn struct {
	net.Conn
	mu     sync.Mutex // protects prefix: a net.Conn may be read by several goroutines
	prefix []byte
}

func (c *prefixedConn) Read(b []byte) (int, error) {
	c.mu.Lock()
	if len(c.prefix) > 0 {
		n := copy(b, c.prefix)
		c.prefix = c.prefix[n:]
		c.mu.Unlock()
		return n, nil
	}
	c.mu.Unlock()
	return c.Conn.Read(b)
}
