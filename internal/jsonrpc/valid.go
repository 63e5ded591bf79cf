package jsonrpc

import (
	"encoding/binary"
	"math/bits"
)

// What is valid JSON is what json.Valid takes, to the byte: bytes that aren't UTF-8
// may stand in strings, and values may be nested as deep as maxDepth. Each function
// here is given where something begins in the data and gives where it ends, malformed
// where it isn't what it should be.
const (
	malformed = -1
	maxDepth  = 10000
)

// valid tells whether the data is one JSON value.
func valid(data []byte) bool {
	at := skipSpace(data, 0)
	return at < len(data) && endsAt(data, skipValue(data, at, 0))
}

// endsAt tells whether nothing but white space follows on a value.
func endsAt(data []byte, at int) bool {
	return at != malformed && skipSpace(data, at) == len(data)
}

// skipSpace is small enough to be inlined: mostly there is no white space.
func skipSpace(data []byte, at int) int {
	if at < len(data) && data[at] <= ' ' {
		return skipSpaces(data, at)
	}
	return at
}

func skipSpaces(data []byte, at int) int {
	for at < len(data) && (data[at] == ' ' || data[at] == '\n' || data[at] == '\t' || data[at] == '\r') {
		at++
	}
	return at
}

// skipValue walks over the value that begins at at, inside of so many open objects and
// arrays.
func skipValue(data []byte, at, depth int) int {
	if at >= len(data) {
		return malformed
	}
	switch c := data[at]; c {
	case '"':
		return skipString(data, at+1)
	case '{':
		return skipItems(data, at+1, depth+1, '}')
	case '[':
		return skipItems(data, at+1, depth+1, ']')
	case 't':
		return skipWord(data, at, "true")
	case 'f':
		return skipWord(data, at, "false")
	case 'n':
		return skipWord(data, at, "null")
	default:
		return skipNumber(data, at)
	}
}

func skipWord(data []byte, at int, word string) int {
	if end := at + len(word); end <= len(data) && string(data[at:end]) == word {
		return end
	}
	return malformed
}

// skipItems walks over an object or an array from behind its opening brace or bracket.
func skipItems(data []byte, at, depth int, closing byte) int {
	if depth > maxDepth {
		return malformed
	}
	if at = skipSpace(data, at); at < len(data) && data[at] == closing {
		return at + 1
	}
	for {
		if closing == '}' {
			if _, at = skipName(data, at); at == malformed {
				return malformed
			}
		}
		if at = skipValue(data, at, depth); at == malformed {
			return malformed
		}
		if at = skipSpace(data, at); at >= len(data) {
			return malformed
		}
		switch data[at] {
		case ',':
			at = skipSpace(data, at+1)
		case closing:
			return at + 1
		default:
			return malformed
		}
	}
}

// skipName walks over a member's name and the colon. It gives where the name ends, and
// where the value begins.
func skipName(data []byte, at int) (end, value int) {
	if at >= len(data) || data[at] != '"' {
		return malformed, malformed
	}
	if end = skipString(data, at+1); end == malformed {
		return malformed, malformed
	}
	if value = skipSpace(data, end); value >= len(data) || data[value] != ':' {
		return malformed, malformed
	}
	return end, skipSpace(data, value+1)
}

// skipString walks over a string from behind its opening quote, eight bytes at a time:
// nearly all bytes of a large answer are in strings.
func skipString(data []byte, at int) int {
	for {
		for at+8 <= len(data) {
			special := specialBytes(binary.LittleEndian.Uint64(data[at:]))
			if special != 0 {
				at += bits.TrailingZeros64(special) / 8
				break
			}
			at += 8
		}
		for at < len(data) && data[at] != '"' && data[at] != '\\' && data[at] >= ' ' {
			at++
		}
		switch {
		case at >= len(data):
			return malformed
		case data[at] == '"':
			return at + 1
		case data[at] != '\\':
			return malformed // a control character
		}
		if at = skipEscape(data, at+1); at == malformed {
			return malformed
		}
	}
}

// specialBytes sets the top bit of the bytes in a word that don't stand for
// themselves in a string: the quote, the backslash and control characters. A byte
// above the lowest such byte may be set wrongly, by a borrow.
func specialBytes(word uint64) uint64 {
	const (
		each  = 0x0101010101010101
		tops  = 0x80 * each
		quote = '"' * each
		slash = '\\' * each
		space = ' ' * each
	)
	return (((word ^ quote) - each) | ((word ^ slash) - each) | (word - space)) & ^word & tops
}

// skipEscape walks over an escape from behind its backslash.
func skipEscape(data []byte, at int) int {
	if at >= len(data) {
		return malformed
	}
	switch data[at] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return at + 1
	case 'u':
		if at+5 > len(data) {
			return malformed
		}
		for _, c := range data[at+1 : at+5] {
			if !isHexDigit(c) {
				return malformed
			}
		}
		return at + 5
	}
	return malformed
}

func isHexDigit(c byte) bool {
	return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f'
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// skipNumber walks over a number. What may not follow on one, such as a digit after a
// leading zero, is left to whoever looks at what comes next.
func skipNumber(data []byte, at int) int {
	if data[at] == '-' {
		at++
	}
	if at < len(data) && data[at] == '0' {
		at++
	} else if at = skipDigits(data, at); at == malformed {
		return malformed
	}
	if at < len(data) && data[at] == '.' {
		if at = skipDigits(data, at+1); at == malformed {
			return malformed
		}
	}
	if at < len(data) && data[at]|0x20 == 'e' {
		at++
		if at < len(data) && (data[at] == '+' || data[at] == '-') {
			at++
		}
		return skipDigits(data, at)
	}
	return at
}

// skipDigits walks over one digit or more.
func skipDigits(data []byte, at int) int {
	start := at
	for at < len(data) && isDigit(data[at]) {
		at++
	}
	if at == start {
		return malformed
	}
	return at
}
