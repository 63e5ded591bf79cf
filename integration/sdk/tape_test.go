package sdk

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"sync"
)

// tape is a transport that records the answers to what a call sends: results and
// errors, as the bytes that they are.
type tape struct{ next http.RoundTripper }

// recording is what one call was answered.
type recording struct {
	mu      sync.Mutex // protects answers
	answers []string
}

type recordingKey struct{}

// recorded gives a context for one call, and what that will be answered.
func recorded(ctx context.Context) (context.Context, *recording) {
	r := &recording{}
	return context.WithValue(ctx, recordingKey{}, r), r
}

func (t tape) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := t.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	res.Body = io.NopCloser(bytes.NewReader(body))
	if r, ok := req.Context().Value(recordingKey{}).(*recording); ok {
		r.take(res.StatusCode, body)
	}
	return res, nil
}

// take notes the answers in a body without their ids, which differ from client to
// client; those of a batch in the order of the ids.
func (r *recording) take(status int, body []byte) {
	type answer struct {
		ID     uint64
		Result json.RawMessage
		Error  json.RawMessage
	}
	var answers []answer
	if body[0] != '[' {
		body = slices.Concat([]byte("["), body, []byte("]"))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if status != http.StatusOK || json.Unmarshal(body, &answers) != nil {
		r.answers = append(r.answers, http.StatusText(status)+" "+string(body))
		return
	}
	slices.SortFunc(answers, func(a, b answer) int { return cmp.Compare(a.ID, b.ID) })
	for _, a := range answers {
		r.answers = append(r.answers, "result "+string(a.Result)+" error "+string(a.Error))
	}
}
