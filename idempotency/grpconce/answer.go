package grpconce

import (
	"encoding/json"
	"fmt"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// answer is the response of a handler, or its status: what is kept.
type answer struct {
	response any
	failure  error
}

// record is an answer as it is kept, in JSON.
type record struct {
	Type     string `json:"type,omitempty"`     // full name of the response's message
	Response []byte `json:"response,omitempty"` // its bytes
	Status   []byte `json:"status,omitempty"`   // google.rpc.Status, if there is no response
}

// MarshalJSON implements [json.Marshaler].
func (a *answer) MarshalJSON() (_ []byte, err error) {
	var r record
	if a.failure != nil {
		r.Status, err = proto.Marshal(status.Convert(a.failure).Proto())
	} else {
		message, ok := a.response.(proto.Message)
		if !ok {
			return nil, fmt.Errorf("the response is a %T and no proto.Message", a.response)
		}
		r.Type = string(message.ProtoReflect().Descriptor().FullName())
		r.Response, err = proto.Marshal(message)
	}
	if err != nil {
		return nil, fmt.Errorf("write the answer: %w", err)
	}
	return json.Marshal(r)
}

// UnmarshalJSON implements [json.Unmarshaler].
func (a *answer) UnmarshalJSON(data []byte) error {
	var r record
	if err := json.Unmarshal(data, &r); err != nil {
		return err
	}
	if r.Type == "" {
		var kept spb.Status
		if err := proto.Unmarshal(r.Status, &kept); err != nil {
			return fmt.Errorf("read the status: %w", err)
		}
		a.failure = status.FromProto(&kept).Err()
		return nil
	}
	kind, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(r.Type))
	if err != nil {
		return fmt.Errorf("find the type of the response: %w", err)
	}
	response := kind.New().Interface()
	a.response = response
	return proto.Unmarshal(r.Response, response)
}
