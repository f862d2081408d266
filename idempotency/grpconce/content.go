package grpconce

import (
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
)

// contentOf returns the bytes by which a call is compared with others under its key. They begin
// with the method, which has no line break.
func contentOf(method string, request proto.Message, excluded []string) ([]byte, error) {
	if len(excluded) > 0 {
		request = proto.Clone(request)
		if err := protorange.Range(request.ProtoReflect(), clearFields(excluded)); err != nil {
			return nil, err
		}
	}
	return proto.MarshalOptions{Deterministic: true}.MarshalAppend([]byte(method+"\n"), request)
}

// clearFields clears each field with one of the names that a walk comes to.
func clearFields(names []string) func(protopath.Values) error {
	return func(p protopath.Values) error {
		last := p.Index(-1).Step
		if last.Kind() != protopath.FieldAccessStep || !slices.Contains(names, string(last.FieldDescriptor().Name())) {
			return nil
		}
		p.Index(-2).Value.Message().Clear(last.FieldDescriptor())
		return protorange.Break
	}
}
