package oncecheck

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// member is one of a JSON object, whose order is kept.
type member struct {
	name  string
	value any
}

// object and list are JSON values; all others are as encoding/json decodes them, numbers as
// json.Number.
type (
	object []member
	list   []any
)

// parse reads one JSON value.
func parse(body string) (any, error) {
	decoder := json.NewDecoder(strings.NewReader(body))
	decoder.UseNumber()
	return parseValue(decoder)
}

func parseValue(d *json.Decoder) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		var o object
		for d.More() {
			name, err := d.Token()
			if err != nil {
				return nil, err
			}
			value, err := parseValue(d)
			if err != nil {
				return nil, err
			}
			o = append(o, member{fmt.Sprint(name), value})
		}
		_, err = d.Token()
		return o, err
	case json.Delim('['):
		var l list
		for d.More() {
			value, err := parseValue(d)
			if err != nil {
				return nil, err
			}
			l = append(l, value)
		}
		_, err = d.Token()
		return l, err
	}
	return token, nil
}

// reorder writes a JSON body with the members of its objects in the opposite order, and with
// other whitespace. It reports false if the body is neither an object nor a list.
func reorder(body string) (string, bool) {
	value, err := parse(body)
	if err != nil {
		return "", false
	}
	switch value.(type) {
	case object, list:
	default:
		return "", false
	}
	var out bytes.Buffer
	write(&out, value, " \n", true)
	return out.String(), true
}

// write writes a value with this whitespace between its tokens.
func write(out *bytes.Buffer, value any, space string, backwards bool) {
	switch value := value.(type) {
	case object:
		out.WriteString("{" + space)
		for i := range value {
			m := value[i]
			if backwards {
				m = value[len(value)-1-i]
			}
			if i > 0 {
				out.WriteString("," + space)
			}
			write(out, m.name, space, backwards)
			out.WriteString(space + ":" + space)
			write(out, m.value, space, backwards)
		}
		out.WriteString(space + "}")
	case list:
		out.WriteString("[" + space)
		for i, v := range value {
			if i > 0 {
				out.WriteString("," + space)
			}
			write(out, v, space, backwards)
		}
		out.WriteString(space + "]")
	default:
		text, _ := json.Marshal(value) // it was decoded from JSON
		out.Write(text)
	}
}

// changeLeaf returns a JSON body whose n-th number or text, numbers first, is another one. It
// reports false if there are fewer.
func changeLeaf(body string, n int) (string, bool) {
	value, err := parse(body)
	if err != nil {
		return "", false
	}
	var numbers, texts []func()
	leaves(&value, &numbers, &texts)
	changes := slices.Concat(numbers, texts)
	if n >= len(changes) {
		return "", false
	}
	changes[n]()
	var out bytes.Buffer
	write(&out, value, "", false)
	return out.String(), true
}

// leaves collects a change for each number and each text below a value.
func leaves(at *any, numbers, texts *[]func()) {
	switch value := (*at).(type) {
	case object:
		for i := range value {
			leaves(&value[i].value, numbers, texts)
		}
	case list:
		for i := range value {
			leaves(&value[i], numbers, texts)
		}
	case json.Number:
		*numbers = append(*numbers, func() {
			if whole, err := value.Int64(); err == nil {
				*at = whole + 1
			} else {
				*at = json.Number(value.String() + "1")
			}
		})
	case string:
		*texts = append(*texts, func() { *at = value + " b" })
	}
}
