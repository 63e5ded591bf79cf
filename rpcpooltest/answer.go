package rpcpooltest

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"maps"
	"net/http"
	"strconv"
)

// answer writes the answer to one HTTP request.
type answer struct {
	link    *link
	request *http.Request
	closing bool // the connection is closed after it
}

// give does what the reply says, and tells whether the connection stays open.
func (w *answer) give(reply Reply, request Request) bool {
	l := w.link
	switch reply.act {
	case hangIt:
		l.hang()
		return false
	case closeIt:
		return false
	case resetIt, unreachable, badTLS, hangTLS, badCertificate:
		// Those about connections come too late on one that is there already: as
		// if the node had gone away.
		reset(l.raw)
		return false
	}
	body := reply.body(request)
	header := w.header(reply)
	if reply.gzip {
		var compressed bytes.Buffer
		z := gzip.NewWriter(&compressed)
		_, _ = z.Write(body)
		_ = z.Close()
		body = compressed.Bytes()
		header.Set("Content-Encoding", "gzip")
	}
	length := len(body)
	switch reply.act {
	case answerCut:
		length += 10
	case answerHalf, hangInBody:
		body = body[:len(body)/2]
	}
	status := reply.status
	if status == 0 {
		status = http.StatusOK
	}
	if length > 0 || bodyAllowed(status) {
		header.Set("Content-Length", strconv.Itoa(length))
	}
	sent := w.write(head("HTTP/1.1", status, header), body, reply)
	if reply.act == hangInBody {
		l.hang()
	}
	return sent && reply.act == answerIt && !w.closing
}

func (w *answer) header(reply Reply) http.Header {
	header := http.Header{"Content-Type": {"application/json"}}
	if reply.page {
		header.Set("Content-Type", "text/plain; charset=utf-8")
	}
	maps.Copy(header, reply.header)
	if w.closing || reply.act != answerIt {
		header.Set("Connection", "close")
	}
	return header
}

// write sends head and body, the body in pieces where the reply says so.
func (w *answer) write(head, body []byte, reply Reply) bool {
	l := w.link
	if reply.pieces <= 1 && reply.pause == 0 {
		if len(body) < 1<<16 { // one packet for small answers, no copy of big ones
			head, body = append(head, body...), nil
		}
		if _, err := l.Write(head); err != nil {
			return false
		}
		if len(body) == 0 {
			return true
		}
		_, err := l.Write(body)
		return err == nil
	}
	if _, err := l.Write(head); err != nil {
		return false
	}
	pieces := max(reply.pieces, 1)
	for i := range pieces {
		if !l.pause(reply.pause) {
			return false
		}
		piece := body[i*len(body)/pieces : (i+1)*len(body)/pieces]
		if _, err := l.Write(piece); err != nil {
			return false
		}
	}
	return true
}

// head writes an HTTP response's head.
func head(proto string, status int, header http.Header) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %d %s\r\n", proto, status, reason(status))
	_ = header.Write(&b)
	b.WriteString("\r\n")
	return b.Bytes()
}

func reason(status int) string {
	if text := http.StatusText(status); text != "" {
		return text
	}
	return "Status " + strconv.Itoa(status)
}

func bodyAllowed(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}
