package jsonrpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
)

// AppendRawRequest is AppendRequest with params that may be absent: nil leaves the
// member out.
func AppendRawRequest(dst []byte, id uint64, method string, params []byte) []byte {
	if params != nil {
		return AppendRequest(dst, id, method, params)
	}
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = strconv.AppendUint(dst, id, 10)
	dst = append(dst, `,"method":`...)
	return append(appendString(dst, method), '}')
}

// AppendResultHead appends an answer up to its result: the result's bytes and a
// closing brace complete it.
func AppendResultHead(dst, id []byte) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = append(dst, id...)
	return append(dst, `,"result":`...)
}

// AppendErrorAnswer appends an answer with an error. Its data is JSON, or nil where
// there is none.
func AppendErrorAnswer(dst, id []byte, code int, message string, data []byte) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = append(dst, id...)
	dst = append(dst, `,"error":{"code":`...)
	dst = strconv.AppendInt(dst, int64(code), 10)
	dst = append(dst, `,"message":`...)
	dst = appendString(dst, message)
	if len(data) > 0 {
		dst = append(dst, `,"data":`...)
		dst = append(dst, data...)
	}
	return append(dst, `}}`...)
}

// appendString appends a text as JSON, without escapes that only HTML needs.
func appendString(dst []byte, text string) []byte {
	if isPlain(text) {
		dst = append(dst, '"')
		dst = append(dst, text...)
		return append(dst, '"')
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(text) != nil {
		return append(dst, `""`...) // strings always encode
	}
	return append(dst, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
}

// isPlain tells whether a text stands in JSON as it is, as every method's name does.
func isPlain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// ErrNotBatch says that a body is no answer to a batch.
var ErrNotBatch = errors.New("the answer to a batch isn't an array of objects")

// Answers are the parts of a batch's answer by the ids of the requests.
type Answers map[string][]json.RawMessage

// ParseBatchAnswer takes the answer to a batch apart. Whether its objects are answers
// isn't looked at.
func ParseBatchAnswer(body []byte) (Answers, error) {
	at := skipSpace(body, 0)
	if at == len(body) || body[at] != '[' {
		return nil, notThe(body, ErrNotBatch)
	}
	answers := Answers{}
	allObjects := true
	array := enter(body, at, 0)
	for array.next() {
		if object, id := array.answer(); object != nil {
			answers[string(id)] = append(answers[string(id)], object)
		} else {
			allObjects = false
		}
	}
	switch {
	case !endsAt(body, array.at):
		return nil, ErrNotJSON
	case !allObjects:
		return nil, ErrNotBatch
	}
	return answers, nil
}

// answer gives the object that next has found, and its id as the number that it stands
// for: some servers give a number back as a string, which is as good. What is no
// object is nil.
func (c *cursor) answer() (object json.RawMessage, id []byte) {
	start := c.at
	if start >= len(c.data) || c.data[start] != '{' {
		c.value()
		return nil, nil
	}
	inner := enter(c.data, start, c.depth)
	for inner.next() {
		if name, value := inner.member(); string(name) == "id" {
			id = plainID(value)
		}
	}
	if c.at = inner.at; c.at == malformed {
		return nil, nil
	}
	return c.data[start:c.at:c.at], id
}

// For gives the answers to a request: one, where the server did as it should.
func (a Answers) For(id uint64) []json.RawMessage { return a[strconv.FormatUint(id, 10)] }
