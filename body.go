package rpcpool

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"sync/atomic"
)

// A large answer is held once: its bytes become the result without a second copy (rule
// F2). So the buffer is made as large as the answer says that it is, or as the RPC's last
// large one was; but not on the word of an RPC that has sent nothing yet.

const (
	smallBody = 512     // for answers of unknown length
	trustBody = 1 << 20 // so much must have come before more is reserved on an RPC's word
)

// sizeHint is the size of the last large answer of an RPC. It needs no lock.
type sizeHint struct{ last atomic.Int64 }

func (h *sizeHint) note(size int) {
	if h != nil && size > trustBody {
		h.last.Store(int64(size))
	}
}

func (h *sizeHint) get() int64 {
	if h == nil {
		return 0
	}
	return h.last.Load()
}

// readAnswer reads an answer's body, at most limit bytes, and tells whether there were
// more.
func readAnswer(res *http.Response, hint *sizeHint, limit int64) (body []byte, more bool, err error) {
	expected := res.ContentLength
	if expected < 0 {
		expected = hint.get()
	}
	body, more, err = readExpected(res.Body, min(max(expected, 0), limit), limit)
	hint.note(len(body))
	return body, more, err
}

// readLimited reads at most limit bytes, and tells whether there were more.
func readLimited(r io.Reader, limit int64) (body []byte, more bool, err error) {
	return readExpected(r, 0, limit)
}

// readExpected reads to the end, but not beyond limit. expected is how much there may be.
func readExpected(r io.Reader, expected, limit int64) (body []byte, more bool, err error) {
	// A byte more than expected lets the end be seen without growing.
	body = make([]byte, 0, max(min(expected+1, trustBody), smallBody))
	for {
		if len(body) == cap(body) {
			body = grow(body, expected)
		}
		room := body[len(body):cap(body)]
		if left := limit + 1 - int64(len(body)); int64(len(room)) > left {
			room = room[:left]
		}
		n, err := r.Read(room)
		body = body[:len(body)+n]
		switch {
		case int64(len(body)) > limit:
			return body[:limit], true, nil
		case errors.Is(err, io.EOF):
			return body, false, nil
		case err != nil:
			return body, false, err
		}
	}
}

// grow makes room: for all that is expected once enough has come, else for as much again.
func grow(body []byte, expected int64) []byte {
	if room := int(expected) + 1 - len(body); len(body) >= trustBody && room > 0 {
		grown := make([]byte, len(body), len(body)+room)
		copy(grown, body)
		return grown
	}
	return slices.Grow(body, max(len(body), smallBody))
}
