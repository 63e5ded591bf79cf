package main

import (
	"bytes"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// logsLatency is how long an endpoint thinks about a few logs.
const logsLatency = 20 * time.Millisecond

// appendLog appends a log as nodes give it.
func appendLog(dst []byte, block, index int) []byte {
	const form = `{"address":"0x7f5c764cbc14f9669b88837ca1490cca17c31607","topics":[` +
		`"0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef",` +
		`"0x000000000000000000000000%040x","0x000000000000000000000000%040x"],"data":"0x%064x",` +
		`"blockNumber":"0x%x","transactionHash":"0x%064x","transactionIndex":"0x%x","blockHash":"0x%064x",` +
		`"logIndex":"0x%x","removed":false}`
	return fmt.Appendf(dst, form, index*7919, index*104729, index, block, index*65537, index%200, block, index%400)
}

// fewLogs is the answer to a query for some blocks: three logs of the first.
func fewLogs(id, request []byte) []byte {
	first, err := strconv.ParseUint(strings.TrimPrefix(string(bytes.Trim(fieldOf(request, "fromBlock"), `"`)), "0x"), 16, 63)
	if err != nil {
		first = 0
	}
	answer := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":[`, id)
	for i := range 3 {
		if i > 0 {
			answer = append(answer, ',')
		}
		answer = appendLog(answer, int(first), i)
	}
	return append(answer, "]}"...)
}

// largeResult is a list of logs of about so many bytes.
func largeResult(size int) []byte {
	result := make([]byte, 0, size+1024)
	result = append(result, '[')
	for i := 0; len(result) < size; i++ {
		if i > 0 {
			result = append(result, ',')
		}
		result = appendLog(result, 0x13f0000+i/200, i)
	}
	return append(result, ']')
}

// chunkSize is the size of the chunks in which servers of the Go library send.
const chunkSize = 32 << 10

// largeAnswers keeps large results, and the same cut into chunks as they are sent, so
// that a server does nothing but write.
type largeAnswers struct {
	mu      sync.Mutex // protects what follows
	size    int
	result  []byte
	chunked []byte
}

func (l *largeAnswers) of(size int) (result, chunked []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.size != size {
		l.size, l.result, l.chunked = size, largeResult(size), nil
		for rest := l.result; len(rest) > 0; {
			chunk := rest[:min(chunkSize, len(rest))]
			rest = rest[len(chunk):]
			l.chunked = fmt.Appendf(l.chunked, "%x\r\n%s\r\n", len(chunk), chunk)
		}
	}
	return l.result, l.chunked
}

// write sends a large answer. The wanted size stands in the query.
func (l *largeAnswers) write(conn net.Conn, id []byte, path, query string) error {
	size, err := strconv.Atoi(query)
	if err != nil {
		return err
	}
	result, chunked := l.of(size)
	opening := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":`, id)
	head := "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
	parts := net.Buffers{fmt.Appendf(nil, "%sContent-Length: %d\r\n\r\n%s", head, len(opening)+len(result)+1, opening), result, []byte("}")}
	if path == pathChunked {
		parts = net.Buffers{
			fmt.Appendf(nil, "%sTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", head, len(opening), opening),
			chunked, []byte("1\r\n}\r\n0\r\n\r\n"),
		}
	}
	_, err = parts.WriteTo(conn)
	return err
}
