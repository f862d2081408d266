package idempotency

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"
)

var (
	marshalers   = []reflect.Type{reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler]()}
	unmarshalers = []reflect.Type{reflect.TypeFor[json.Unmarshaler](), reflect.TypeFor[encoding.TextUnmarshaler]()}
)

// checkKept fails unless a result comes back from its JSON.
func checkKept[T any](result *T, body []byte) error {
	var again T
	if err := json.Unmarshal(body, &again); err != nil {
		return fmt.Errorf("read the result from its JSON: %w", err)
	}
	if !isSame(reflect.ValueOf(result).Elem(), reflect.ValueOf(&again).Elem(), false) {
		return fmt.Errorf("a %T reads from its JSON as another value", *result)
	}
	return nil
}

// isSame compares a value with what was read from its JSON. It trusts types that write and read
// themselves: two times may be equal and differ in their fields. Of an embedded one, another type
// may have taken the methods, and so it is compared by its JSON.
func isSame(a, b reflect.Value, embedded bool) bool {
	if !a.IsValid() || !b.IsValid() || a.Type() != b.Type() {
		return a.IsValid() == b.IsValid() && !a.IsValid()
	}
	if a.Kind() != reflect.Pointer && a.Kind() != reflect.Interface && restoresItself(a) && absorbed(a) == "" {
		return !embedded || bytes.Equal(jsonOf(a), jsonOf(b))
	}
	switch a.Kind() {
	case reflect.Pointer, reflect.Interface:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() == b.IsNil()
		}
		return isSame(a.Elem(), b.Elem(), embedded)
	case reflect.Struct:
		for i := range a.NumField() {
			if field := a.Type().Field(i); !isLeftOut(field) && !isSame(a.Field(i), b.Field(i), field.Anonymous) {
				return false
			}
		}
		return true
	case reflect.Slice, reflect.Array: // JSON may make an empty one of nil, and the reverse
		same := a.Len() == b.Len()
		for i := 0; same && i < a.Len(); i++ {
			same = isSame(a.Index(i), b.Index(i), false)
		}
		return same
	case reflect.Map:
		same := a.Len() == b.Len()
		for each := a.MapRange(); same && each.Next(); {
			same = isSame(each.Value(), b.MapIndex(each.Key()), false)
		}
		return same
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
		return a.IsZero() && b.IsZero()
	}
	return a.Equal(b)
}

// checkWritten fails if JSON does not write all of a request: two requests that differ in the rest
// would be equal.
func checkWritten(request any) error {
	if missing := unwritten(reflect.ValueOf(request)); missing != "" {
		return errors.New("idempotency: the request cannot be compared: " + missing)
	}
	return nil
}

// unwritten says what JSON does not write of a value, or "".
func unwritten(v reflect.Value) string {
	switch {
	case !v.IsValid():
		return ""
	case v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface:
		return unwritten(v.Elem())
	case isOneOf(v, marshalers):
		return cmp.Or(absorbed(v), unwrittenText(v))
	}
	missing := ""
	switch v.Kind() {
	case reflect.String:
		return notText(v.String())
	case reflect.Struct:
		return unwrittenField(v, map[string]bool{})
	case reflect.Slice, reflect.Array:
		for i := 0; missing == "" && i < v.Len() && v.Type().Elem().Kind() != reflect.Uint8; i++ {
			missing = unwritten(v.Index(i))
		}
	case reflect.Map:
		for each := v.MapRange(); missing == "" && each.Next(); {
			if each.Key().Kind() == reflect.String {
				missing = notText(each.Key().String())
			}
			missing = cmp.Or(missing, unwritten(each.Key()), unwritten(each.Value()))
		}
	}
	return missing
}

// unwrittenField looks at the fields of a struct and of those that it embeds, whose names are in
// one JSON object.
func unwrittenField(v reflect.Value, names map[string]bool) (missing string) {
	for i := 0; missing == "" && i < v.NumField(); i++ {
		field, value := v.Type().Field(i), v.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		embeds := field.Anonymous && structOf(field.Type)
		switch {
		case isLeftOut(field):
		case !field.IsExported() && !embeds:
			missing = fmt.Sprintf("field %v.%s is not exported; export it, or give its type MarshalJSON", v.Type(), field.Name)
		case embeds && name == "":
			if value = reflect.Indirect(value); value.IsValid() {
				missing = unwrittenField(value, names)
			}
		default:
			if name = cmp.Or(name, field.Name); names[name] {
				missing = fmt.Sprintf("%v has two fields %q", v.Type(), name)
			}
			names[name] = true
			missing = cmp.Or(missing, unwritten(value))
		}
	}
	return missing
}

func unwrittenText(v reflect.Value) string {
	text, ok := pointerTo(v).(encoding.TextMarshaler)
	if _, isJSON := pointerTo(v).(json.Marshaler); !ok || isJSON {
		return ""
	}
	written, _ := text.MarshalText()
	return notText(string(written))
}

func notText(s string) string {
	if utf8.ValidString(s) {
		return ""
	}
	return fmt.Sprintf("%q is not UTF-8; use a []byte", s)
}

// absorbed says that a struct is written as a field that it embeds, whose method it has: its other
// fields are not written.
func absorbed(v reflect.Value) string {
	if v.Kind() != reflect.Struct || v.NumField() == 1 {
		return ""
	}
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if field.Anonymous && isOneOf(v.Field(i), marshalers) &&
			(!field.IsExported() || bytes.Equal(jsonOf(v), jsonOf(v.Field(i)))) {
			return fmt.Sprintf("%v is written as its field %s alone; give that a name, or the type MarshalJSON", v.Type(), field.Name)
		}
	}
	return ""
}

// restoresItself reports whether a type has methods of its own to write and to read it.
func restoresItself(v reflect.Value) bool {
	for i, marshaler := range marshalers {
		if isOneOf(v, []reflect.Type{marshaler}) && reflect.PointerTo(v.Type()).Implements(unmarshalers[i]) {
			return true
		}
	}
	return false
}

// isOneOf looks for methods where encoding/json does: those of a pointer count if there is one.
func isOneOf(v reflect.Value, interfaces []reflect.Type) bool {
	for _, one := range interfaces {
		if v.Type().Implements(one) || v.CanAddr() && reflect.PointerTo(v.Type()).Implements(one) {
			return true
		}
	}
	return false
}

// isLeftOut reports whether JSON leaves out a field on purpose.
func isLeftOut(field reflect.StructField) bool {
	return field.Tag.Get("json") == "-" || field.Name == "_"
}

func structOf(t reflect.Type) bool {
	return t.Kind() == reflect.Struct || t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct
}

// pointerTo returns a value as encoding/json sees it, or nil if it is not exported.
func pointerTo(v reflect.Value) any {
	switch {
	case !v.CanInterface():
		return nil
	case v.CanAddr():
		return v.Addr().Interface()
	}
	return v.Interface()
}

func jsonOf(v reflect.Value) []byte {
	written, _ := json.Marshal(pointerTo(v))
	return written
}
