package oncecheck

import (
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// reorder writes a JSON body with the members of its objects in the opposite order, and with
// other whitespace. It reports false if the body is neither an object nor a list.
func reorder(body string) (string, bool) {
	d := jsontext.NewDecoder(strings.NewReader(body))
	kind := d.PeekKind()
	reordered, err := reorderNext(d)
	return reordered, err == nil && (kind == '{' || kind == '[')
}

// reorderNext reorders the next value.
func reorderNext(d *jsontext.Decoder) (string, error) {
	kind := d.PeekKind()
	if kind != '{' && kind != '[' {
		value, err := d.ReadValue()
		return string(value), err
	}
	_, err := d.ReadToken()
	var values []string // of an object: names and values in turn
	for err == nil && d.PeekKind() != '}' && d.PeekKind() != ']' {
		var value string
		value, err = reorderNext(d)
		values = append(values, value)
	}
	if err != nil {
		return "", err
	}
	_, err = d.ReadToken()
	if kind == '[' {
		return "[ \n" + strings.Join(values, ", \n") + " \n]", err
	}
	var members []string
	for member := range slices.Chunk(values, 2) {
		members = append(members, strings.Join(member, " \n: \n"))
	}
	slices.Reverse(members)
	return "{ \n" + strings.Join(members, ", \n") + " \n}", err
}

// changeLeaf returns a JSON body whose n-th number or text, numbers first, is another one. It
// reports false if there are fewer.
func changeLeaf(body string, n int) (string, bool) {
	for _, kind := range []jsontext.Kind{'0', '"'} {
		var changed strings.Builder
		in, out := jsontext.NewDecoder(strings.NewReader(body)), jsontext.NewEncoder(&changed)
		for {
			within, before := in.StackIndex(in.StackDepth())
			isName := within == '{' && before%2 == 0
			token, err := in.ReadToken()
			if errors.Is(err, io.EOF) {
				break
			}
			isLeaf := err == nil && token.Kind() == kind && !isName
			if isLeaf && n == 0 {
				err = out.WriteValue(otherLeaf(token))
			} else if err == nil {
				err = out.WriteToken(token)
			}
			if err != nil {
				return "", false
			}
			if isLeaf {
				n--
			}
		}
		if n < 0 {
			return strings.TrimSuffix(changed.String(), "\n"), true
		}
	}
	return "", false
}

// otherLeaf returns a whole number plus one, a fraction with a digit more, or a longer text.
func otherLeaf(leaf jsontext.Token) jsontext.Value {
	text := leaf.String()
	if leaf.Kind() == '"' {
		quoted, _ := jsontext.AppendQuote(nil, text+" b") // fails for bad UTF-8 alone, which the decoder refuses
		return quoted
	}
	if whole, err := strconv.ParseInt(text, 10, 64); err == nil {
		return strconv.AppendInt(nil, whole+1, 10)
	}
	return jsontext.Value(text + "1")
}
