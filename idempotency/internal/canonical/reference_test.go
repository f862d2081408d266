package canonical

import (
	"bytes"
	"encoding/json"
	"slices"
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
	decoder := json.NewDecoder(bytes.NewReader(form))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return nil, false
	}
	referenceStrip(value, "", excluded)
	stripped, err := json.Marshal(value)
	if err != nil {
		return nil, false
	}
	form, err = jcs.Transform(stripped)
	return form, err == nil
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

// referenceStrip removes the members to which an excluded path leads from a decoded value.
func referenceStrip(value any, path string, excluded []string) {
	switch v := value.(type) {
	case []any:
		for _, element := range v {
			referenceStrip(element, path, excluded)
		}
	case map[string]any:
		for name, member := range v {
			if slices.Contains(excluded, path+name) {
				delete(v, name)
			}
			referenceStrip(member, path+name+".", excluded)
		}
	}
}
