package jsonrpc

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A request is what encoding/json reads back, whatever the method's name is, and
// the params stand in it byte for byte.
func TestAppendRequestIsReadBack(t *testing.T) {
	for _, method := range []string{
		"eth_blockNumber", "", "a\"b\\c", "line\nend", "\x00", "été", "<script>&", "\u2028", "net/version",
	} {
		for _, params := range []string{`[]`, `{"named":1}`, `[1e400, "<&>", {"a":[]}]`, `[0.10, 12345678901234567890]`} {
			body := AppendRequest([]byte("before"), 18446744073709551615, method, []byte(params))
			require.True(t, strings.HasPrefix(string(body), "before"), "what was in dst stays")
			var got struct {
				Version string          `json:"jsonrpc"`
				ID      uint64          `json:"id"`
				Method  string          `json:"method"`
				Params  json.RawMessage `json:"params"`
			}
			require.NoError(t, json.Unmarshal(body[len("before"):], &got), "%s", body)
			require.Equal(t, "2.0", got.Version)
			require.Equal(t, uint64(18446744073709551615), got.ID)
			require.Equal(t, method, got.Method)
			require.Equal(t, params, string(got.Params))
		}
	}
}

// A method's name that isn't UTF-8 still gives valid JSON.
func TestAppendRequestWithABrokenName(t *testing.T) {
	require.True(t, json.Valid(AppendRequest(nil, 1, "eth_\xff", []byte("[]"))))
}

// The envelope is taken apart as encoding/json would do it: order, white space,
// unknown members, escaped names, doubled members and null errors don't matter,
// and the result keeps its bytes.
func TestParseAnswerGivesTheResultAsItCame(t *testing.T) {
	for _, c := range []struct{ name, body, id, result string }{
		{"plain", `{"jsonrpc":"2.0","id":1,"result":"0x1"}`, `1`, `"0x1"`},
		{"result first", `{"result":{"a":[1,{"b":"}"}]},"id":7}`, `7`, `{"a":[1,{"b":"}"}]}`},
		{"null result", `{"id":1,"result":null}`, `1`, `null`},
		{"null error beside a result", `{"id":1,"result":true,"error":null}`, `1`, `true`},
		{"null error before a result", `{"error":null,"id":1,"result":false}`, `1`, `false`},
		{"spaces everywhere", " \t\r\n{ \"id\" : 1 , \"result\" : [ 1 , 2 ] \n} \n", `1`, `[ 1 , 2 ]`},
		{"number as it was written", `{"id":1,"result":1.50e+10}`, `1`, `1.50e+10`},
		{"number longer than any type", `{"id":1,"result":123456789012345678901234567890}`, `1`, `123456789012345678901234567890`},
		{"result is the last of two", `{"result":1,"id":1,"result":2}`, `1`, `2`},
		{"null is the last of two results", `{"result":1,"id":1,"result":null}`, `1`, `null`},
		{"null is the last of two errors", `{"error":{"code":1},"id":1,"result":2,"error":null}`, `1`, `2`},
		{"name with escapes", `{"\u0069d":3,"r\u0065sult":"x"}`, `3`, `"x"`},
		{"brackets and quotes in strings", `{"x":"}\"]\\","id":1,"result":"{[\\\"]}"}`, `1`, `"{[\\\"]}"`},
		{"unknown members", `{"usage":{"result":9,"error":{}},"id":1,"trace":["error"],"result":0}`, `1`, `0`},
		{"names are not folded", `{"id":1,"Result":1,"ERROR":{"code":1},"result":2}`, `1`, `2`},
		{"no id", `{"result":"0x1"}`, ``, `"0x1"`},
		{"empty object as result", `{"id":1,"result":{}}`, `1`, `{}`},
		{"empty string and list", `{"id":"","result":[]}`, `""`, `[]`},
		{"not UTF-8 inside a string", "{\"id\":1,\"result\":\"\xff\xfe\"}", `1`, "\"\xff\xfe\""},
		{"not UTF-8 in a member's name", "{\"\xff\":1,\"id\":1,\"result\":5}", `1`, `5`},
		{"escape in an unknown name", `{"\ud800":1,"id":1,"result":5}`, `1`, `5`},
		{"empty name", `{"":1,"id":1,"result":5}`, `1`, `5`},
	} {
		t.Run(c.name, func(t *testing.T) {
			answer, err := ParseAnswer([]byte(c.body))
			require.NoError(t, err)
			require.Nil(t, answer.Error)
			require.Equal(t, c.id, string(answer.ID))
			require.Equal(t, c.result, string(answer.Result))
		})
	}
}

// What isn't an answer is refused, with the reason.
func TestParseAnswerRefuses(t *testing.T) {
	for _, c := range []struct {
		name, body string
		want       error
	}{
		{"nothing", "", ErrEmpty},
		{"white space", " \r\n\t ", ErrEmpty},
		{"a page", "<!DOCTYPE html><html></html>", ErrNotJSON},
		{"torn", `{"id":1,"result":"0x`, ErrNotJSON},
		{"one byte short", `{"id":1,"result":"0x1"`, ErrNotJSON},
		{"two answers", `{"id":1,"result":1}{"id":1,"result":1}`, ErrNotJSON},
		{"a byte order mark", "\xef\xbb\xbf" + `{"id":1,"result":1}`, ErrNotJSON},
		{"a trailing comma", `{"id":1,"result":1,}`, ErrNotJSON},
		{"single quotes", `{'id':1,'result':1}`, ErrNotJSON},
		{"a bad number inside", `{"id":1,"result":[01]}`, ErrNotJSON},
		{"a bad escape inside", `{"id":1,"result":"\x"}`, ErrNotJSON},
		{"a control character inside", "{\"id\":1,\"result\":\"\x01\"}", ErrNotJSON},
		{"NaN", `{"id":1,"result":NaN}`, ErrNotJSON},
		{"deeper than encoding/json goes", `{"result":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`, ErrNotJSON},
		{"a list", `[{"id":1,"result":1}]`, ErrNotObject},
		{"a string", `"0x1"`, ErrNotObject},
		{"a number", `1`, ErrNotObject},
		{"null", `null`, ErrNotObject},
		{"an empty object", `{}`, ErrNeither},
		{"only an id", `{"jsonrpc":"2.0","id":1}`, ErrNeither},
		{"only a null error", `{"id":1,"error":null}`, ErrNeither},
		{"a result of another name", `{"id":1,"results":1}`, ErrNeither},
		{"an error that is an empty text", `{"id":1,"error":""}`, ErrMalformedError},
		{"an error that is a number", `{"id":1,"error":-32000}`, ErrMalformedError},
		{"an error that is false", `{"id":1,"error":false,"result":1}`, ErrMalformedError},
		{"an error that is a list", `{"id":1,"error":[{"code":1}]}`, ErrMalformedError},
		{"an error without code and message", `{"id":1,"error":{"data":"0x"}}`, ErrMalformedError},
		{"an empty error beside a result", `{"id":1,"error":{},"result":"0x1"}`, ErrMalformedError},
		{"null code and message", `{"id":1,"error":{"code":null,"message":null}}`, ErrMalformedError},
		{"code and message of other types", `{"id":1,"error":{"code":{},"message":[]}}`, ErrMalformedError},
	} {
		t.Run(c.name, func(t *testing.T) {
			answer, err := ParseAnswer([]byte(c.body))
			require.ErrorIs(t, err, c.want)
			require.Zero(t, answer)
		})
	}
}

// An error is read as servers write them: without a code or a message, with a code
// that is a text or a float, with data of any kind, as nothing but a text; beside a
// result it wins.
func TestParseAnswerReadsErrors(t *testing.T) {
	for _, c := range []struct {
		name, body string
		want       Error
	}{
		{"plain", `{"id":1,"error":{"code":-32000,"message":"nonce too low"}}`, Error{Code: -32000, Message: "nonce too low"}},
		{"data as it came", `{"id":1,"error":{"code":3,"message":"execution reverted","data":"0x08c3"}}`,
			Error{Code: 3, Message: "execution reverted", Data: json.RawMessage(`"0x08c3"`)}},
		{"data that is an object", `{"error":{"code":3,"message":"m","data":{"a": 1}},"id":1}`,
			Error{Code: 3, Message: "m", Data: json.RawMessage(`{"a": 1}`)}},
		{"null data", `{"id":1,"error":{"code":3,"message":"m","data":null}}`, Error{Code: 3, Message: "m"}},
		{"no code", `{"id":1,"error":{"message":"m"}}`, Error{Message: "m"}},
		{"no message", `{"id":1,"error":{"code":-32601}}`, Error{Code: -32601}},
		{"empty message alone", `{"id":1,"error":{"message":""}}`, Error{}},
		{"code as a text", `{"id":1,"error":{"code":"-32005","message":"m"}}`, Error{Code: -32005, Message: "m"}},
		{"code as a float", `{"id":1,"error":{"code":-3.2000e4,"message":"m"}}`, Error{Code: -32000, Message: "m"}},
		{"code with a fraction", `{"id":1,"error":{"code":1.5,"message":"m"}}`, Error{Message: "m"}},
		{"code beyond any", `{"id":1,"error":{"code":1e30,"message":"m"}}`, Error{Message: "m"}},
		{"code beyond a float", `{"id":1,"error":{"code":1e999,"message":"m"}}`, Error{Message: "m"}},
		{"infinite code", `{"id":1,"error":{"code":"Inf","message":"m"}}`, Error{Message: "m"}},
		{"code that is no number", `{"id":1,"error":{"code":"NaN","message":"m"}}`, Error{Message: "m"}},
		{"code that is a word", `{"id":1,"error":{"code":"RATE_LIMIT","message":"m"}}`, Error{Message: "m"}},
		{"code that is true", `{"id":1,"error":{"code":true,"message":"m"}}`, Error{Message: "m"}},
		{"message that is an object", `{"id":1,"error":{"code":5,"message":{"a":1}}}`, Error{Code: 5}},
		{"escapes in the message", `{"id":1,"error":{"code":5,"message":"a\u0000\n\"é"}}`, Error{Code: 5, Message: "a\x00\n\"é"}},
		{"beside a result", `{"id":1,"result":"0x1","error":{"code":5,"message":"m"}}`, Error{Code: 5, Message: "m"}},
		{"a text instead", `{"id":1,"error":"too many \u0022requests\u0022"}`, Error{Message: `too many "requests"`, Text: true}},
		{"the last of two", `{"id":1,"error":{"code":5},"error":{"code":6,"code":7}}`, Error{Code: 7}},
	} {
		t.Run(c.name, func(t *testing.T) {
			answer, err := ParseAnswer([]byte(c.body))
			require.NoError(t, err)
			require.Nil(t, answer.Result)
			require.Equal(t, &c.want, answer.Error)
		})
	}
}

// An error's bytes may come from elsewhere than an answer: they needn't be JSON.
func TestParseErrorRefusesWhatIsNoError(t *testing.T) {
	for _, raw := range []string{"", "null", "x", `"`, `"text`, `""`, "[", "{", `{"code":`, `{"code":1}}`} {
		parsed, err := ParseError(json.RawMessage(raw))
		require.ErrorIs(t, err, ErrMalformedError, "%q", raw)
		require.Nil(t, parsed)
	}
}

// The result is a part of the answer's bytes, not a copy (rule F2), and appending
// to it doesn't write over what comes after it.
func TestParseAnswerDoesNotCopyTheResult(t *testing.T) {
	body := []byte(`{"id":1,"result":"0xabc","more":"untouched"}`)
	answer, err := ParseAnswer(body)
	require.NoError(t, err)
	answer.Result[1] = 'X'
	require.Contains(t, string(body), `"Xxabc"`)
	_ = append(answer.Result, "!!!!!!!!!!!!!!!!!!!"...)
	require.Contains(t, string(body), `"more":"untouched"`)
}

// Answers of any size are taken apart and told to be the request's without an
// allocation, and a request is written without one where there is room.
func TestTheEnvelopeCostsNoAllocation(t *testing.T) {
	for _, body := range [][]byte{[]byte(`{"jsonrpc":"2.0","id":"18446744073709551615","result":"0x1"}`), logsAnswer(100_000)} {
		require.Zero(t, testing.AllocsPerRun(100, func() {
			answer, _ := ParseAnswer(body)
			_ = answer.HasID(18446744073709551615)
		}))
	}
	dst, params := make([]byte, 0, 256), []byte(`[]`)
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = AppendRequest(dst, 18446744073709551615, "eth_blockNumber", params) }))
}

// An id is the request's when it is the same number, or the same number as a text.
func TestHasID(t *testing.T) {
	for _, c := range []struct {
		id   string
		want bool
	}{
		{`42`, true}, {`"42"`, true},
		{``, false}, {`null`, false}, {`""`, false}, {`"`, false}, {`4`, false}, {`420`, false}, {`042`, false}, {`42.0`, false},
		{`-42`, false}, {`"042"`, false}, {`" 42"`, false}, {`[42]`, false}, {`{"id":42}`, false}, {`true`, false},
	} {
		answer := Answer{ID: json.RawMessage(c.id)}
		require.Equal(t, c.want, answer.HasID(42), "%s", c.id)
	}
	largest := Answer{ID: json.RawMessage(`18446744073709551615`)}
	require.True(t, largest.HasID(18446744073709551615))
}

// An array is taken apart into its elements' bytes; what is none is told from an empty one.
func TestElementsAreTheBytesOfTheArray(t *testing.T) {
	for _, c := range []struct {
		value   string
		want    []string
		isArray bool
	}{
		{`[]`, []string{}, true},
		{" [ \n] ", []string{}, true},
		{`[1,"a,]b",{"c":[2,3]}, [] ,null,true,-1.50e+3 ]`, []string{`1`, `"a,]b"`, `{"c":[2,3]}`, `[]`, `null`, `true`, `-1.50e+3`}, true},
		{`["\"","\\"]`, []string{`"\""`, `"\\"`}, true},
		{`{}`, nil, false}, {`"[]"`, nil, false}, {`null`, nil, false}, {`1`, nil, false}, {``, nil, false}, {` `, nil, false},
	} {
		elements, isArray := Elements([]byte(c.value))
		require.Equal(t, c.isArray, isArray, "%s", c.value)
		require.Equal(t, c.isArray, elements != nil, "%s", c.value)
		require.Len(t, elements, len(c.want), "%s", c.value)
		for i, element := range elements {
			require.Equal(t, c.want[i], string(element))
		}
	}
	value := []byte(`["first","second"]`)
	elements, _ := Elements(value)
	_ = append(elements[0], "!!!!!!!!!!!!"...)
	require.Equal(t, `["first","second"]`, string(value), "appending to one doesn't write over the next")
}
