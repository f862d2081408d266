package httpapi

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/oncepay/oncepay/internal/cardnumber"
)

// maxDepth is four times the depth of the deepest body that the API knows.
const maxDepth = 32

// checkJSON reads a body once, as strictly as JSON allows (RFC 8259, RFC 7493): one value in UTF-8,
// no duplicate member names, no deep nesting. It also refuses what the API's types or the database
// cannot hold, and card numbers, except in the excluded members of the root. It checks names before
// any message could repeat them.
func checkJSON(body []byte, excluded []string) error {
	return readJSON(body, func(d *jsontext.Decoder) error { return checkValue(d, excluded) })
}

// checkSyntax reads a body once, and accepts every value of JSON in UTF-8 without duplicate member
// names.
func checkSyntax(body []byte) error {
	return readJSON(body, func(d *jsontext.Decoder) error {
		if err := d.SkipValue(); err != nil {
			return syntaxProblem(err)
		}
		return nil
	})
}

// readJSON refuses what is not one JSON value, which read reads.
func readJSON(body []byte, read func(*jsontext.Decoder) error) error {
	switch {
	case len(bytes.TrimSpace(body)) == 0:
		return invalidRequest("The request needs a JSON body.")
	case !utf8.Valid(body):
		return invalidRequest("The body is not valid UTF-8.")
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(body))
	if err := read(d); err != nil {
		return err
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return invalidRequest("The body has something after its JSON value.")
	}
	return nil
}

// checkValue reads the first value, token by token.
func checkValue(d *jsontext.Decoder, excluded []string) error {
	for {
		token, err := d.ReadToken()
		if err != nil {
			return syntaxProblem(err)
		}
		if d.StackDepth() > maxDepth {
			return invalidRequest("The body is nested more than %d levels deep.", maxDepth)
		}
		if err := checkToken(token, d, excluded); err != nil {
			return err
		}
		if d.StackDepth() == 0 {
			return nil
		}
	}
}

func checkToken(token jsontext.Token, d *jsontext.Decoder, excluded []string) error {
	kind := token.Kind()
	if kind != '"' && kind != '0' {
		return nil
	}
	text := token.String()
	switch {
	case cardnumber.Contains(text) && !isExcluded(d, excluded):
		return errCardNumber
	case kind == '"':
		return checkCharacters(text, d, excluded)
	case kind == '0':
		return checkNumber(text, d)
	}
	return nil
}

// checkCharacters refuses what could show a name, in a mail or on a page, as another one.
// PostgreSQL stores no U+0000.
func checkCharacters(text string, d *jsontext.Decoder, excluded []string) error {
	for _, r := range text {
		if r == 0 || isUnseen(r) && !isExcluded(d, excluded) {
			return invalidRequest("%s must not contain the character %U.", pathOf(d.StackPointer()), r)
		}
	}
	return nil
}

// isUnseen reports whether a character ends a line, changes the direction of a text, or is for
// terminals.
func isUnseen(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
}

// isExcluded reports whether the decoder has just read the value of an excluded member.
func isExcluded(d *jsontext.Decoder, excluded []string) bool {
	if d.StackDepth() != 1 {
		return false
	}
	_, tokens := d.StackIndex(1)
	return tokens%2 == 0 && slices.Contains(excluded, d.StackPointer().LastToken())
}

// checkNumber refuses fractions and exponents, because the API has only whole numbers. In JSON 4200
// and 4.2e3 are equal, but with money it is better to refuse than to guess.
func checkNumber(literal string, d *jsontext.Decoder) error {
	if strings.ContainsAny(literal, ".eE") {
		return invalidRequest("%s must be a whole number, written without fraction or exponent.", pathOf(d.StackPointer()))
	}
	if _, err := strconv.ParseInt(literal, 10, 64); err != nil {
		return invalidRequest("%s is out of range.", pathOf(d.StackPointer()))
	}
	return nil
}

func syntaxProblem(err error) error {
	var syntax *jsontext.SyntacticError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return invalidRequest("The body ends in the middle of its JSON value.")
	case !errors.As(err, &syntax):
		return invalidRequest("The body is not valid JSON.").because(err)
	case errors.Is(err, jsontext.ErrDuplicateName):
		return invalidRequest("%s is given twice.", pathOf(syntax.JSONPointer))
	}
	return invalidRequest("The body is not valid JSON (at byte %d).", syntax.ByteOffset)
}

// pathOf writes a JSON pointer as people write paths.
func pathOf(pointer jsontext.Pointer) string {
	var segments []string
	for segment := range pointer.Tokens() {
		segments = append(segments, segment)
	}
	return fieldPath(segments)
}

// maxNameShown keeps answers short, whatever names a client makes up.
const maxNameShown = 64

// fieldPath writes a path such as items[0].sku. Names that don't look like names are quoted.
func fieldPath(segments []string) string {
	if len(segments) == 0 {
		return "The body"
	}
	var path strings.Builder
	for _, segment := range segments {
		if len(segment) > maxNameShown {
			segment = strings.ToValidUTF8(segment[:maxNameShown], "") + "…"
		}
		switch {
		case isIndex(segment):
			path.WriteString("[" + segment + "]")
			continue
		case path.Len() > 0:
			path.WriteByte('.')
		}
		if strings.IndexFunc(segment, func(r rune) bool { return r != '-' && !isWordRune(r) }) >= 0 || segment == "" {
			segment = strconv.Quote(segment)
		}
		path.WriteString(segment)
	}
	return path.String()
}

func isIndex(segment string) bool {
	return segment != "" && strings.Trim(segment, "0123456789") == ""
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isWordRune(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r) }
