package rpcpool

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A wording says by which words a row of the table is recognised:
//
//	nonce too {low|high}          one of the alternatives; they may be empty: {block |}
//	method .. not supported       the first, and in the same clause, near, the second
//	blocks ..60 requested         near meaning at most 60 letters between; else 24
//	more than # results           # any number, or several side by side
//	@ is not available            @ the called method; & another method
//	= limit exceeded              the message is this and nothing else
//	^ not supported by            the message begins so
//	mined_                        _ the word ends here: not "minedir"
//
// Case and whatever stands between words don't count, and a phrase begins where a
// word does, so "known transaction" isn't found in "unknown transaction". See words.
type wording struct {
	row    uint16
	anchor byte // 0, '^' or '='
	parts  []part
}

// part is a set of phrases, one of which must be said.
type part struct {
	set uint16
	gap int // letters that may stand between the part before and this one
}

const defaultGap = 24

// hit is where a phrase was found.
type hit struct {
	phrase     uint16
	clause     uint16
	start, end uint16
}

// maxOccurrences bounds how often one phrase is noted, and with it the work that a
// text made of one phrase can cause.
const maxOccurrences = 4

// matcher finds all phrases of all wordings in one walk. Phrases begin where words
// do, so a trie will do, walked from each word's beginning: no text costs more than
// its words times the longest phrase.
type matcher struct {
	nodes    []trieNode
	root     [128]uint16
	phrases  []string
	setsOf   [][]uint16 // per phrase: the sets that it is in
	wordings []wording
	byLast   [][]uint16 // per set: the wordings that end with it

	phraseIDs, setIDs map[string]uint16 // while it is built
}

// trieNode is a letter; its alternatives are chained. 0 is no node.
type trieNode struct {
	child, sibling uint16
	phrase         uint16 // 1 + the phrase that ends here, any word's end; 0: none
	whole          uint16 // the same for a phrase that must end with a word
	letter         byte
}

func newMatcher() *matcher {
	return &matcher{nodes: make([]trieNode, 1), phraseIDs: map[string]uint16{}, setIDs: map[string]uint16{}}
}

// add compiles a wording of a row. One that only rules the row out isn't looked up.
func (m *matcher) add(row int, text string, decides bool) error {
	w := wording{row: uint16(row)}
	if text != "" && (text[0] == '=' || text[0] == '^') {
		w.anchor, text = text[0], text[1:]
	}
	for i, piece := range strings.Split(text, "..") {
		p := part{gap: defaultGap}
		if i > 0 {
			digits := piece[:len(piece)-len(strings.TrimLeft(piece, "0123456789"))]
			if digits != "" {
				p.gap, _ = strconv.Atoi(digits)
				piece = piece[len(digits):]
			}
		}
		var err error
		if p.set, err = m.set(piece); err != nil {
			return fmt.Errorf("wording %q: %w", text, err)
		}
		w.parts = append(w.parts, p)
	}
	if decides {
		last := w.parts[len(w.parts)-1].set
		m.byLast[last] = append(m.byLast[last], uint16(len(m.wordings)))
	}
	m.wordings = append(m.wordings, w)
	return nil
}

// set enters the phrases that text stands for.
func (m *matcher) set(text string) (uint16, error) {
	phrases := expand(strings.TrimSpace(text))
	key := strings.Join(phrases, "|")
	if id, ok := m.setIDs[key]; ok {
		return id, nil
	}
	id := uint16(len(m.byLast))
	m.setIDs[key] = id
	m.byLast = append(m.byLast, nil)
	for _, text := range phrases {
		phrase, err := m.phrase(text)
		if err != nil {
			return 0, err
		}
		m.setsOf[phrase] = append(m.setsOf[phrase], id)
	}
	return id, nil
}

// expand writes out the alternatives in braces, which may be nested.
func expand(text string) []string {
	from := strings.IndexByte(text, '{')
	if from < 0 {
		return []string{text}
	}
	depth, begin := 0, from+1
	var choices []string
	for i := from; i < len(text); i++ {
		switch c := text[i]; {
		case c == '{':
			depth++
		case c == '|' && depth == 1:
			choices = append(choices, text[begin:i])
			begin = i + 1
		case c == '}':
			if depth--; depth > 0 {
				continue
			}
			choices = append(choices, text[begin:i])
			var all []string
			for _, choice := range choices {
				all = append(all, expand(text[:from]+choice+text[i+1:])...)
			}
			return all
		}
	}
	return []string{text}
}

// phrase enters a phrase into the trie.
func (m *matcher) phrase(text string) (uint16, error) {
	text = strings.TrimSpace(text)
	whole := strings.HasSuffix(text, "_")
	letters := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case isAlnum(c):
			if c|0x20 != c {
				return 0, fmt.Errorf("phrase %q has a capital letter", text)
			}
			letters = append(letters, c)
		case c == markNumber || c == markMethod || c == markOther || c == markRevert:
			letters = append(letters, c)
		}
	}
	if len(letters) == 0 {
		return 0, fmt.Errorf("phrase %q has no letters", text)
	}
	key := string(letters)
	if whole {
		key += "_"
	}
	if id, ok := m.phraseIDs[key]; ok {
		return id, nil
	}
	id := uint16(len(m.phrases))
	m.phraseIDs[key] = id
	m.phrases = append(m.phrases, key)
	m.setsOf = append(m.setsOf, nil)
	node := m.grow(letters)
	if whole {
		m.nodes[node].whole = id + 1
	} else {
		m.nodes[node].phrase = id + 1
	}
	return id, nil
}

// grow gives the node at the end of letters, making those that are missing.
func (m *matcher) grow(letters []byte) uint16 {
	node := m.root[letters[0]]
	if node == 0 {
		node = m.newNode(letters[0])
		m.root[letters[0]] = node
	}
	for _, c := range letters[1:] {
		next := m.child(node, c)
		if next == 0 {
			next = m.newNode(c)
			m.nodes[next].sibling = m.nodes[node].child
			m.nodes[node].child = next
		}
		node = next
	}
	return node
}

func (m *matcher) newNode(letter byte) uint16 {
	m.nodes = append(m.nodes, trieNode{letter: letter})
	return uint16(len(m.nodes) - 1)
}

func (m *matcher) child(node uint16, letter byte) uint16 {
	for next := m.nodes[node].child; next != 0; next = m.nodes[next].sibling {
		if m.nodes[next].letter == letter {
			return next
		}
	}
	return 0
}

// find notes every phrase in w, in the order in which they begin, and the sets
// that have been said.
func (m *matcher) find(w *words) {
	w.count = zeroed(w.count, len(m.phrases))
	w.isSaid = zeroed(w.isSaid, len(m.byLast))
	clause, end := uint16(0), clauseEnd(w.buf, 0)
	for i, start := range w.starts {
		for int(start) > end {
			clause++
			end = clauseEnd(w.buf, end+1)
		}
		m.walk(w, i, clause)
	}
}

// clauseEnd gives where the clause ends that position from lies in.
func clauseEnd(buf []byte, from int) int {
	if n := bytes.IndexByte(buf[from:], markStop); n >= 0 {
		return from + n
	}
	return len(buf)
}

func (m *matcher) walk(w *words, word int, clause uint16) {
	at := int(w.starts[word])
	node := m.root[w.buf[at]&0x7f]
	for end := at + 1; node != 0; end++ {
		n := &m.nodes[node]
		if n.phrase != 0 {
			m.note(w, hit{n.phrase - 1, clause, uint16(at), uint16(end)})
		}
		if n.whole != 0 && w.wordEnds(word, end) {
			m.note(w, hit{n.whole - 1, clause, uint16(at), uint16(end)})
		}
		if end == len(w.buf) {
			return
		}
		node = m.child(node, w.buf[end])
	}
}

func (m *matcher) note(w *words, h hit) {
	if w.count[h.phrase] >= maxOccurrences {
		return
	}
	w.count[h.phrase]++
	w.hits = append(w.hits, h)
	for _, set := range m.setsOf[h.phrase] {
		if w.isSaid[set] == 0 {
			w.isSaid[set] = 1
			w.said = append(w.said, set)
		}
	}
}

// zeroed gives n zeroes, in s where they fit.
func zeroed(s []uint8, n int) []uint8 {
	if cap(s) < n {
		return make([]uint8, n)
	}
	s = s[:n]
	clear(s)
	return s
}

// wordEnds tells whether a word ends at end, which lies in or after the word that
// has this number.
func (w *words) wordEnds(word, end int) bool {
	if end == len(w.buf) || w.buf[end] == markStop {
		return true
	}
	for _, start := range w.starts[word+1:] {
		if int(start) >= end {
			return int(start) == end
		}
	}
	return false
}

// says tells whether the text has a wording, looking only at what begins before
// limit.
func (m *matcher) says(w *words, number uint16, limit int) bool {
	wd := &m.wordings[number]
	for i := range wd.parts {
		if w.isSaid[wd.parts[i].set] == 0 {
			return false
		}
	}
	for _, h := range w.hits {
		if int(h.start) >= limit {
			return false
		}
		if m.isIn(h, wd.parts[0].set) && wd.fits(w, h) && m.continues(w, wd.parts[1:], h, limit) {
			return true
		}
	}
	return false
}

func (m *matcher) isIn(h hit, set uint16) bool { return slices.Contains(m.setsOf[h.phrase], set) }

// fits tells whether a hit of the first part stands where the wording wants it.
func (wd *wording) fits(w *words, h hit) bool {
	switch wd.anchor {
	case '^':
		return h.start == 0
	case '=':
		end := w.msgEnd
		if end > 0 && w.buf[end-1] == markStop {
			end--
		}
		return h.start == 0 && int(h.end) == end
	}
	return true
}

// continues tells whether the parts follow a hit, each near the one before.
func (m *matcher) continues(w *words, parts []part, from hit, limit int) bool {
	if len(parts) == 0 {
		return true
	}
	for _, h := range w.hits {
		if h.start < from.end {
			continue
		}
		if h.clause != from.clause || int(h.start)-int(from.end) > parts[0].gap || int(h.start) >= limit {
			break
		}
		if m.isIn(h, parts[0].set) && m.continues(w, parts[1:], h, limit) {
			return true
		}
	}
	return false
}
