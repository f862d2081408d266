package oncecheck

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// reorder writes JSON with the members of its objects in the opposite order, and with other
// whitespace.
func reorder(value gjson.Result) string {
	if value.Type != gjson.JSON {
		return value.Raw
	}
	var parts []string
	value.ForEach(func(name, part gjson.Result) bool {
		if value.IsArray() {
			parts = append(parts, reorder(part))
		} else {
			parts = slices.Insert(parts, 0, name.Raw+" \n: \n"+reorder(part))
		}
		return true
	})
	raw := strings.TrimSpace(value.Raw)
	return raw[:1] + " \n" + strings.Join(parts, ", \n") + " \n" + raw[len(raw)-1:]
}

// changeLeaf returns a JSON body whose n-th number or text, numbers first, is another one; empty if
// there are fewer.
func changeLeaf(body string, n int) string {
	if !gjson.Valid(body) {
		return ""
	}
	list := leaves(gjson.Parse(body))
	slices.SortStableFunc(list, func(a, b gjson.Result) int { return cmp.Compare(a.Type, b.Type) })
	if n >= len(list) {
		return ""
	}
	leaf := list[n]
	return body[:leaf.Index] + otherLeaf(leaf.Raw) + body[leaf.Index+len(leaf.Raw):]
}

// leaves are all numbers and texts.
func leaves(value gjson.Result) (list []gjson.Result) {
	value.ForEach(func(_, part gjson.Result) bool {
		switch part.Type {
		case gjson.JSON:
			list = append(list, leaves(part)...)
		case gjson.Number, gjson.String:
			list = append(list, part)
		}
		return true
	})
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
