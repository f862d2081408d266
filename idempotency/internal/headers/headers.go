// Package headers encodes response headers as JSON without losing a byte. Header values may
// hold any byte above 0x7f (RFC 9110, section 5.5), and JSON strings hold Unicode: each byte
// is therefore written as the character with its number, as in ISO 8859-1.
package headers

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"
)

// Marshal returns a JSON object of arrays of strings, with sorted names; nil is an empty object.
// It does so without reflection: every answer that is kept pays for it.
func Marshal(header http.Header) []byte {
	out := append(make([]byte, 0, 128), '{')
	for i, name := range slices.Sorted(maps.Keys(header)) {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendList(append(appendText(out, name), ':'), header[name])
	}
	return append(out, '}')
}

func appendList(out []byte, values []string) []byte {
	if values == nil {
		return append(out, "null"...)
	}
	out = append(out, '[')
	for i, value := range values {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendText(out, value)
	}
	return append(out, ']')
}

// appendText appends a JSON string of characters with the numbers of the bytes, as
// [json.Marshal] would escape it.
func appendText(out []byte, text string) []byte {
	out = append(out, '"')
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c < ' ' || c == '<' || c == '>' || c == '&':
			out = fmt.Appendf(out, `\u%04x`, c)
		default:
			out = utf8.AppendRune(out, rune(c))
		}
	}
	return append(out, '"')
}

// Unmarshal is the inverse of Marshal.
func Unmarshal(data []byte) (http.Header, error) {
	if header, ok := unmarshalPlain(string(data)); ok {
		return header, nil
	}
	var header http.Header
	if err := json.Unmarshal(data, &header); err != nil {
		return nil, fmt.Errorf("decode response headers: %w", err)
	}
	for _, values := range header {
		for _, value := range values {
			if strings.ContainsFunc(value, func(r rune) bool { return r > 0xff }) {
				return nil, errors.New("decode response headers: a character is not a byte")
			}
		}
	}
	if !isASCII(header) { // which is rare
		for _, values := range header {
			for i := range values {
				values[i] = narrow(values[i])
			}
		}
	}
	return header, nil
}

// unmarshalPlain reads what Marshal has written of names and values that need no escapes, as nearly
// all do. It returns false for all else.
func unmarshalPlain(data string) (http.Header, bool) {
	if strings.ContainsFunc(data, func(r rune) bool { return r < ' ' || r > '~' || r == '\\' }) {
		return nil, false
	}
	header, rest, ok := http.Header{}, "", false
	if rest, ok = strings.CutPrefix(data, "{"); !ok || rest == "}" {
		return header, ok
	}
	for {
		name, list, isName := strings.Cut(rest, `":["`)
		values, after, isList := strings.Cut(list, `"]`)
		if !isName || !isList || len(name) == 0 || name[0] != '"' || strings.ContainsAny(name[1:], `"`) {
			return nil, false
		}
		header[name[1:]] = strings.Split(values, `","`)
		if strings.Count(values, `"`) != 2*(len(header[name[1:]])-1) {
			return nil, false
		}
		if after == "}" {
			return header, true
		}
		if rest, ok = strings.CutPrefix(after, ","); !ok {
			return nil, false
		}
	}
}

// Size returns how many bytes the headers take on the wire.
func Size(header http.Header) (bytes int) {
	for name, values := range header {
		for _, value := range values {
			bytes += len(name) + len(": ") + len(value) + len("\r\n")
		}
	}
	return bytes
}

func isASCII(header http.Header) bool {
	for _, values := range header {
		for _, value := range values {
			for i := range len(value) {
				if value[i] > 0x7f {
					return false
				}
			}
		}
	}
	return true
}

func narrow(value string) string {
	var b strings.Builder
	for _, r := range value {
		b.WriteByte(byte(r)) //nolint:gosec // Unmarshal has checked the range
	}
	return b.String()
}
