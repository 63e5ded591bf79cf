package rpcpool

import (
	"encoding/json"
	"sync"
)

// How much of a text is looked at. What a node has to say stands at the beginning,
// a cause that it wraps at the end; anything longer is a page, an echo of the
// request, or hostile.
const (
	textHead = 4 << 10
	textTail = 512
	maxText  = textHead + textTail
)

// Marks stand in an answer's words for what the table needn't tell apart. Phrases
// are written with the same marks.
const (
	markNumber = '#' // numbers that stand together, in any notation
	markMethod = '@' // the method that was called
	markOther  = '&' // some other JSON-RPC method
	markRevert = '!' // ABI-encoded revert data
	markStop   = '|' // ends a sentence or a field: no phrase reaches over it
)

// words are an error's message and data without what providers write differently:
// letters in lower case, everything between words gone, numbers and methods
// replaced by marks. "ALREADY_EXISTS", "AlreadyExists" and "already exists" are
// one and the same, and "unknown transaction" still isn't "known transaction",
// because it is remembered where words begin.
type words struct {
	raw    []byte // message and data as they came
	rawMsg int    // where the message ends in raw

	buf    []byte
	starts []uint16 // where words begin in buf, ascending
	msgEnd int      // where the message ends in buf
	hits   []hit
	count  []uint8  // per phrase: how often it was found
	said   []uint16 // the sets of which a phrase was found
	isSaid []uint8  // the same, per set
	tokens []token  // scratch of hintsOf

	method string // "" where unknown
	marked bool   // whether method is looked for in the text
}

var wordsPool = sync.Pool{New: func() any {
	return &words{
		raw:    make([]byte, 0, 1024),
		buf:    make([]byte, 0, 1024),
		starts: make([]uint16, 0, 256),
		hits:   make([]hit, 0, 128),
	}
}}

// wordsOf reads an error. The result is to be freed.
func wordsOf(method, message string, data json.RawMessage, code int) *words {
	w := wordsPool.Get().(*words)
	w.raw, w.buf, w.starts, w.hits, w.said = w.raw[:0], w.buf[:0], w.starts[:0], w.hits[:0], w.said[:0]
	w.method, w.marked = method, isDistinctive(method)

	w.raw = appendCut(w.raw, message)
	w.raw = decodeHexText(w.raw)
	w.rawMsg = len(w.raw)
	w.squash(w.raw)
	w.msgEnd = len(w.buf)
	if len(data) > 0 {
		var revert bool
		w.raw, revert = appendJSONText(w.raw, data)
		w.squash(w.raw[w.rawMsg:])
		if revert || code == 3 && isCustomError(data) {
			w.mark(markRevert)
			w.stop()
		}
	}
	return w
}

func (w *words) free() {
	w.method = ""
	wordsPool.Put(w)
}

// appendCut appends the parts of a text that are looked at.
func appendCut[T string | []byte](dst []byte, text T) []byte {
	if len(text) <= maxText {
		return append(dst, text...)
	}
	dst = append(dst, text[:textHead]...)
	dst = append(dst, '\n')
	return append(dst, text[len(text)-textTail:]...)
}

// Classes of bytes. Those above 0x7f are between words: no wording needs them.
const (
	between byte = iota
	lower
	upper
	digit
	joiner // inside a word: "doesn't", and the backquotes around names
	stop   // ends a sentence where white space or nothing follows
)

var byteClass = func() (t [256]byte) {
	for c := 'a'; c <= 'z'; c++ {
		t[c], t[c-'a'+'A'] = lower, upper
	}
	for c := '0'; c <= '9'; c++ {
		t[c] = digit
	}
	t['\''] = joiner
	t['.'], t[';'], t['!'], t['?'], t['\n'] = stop, stop, stop, stop, stop
	return t
}()

func isAlnum(c byte) bool { return lower <= byteClass[c] && byteClass[c] <= digit }

// squash appends the words of one field.
func (w *words) squash(text []byte) {
	prev := between
	for i := 0; i < len(text); {
		c := text[i]
		class := byteClass[c]
		switch class {
		case lower, upper:
			if prev == between {
				if n := w.methodAt(text[i:]); n > 0 {
					i += n
					continue
				}
			}
			if prev == between || class == upper && w.camel(prev, text[i+1:]) {
				w.starts = append(w.starts, uint16(len(w.buf)))
			}
			w.buf = append(w.buf, c|0x20)
			prev = class
		case digit:
			if prev == between {
				i += numberLen(text[i:])
				if n := len(w.buf); n == 0 || w.buf[n-1] != markNumber {
					w.mark(markNumber)
				}
				continue
			}
			w.buf = append(w.buf, c)
			prev = class
		case joiner:
		default:
			if class == stop && (i+1 == len(text) || text[i+1] <= ' ') {
				w.stop()
			}
			prev = between
		}
		i++
	}
	w.stop()
}

// camel tells whether an upper-case letter after prev begins a word: "AlreadyKnown",
// "RPCMethod".
func (w *words) camel(prev byte, rest []byte) bool {
	return prev != upper || len(rest) > 0 && byteClass[rest[0]] == lower
}

func (w *words) mark(m byte) {
	w.starts = append(w.starts, uint16(len(w.buf)))
	w.buf = append(w.buf, m)
}

func (w *words) stop() {
	if n := len(w.buf); n > 0 && w.buf[n-1] != markStop {
		w.buf = append(w.buf, markStop)
	}
}

// numberLen is the length of a number in any notation, with all that hangs on it:
// "10,000", "0x1a", "1.5k", "24h0m0s", "127.0.0.1:8545".
func numberLen(text []byte) int {
	i := 0
	for i < len(text) {
		switch {
		case isAlnum(text[i]):
			i++
		case (text[i] == ',' || text[i] == '.' || text[i] == ':') && i+1 < len(text) && byteClass[text[i+1]] == digit:
			i += 2
		default:
			return i
		}
	}
	return i
}

// methodAt looks for the name of a method at the beginning of text, a word's
// beginning. It leaves a mark for it and gives its length, or 0.
func (w *words) methodAt(text []byte) int {
	if n := len(w.method); w.marked && len(text) >= n && text[0]|0x20 == w.method[0]|0x20 &&
		equalFold(text[:n], w.method) && (len(text) == n || !isAlnum(text[n]) && text[n] != '_') {
		w.mark(markMethod)
		return n
	}
	n := methodNameLen(text)
	if n == 0 {
		return 0
	}
	if w.method == "" {
		w.mark(markMethod)
	} else {
		w.mark(markOther)
	}
	return n
}

// equalFold compares ASCII letters without regard to case.
func equalFold(a []byte, b string) bool {
	for i, c := range a {
		if d := b[i]; c != d && (c|0x20 != d|0x20 || byteClass[c] != lower && byteClass[c] != upper) {
			return false
		}
	}
	return true
}

// isDistinctive tells whether a method's name can't be taken for English words:
// "eth_call" and "getBlock" can't, "block" and "status" can.
func isDistinctive(method string) bool {
	for i := 1; i < len(method); i++ {
		if c := method[i]; c == '_' || c == '.' || byteClass[c] == upper {
			return method[0] != '/'
		}
	}
	return len(method) >= 8 && (method[:3] == "get" || method[:4] == "send")
}

const maxNamespace = 12

// isNamespace tells whether a word before an underscore makes a JSON-RPC method of
// the whole. "chain", "state" and the like are left out: "chain_id" is no method.
func isNamespace(word []byte) bool {
	switch string(word) {
	case "eth", "debug", "trace", "arbtrace", "net", "web3", "txpool", "admin", "personal", "miner", "engine",
		"erigon", "bor", "parity", "clique", "zks", "zkevm", "starknet", "cfx", "klay", "kaia", "hmy", "optimism",
		"opp2p", "linea", "arb", "arbdebug", "sui", "suix", "author", "evm", "anvil", "hardhat", "ots", "perm",
		"priv", "eea", "ibft", "qbft", "flashbots", "mev", "rollup", "shh", "les", "broadcast", "EXPERIMENTAL":
		return true
	}
	return false
}

// methodNameLen is the length of a method's name such as "eth_getLogs" at the
// beginning of text, or 0.
func methodNameLen(text []byte) int {
	i := 0
	for i < len(text) && i <= maxNamespace && isAlnum(text[i]) {
		i++
	}
	if i >= len(text) || text[i] != '_' || !isNamespace(text[:i]) {
		return 0
	}
	for i < len(text) && (text[i] == '_' || isAlnum(text[i])) {
		i++
	}
	return i
}
