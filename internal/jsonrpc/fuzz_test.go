package jsonrpc

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// ParseAnswer accepts what encoding/json accepts and gives the same bytes, the
// last of doubled members, for any input.
func FuzzParseAnswer(f *testing.F) {
	for _, seed := range []string{
		``, ` `, `null`, `[]`, `{}`, `{"id":1,"result":"0x1"}`, `{"result":{"a":[1,{"b":"}"}]},"id":7}`,
		`{"id":1,"result":null,"error":null}`, `{"error":{"code":-32000,"message":"m","data":[1]},"id":"1"}`,
		`{"id":1,"result":1,"result":2}`, `{"error":null,"error":{"code":"3"}}`, `{"\u0069d":3,"r\u0065sult":"\ud800"}`,
		`{"id":1,"error":{"Code":1,"MESSAGE":"m"}}`, `{"id":1,"error":{"code":1e3}}`, "{\"\xff\":1,\"result\":\"\xff\"}",
		`{"id":1,"result":[01]}`, " \n{ \"id\" : 1 , \"result\" : [ 1 , 2 ] \n} ", `{"id":1,"result":"\\\"}{"}`,
		`{"":{"":{"":[[[]]]}},"result":-0}`, `{"id":1,"error":{}}`, `{"id":1,"error":"text"}`, `{"id":1,"error":""}`, `{"id":1,"error":{"message":""}}`,
		`{"ID":1,"Result":2,"id":3,"result":4}`, `{"id":"18446744073709551615","result":{}}`, `{"id":01,"result":1}`, `{"id":1,"result":"0x`, `{"id":1,"result":1}}`,
		`{"id":1,"result":["0123456789abcdef","\\\"0123456"],"result":{"a":[true,false,null]}}`, `{"id" 1}`, `{"result":1,}`, `{"result":}`, `{,"result":1}`,
		`{"res\u0075lt":1,"\u0065rror":{"code":-1},"error":null}`, `{"result\u0000":1,"result":2}`, string(logsAnswer(1)),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		answer, err := ParseAnswer(body)

		var object map[string]json.RawMessage
		if json.Unmarshal(body, &object) != nil || object == nil {
			require.Error(t, err, "encoding/json finds no object in it")
			require.Zero(t, answer)
			return
		}
		rawError, hasError := object["error"]
		result, hasResult := object["result"]
		switch {
		case hasError && string(rawError) != "null":
			requireSameError(t, rawError, answer, err)
			require.True(t, err != nil || string(object["id"]) == string(answer.ID))
		case !hasResult:
			require.ErrorIs(t, err, ErrNeither)
		default:
			require.NoError(t, err)
			require.Nil(t, answer.Error)
			require.Equal(t, string(result), string(answer.Result))
			require.Equal(t, string(object["id"]), string(answer.ID))
		}
	})
}

// requireSameError compares with how encoding/json reads the error. A code that is
// a text or no plain integer may be read or not; the tables say which.
func requireSameError(t *testing.T, raw json.RawMessage, answer Answer, err error) {
	t.Helper()
	var text string
	if json.Unmarshal(raw, &text) == nil && text != "" {
		require.NoError(t, err)
		require.Equal(t, &Error{Message: text, Text: true}, answer.Error)
		return
	}
	var fields struct {
		Code, Message any
		Data          json.RawMessage
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if raw[0] != '{' || decoder.Decode(&fields) != nil {
		require.ErrorIs(t, err, ErrMalformedError)
		return
	}
	message, hasMessage := fields.Message.(string)
	code, isNumber := fields.Code.(json.Number)
	plain, notPlain := strconv.ParseInt(code.String(), 10, 32)
	_, isText := fields.Code.(string)
	switch {
	case hasMessage, isNumber && notPlain == nil && plain > math.MinInt32:
		require.NoError(t, err)
	case !isNumber && !isText:
		require.ErrorIs(t, err, ErrMalformedError)
	}
	if err != nil {
		require.ErrorIs(t, err, ErrMalformedError)
		return
	}
	require.Nil(t, answer.Result)
	require.Equal(t, message, answer.Error.Message)
	if isNumber && notPlain == nil && plain > math.MinInt32 {
		require.Equal(t, int(plain), answer.Error.Code)
	}
	if string(fields.Data) == "null" {
		fields.Data = nil
	}
	require.Equal(t, string(fields.Data), string(answer.Error.Data))
}

// Elements gives what encoding/json does, byte for byte, for any valid JSON.
func FuzzElements(f *testing.F) {
	for _, seed := range []string{`[]`, `[1,"a,]b",{"c":[2,3]}, [] ,null ]`, `["\"","\\"]`, ` [ ] `, `{}`, `"x"`, `null`, "[\"\xff\"]"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		if !json.Valid(value) {
			return
		}
		elements, isArray := Elements(value)
		var want []json.RawMessage
		wantArray := json.Unmarshal(value, &want) == nil && want != nil
		require.Equal(t, wantArray, isArray)
		require.Len(t, elements, len(want))
		for i := range want {
			require.Equal(t, string(want[i]), string(elements[i]))
		}
	})
}
