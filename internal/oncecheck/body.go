package oncecheck

import (
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
	if !jsontext.Value(body).IsValid() {
		return "", false
	}
	for _, kind := range []jsontext.Kind{'0', '"'} {
		d := jsontext.NewDecoder(strings.NewReader(body))
		for err := error(nil); err == nil; {
			within, before := d.StackIndex(d.StackDepth())
			isName := within == '{' && before%2 == 0
			if isName || d.PeekKind() != kind {
				_, err = d.ReadToken()
				continue
			}
			var leaf jsontext.Value
			if leaf, err = d.ReadValue(); n == 0 {
				end := d.InputOffset()
				return body[:end-int64(len(leaf))] + otherLeaf(string(leaf)) + body[end:], true
			}
			n--
		}
	}
	return "", false
}

// otherLeaf returns a whole number plus one, a fraction with a digit more, or a longer text.
func otherLeaf(leaf string) string {
	if text, isText := strings.CutSuffix(leaf, `"`); isText {
		return text + ` b"`
	}
	if whole, err := strconv.ParseInt(leaf, 10, 64); err == nil {
		return strconv.FormatInt(whole+1, 10)
	}
	return leaf + "1"
}
