package jsonrpc

import (
	"bytes"
	"encoding/json"
)

// cursor walks over the members of an object, or the elements of an array, and checks
// them on its way, so that taking a body apart and validating it are one pass:
//
//	object := enter(data, at, 0)
//	for object.next() {
//		name, value := object.member()
//		…
//	}
//	// object.at is behind the object, or malformed
//
// What it gave counts only when it has come to the end: until then the rest may turn
// out not to be JSON.
type cursor struct {
	data    []byte
	at      int  // where the item begins that next has found, then behind it
	depth   int  // how many objects and arrays are open, this one included
	closing byte // what ends it
	begun   bool // an item has been found
}

// enter begins at the opening brace or bracket, inside of so many open objects and
// arrays.
func enter(data []byte, at, depth int) cursor {
	closing := byte('}')
	if data[at] == '[' {
		closing = ']'
	}
	return cursor{data: data, at: at + 1, depth: depth + 1, closing: closing}
}

// next goes on to the next item. At the end, and where there is no JSON, there is none.
func (c *cursor) next() bool {
	if c.at == malformed {
		return false
	}
	c.at = skipSpace(c.data, c.at)
	switch {
	case c.at >= len(c.data):
		c.at = malformed
	case c.data[c.at] == c.closing:
		c.at++
	case !c.begun:
		c.begun = true
		return true
	case c.data[c.at] == ',':
		c.at = skipSpace(c.data, c.at+1)
		return true
	default:
		c.at = malformed
	}
	return false
}

// value gives the bytes of the element that next has found, or of the member behind
// its name; nil where there is no value.
func (c *cursor) value() json.RawMessage {
	start := c.at
	if c.at = skipValue(c.data, start, c.depth); c.at == malformed {
		return nil
	}
	return c.data[start:c.at:c.at]
}

// member gives the name, without its escapes, and the value of the member that next
// has found.
func (c *cursor) member() (name []byte, value json.RawMessage) {
	start := c.at
	end, at := skipName(c.data, start)
	if c.at = at; at == malformed {
		return nil, nil
	}
	return unescaped(c.data[start:end]), c.value()
}

// unescaped gives what a string stands for. Nearly every name is written as it is.
func unescaped(quoted []byte) []byte {
	text := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(text, '\\') < 0 {
		return text
	}
	var plain string
	if json.Unmarshal(quoted, &plain) != nil {
		return text
	}
	return []byte(plain)
}

// Elements gives the elements of a JSON array as parts of its bytes; false where
// the value isn't an array.
func Elements(value []byte) (elements []json.RawMessage, isArray bool) {
	at := skipSpace(value, 0)
	if at >= len(value) || value[at] != '[' {
		return nil, false
	}
	elements = []json.RawMessage{}
	array := enter(value, at, 0)
	for array.next() {
		elements = append(elements, array.value())
	}
	if !endsAt(value, array.at) {
		return nil, false
	}
	return elements, true
}
