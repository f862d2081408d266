package idempotency

import (
	"fmt"
	"reflect"
	"sync"
)

// resultErrors holds an error, or nil, for each type of result that [Do] has seen.
var resultErrors sync.Map

// checkResult fails for a type with fields that are not exported: encoding/json leaves them out,
// and a kept result would be another one than the first.
func checkResult(result reflect.Type) error {
	if known, ok := resultErrors.Load(result); ok {
		err, _ := known.(error)
		return err
	}
	var err error
	if field := hiddenField(result, map[reflect.Type]bool{}); field != "" {
		err = fmt.Errorf("idempotency: the result cannot be kept: field %s is not exported; export it, "+
			"or give its type MarshalJSON and UnmarshalJSON", field)
	}
	resultErrors.Store(result, err)
	return err
}

// hiddenField returns the first field that is not exported, or "". It does not look into the fields
// that JSON leaves out on purpose, nor behind interfaces.
func hiddenField(t reflect.Type, seen map[reflect.Type]bool) string {
	for _, marshaler := range marshalers {
		if t.Implements(marshaler) || reflect.PointerTo(t).Implements(marshaler) {
			return ""
		}
	}
	switch {
	case seen[t]:
		return ""
	case t.Kind() == reflect.Pointer, t.Kind() == reflect.Slice, t.Kind() == reflect.Array, t.Kind() == reflect.Map:
		seen[t] = true
		return hiddenField(t.Elem(), seen)
	case t.Kind() != reflect.Struct:
		return ""
	}
	seen[t] = true
	for i := range t.NumField() {
		field := t.Field(i)
		switch {
		case isLeftOut(field):
			continue
		case !field.IsExported() && !(field.Anonymous && structOf(field.Type)):
			return t.String() + "." + field.Name
		}
		if hidden := hiddenField(field.Type, seen); hidden != "" {
			return hidden
		}
	}
	return ""
}
