package canonical

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// escapes are the characters with an escape of two characters.
var escapes = map[byte]rune{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}

// unescape returns the character that text begins with, escaped, and the length of the escape.
// The length is 0 if there is no such character.
func unescape(text []byte) (r rune, length int) {
	if len(text) < 2 {
		return 0, 0
	}
	if text[1] != 'u' {
		if r, ok := escapes[text[1]]; ok {
			return r, 2
		}
		return 0, 0
	}
	r, ok := codeUnit(text)
	switch {
	case !ok:
		return 0, 0
	case !utf16.IsSurrogate(r):
		return r, unitLength
	}
	low, ok := codeUnit(text[unitLength:])
	if r = utf16.DecodeRune(r, low); !ok || r == utf8.RuneError {
		return 0, 0
	}
	return r, 2 * unitLength
}

// unitLength is the length of \uXXXX.
const unitLength = 6

func codeUnit(text []byte) (r rune, ok bool) {
	if len(text) < unitLength || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text[2:unitLength]), 16, 16)
	return rune(n), err == nil
}

func appendEscaped(out []byte, r rune) []byte {
	switch r {
	case '"', '\\':
		return append(out, '\\', byte(r))
	case '\b':
		return append(out, `\b`...)
	case '\f':
		return append(out, `\f`...)
	case '\n':
		return append(out, `\n`...)
	case '\r':
		return append(out, `\r`...)
	case '\t':
		return append(out, `\t`...)
	}
	if r >= ' ' {
		return utf8.AppendRune(out, r)
	}
	const hex = "0123456789abcdef"
	return append(out, '\\', 'u', '0', '0', hex[r>>4], hex[r&0xf])
}

// unescaped decodes the inside of a canonical string.
func unescaped(text []byte) []byte {
	if bytes.IndexByte(text, '\\') < 0 {
		return text
	}
	out := make([]byte, 0, len(text))
	for len(text) > 0 {
		if text[0] != '\\' {
			out, text = append(out, text[0]), text[1:]
			continue
		}
		r, n := unescape(text)
		out, text = utf8.AppendRune(out, r), text[n:]
	}
	return out
}

// compareUTF16 orders two texts in UTF-8 by their UTF-16 code units (RFC 8785, section 3.2.3).
// That is the order of their bytes, except that characters from U+10000 on come before those
// from U+E000 to U+FFFF.
func compareUTF16(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] == b[i] {
			continue
		}
		return int(unitOrder(a[i])) - int(unitOrder(b[i]))
	}
	return len(a) - len(b)
}

// unitOrder moves the first bytes of the range from U+E000 to U+FFFF, 0xee and 0xef, behind 0xf4.
func unitOrder(b byte) byte {
	if b == 0xee || b == 0xef {
		return b + 0x10
	}
	return b
}
