package grpconce

import (
	"bytes"
	"encoding/hex"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
)

// TestContent_IsThatOfEarlierBuilds fails if a release of protobuf marshals another way: keys of
// calls that began before it are then refused until they expire. Say so in the changelog, and write
// down the new bytes.
func TestContent_IsThatOfEarlierBuilds(t *testing.T) {
	t.Parallel()
	tree, err := structpb.NewStruct(map[string]any{"b": []any{1.5, map[string]any{"y": true, "x": nil}}, "a": "text"})
	require.NoError(t, err)
	unknown := &grpc_testing.SimpleRequest{
		ResponseSize: -1, Payload: &grpc_testing.Payload{Body: []byte{0, 1}},
		OrcaPerQueryReport: &grpc_testing.TestOrcaReport{RequestCost: map[string]float64{"z": 1, "y": 2, "x": 3}},
	}
	unknown.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 100, protowire.VarintType), 7))
	for earlier, request := range map[string]proto.Message{
		"2f6d0a0a0b0a016112061a04746578740a280a0162122332210a0911000000000000f83f0a142a120a070a0178120208000a070a017912022001":                   tree,
		"2f6d0a10ffffffffffffffffff011a04120200015a2a1a0c0a01781100000000000008401a0c0a01791100000000000000401a0c0a017a11000000000000f03fa00607": unknown,
	} {
		for range 100 { // the order of maps is random
			content, err := contentOf("/m", request, nil)
			require.NoError(t, err)
			require.Equal(t, earlier, hex.EncodeToString(content))
		}
	}
}

func TestContent_LeavesOutFieldsByTheirPaths(t *testing.T) {
	t.Parallel()
	order := func(cost string, body string) *grpc_testing.StreamingOutputCallRequest {
		return &grpc_testing.StreamingOutputCallRequest{
			Payload:            &grpc_testing.Payload{Body: []byte(body)},
			ResponseParameters: []*grpc_testing.ResponseParameters{{Size: 1, IntervalUs: int32(len(cost))}},
		}
	}
	content := func(r proto.Message, excluded ...string) string {
		c, err := contentOf("/m", r, excluded)
		require.NoError(t, err)
		return string(c)
	}
	require.NotEqual(t, content(order("a", "x")), content(order("ab", "y")))
	require.NotEqual(t, content(order("a", "x"), "interval_us", "body"), content(order("ab", "x"), "interval_us", "body"), "not at any depth")
	const interval = "response_parameters.interval_us"
	require.NotEqual(t, content(order("a", "x"), interval), content(order("ab", "y"), interval))
	require.Equal(t, content(order("a", "x"), interval, "payload.body"), content(order("ab", "y"), interval, "payload.body"))
	require.Equal(t, content(order("a", "x"), "no_such_field"), content(order("a", "x")))
}

func TestContent_DoesNotDependOnTheClientsOrderOfFields(t *testing.T) {
	t.Parallel()
	size := protowire.AppendVarint(protowire.AppendTag(nil, 2, protowire.VarintType), 7)
	fill := protowire.AppendVarint(protowire.AppendTag(nil, 4, protowire.VarintType), 1)
	var one, other grpc_testing.SimpleRequest
	require.NoError(t, proto.Unmarshal(append(append([]byte{}, size...), fill...), &one))
	require.NoError(t, proto.Unmarshal(append(append([]byte{}, fill...), size...), &other))
	first, err := contentOf("/m", &one, nil)
	require.NoError(t, err)
	second, err := contentOf("/m", &other, nil)
	require.NoError(t, err)
	require.Equal(t, first, second)
}

// wrap puts a message into an Any, as a client of any language does: maps in any order.
func wrap(t *testing.T, m proto.Message) *anypb.Any {
	t.Helper()
	wrapped, err := anypb.New(m)
	require.NoError(t, err)
	return wrapped
}

func TestContent_OfAnAnyDoesNotDependOnTheOrderOfMaps(t *testing.T) {
	t.Parallel()
	request := func(note string) proto.Message {
		fields := map[string]any{"note": note}
		for i := range 12 {
			fields[strconv.Itoa(i)] = "value"
		}
		tree, err := structpb.NewStruct(fields)
		require.NoError(t, err)
		inner := &spb.Status{Message: note, Details: []*anypb.Any{wrap(t, tree)}}
		return &spb.Status{Details: []*anypb.Any{wrap(t, inner), {TypeUrl: "type.googleapis.com/unknown", Value: []byte("x")}}}
	}
	content := func(m proto.Message, excluded ...string) string {
		before := proto.Clone(m)
		c, err := contentOf("/m", m, excluded)
		require.NoError(t, err)
		require.True(t, proto.Equal(before, m), "the handler's request is untouched")
		return string(c)
	}
	for range 100 {
		again := content(request("a"))
		require.Equal(t, content(request("a")), again)
	}
	require.NotEqual(t, content(request("a")), content(request("b")))
	require.NotEqual(t, content(request("a"), "details.message"), content(request("b"), "details.message"))
	require.Equal(t, content(request("a"), "details.message", "details.details.fields"), content(request("b"), "details.message", "details.details.fields"))
}

// TestContent_OpensFewAnys: a request of 4 MiB could hold an Any 100,000 times in itself.
func TestContent_OpensFewAnys(t *testing.T) {
	t.Parallel()
	backwards := []byte("\x12\x01a\x08\x01") // message before code
	for depth, opened := range map[int]bool{1: true, maxAnyDepth: true, maxAnyDepth + 1: false} {
		request := &anypb.Any{TypeUrl: "type.googleapis.com/google.rpc.Status", Value: backwards}
		for range depth - 1 {
			request = wrap(t, request)
		}
		content, err := contentOf("/m", request, nil)
		require.NoError(t, err)
		require.Equal(t, opened, !bytes.Contains(content, backwards), depth)
	}
}

func TestContent_LeavesADamagedAny(t *testing.T) {
	t.Parallel()
	content, err := contentOf("/m", &anypb.Any{TypeUrl: "type.googleapis.com/google.rpc.Status", Value: []byte{0xff}}, nil)
	require.NoError(t, err)
	require.Contains(t, string(content), "\xff")
}
