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
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(text) != nil {
		return append(dst, `""`...) // strings always encode
	}
	return append(dst, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
}

// ErrNotBatch says that a body is no answer to a batch.
var ErrNotBatch = errors.New("the answer to a batch isn't an array of objects")

// Answers are the parts of a batch's answer by the ids of the requests.
type Answers map[string][]json.RawMessage

// ParseBatchAnswer takes the answer to a batch apart. Whether its objects are answers
// isn't looked at.
func ParseBatchAnswer(body []byte) (Answers, error) {
	if !json.Valid(body) {
		return nil, ErrNotJSON
	}
	elements, isArray := Elements(body)
	if !isArray {
		return nil, ErrNotBatch
	}
	answers := make(Answers, len(elements))
	for _, element := range elements {
		if element[0] != '{' {
			return nil, ErrNotBatch
		}
		id := idOf(element)
		answers[id] = append(answers[id], element)
	}
	return answers, nil
}

// idOf gives an answer's id as the number that it stands for: some servers give a
// number back as a string, which is as good.
func idOf(object []byte) string {
	var id string
	for name, value := range members(object) {
		if name == "id" {
			id = string(value)
		}
	}
	if len(id) >= 2 && id[0] == '"' {
		id = id[1 : len(id)-1]
	}
	return id
}

// For gives the answers to a request: one, where the server did as it should.
func (a Answers) For(id uint64) []json.RawMessage { return a[strconv.FormatUint(id, 10)] }
