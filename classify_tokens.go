package rpcpool

import "math"

// token is a word or a number of a text.
type token struct {
	means    meaning // of a word
	isNumber bool    // that may count blocks: no "5s", no "10mb", no hash
	number   uint64
	point    byte // the last punctuation mark before it, or 0
}

type tokens []token

func (t tokens) isNumber(i int) bool { return i >= 0 && i < len(t) && t[i].isNumber }

const (
	// maxTokens bounds the work; what matters of a refusal stands in its first lines.
	maxTokens = 256
	// longestWord is longer than any word with a meaning.
	longestWord = 16
)

func appendTokens(t []token, text []byte) []token {
	point := byte(0)
	for i := 0; i < len(text) && len(t) < maxTokens; {
		c := text[i]
		switch {
		case isDigit(c):
			tok, n := numberToken(text[i:])
			tok.point = point
			t = append(t, tok)
			i, point = i+n, 0
		case isAlnum(c):
			n := wordLen(text[i:])
			t = append(t, token{means: meaningOf(text[i : i+n]), point: point})
			i, point = i+n, 0
		default:
			if c > ' ' && c < 0x7f && c != '\'' && c != '"' && c != '`' && c != '_' {
				point = c
			}
			i++
		}
	}
	return t
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// wordLen is the length of a word, which also ends where camel case begins a new
// one: "maxBlockRange" is three words, but "eth_getLogs" is one.
func wordLen(text []byte) int {
	if n := methodNameLen(text); n > 0 {
		return n
	}
	for i := 1; i < len(text); i++ {
		if !isAlnum(text[i]) || byteClass[text[i]] == upper && byteClass[text[i-1]] == lower {
			return i
		}
	}
	return len(text)
}

func meaningOf(word []byte) meaning {
	if len(word) > longestWord {
		return 0
	}
	var low [longestWord]byte
	for i, c := range word {
		if byteClass[c] == upper {
			c |= 0x20
		}
		low[i] = c
	}
	return meanings[string(low[:len(word)])]
}

// numberToken reads a number: "10,000", "10 000", "10_000", "0x2710", "10k", "1M".
func numberToken(text []byte) (token, int) {
	if len(text) > 2 && text[0] == '0' && text[1]|0x20 == 'x' {
		return hexToken(text)
	}
	n, i := uint64(0), 0
	for i < len(text) && (isDigit(text[i]) || isThousands(text, i)) {
		if isDigit(text[i]) {
			n = addDigit(n, 10, uint64(text[i]-'0'))
		}
		i++
	}
	return suffixed(n, text, i)
}

// isThousands tells whether text[i] separates groups of three digits.
func isThousands(text []byte, i int) bool {
	switch text[i] {
	case ',', ' ', '_', '\'':
	default:
		return false
	}
	before := i
	for before > 0 && isDigit(text[before-1]) {
		before--
	}
	after := i + 1
	for after < len(text) && isDigit(text[after]) {
		after++
	}
	return i-before >= 1 && i-before <= 3 && after-i-1 == 3
}

// suffixed reads what hangs on a number.
func suffixed(n uint64, text []byte, i int) (token, int) {
	end := i
	for end < len(text) && (isAlnum(text[end]) || text[end] == '.' && end+1 < len(text) && isDigit(text[end+1])) {
		end++
	}
	if end < len(text) && (text[end] == '%' || text[end] == ':' && end+1 < len(text) && isDigit(text[end+1])) {
		end++ // a percentage, a port, a time
		for end < len(text) && isAlnum(text[end]) {
			end++
		}
		return token{}, end
	}
	switch string(text[i:end]) {
	case "":
		return countOf(n), end
	case "k", "K":
		return countOf(scaled(n, 1_000)), end
	case "m", "M":
		return countOf(scaled(n, 1_000_000)), end
	}
	return token{}, end
}

// countOf makes a number's token; one that doesn't fit 64 bits counts no blocks.
func countOf(n uint64) token { return token{isNumber: n != math.MaxUint64, number: n} }

func hexToken(text []byte) (token, int) {
	n, i := uint64(0), 2
	for i < len(text) && isHexDigit(text[i]) {
		digit := uint64(text[i] - '0')
		if !isDigit(text[i]) {
			digit = uint64(text[i]|0x20-'a') + 10
		}
		n = addDigit(n, 16, digit)
		i++
	}
	end := i
	for end < len(text) && isAlnum(text[end]) {
		end++
	}
	if i == 2 || end > i {
		return token{}, end
	}
	return countOf(n), end
}

func addDigit(n, base, digit uint64) uint64 {
	if n > (math.MaxUint64-digit)/base {
		return math.MaxUint64
	}
	return n*base + digit
}

func scaled(n, by uint64) uint64 {
	if n > math.MaxUint64/by {
		return math.MaxUint64
	}
	return n * by
}
