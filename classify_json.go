package rpcpool

import (
	"encoding/hex"
	"encoding/json"
)

// Taking the words out of JSON doesn't go through encoding/json: it has to be
// linear, to allocate nothing, and to make do with JSON that was cut off.

// appendJSONText appends what an error's data, or an error body, says: its
// strings, and in objects the names and values that aren't an echo of the request.
// It also tells whether there is ABI-encoded revert data in it.
func appendJSONText(dst []byte, data json.RawMessage) (text []byte, revert bool) {
	if len(data) > maxText {
		data = data[:maxText]
	}
	r := jsonReader{data: data, dst: dst}
	r.read()
	return r.dst, r.revert
}

type jsonReader struct {
	data   []byte
	dst    []byte
	revert bool

	depth   int
	skipped int  // depth of the object or array that is passed over; 0: none
	skip    bool // the next value is passed over
}

func (r *jsonReader) read() {
	for i := 0; i < len(r.data); {
		switch c := r.data[i]; {
		case c == '"':
			end := stringEnd(r.data, i+1)
			r.text(r.data[i+1:end], i)
			i = end + 1
		case c == '{' || c == '[':
			r.depth++
			if r.skip && r.skipped == 0 {
				r.skipped = r.depth
			}
			r.skip = false
			i++
		case c == '}' || c == ']':
			if r.depth == r.skipped {
				r.skipped = 0
			}
			r.depth--
			i++
		case isAlnum(c) || c == '-':
			end := i + 1
			for end < len(r.data) && (isAlnum(r.data[end]) || r.data[end] == '.' || r.data[end] == '-' || r.data[end] == '+') {
				end++
			}
			r.value(r.data[i:end])
			i = end
		default:
			i++
		}
	}
}

// text takes a string, which is a name where a colon follows.
func (r *jsonReader) text(s []byte, at int) {
	rest := r.data[min(at+len(s)+2, len(r.data)):]
	for len(rest) > 0 && rest[0] <= ' ' {
		rest = rest[1:]
	}
	if len(rest) == 0 || rest[0] != ':' {
		r.value(s)
		return
	}
	if r.skipped != 0 {
		return
	}
	r.skip = isEcho(s)
	// A flag that isn't set says the contrary of its name.
	rest = rest[1:]
	for len(rest) > 0 && rest[0] <= ' ' {
		rest = rest[1:]
	}
	if !r.skip && !startsWith(rest, "false") && !startsWith(rest, "null") {
		r.dst = append(append(r.dst, s...), ": "...)
	}
}

func startsWith(text []byte, word string) bool {
	return len(text) >= len(word) && string(text[:len(word)]) == word
}

func (r *jsonReader) value(s []byte) {
	if r.skipped != 0 {
		return
	}
	if r.skip {
		r.skip = false
		return
	}
	if string(s) == "true" || string(s) == "false" || string(s) == "null" {
		return
	}
	if isHex(s) {
		r.revert = r.revert || isRevertData(s)
		return
	}
	from := len(r.dst)
	r.dst = appendUnescaped(r.dst, s)
	r.dst = r.dst[:from+len(decodeHexText(r.dst[from:]))]
	r.dst = append(r.dst, ";\n"...)
}

// isEcho tells whether a member of an object repeats the request, or names a place
// to look at, instead of saying what is wrong.
func isEcho(name []byte) bool {
	switch string(name) {
	case "request", "request_body", "requestBody", "req", "params", "method", "logs", "stack", "stackTrace",
		"trace_id", "traceId", "request_id", "requestId", "error_id", "errorId", "id", "txHash", "txid", "hash",
		"see", "url", "docs", "documentation", "host", "jsonrpc", "path", "timestamp":
		return true
	}
	return false
}

// stringEnd gives the position of the quote that ends a string, or the end of data.
func stringEnd(data []byte, i int) int {
	for i < len(data) && data[i] != '"' {
		if data[i] == '\\' {
			i++
		}
		i++
	}
	return min(i, len(data))
}

// appendUnescaped appends a JSON string's text. Escapes that stand for something
// other than ASCII are between words anyway.
func appendUnescaped(dst, s []byte) []byte {
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			dst = append(dst, s[i])
			continue
		}
		i++
		switch s[i] {
		case 'n', 'r', 't', 'b', 'f':
			dst = append(dst, ' ')
		case 'u':
			var b [2]byte
			if i+4 < len(s) {
				if n, err := hex.Decode(b[:], s[i+1:i+5]); err == nil && n == 2 && b[0] == 0 && b[1] < 0x80 {
					dst = append(dst, b[1])
				} else {
					dst = append(dst, ' ')
				}
			}
			i = min(i+4, len(s))
		default:
			dst = append(dst, s[i])
		}
	}
	return dst
}

// isHex tells whether a string is bytes in hex: nobody's words.
func isHex(s []byte) bool {
	if len(s) < 2 || s[0] != '0' || s[1] != 'x' {
		return false
	}
	for _, c := range s[2:] {
		if !isHexDigit(c) {
			return false
		}
	}
	return true
}

func isHexDigit(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f'
}

// isRevertData tells whether bytes in hex are those of Solidity's Error(string) or
// Panic(uint256).
func isRevertData(s []byte) bool {
	const selector = len("0x08c379a0")
	return len(s) >= selector && (string(s[:selector]) == "0x08c379a0" || string(s[:selector]) == "0x4e487b71")
}

// minHexText is the length from which a text that is all hex is decoded.
const minHexText = 12

// decodeHexText decodes in place a text that is nothing but printable ASCII in hex,
// as Tron's nodes send their messages.
func decodeHexText(text []byte) []byte {
	if len(text) < minHexText || len(text)%2 != 0 {
		return text
	}
	for i := 0; i < len(text); i += 2 {
		if c := text[i]; c < '2' || c > '7' || !isHexDigit(text[i+1]) || c == '7' && text[i+1]|0x20 == 'f' {
			return text
		}
	}
	n, err := hex.Decode(text, text)
	if err != nil {
		return text
	}
	return text[:n]
}

// isCustomError tells whether data is a string of bytes in hex that begins with a
// selector: with code 3, the data of a revert.
func isCustomError(data json.RawMessage) bool {
	const selector = len(`"0x12345678"`)
	return len(data) >= selector && data[0] == '"' && isHex(data[1:len(data)-1])
}
