package jsonrpc

import (
	"encoding/json"
	"iter"
	"strings"
)

// members gives the members of a JSON object in order, as parts of the object's
// bytes. The object must be valid JSON: nothing is checked here again.
func members(object []byte) iter.Seq2[string, json.RawMessage] {
	return func(yield func(string, json.RawMessage) bool) {
		s := scanner{data: object, at: 1}
		for {
			s.skipSpace()
			if s.done() || s.data[s.at] == '}' {
				return
			}
			if s.data[s.at] == ',' {
				s.at++
				continue
			}
			name := memberName(s.value())
			s.skipSpace()
			s.at++ // the colon
			s.skipSpace()
			if !yield(name, s.value()) {
				return
			}
		}
	}
}

// Elements gives the elements of a JSON array as parts of its bytes; false where
// the value isn't an array. The value must be valid JSON.
func Elements(value []byte) (elements []json.RawMessage, isArray bool) {
	s := scanner{data: value}
	s.skipSpace()
	if s.done() || s.data[s.at] != '[' {
		return nil, false
	}
	elements = []json.RawMessage{}
	for s.at++; ; {
		s.skipSpace()
		if s.done() || s.data[s.at] == ']' {
			return elements, true
		}
		if s.data[s.at] == ',' {
			s.at++
			continue
		}
		elements = append(elements, s.value())
	}
}

func memberName(quoted []byte) string {
	text := string(quoted[1 : len(quoted)-1])
	if !strings.Contains(text, `\`) {
		return text
	}
	var unescaped string
	if json.Unmarshal(quoted, &unescaped) != nil {
		return text
	}
	return unescaped
}

// scanner walks over valid JSON.
type scanner struct {
	data []byte
	at   int
}

func (s *scanner) done() bool { return s.at >= len(s.data) }

func (s *scanner) skipSpace() {
	for !s.done() {
		switch s.data[s.at] {
		case ' ', '\t', '\r', '\n':
			s.at++
		default:
			return
		}
	}
}

// value walks over the value that begins here, and gives its bytes.
func (s *scanner) value() []byte {
	start := s.at
	switch s.data[s.at] {
	case '"':
		s.skipString()
	case '{', '[':
		s.skipNested()
	default:
		s.skipPlain()
	}
	return s.data[start:s.at:s.at]
}

func (s *scanner) skipString() {
	for s.at++; !s.done(); s.at++ {
		switch s.data[s.at] {
		case '\\':
			s.at++
		case '"':
			s.at++
			return
		}
	}
}

func (s *scanner) skipNested() {
	depth := 0
	for !s.done() {
		switch s.data[s.at] {
		case '"':
			s.skipString()
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		s.at++
		if depth == 0 {
			return
		}
	}
}

// skipPlain walks over a number, true, false or null.
func (s *scanner) skipPlain() {
	for !s.done() {
		switch s.data[s.at] {
		case ',', '}', ']', ' ', '\t', '\r', '\n':
			return
		}
		s.at++
	}
}
