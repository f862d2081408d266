package grpconce

import (
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
)

// maxAnyDepth limits how often an Any is opened within another one: each level copies its bytes.
const maxAnyDepth = 16

// contentOf returns the bytes by which a call is compared with others under its key. They begin
// with the method, which has no line break.
func contentOf(method string, request proto.Message, excluded []string) ([]byte, error) {
	request = proto.Clone(request)
	c := content{excluded}
	c.settle(request.ProtoReflect(), "", 0)
	return deterministic.MarshalAppend([]byte(method+"\n"), request)
}

var deterministic = proto.MarshalOptions{Deterministic: true}

// content brings a message into the form that is compared.
type content struct{ excluded []string }

// settle clears the excluded fields of a message, and marshals again what its Anys hold: a client
// marshals equal maps in any order. path leads to the message, with a dot at its end.
func (c content) settle(m protoreflect.Message, path string, depth int) {
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		here := path + string(field.Name())
		switch {
		case slices.Contains(c.excluded, here):
			m.Clear(field)
		case field.IsMap() && field.MapValue().Message() != nil:
			value.Map().Range(func(_ protoreflect.MapKey, value protoreflect.Value) bool {
				c.settle(value.Message(), here+".", depth)
				return true
			})
		case field.IsList() && field.Message() != nil:
			for i := range value.List().Len() {
				c.settle(value.List().Get(i).Message(), here+".", depth)
			}
		case !field.IsMap() && field.Message() != nil:
			c.settle(value.Message(), here+".", depth)
		}
		return true
	})
	if wrapped, ok := m.Interface().(*anypb.Any); ok && depth < maxAnyDepth {
		c.settleAny(wrapped, path, depth+1)
	}
}

// settleAny leaves the bytes as they are if their type is not known, or they are none of it.
func (c content) settleAny(wrapped *anypb.Any, path string, depth int) {
	held, err := wrapped.UnmarshalNew()
	if err != nil {
		return
	}
	c.settle(held.ProtoReflect(), path, depth)
	if value, err := deterministic.Marshal(held); err == nil {
		wrapped.Value = value
	}
}
