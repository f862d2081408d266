// Package canonical brings JSON texts into the form of RFC 8785, in which texts of the same meaning
// are the same bytes.
package canonical

import (
	"bytes"
	"slices"
	"unicode/utf8"
)

// maxNesting limits the depth of a body in canonical form. Each level may copy what it holds,
// in order to sort it.
const maxNesting = 1000

// Form returns the RFC 8785 form of a JSON text without the excluded members. It returns false if
// the text is not JSON (RFC 8259, in UTF-8) or the form would lose information: duplicate names,
// lone surrogates, numbers that a double cannot hold.
//
// A member is excluded by its path: the names of the members that lead to it, with dots between
// them. An array is no step: its elements have its path.
func Form(text []byte, excluded []string) ([]byte, bool) {
	c := canonicalizer{in: text, out: make([]byte, 0, len(text)), excluded: excluded, members: make([]member, 0, 16)}
	ok := c.value(0)
	return c.out, ok && len(c.in) == 0
}

// canonicalizer appends the canonical form of in to out, and shortens in from its beginning.
// Its methods return false if there is no such form.
type canonicalizer struct {
	in, out  []byte
	excluded []string
	path     []byte   // of the member that is being taken, with a dot at its end
	members  []member // of all open objects
	scratch  []byte
}

// member is a member of an open object: out[start:end], without comma.
type member struct {
	name       []byte // decoded
	start, end int    // equal if the member is excluded
}

// value takes one value with the whitespace around it.
func (c *canonicalizer) value(depth int) bool {
	c.skipSpace()
	if len(c.in) == 0 {
		return false
	}
	var ok bool
	switch c.in[0] {
	case '{':
		ok = depth < maxNesting && c.object(depth+1)
	case '[':
		ok = depth < maxNesting && c.array(depth+1)
	case '"':
		ok = c.text()
	case 't':
		ok = c.literal("true")
	case 'f':
		ok = c.literal("false")
	case 'n':
		ok = c.literal("null")
	default:
		ok = c.number()
	}
	c.skipSpace()
	return ok
}

func (c *canonicalizer) array(depth int) bool {
	c.copyByte()
	if c.skipSpace(); c.next(']') {
		return c.copyByte()
	}
	for c.value(depth) {
		switch {
		case c.next(','):
			c.copyByte()
		case c.next(']'):
			return c.copyByte()
		default:
			return false
		}
	}
	return false
}

func (c *canonicalizer) object(depth int) bool {
	c.copyByte()
	first := len(c.members)
	defer func() { c.members = c.members[:first] }()
	if c.skipSpace(); c.next('}') {
		return c.copyByte()
	}
	for c.member(depth) {
		switch {
		case c.next(','):
			c.in = c.in[1:]
		case c.next('}'):
			return c.sort(c.members[first:]) && c.copyByte()
		default:
			return false
		}
	}
	return false
}

// member takes a name and its value, and removes both again if the name is excluded.
func (c *canonicalizer) member(depth int) bool {
	start := len(c.out)
	if c.skipSpace(); !c.next('"') || !c.text() {
		return false
	}
	name := unescaped(c.out[start+1 : len(c.out)-1])
	if c.skipSpace(); !c.next(':') {
		return false
	}
	c.copyByte()
	above, end := len(c.path), len(c.path)+len(name)
	c.path = append(append(c.path, name...), '.')
	if !c.value(depth) {
		return false
	}
	if slices.ContainsFunc(c.excluded, func(path string) bool { return path == string(c.path[:end]) }) {
		name, c.out = slices.Clone(name), c.out[:start]
	}
	c.path = c.path[:above]
	c.members = append(c.members, member{name, start, len(c.out)})
	return true
}

// sort brings the members at the end of out into order, and puts commas between them. It
// returns false for duplicate names.
func (c *canonicalizer) sort(members []member) bool {
	start := members[0].start
	slices.SortFunc(members, func(a, b member) int { return compareUTF16(a.name, b.name) })
	c.scratch = c.scratch[:0]
	for i, m := range members {
		if i > 0 && bytes.Equal(m.name, members[i-1].name) {
			return false
		}
		if m.start == m.end {
			continue
		}
		if len(c.scratch) > 0 {
			c.scratch = append(c.scratch, ',')
		}
		c.scratch = append(c.scratch, c.out[m.start:m.end]...)
	}
	c.out = append(c.out[:start], c.scratch...)
	return true
}

// text takes a JSON string and writes it with the fewest escapes (RFC 8785, section 3.2.2.2).
func (c *canonicalizer) text() bool {
	c.copyByte()
	for len(c.in) > 0 {
		switch b := c.in[0]; {
		case b == '"':
			return c.copyByte()
		case b == '\\':
			r, n := unescape(c.in)
			if n == 0 {
				return false
			}
			c.out, c.in = appendEscaped(c.out, r), c.in[n:]
		case b < ' ':
			return false
		case b < utf8.RuneSelf:
			c.copyByte()
		default:
			r, n := utf8.DecodeRune(c.in)
			if r == utf8.RuneError && n == 1 {
				return false
			}
			c.out, c.in = append(c.out, c.in[:n]...), c.in[n:]
		}
	}
	return false
}

// number takes a number and writes it as ECMAScript does, if that has the same value.
func (c *canonicalizer) number() bool {
	n := numberLength(c.in)
	literal := c.in[:n]
	c.in = c.in[n:]
	if n == 0 {
		return false
	}
	written, ok := appendNumber(c.out, literal)
	c.out = written
	return ok
}

func (c *canonicalizer) literal(word string) bool {
	if !bytes.HasPrefix(c.in, []byte(word)) {
		return false
	}
	c.in, c.out = c.in[len(word):], append(c.out, word...)
	return true
}

func (c *canonicalizer) skipSpace() {
	for len(c.in) > 0 && (c.in[0] == ' ' || c.in[0] == '\n' || c.in[0] == '\r' || c.in[0] == '\t') {
		c.in = c.in[1:]
	}
}

func (c *canonicalizer) next(b byte) bool { return len(c.in) > 0 && c.in[0] == b }

// copyByte copies one byte. It returns true, for the end of a container.
func (c *canonicalizer) copyByte() bool {
	c.out, c.in = append(c.out, c.in[0]), c.in[1:]
	return true
}
