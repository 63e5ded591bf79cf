// Package jsonrpc writes the envelope of a JSON-RPC 2.0 request and takes that of
// an answer apart, without touching what is inside: a result is given back as the
// bytes that it came as.
package jsonrpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
)

// AppendRequest appends a request to dst. The params are JSON.
func AppendRequest(dst []byte, id uint64, method string, params []byte) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = strconv.AppendUint(dst, id, 10)
	dst = append(dst, `,"method":`...)
	dst = appendString(dst, method)
	dst = append(dst, `,"params":`...)
	dst = append(dst, params...)
	return append(dst, '}')
}

// RequestSize is the room that AppendRequest needs, but for a method's name that must be
// escaped.
func RequestSize(method string, params []byte) int {
	const around = len(`{"jsonrpc":"2.0","id":18446744073709551615,"method":"","params":}`)
	return around + len(method) + len(params)
}

// Answer is a JSON-RPC answer: a result, or an error.
type Answer struct {
	ID     json.RawMessage // as it came; nil where there is none
	Result json.RawMessage // a part of the answer's bytes; nil where there is an error
	Error  *Error          // nil where there is a result
}

// Error is the error of a JSON-RPC answer.
type Error struct {
	Code    int
	Message string
	Data    json.RawMessage // as it came; nil where there is none, or null
	Text    bool            // the error was a bare string, which isn't JSON-RPC's form
}

// What makes a body no answer.
var (
	ErrNotJSON        = errors.New("the answer isn't JSON")
	ErrEmpty          = errors.New("the answer is empty")
	ErrNotObject      = errors.New("the answer isn't a JSON-RPC object")
	ErrNeither        = errors.New("the answer has neither a result nor an error")
	ErrMalformedError = errors.New("the answer's error isn't of JSON-RPC's form")
)

// ParseAnswer takes an answer apart. Members that JSON-RPC doesn't name are
// passed over, and so are theirs in other letters (Result, ID); of a member that stands
// twice the last one counts, as for encoding/json. A null error beside a result is
// none; both are an error.
func ParseAnswer(body []byte) (Answer, error) {
	at := skipSpace(body, 0)
	switch {
	case at == len(body):
		return Answer{}, ErrEmpty
	case body[at] != '{':
		return Answer{}, notThe(body, ErrNotObject)
	}
	var answer Answer
	var rawError json.RawMessage
	object := enter(body, at, 0)
	for object.next() {
		name, value := object.member()
		switch string(name) {
		case "id":
			answer.ID = value
		case "result":
			answer.Result = value
		case "error":
			rawError = value
		}
	}
	if !endsAt(body, object.at) {
		return Answer{}, ErrNotJSON
	}
	if len(rawError) > 0 && string(rawError) != "null" {
		parsed, err := ParseError(rawError)
		if err != nil {
			return Answer{}, err
		}
		answer.Error, answer.Result = parsed, nil
		return answer, nil
	}
	if answer.Result == nil {
		return Answer{}, ErrNeither
	}
	return answer, nil
}

// notThe gives the error for a body that isn't of the form it should be: that it isn't
// JSON at all counts first.
func notThe(body []byte, form error) error {
	if !valid(body) {
		return ErrNotJSON
	}
	return form
}

// HasID tells whether the answer's id is this one. Some servers give a number
// back as a string, which is as good.
func (a *Answer) HasID(id uint64) bool {
	var digits [20]byte
	return bytes.Equal(plainID(a.ID), strconv.AppendUint(digits[:0], id, 10))
}

// plainID gives the number in an id that may be the number as a text.
func plainID(id json.RawMessage) []byte {
	if len(id) >= 2 && id[0] == '"' {
		return id[1 : len(id)-1]
	}
	return id
}

// ParseError reads an error object. Servers leave out the code or the message, or
// give the code as text: what is needed to judge the error is one of the two. Some
// give nothing but the message, as a string.
func ParseError(raw json.RawMessage) (*Error, error) {
	var fields struct {
		Code    json.RawMessage `json:"code"`
		Message json.RawMessage `json:"message"`
		Data    json.RawMessage `json:"data"`
	}
	if len(raw) > 0 && raw[0] == '"' {
		e := &Error{Text: true}
		if json.Unmarshal(raw, &e.Message) != nil || e.Message == "" {
			return nil, ErrMalformedError
		}
		return e, nil
	}
	if len(raw) == 0 || raw[0] != '{' || json.Unmarshal(raw, &fields) != nil {
		return nil, ErrMalformedError
	}
	e := &Error{}
	code, hasCode := parseCode(fields.Code)
	hasMessage := present(fields.Message) && json.Unmarshal(fields.Message, &e.Message) == nil
	if !hasCode && !hasMessage {
		return nil, ErrMalformedError
	}
	e.Code = code
	if present(fields.Data) {
		e.Data = fields.Data
	}
	return e, nil
}

func present(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

func parseCode(raw json.RawMessage) (int, bool) {
	if !present(raw) {
		return 0, false
	}
	text := string(raw)
	if text[0] == '"' && json.Unmarshal(raw, &text) != nil {
		return 0, false
	}
	number, err := strconv.ParseFloat(text, 64)
	if err != nil || number != math.Trunc(number) || math.Abs(number) > math.MaxInt32 {
		return 0, false
	}
	return int(number), true
}
