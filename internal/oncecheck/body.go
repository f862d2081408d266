package oncecheck

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// reorder writes a JSON body with the members of its objects in the opposite order, and with
// other whitespace. It reports false if the body is neither an object nor a list.
func reorder(body string) (string, bool) {
	value := gjson.Parse(body)
	return reordered(value), gjson.Valid(body) && (value.IsObject() || value.IsArray())
}

func reordered(value gjson.Result) string {
	if !value.IsObject() && !value.IsArray() {
		return value.Raw
	}
	var parts []string
	value.ForEach(func(name, part gjson.Result) bool {
		text := reordered(part)
		if value.IsObject() {
			text = name.Raw + " \n: \n" + text
		}
		parts = append(parts, text)
		return true
	})
	if value.IsArray() {
		return "[ \n" + strings.Join(parts, ", \n") + " \n]"
	}
	slices.Reverse(parts)
	return "{ \n" + strings.Join(parts, ", \n") + " \n}"
}

// changeLeaf returns a JSON body whose n-th number or text, numbers first, is another one; empty if
// there are fewer.
func changeLeaf(body string, n int) string {
	if !gjson.Valid(body) {
		return ""
	}
	numbers, texts := leaves(gjson.Parse(body), gjson.Number), leaves(gjson.Parse(body), gjson.String)
	if n >= len(numbers)+len(texts) {
		return ""
	}
	leaf := append(numbers, texts...)[n]
	return body[:leaf.Index] + otherLeaf(leaf.Raw) + body[leaf.Index+len(leaf.Raw):]
}

// leaves are the values of a type.
func leaves(value gjson.Result, kind gjson.Type) (list []gjson.Result) {
	if value.Type == kind {
		return []gjson.Result{value}
	}
	if value.IsObject() || value.IsArray() {
		value.ForEach(func(_, part gjson.Result) bool {
			list = append(list, leaves(part, kind)...)
			return true
		})
	}
	return list
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
