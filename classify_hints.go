package rpcpool

import "strings"

// A refusal of a log query often names a way out: the number of blocks that is
// allowed, or a range that would do. It names other numbers too: the range that
// was asked for, caps of results, bytes and seconds, codes and ports. Which is
// which is told by the words around a number, in whatever order they come.

// hintsOf reads the number of blocks and the range that a message, or else its
// data, suggests.
func hintsOf(w *words) *rangeHints {
	h := new(rangeHints)
	for _, text := range [...][]byte{w.raw[:w.rawMsg], w.raw[w.rawMsg:]} {
		w.tokens = appendTokens(w.tokens[:0], text)
		t := tokens(w.tokens)
		if !h.hasRange {
			h.from, h.to, h.hasRange = t.suggestedRange()
		}
		if h.span == 0 {
			h.span = t.allowedSpan()
		}
	}
	return h
}

// meaning is what a word before or after a number says about it.
type meaning uint16

const (
	blockWord   meaning = 1 << iota // after a number: it counts blocks
	rangeWord                       // before a number: it is blocks that are limited
	limitWord                       // before a number: it is what is allowed
	askedWord                       // before a number: it is what was asked for
	resultWord                      // on either side: it counts something else
	suggestWord                     // before a range: it would do
	maxWord                         // after a number: it is what is allowed
	fromWord
	toWord
	sizeWord
	thanWord
)

var meanings = func() map[string]meaning {
	m := map[string]meaning{}
	for means, list := range map[meaning]string{
		blockWord: "block blocks range ranges epoch epochs height heights ledgers tipsets",
		rangeWord: "block blocks range ranges epoch epochs distance span window interval",
		limitWord: "limit limits limited max maximum most up allowed allows over exceed exceeds exceeded exceeding greater larger bigger more wider " +
			"distance within only under less fewer smaller capped threshold beyond narrow",
		askedWord: "got requested from your received provided given actual asked was used current",
		resultWord: "result results log logs event events record records entries items rows response responses byte bytes kb mb gb mib kib " +
			"second seconds sec secs minute minutes hour hours day days ms milliseconds duration timeout request requests calls queries per size count pagination " +
			"address addresses topic topics filters batch code gas wei cu cus credits units port http status matched returned",
		suggestWord: "try retry suggested work suggest recommended use consider",
		maxWord:     "max maximum limit allowed",
		fromWord:    "from",
		toWord:      "to",
		sizeWord:    "size",
		thanWord:    "than",
	} {
		for word := range strings.FieldsSeq(list) {
			m[word] |= means
		}
	}
	return m
}()

// Distances, in tokens.
const (
	nearLimit   = 8  // how far before a number a limit may be named
	nearRange   = 16 // how far before it that it is of blocks
	nearSuggest = 8  // how far before a range that it would do
)

// suggestedRange finds two numbers that make a range which the text suggests.
func (t tokens) suggestedRange() (from, to uint64, ok bool) {
	for i := 1; i < len(t); i++ {
		if !t.isNumber(i-1) || !t.isNumber(i) || t[i-1].number > t[i].number {
			continue
		}
		if p := t[i].point; p != '-' && p != ',' && p != '[' {
			continue
		}
		if t.near(i-1, suggestWord) && t.near(i-1, rangeWord) {
			return t[i-1].number, t[i].number, true
		}
	}
	return t.namedRange()
}

// near tells whether a word that means so stands shortly before token i.
func (t tokens) near(i int, means meaning) bool {
	for k := max(0, i-nearSuggest); k < i; k++ {
		if t[k].means&means != 0 {
			return true
		}
	}
	return false
}

// namedRange finds a range given as members of an object, as Infura's data has it:
// from, to and, beside them, the limit that wasn't kept.
func (t tokens) namedRange() (from, to uint64, ok bool) {
	var hasFrom, hasTo, hasLimit bool
	for i := range t {
		hasLimit = hasLimit || t[i].means&maxWord != 0
		if !t.isNumber(i+1) || t[i+1].point != ':' {
			continue
		}
		switch {
		case t[i].means&fromWord != 0:
			from, hasFrom = t[i+1].number, true
		case t[i].means&toWord != 0:
			to, hasTo = t[i+1].number, true
		}
	}
	if !hasFrom || !hasTo || !hasLimit || from > to {
		return 0, 0, false
	}
	return from, to, true
}

// allowedSpan finds the number of blocks that the text says is allowed. A number
// that says itself that it counts blocks comes before one that only stands in the
// right place.
func (t tokens) allowedSpan() uint64 {
	inPlace := uint64(0)
	for i := range t {
		if !t.isNumber(i) || t[i].number == 0 || t.ofOtherThings(i) || t.isFirstOfTwo(i) || !t.isLimit(i) && !t.limitFollows(i) {
			continue
		}
		if t.countsBlocks(i) {
			return t[i].number
		}
		if inPlace == 0 && t.isOfBlocks(i) {
			inPlace = t[i].number
		}
	}
	return inPlace
}

// ofOtherThings tells whether a number says itself that it counts something else.
func (t tokens) ofOtherThings(i int) bool {
	return i+1 < len(t) && t[i+1].means&resultWord != 0 && (t[i+1].point == 0 || t[i+1].point == '/')
}

// isFirstOfTwo tells whether a number is the lower end of a range, or the greater
// one of what was asked and what is allowed: "0 - 50", "49999 > 2000".
func (t tokens) isFirstOfTwo(i int) bool {
	return t.isNumber(i+1) && (t[i+1].point == '-' || t[i+1].point == '>')
}

func (t tokens) countsBlocks(i int) bool {
	return i+1 < len(t) && t[i+1].means&blockWord != 0 && (t[i+1].point == 0 || t[i+1].point == '-')
}

// isLimit tells whether the words before a number make it a limit, rather than
// what was asked for. They are looked for back to the end of a clause, or to
// another number.
func (t tokens) isLimit(i int) bool {
	if i > 0 && t[i].point == '>' {
		return t.isNumber(i - 1)
	}
	for k := i; k > 0 && k > i-nearLimit; k-- {
		before := t[k-1]
		switch {
		case t.endsClause(k, i), before.isNumber && (k < i || t[k].point != '-'):
			return false
		case k == i && before.means&askedWord != 0:
			return false
		case before.means&limitWord != 0:
			return true
		case t.isResult(k - 1):
			return false
		}
	}
	return false
}

// endsClause tells whether a clause ends between tokens k-1 and k, as seen from
// number i. The comma in "maximum [from, to] blocks distance" doesn't end one.
func (t tokens) endsClause(k, i int) bool {
	switch t[k].point {
	case ';', '.':
		return true
	case '(':
		return k < i
	case ',':
		return t[k-1].point != '['
	}
	return false
}

// limitFollows tells whether the words after a number make it a limit: "1000 max",
// "a 500 block range limit".
func (t tokens) limitFollows(i int) bool {
	for k := i + 1; k < len(t) && k <= i+3; k++ {
		switch {
		case t[k].point != 0:
			return false
		case t[k].means&maxWord != 0:
			return true
		case t[k].means&blockWord == 0:
			return false
		}
	}
	return false
}

// isOfBlocks tells by the words before a number whether it is blocks that are
// limited.
func (t tokens) isOfBlocks(i int) bool {
	if i > 1 && t[i-1].means&sizeWord != 0 && t[i-2].means&thanWord != 0 {
		return true
	}
	for k := i - 1; k >= 0 && k >= i-nearRange; k-- {
		if t[k].means&rangeWord != 0 {
			return true
		}
		if t.isResult(k) {
			return false
		}
	}
	return false
}

// isResult tells whether a word makes the numbers after it ones of something else.
// "Smaller than size 1000" is Harmony's of a range.
func (t tokens) isResult(k int) bool {
	return t[k].means&resultWord != 0 && !(t[k].means&sizeWord != 0 && k > 0 && t[k-1].means&thanWord != 0)
}
