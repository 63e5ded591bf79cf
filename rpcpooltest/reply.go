package rpcpooltest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Reply is an entry of a [Node]'s script: what the node does with a request, and
// for which requests. Make one with [Result], [Error], [Status] and the like,
// and limit it with its methods, each of which gives a changed copy:
//
//	rpcpooltest.Status(503).Header("Retry-After", "7").Times(2)
//	rpcpooltest.Result("0x10").Method("eth_blockNumber").Via("p1").Delay(3 * time.Second)
//
// The zero Reply is the result "0x1".
type Reply struct {
	when   when
	act    act
	status int // 0: 200
	header http.Header
	build  func(Request) []byte // the body; nil: the result "0x1"
	page   bool                 // the body is no JSON-RPC answer: one for a whole batch
	pieces int                  // the body comes in so many pieces
	pause  time.Duration        // before each of them
	gzip   bool
	code   int // Unreachable: of SOCKS5
	handle func(Request) Reply
}

// act is what is done with the connection.
type act int

const (
	answerIt act = iota
	answerCut
	answerHalf
	hangIt
	hangInBody
	resetIt
	closeIt
	unreachable
	badTLS
	hangTLS
	badCertificate
	handleIt
)

// atConnect tells whether the reply is about the connection, so that it is
// chosen before the request is known.
func (r Reply) atConnect() bool { return r.act >= unreachable && r.act <= badCertificate }

func (r Reply) conditions() when { return r.when }

// Method limits the reply to requests of one method.
func (r Reply) Method(name string) Reply { r.when.method = name; return r }

// Via limits the reply to requests that come through the proxy of this name.
func (r Reply) Via(proxy string) Reply { r.when.via = proxy; return r }

// Times limits the reply to so many requests; 0 or less means no limit.
func (r Reply) Times(n int) Reply { r.when.times = max(n, 0); return r }

// FromStep limits the reply to the step given and later ones, see
// [Network.SetStep].
func (r Reply) FromStep(step int) Reply { r.when.from = step; return r }

// ToStep limits the reply to the step given and earlier ones.
func (r Reply) ToStep(step int) Reply { r.when.until = step + 1; return r }

// Delay has the node wait before it answers, hangs up, or does what else the
// reply says.
func (r Reply) Delay(d time.Duration) Reply { r.when.delay = d; return r }

// Hold has the node wait until the test lets the request go, see [Gate].
func (r Reply) Hold(g *Gate) Reply { r.when.gate = g; return r }

// Header adds a header to the answer.
func (r Reply) Header(name, value string) Reply {
	if r.header = r.header.Clone(); r.header == nil {
		r.header = http.Header{}
	}
	r.header.Add(name, value)
	return r
}

// Text gives the answer this body, whatever it is: text/plain, unless a header
// says otherwise.
func (r Reply) Text(body string) Reply {
	r.page, r.build = true, func(Request) []byte { return []byte(body) }
	return r
}

// WithStatus gives the answer this HTTP status and keeps its body:
// Error(3, "execution reverted").WithStatus(500).
func (r Reply) WithStatus(status int) Reply { r.status = status; return r }

// Cut ends the answer, and with it the connection, before its Content-Length.
func (r Reply) Cut() Reply { r.act = answerCut; return r }

// Gzip compresses the body.
func (r Reply) Gzip() Reply { r.gzip = true; return r }

// Drip sends the body in so many pieces and waits before each.
func (r Reply) Drip(pieces int, pause time.Duration) Reply {
	r.pieces, r.pause = pieces, pause
	return r
}

// Result answers with a JSON-RPC result: anything that marshals to JSON.
func Result(value any) Reply {
	return Reply{build: func(q Request) []byte { return resultBody(q.ID, value) }}
}

// Error answers with a JSON-RPC error, under HTTP 200.
func Error(code int, message string) Reply { return ErrorData(code, message, nil) }

// ErrorData is Error with data: anything that marshals to JSON; nil for none.
func ErrorData(code int, message string, data any) Reply {
	return Reply{build: func(q Request) []byte {
		e := map[string]any{"code": code, "message": message}
		if data != nil {
			e["data"] = data
		}
		return answerBody(q.ID, "error", e)
	}}
}

// Status answers with an HTTP status and no body; see [Reply.Text].
func Status(status int) Reply { return Reply{status: status}.Text("") }

// RateLimited answers 429, with a Retry-After of so many whole seconds unless it
// is 0.
func RateLimited(retryAfter time.Duration) Reply {
	r := Status(http.StatusTooManyRequests).Text("too many requests")
	if retryAfter > 0 {
		r = r.Header("Retry-After", strconv.Itoa(int(retryAfter/time.Second)))
	}
	return r
}

// Garbage answers 200 and a page of HTML.
func Garbage() Reply {
	return Body("<!DOCTYPE html>\n<html><head><title>Welcome</title></head><body>Nothing here.</body></html>\n").
		Header("Content-Type", "text/html")
}

// Body answers 200 and exactly this body.
func Body(body string) Reply {
	return Reply{}.Text(body)
}

// WrongID answers with a result whose id is another one than the request's.
func WrongID(value any) Reply {
	return Reply{build: func(q Request) []byte {
		other := json.RawMessage(`"another"`)
		if bytes.Equal(q.ID, other) {
			other = json.RawMessage(`"yet another"`)
		}
		return resultBody(other, value)
	}}
}

// Big answers with a result that is a string of n times the letter x.
func Big(n int) Reply { return Result(strings.Repeat("x", n)) }

// Hang takes the request and never answers.
func Hang() Reply { return Reply{act: hangIt} }

// HangInBody sends the head of a result and the beginning of the body, and no
// more.
func HangInBody() Reply { return Reply{act: hangInBody} }

// Truncated sends a part of a result; the connection ends before its
// Content-Length.
func Truncated() Reply { return Reply{act: answerHalf} }

// Reset breaks the connection after the request.
func Reset() Reply { return Reply{act: resetIt} }

// Close ends the connection after the request, without an answer.
func Close() Reply { return Reply{act: closeIt} }

// Unreachable has proxies say that they can't reach the node: a SOCKS5 proxy by
// code 5 (see [Reply.Code]; SOCKS4: 91), an HTTP proxy by status 502 (see
// [Reply.WithStatus]), with the reply's headers. It is chosen before the method
// is known, so it can't be limited to one. On a connection that is there
// already, it is a reset.
func Unreachable() Reply { return Reply{act: unreachable} }

// Code is the code by which a SOCKS5 proxy says that the node is [Unreachable].
func (r Reply) Code(code int) Reply { r.code = code; return r }

// BadTLS answers the TLS greeting with something that isn't TLS. For nodes under
// https; like [Unreachable] it can't be limited to a method.
func BadTLS() Reply { return Reply{act: badTLS} }

// HangTLS never answers the TLS greeting; see [BadTLS].
func HangTLS() Reply { return Reply{act: hangTLS} }

// BadCertificate shows a certificate of an authority that nobody trusts; see
// [BadTLS].
func BadCertificate() Reply { return Reply{act: badCertificate} }

// Handle asks answer for the reply to each request. It is called on a goroutine
// of the node's, so it must not end the test (t.FailNow, require). What it gives
// is done as it is: conditions on it don't count, its Delay and Hold do.
func Handle(answer func(Request) Reply) Reply { return Reply{act: handleIt, handle: answer} }

func resultBody(id json.RawMessage, value any) []byte { return answerBody(id, "result", value) }

func answerBody(id json.RawMessage, kind string, value any) []byte {
	if len(id) == 0 {
		id = json.RawMessage("null")
	}
	raw, err := json.Marshal(value)
	if err != nil { // the test's own mistake: let it be seen by whoever reads the answer
		kind, raw = "error", must(json.Marshal(map[string]any{"code": -32603, "message": "rpcpooltest: " + err.Error()}))
	}
	body := make([]byte, 0, len(raw)+len(id)+32)
	body = append(body, `{"jsonrpc":"2.0","id":`...)
	body = append(body, id...)
	body = append(body, `,"`...)
	body = append(body, kind...)
	body = append(body, `":`...)
	body = append(body, raw...)
	return append(body, '}')
}

// body gives the body that answers request.
func (r Reply) body(request Request) []byte {
	if r.build == nil {
		return resultBody(request.ID, "0x1")
	}
	return r.build(request)
}
