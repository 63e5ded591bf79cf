package rpcpool

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// jsonValue is a value in a JSON text with the place where it begins, so that the
// text's author can be told where a mistake is: encoding/json decodes without places.
type jsonValue struct {
	at      int          // offset of its first byte
	token   json.Token   // nil, bool, json.Number or string; a json.Delim, '{' or '[', for what follows
	members []jsonMember // of an object, in order, names that stand twice included
	items   []jsonValue  // of a list
}

type jsonMember struct {
	name  string
	at    int // offset of the name
	value jsonValue
}

// jsonError is why a text isn't JSON, and where it ceases to be.
type jsonError struct {
	at     int
	reason string
}

func (f *jsonError) Error() string { return f.reason }

// parseJSON reads a text that is one JSON value. The error is a *jsonError.
func parseJSON(text []byte) (*jsonValue, error) {
	if at := invalidUTF8(text); at >= 0 {
		return nil, &jsonError{at, "this isn't UTF-8; save the file as UTF-8"}
	}
	var raw json.RawMessage
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil, explainSyntax(text, err)
	}
	reader := jsonTree{text: text, tokens: json.NewDecoder(bytes.NewReader(text))}
	reader.tokens.UseNumber()
	root, err := reader.value()
	if err != nil {
		return nil, &jsonError{root.at, err.Error()}
	}
	return &root, nil
}

// jsonTree makes values of tokens. The text is JSON: that was checked before.
type jsonTree struct {
	text   []byte
	tokens *json.Decoder
}

// next gives a token and where it begins.
func (r *jsonTree) next() (at int, token json.Token, err error) {
	at = int(r.tokens.InputOffset())
	for at < len(r.text) && strings.IndexByte(" \t\r\n,:", r.text[at]) >= 0 {
		at++
	}
	token, err = r.tokens.Token()
	return at, token, err
}

// value reads one value. It goes as deep as encoding/json allows, which is bounded.
func (r *jsonTree) value() (v jsonValue, err error) {
	v.at, v.token, err = r.next()
	if err != nil {
		return v, err
	}
	switch v.token {
	case json.Delim('{'):
		for r.tokens.More() {
			member := jsonMember{}
			var name json.Token
			if member.at, name, err = r.next(); err != nil {
				return v, err
			}
			member.name, _ = name.(string)
			if member.value, err = r.value(); err != nil {
				return v, err
			}
			v.members = append(v.members, member)
		}
	case json.Delim('['):
		for r.tokens.More() {
			item, err := r.value()
			if err != nil {
				return v, err
			}
			v.items = append(v.items, item)
		}
	default:
		return v, nil
	}
	_, _, err = r.next() // what closes it
	return v, err
}

// kind says what a value is, without showing what may be a secret.
func (v *jsonValue) kind() string {
	switch token := v.token.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(token)
	case json.Number:
		return "the number " + clip(token.String(), 24)
	case string:
		return "a text in quotes"
	case json.Delim:
		if token == '{' {
			return "an object, {…}"
		}
	}
	return "a list, […]"
}

// position gives the line and column of an offset, both from 1. Columns count
// characters, as editors do.
func position(text []byte, at int) (line, column int) {
	before := text[:min(at, len(text))]
	line = 1 + bytes.Count(before, []byte("\n"))
	return line, 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
}

// invalidUTF8 gives the offset of the first byte that isn't UTF-8, or -1.
func invalidUTF8(text []byte) int {
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && size <= 1 {
			return at
		}
		at += size
	}
	return -1
}

// explainSyntax says what is wrong with a text that isn't JSON, in words for those
// who write JSON by hand. It shows one character of the text at most.
func explainSyntax(text []byte, err error) *jsonError {
	syntax, ok := errors.AsType[*json.SyntaxError](err)
	if !ok {
		return &jsonError{0, err.Error()}
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return &jsonError{len(text), "there is nothing in it"}
	}
	var raw json.RawMessage
	if errors.Is(json.NewDecoder(bytes.NewReader(text)).Decode(&raw), io.ErrUnexpectedEOF) {
		return &jsonError{len(text), "it ends too early" + unclosed(text)}
	}
	at := max(0, int(syntax.Offset)-1)
	if reason := syntaxHint(text, at); reason != "" {
		return &jsonError{at, reason}
	}
	return &jsonError{at, "this isn't JSON: " + syntax.Error()}
}

// syntaxHint knows the usual mistakes; "" for others.
func syntaxHint(text []byte, at int) string {
	found, _ := utf8.DecodeRune(text[at:])
	before := bytes.TrimRight(text[:at], " \t\r\n")
	var last byte // what stands before it
	if len(before) > 0 {
		last = before[len(before)-1]
	}
	opened := strings.IndexByte("{[:,", last) >= 0 || last == 0 // a name or a value should stand here
	switch {
	case found == '\n' || found == '\r':
		return `a text in quotes doesn't end on its line; a " is missing`
	case found == '/' || found == '#':
		return `JSON has no comments; a field whose name begins with _, such as "_note", is passed over`
	case strings.ContainsRune("'`‘’‚“”„«»", found):
		return `texts and names stand in straight double quotes, "like this"`
	case last == ',' && (found == '}' || found == ']'):
		return "no comma may stand before " + string(found)
	case last == '}' && (found == '{' || found == '[') && unclosed(text[:at]) == "":
		return "a second value begins here; put several into a list, [ … , … ]"
	case strings.IndexByte(`"}]`, last) >= 0 && strings.ContainsRune(`"{[`, found):
		return "a comma, or a colon after a name, is missing before this"
	case opened && unicode.IsLetter(found):
		return "texts and names stand in double quotes; only true, false, null and numbers do without"
	}
	return ""
}

// unclosed names the innermost bracket, or the quote, that isn't closed at the end
// of a text; "" where all are.
func unclosed(text []byte) string {
	var open []int
	quote := -1
	for at := 0; at < len(text); at++ {
		switch c := text[at]; {
		case quote >= 0 && c == '\\':
			at++
		case c == '"' && quote >= 0:
			quote = -1
		case quote >= 0:
		case c == '"':
			quote = at
		case c == '{' || c == '[':
			open = append(open, at)
		case (c == '}' || c == ']') && len(open) > 0:
			open = open[:len(open)-1]
		}
	}
	if quote >= 0 {
		open = append(open, quote)
	}
	if len(open) == 0 {
		return ""
	}
	at := open[len(open)-1]
	line, _ := position(text, at)
	return ": the " + string(text[at]) + " of line " + strconv.Itoa(line) + " isn't closed"
}
