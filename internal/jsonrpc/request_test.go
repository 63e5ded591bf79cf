package jsonrpc

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A request's parts are the caller's bytes; what is absent stays absent.
func TestParseRequestsGivesTheBytes(t *testing.T) {
	for _, c := range []struct{ body, id, method, params string }{
		{`{"jsonrpc":"2.0","id":1,"method":"m","params":[1]}`, `1`, "m", `[1]`},
		{` {"params":{"a": 1e400} , "method":"m\u0041","id" : "x\u0041"} `, `"x\u0041"`, "mA", `{"a": 1e400}`},
		{`{"id":18446744073709551616,"method":"m"}`, `18446744073709551616`, "m", ``},
		{`{"id":null,"method":"m","params":null}`, `null`, "m", `null`},
		{`{"method":"m","params":7}`, ``, "m", `7`},
		{`{"id":1,"method":"a","id":2,"method":"b","params":[],"params":[2],"extra":{"id":3}}`, `2`, "b", `[2]`},
	} {
		requests, batch, fault := ParseRequests([]byte(c.body))
		require.Nil(t, fault)
		require.False(t, batch)
		require.Len(t, requests, 1)
		require.Nil(t, requests[0].Fault)
		require.Equal(t, c.id, string(requests[0].ID))
		require.Equal(t, c.method, requests[0].Method)
		require.Equal(t, c.params, string(requests[0].Params))
		require.Equal(t, c.params == "", requests[0].Params == nil)
		require.Equal(t, c.id == "", requests[0].ID == nil)
	}
}

// What is wrong with a request stands in it, with the id that the answer has; what is
// wrong with the body is the whole's.
func TestParseRequestsFindsFaults(t *testing.T) {
	for body, id := range map[string]string{
		`{}`: `null`, `{"id":1}`: `1`, `{"id":"a","method":null}`: `"a"`, `{"id":2,"method":[]}`: `2`, `{"id":3,"method":""}`: `3`,
		`{"id":{},"method":"m"}`: `null`, `{"id":[1],"method":"m"}`: `null`, `{"id":true,"method":"m"}`: `null`,
		`{"id":false}`: `null`, `{"method":7}`: `null`,
	} {
		requests, _, fault := ParseRequests([]byte(body))
		require.Nil(t, fault, body)
		require.Equal(t, CodeNotRequest, requests[0].Fault.Code, body)
		require.Equal(t, id, string(requests[0].ID), body)
	}
	requests, batch, fault := ParseRequests([]byte(`[7,{"id":1,"method":"m"},null,[]]`))
	require.Nil(t, fault)
	require.True(t, batch)
	for i, sound := range []bool{false, true, false, false} {
		require.Equal(t, sound, requests[i].Fault == nil)
	}
	for body, code := range map[string]int{
		"": CodeNotJSON, " ": CodeNotJSON, "{": CodeNotJSON, "[1,]": CodeNotJSON, "{} {}": CodeNotJSON,
		"[]": CodeNotRequest, " [ ] ": CodeNotRequest, "7": CodeNotRequest, `"x"`: CodeNotRequest, "null": CodeNotRequest,
	} {
		requests, _, fault := ParseRequests([]byte(body))
		require.Empty(t, requests)
		require.Equal(t, code, fault.Code, "%q", body)
	}
}

// An envelope has what JSON-RPC names, and nothing else; bytes in it stay as they are.
func TestEnvelopesAreWrittenAsTheyShouldBe(t *testing.T) {
	require.Equal(t, `{"jsonrpc":"2.0","id":7,"method":"a<b\n"}`, string(AppendRawRequest(nil, 7, "a<b\n", nil)))
	require.Equal(t, `{"jsonrpc":"2.0","id":7,"method":"m","params":[ 1e400 ]}`, string(AppendRawRequest(nil, 7, "m", []byte(`[ 1e400 ]`))))
	require.Equal(t, `x{"jsonrpc":"2.0","id":"a","result":`, string(AppendResultHead([]byte("x"), []byte(`"a"`))))
	require.Equal(t, `{"jsonrpc":"2.0","id":0,"error":{"code":-32000,"message":"<\"é\n>"}}`,
		string(AppendErrorAnswer(nil, []byte(`0`), -32000, "<\"é\n>", nil)))
	require.Equal(t, `{"jsonrpc":"2.0","id":0,"error":{"code":3,"message":"","data":{"a": 1}}}`,
		string(AppendErrorAnswer(nil, []byte(`0`), 3, "", []byte(`{"a": 1}`))))
	require.True(t, json.Valid(AppendErrorAnswer(nil, Null, 1, "\xff\x00", nil)))
}

// A batch's answer is taken apart by the ids, which may be numbers as text; what isn't
// an array of objects is none.
func TestParseBatchAnswer(t *testing.T) {
	answers, err := ParseBatchAnswer([]byte(` [ {"id":2,"result":"b"} , {"id":"1","result":[1]},{"result":0},{"id":3},{"id":3,"error":{}} ] `))
	require.NoError(t, err)
	for id, want := range map[uint64][]string{1: {`{"id":"1","result":[1]}`}, 2: {`{"id":2,"result":"b"}`}, 3: {`{"id":3}`, `{"id":3,"error":{}}`}, 4: nil} {
		var got []string
		for _, part := range answers.For(id) {
			got = append(got, string(part))
		}
		require.Equal(t, want, got)
	}
	for body, want := range map[string]error{
		"": ErrNotJSON, "[": ErrNotJSON, "<html>": ErrNotJSON, `[{"id":1}] x`: ErrNotJSON,
		"{}": ErrNotBatch, "7": ErrNotBatch, "null": ErrNotBatch, "[1]": ErrNotBatch, `[{"id":1},"x"]`: ErrNotBatch, "[[]]": ErrNotBatch,
	} {
		_, err := ParseBatchAnswer([]byte(body))
		require.ErrorIs(t, err, want, "%q", body)
	}
}

// The reader of requests takes what encoding/json takes, finds the same in it, and each
// request that it finds can be sent and answered as valid JSON.
func FuzzParseRequests(f *testing.F) {
	for _, seed := range []string{
		``, ` `, `{}`, `[]`, `null`, `{"jsonrpc":"2.0","id":1,"method":"m","params":[1]}`, `{"id":"\ud800","method":"\ud800"}`,
		`[{"id":1,"method":"a"},{"method":"b","params":{}},7,{"id":[]}]`, `{"id":1e400,"method":"m","id":"x"}`, `{"method":"m","params":null}`,
		`{"\u0069d":1,"meth\u006fd":"m"}`, "{\"id\":1,\"method\":\"\xff\"}", ` [ { "id" : 0 , "method" : "m" , "params" : "x" } ] `, `{"ID":1,"Method":"m"}`,
		`{"id":-0.0,"method":"` + strings.Repeat("m", 300) + `"}`, `{"id":1,"method":"m"}{}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		requests, batch, fault := ParseRequests(body)
		require.Equal(t, json.Valid(body), fault == nil || fault.Code != CodeNotJSON)
		if fault != nil {
			require.Empty(t, requests)
			require.NotEmpty(t, fault.Message)
			return
		}
		var values []json.RawMessage
		if batch {
			require.NoError(t, json.Unmarshal(body, &values))
		} else {
			values = append(values, body)
		}
		require.Len(t, requests, len(values))
		for i, r := range requests {
			requireRequest(t, values[i], r)
		}
	})
}

func requireRequest(t *testing.T, value json.RawMessage, r Request) {
	t.Helper()
	if r.Fault != nil {
		require.True(t, json.Valid(AppendErrorAnswer(nil, r.ID, r.Fault.Code, r.Fault.Message, nil)))
		return
	}
	var object map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(value, &object))
	var method string
	require.NoError(t, json.Unmarshal(object["method"], &method))
	require.Equal(t, method, r.Method)
	require.NotEmpty(t, r.Method)
	require.Equal(t, string(object["id"]), string(r.ID))
	require.Equal(t, string(object["params"]), string(r.Params))
	require.True(t, json.Valid(AppendRawRequest(nil, 1, r.Method, r.Params)))
	if r.ID != nil {
		require.True(t, json.Valid(append(AppendResultHead(nil, r.ID), "null}"...)))
	}
}

// Taking a batch's answer apart finds what encoding/json finds, for any bytes.
func FuzzParseBatchAnswer(f *testing.F) {
	for _, seed := range []string{``, `[]`, `[{"id":1,"result":2},{"id":"3"}]`, `[{}]`, `[1]`, `{}`, `[{"id":1},{"id":1}]`, ` [ { "\u0069d" : 2 } ] `,
		`[{"id":1},]`, `[{"id":1}`, `[{"id":1]`, `[{"id":1},{"id":]`, `[{"id":1},7,]`, `[{},{"id":""},{"id":"\u0031"},{"id":null},{"id":[1]},{"id":1,"id":2}]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		answers, err := ParseBatchAnswer(body)
		var elements []json.RawMessage
		sound := json.Unmarshal(body, &elements) == nil && elements != nil
		for _, element := range elements {
			sound = sound && element[0] == '{'
		}
		require.Equal(t, sound, err == nil)
		if !sound {
			require.Nil(t, answers)
			return
		}
		want := Answers{}
		for _, element := range elements {
			var object map[string]json.RawMessage
			require.NoError(t, json.Unmarshal(element, &object))
			id := string(object["id"])
			if strings.HasPrefix(id, `"`) {
				id = id[1 : len(id)-1]
			}
			want[id] = append(want[id], element)
		}
		require.Equal(t, want, answers)
	})
}
