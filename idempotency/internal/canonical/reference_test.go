package canonical

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/gowebpki/jcs"
)

// referenceCanonical is Form on another library. It returns the RFC 8785 form of a JSON body
// without the excluded members, or false if that form would lose information.
func referenceCanonical(body []byte, excluded []string) ([]byte, bool) {
	if !json.Valid(body) || !referenceNumbersExact(body) {
		return nil, false
	}
	form, err := jcs.Transform(body)
	if err != nil { // duplicate names, lone surrogates, invalid UTF-8, too deep
		return nil, false
	}
	if len(excluded) == 0 {
		return form, true
	}
	return referenceNewStripper(excluded).strip(form), true
}

// referenceNumbersExact reports whether every number of a valid JSON text keeps its value as a
// double, in the notation of RFC 8785: 0.1 does, 9007199254740993 does not.
func referenceNumbersExact(text []byte) bool {
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '"':
			i += referenceStringLength(text[i:])
		case c == '-' || (c >= '0' && c <= '9'):
			n := referenceNumberLength(text[i:])
			if !referenceExact(string(text[i : i+n])) {
				return false
			}
			i += n
		default:
			i++
		}
	}
	return true
}

// referenceStringLength returns the length of the JSON string that text begins with, including
// quotes.
func referenceStringLength(text []byte) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

func referenceNumberLength(text []byte) int {
	end := bytes.IndexFunc(text, func(r rune) bool { return !strings.ContainsRune("+-.0123456789eE", r) })
	if end < 0 {
		return len(text)
	}
	return end
}

func referenceExact(literal string) bool {
	f, err := strconv.ParseFloat(literal, 64)
	if err != nil {
		return false
	}
	written, err := jcs.NumberToJSON(f)
	if err != nil {
		return false
	}
	if written == literal {
		return true
	}
	before, ok := decimalOf(literal)
	if !ok {
		return false
	}
	after, ok := decimalOf(written)
	return ok && before == after
}

// referenceStripper removes members from referenceCanonical JSON, where names can be compared as
// bytes: there is no whitespace, and every string has one spelling. Its recursion is limited by the
// parser's nesting limit.
type referenceStripper map[string]bool

func referenceNewStripper(names []string) referenceStripper {
	s := make(referenceStripper, len(names))
	for _, name := range names {
		quoted, err := json.Marshal(name)
		if err != nil {
			continue // strings always marshal
		}
		if spelled, err := jcs.Transform(quoted); err == nil {
			s[string(spelled)] = true
		}
	}
	return s
}

func (s referenceStripper) strip(text []byte) []byte {
	out, _ := s.value(make([]byte, 0, len(text)), text)
	return out
}

// value appends the first value of text to out, and returns the rest of text.
func (s referenceStripper) value(out, text []byte) (stripped, rest []byte) {
	switch text[0] {
	case '{':
		return s.container(out, text, s.member)
	case '[':
		return s.container(out, text, s.value)
	case '"':
		n := referenceStringLength(text)
		return append(out, text[:n]...), text[n:]
	}
	n := bytes.IndexAny(text, ",]}")
	if n < 0 {
		n = len(text)
	}
	return append(out, text[:n]...), text[n:]
}

// container copies an object or array item by item. An item that appends nothing leaves no
// comma.
func (s referenceStripper) container(out, text []byte, item func(out, text []byte) ([]byte, []byte)) (stripped, rest []byte) {
	out, text = append(out, text[0]), text[1:]
	first := len(out)
	for text[0] != '}' && text[0] != ']' {
		if text[0] == ',' {
			text = text[1:]
		}
		before := len(out)
		if before > first {
			out = append(out, ',')
		}
		start := len(out)
		if out, text = item(out, text); len(out) == start {
			out = out[:before]
		}
	}
	return append(out, text[0]), text[1:]
}

func (s referenceStripper) member(out, text []byte) (stripped, rest []byte) {
	n := referenceStringLength(text)
	name, start := text[:n], len(out)
	out = append(append(out, name...), ':')
	out, rest = s.value(out, text[n+1:])
	if s[string(name)] {
		out = out[:start]
	}
	return out, rest
}
