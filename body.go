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
// large one was; but not on the word of an RPC that has sent nothing yet, and not for good
// where much of it stays empty: whoever keeps the result keeps the buffer.

const (
	smallBody = 512     // for answers of unknown length, to begin with
	trustBody = 1 << 20 // so much must have come before more is reserved on an RPC's word

	trustFactor = 64 // and then this many times what has come
)

// sizeHint is the size of the last large answer of an RPC. It needs no lock.
type sizeHint struct{ last atomic.Int64 }

func (h *sizeHint) note(size int) {
	if size > trustBody {
		h.last.Store(int64(size))
	}
}

// readAnswer reads an answer's body, at most limit bytes, and tells whether there were
// more.
func readAnswer(res *http.Response, hint *sizeHint, limit int64) (body []byte, more bool, err error) {
	said, expected := res.ContentLength, res.ContentLength
	if said < 0 {
		expected = hint.last.Load()
	}
	size := int64(smallBody)
	if said >= 0 {
		size = min(said, trustBody-1) + 1 // a byte more lets the end be seen without growing
	}
	body = make([]byte, 0, size)
	body, more, err = readInto(body, res.Body, min(expected, limit), limit)
	hint.note(len(body))
	if cap(body) > trustBody && cap(body)/2 > len(body) {
		body = slices.Clone(body)
	}
	return body, more, err
}

// readLimited reads at most limit bytes, and tells whether there were more.
func readLimited(r io.Reader, limit int64) (body []byte, more bool, err error) {
	return readInto(make([]byte, 0, smallBody), r, 0, limit)
}

// readInto reads to the end, but not beyond limit, into an empty buffer that is replaced
// when it is full. expected is how much there may be, if that is large.
func readInto(body []byte, r io.Reader, expected, limit int64) (whole []byte, more bool, err error) {
	for {
		if len(body) == cap(body) {
			body = grow(body, expected)
		}
		room := body[len(body):cap(body)]
		if left := limit - int64(len(body)); int64(len(room)) > left {
			room = room[:left+1] // a byte beyond says that there are more
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
	has := int64(len(body))
	more := max(has, smallBody)
	switch {
	case has >= trustBody && has <= expected:
		more = min(expected-has+1, trustFactor*has)
	case has >= smallBody && has < trustBody && expected > 0: // it will be much, so in fewer steps
		more = min(3*has, trustBody-has)
	}
	return append(make([]byte, 0, has+more), body...)
}
