package idempotency

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/gowebpki/jcs"
)

// canonical gives the RFC 8785 form of a JSON body without the excluded
// members, or false when that form would lose information.
func canonical(body []byte, excluded []string) ([]byte, bool) {
	if !json.Valid(body) || !numbersExact(body) {
		return nil, false
	}
	form, err := jcs.Transform(body)
	if err != nil { // duplicate names, lone surrogates, invalid UTF-8, too deep
		return nil, false
	}
	if len(excluded) == 0 {
		return form, true
	}
	return newStripper(excluded).strip(form), true
}

// numbersExact says whether every number of a valid JSON text survives the trip
// through a double, as RFC 8785 writes it: 0.1 does, 9007199254740993 does not.
func numbersExact(text []byte) bool {
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '"':
			i += stringLength(text[i:])
		case c == '-' || (c >= '0' && c <= '9'):
			n := numberLength(text[i:])
			if !exact(string(text[i : i+n])) {
				return false
			}
			i += n
		default:
			i++
		}
	}
	return true
}

// stringLength gives the length, quotes included, of the JSON string that text
// begins with.
func stringLength(text []byte) int {
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

func numberLength(text []byte) int {
	end := bytes.IndexFunc(text, func(r rune) bool { return !strings.ContainsRune("+-.0123456789eE", r) })
	if end < 0 {
		return len(text)
	}
	return end
}

func exact(literal string) bool {
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

// decimal is the value digits × 10^exponent, digits having no zero at either
// end: equal values are equal structs. Zero is the zero value, also when signed.
type decimal struct {
	negative bool
	digits   string
	exponent int
}

func decimalOf(literal string) (decimal, bool) {
	number, negative := strings.CutPrefix(literal, "-")
	mantissa, power := number, "0"
	if i := strings.IndexAny(number, "eE"); i >= 0 {
		mantissa, power = number[:i], number[i+1:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return decimal{}, true
	}
	exponent, err := strconv.Atoi(power)
	if err != nil {
		return decimal{}, false
	}
	significant := strings.TrimRight(digits, "0")
	exponent += len(digits) - len(significant) - len(fraction)
	return decimal{negative, significant, exponent}, true
}

// stripper removes members from canonical JSON: without whitespace, every
// string in its one spelling, so that names can be compared as bytes. Its
// recursion is bounded by the parser's nesting limit.
type stripper map[string]bool

func newStripper(names []string) stripper {
	s := make(stripper, len(names))
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

func (s stripper) strip(text []byte) []byte {
	out, _ := s.value(make([]byte, 0, len(text)), text)
	return out
}

// value appends the first value of text to out, and gives what comes after it.
func (s stripper) value(out, text []byte) (stripped, rest []byte) {
	switch text[0] {
	case '{':
		return s.container(out, text, s.member)
	case '[':
		return s.container(out, text, s.value)
	case '"':
		n := stringLength(text)
		return append(out, text[:n]...), text[n:]
	}
	n := bytes.IndexAny(text, ",]}")
	if n < 0 {
		n = len(text)
	}
	return append(out, text[:n]...), text[n:]
}

// container copies an object or array, item by item. An item that appends
// nothing leaves no comma either.
func (s stripper) container(out, text []byte, item func(out, text []byte) ([]byte, []byte)) (stripped, rest []byte) {
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

func (s stripper) member(out, text []byte) (stripped, rest []byte) {
	n := stringLength(text)
	name, start := text[:n], len(out)
	out = append(append(out, name...), ':')
	out, rest = s.value(out, text[n+1:])
	if s[string(name)] {
		out = out[:start]
	}
	return out, rest
}
