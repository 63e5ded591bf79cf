package jsonrpc

import (
	"bytes"
	"encoding/json"
)

// Request is a JSON-RPC request as a caller wrote it. What is raw in it is a part of
// the caller's bytes.
type Request struct {
	ID     json.RawMessage // nil where there is none: a notification
	Method string
	Params json.RawMessage // nil where there are none; null where they are null
	Fault  *Error          // why it isn't a request; nil where it is one
}

// Codes of errors about requests.
const (
	CodeNotJSON    = -32700
	CodeNotRequest = -32600
	CodeInternal   = -32603
)

// Null is the id of an answer to something that has none that could be given back.
var Null = json.RawMessage("null")

// ParseRequests reads a body as a request, or as a batch of them. The error is about
// the body as a whole; what is wrong with one request of a batch stands in its Fault.
// Members that JSON-RPC doesn't name are passed over; of a member that stands twice
// the last one counts, as for encoding/json.
func ParseRequests(body []byte) (requests []Request, batch bool, fault *Error) {
	trimmed := bytes.TrimLeft(body, " \t\r\n")
	switch {
	case len(trimmed) == 0:
		return nil, false, &Error{Code: CodeNotJSON, Message: "parse error: the body is empty"}
	case !valid(body):
		return nil, false, &Error{Code: CodeNotJSON, Message: "parse error: the body isn't JSON"}
	case trimmed[0] == '{':
		return []Request{parseRequest(trimmed)}, false, nil
	}
	elements, batch := Elements(trimmed)
	switch {
	case !batch:
		return nil, false, &Error{Code: CodeNotRequest, Message: "invalid request: the body is neither an object nor an array"}
	case len(elements) == 0:
		return nil, true, &Error{Code: CodeNotRequest, Message: "invalid request: the batch is empty"}
	}
	requests = make([]Request, len(elements))
	for i, element := range elements {
		requests[i] = parseRequest(element)
	}
	return requests, true, nil
}

// parseRequest reads one request from valid JSON.
func parseRequest(value []byte) Request {
	if value[0] != '{' {
		return Request{ID: Null, Fault: notRequest("it isn't an object")}
	}
	var r Request
	var method json.RawMessage
	object := enter(value, 0, 0)
	for object.next() {
		name, member := object.member()
		switch string(name) {
		case "id":
			r.ID = member
		case "method":
			method = member
		case "params":
			r.Params = member
		}
	}
	switch {
	case len(r.ID) > 0 && !isID(r.ID):
		r.ID, r.Fault = Null, notRequest("its id is neither a string, nor a number, nor null")
	case len(method) == 0:
		r.Fault = notRequest("it has no method")
	case method[0] != '"' || json.Unmarshal(method, &r.Method) != nil || r.Method == "":
		r.Fault = notRequest("its method isn't a name")
	}
	if r.Fault != nil && r.ID == nil {
		r.ID = Null
	}
	return r
}

func notRequest(why string) *Error {
	return &Error{Code: CodeNotRequest, Message: "invalid request: " + why}
}

// isID tells whether a value may be an id.
func isID(value json.RawMessage) bool {
	switch value[0] {
	case '{', '[', 't', 'f':
		return false
	}
	return true
}
