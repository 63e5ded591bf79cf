package jsonrpc

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// The benchmarks hold the envelope's reader against encoding/json, which reads a body
// twice (its Unmarshal validates first) and copies the result.

// smallAnswer is the answer of most calls.
var smallAnswer = []byte(`{"jsonrpc":"2.0","id":1,"result":"0x1b4"}`)

// envelope is an answer as one declares it for encoding/json.
type envelope struct {
	ID     json.RawMessage `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
}

// logsAnswer is an answer to eth_getLogs of about so many bytes. Every 16th log has
// data of some length, as batches of transfers do.
func logsAnswer(size int) []byte {
	const one = `{"address":"0x7f5c764cbc14f9669b88837ca1490cca17c31607","topics":[` +
		`"0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef",` +
		`"0x000000000000000000000000%040x","0x000000000000000000000000%040x"],"data":"0x%064x%s",` +
		`"blockNumber":"0x%x","transactionHash":"0x%064x","transactionIndex":"0x%x","blockHash":"0x%064x",` +
		`"logIndex":"0x%x","removed":false}`
	answer := make([]byte, 0, size+2048)
	answer = append(answer, `{"jsonrpc":"2.0","id":1,"result":[`...)
	for i := 0; len(answer) < size; i++ {
		if i > 0 {
			answer = append(answer, ',')
		}
		more := ""
		if i%16 == 15 {
			more = strings.Repeat("0", 640)
		}
		answer = fmt.Appendf(answer, one, i*7919, i*104729, i, more, 0x13f0000+i/200, i*65537, i%200, i/200, i%400)
	}
	return append(answer, "]}"...)
}

// largeAnswer is what a bot gets that asks for too many blocks at once.
func largeAnswer() []byte { return logsAnswer(30 << 20) }

// indented is an answer as servers write it that print for people.
func indented(answer []byte) []byte {
	var value any
	if err := json.Unmarshal(answer, &value); err != nil {
		panic(err)
	}
	spaced, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		panic(err)
	}
	return spaced
}

// numbers is an answer that is all numbers, such as a list of fees.
func numbers() []byte {
	answer := []byte(`{"jsonrpc":"2.0","id":1,"result":[0`)
	for i := range 200_000 {
		answer = fmt.Appendf(answer, ",%d,%d.%03de-%d", i*31, i, i%1000, i%20)
	}
	return append(answer, "]}"...)
}

// BenchmarkAnswer takes answers apart, by us and by encoding/json.
func BenchmarkAnswer(b *testing.B) {
	readers := []struct {
		name string
		read func(body []byte) error
	}{
		{"ours", func(body []byte) error {
			_, err := ParseAnswer(body)
			return err
		}},
		{"Valid+Unmarshal", func(body []byte) error {
			if !json.Valid(body) {
				return ErrNotJSON
			}
			return json.Unmarshal(body, new(envelope))
		}},
		{"Unmarshal", func(body []byte) error { return json.Unmarshal(body, new(envelope)) }},
	}
	for _, body := range []struct {
		name string
		body []byte
	}{
		{"small", smallAnswer}, {"logs 30 MB", largeAnswer()},
		{"logs indented", indented(logsAnswer(1 << 20))}, {"numbers", numbers()},
	} {
		for _, reader := range readers {
			b.Run(body.name+"/"+reader.name, func(b *testing.B) {
				b.SetBytes(int64(len(body.body)))
				b.ReportAllocs()
				for b.Loop() {
					if err := reader.read(body.body); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkRequest writes a request.
func BenchmarkRequest(b *testing.B) {
	params := []byte(`[]`)
	dst := make([]byte, 0, 256)
	b.ReportAllocs()
	for b.Loop() {
		dst = AppendRequest(dst[:0], 123456, "eth_blockNumber", params)
	}
}

// BenchmarkBatchAnswer takes the answer to a batch apart.
func BenchmarkBatchAnswer(b *testing.B) {
	body := []byte("[")
	for i := range 100 {
		body = fmt.Appendf(body, `{"jsonrpc":"2.0","id":%d,"result":"0x%x"},`, i, i)
	}
	body[len(body)-1] = ']'
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseBatchAnswer(body); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkElements takes a result of 30 MB apart into its logs.
func BenchmarkElements(b *testing.B) {
	answer, err := ParseAnswer(largeAnswer())
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(answer.Result)))
	b.ReportAllocs()
	for b.Loop() {
		if _, isArray := Elements(answer.Result); !isArray {
			b.Fatal("no array")
		}
	}
}
