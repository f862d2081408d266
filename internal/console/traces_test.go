package console

import (
	"bytes"
	"encoding/hex"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/oncepay/oncepay/internal/stack"
)

func text(key, value string) *common.KeyValue {
	return &common.KeyValue{Key: key, Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: value}}}
}

// export sends spans of api-1 as a replica does.
func (c *testConsole) export(spans ...*traces.Span) int {
	c.t.Helper()
	raw, err := proto.Marshal(&collector.ExportTraceServiceRequest{ResourceSpans: []*traces.ResourceSpans{{
		Resource:   &resource.Resource{Attributes: []*common.KeyValue{text("service.instance.id", stack.API1)}},
		ScopeSpans: []*traces.ScopeSpans{{Spans: spans}},
	}}})
	require.NoError(c.t, err)
	resp, err := http.Post(c.http.URL+"/v1/traces", "application/x-protobuf", bytes.NewReader(raw))
	require.NoError(c.t, err)
	require.NoError(c.t, resp.Body.Close())
	return resp.StatusCode
}

func TestTraces_TellWhatAReplicaDid(t *testing.T) {
	t.Parallel()
	c := newTestConsole(t, never)
	a := c.attempt(attempt{By: you, Door: stack.Nginx})
	trace, err := hex.DecodeString(a.Trace)
	require.NoError(t, err)
	span := func(id byte, kind traces.Span_SpanKind, name string, attributes ...*common.KeyValue) *traces.Span {
		start := a.Began.Add(time.Duration(id) * time.Millisecond)
		return &traces.Span{TraceId: trace, SpanId: []byte{id}, Kind: kind, Name: name, Attributes: attributes,
			StartTimeUnixNano: uint64(start.UnixNano()), EndTimeUnixNano: uint64(start.Add(time.Millisecond).UnixNano())}
	}
	client, server := traces.Span_SPAN_KIND_CLIENT, traces.Span_SPAN_KIND_SERVER
	require.Equal(t, http.StatusOK, c.export(
		span(4, client, "HTTP POST", text("http.request.method", "POST")),
		span(3, client, "ClaimKey", text("db.system.name", "postgresql")),
		span(2, client, "set", text("db.system", "redis")),
		span(1, server, "POST", text("http.route", "/v1/orders"), text("idempotency.result", "acquired")),
		span(5, traces.Span_SPAN_KIND_INTERNAL, "something else"),
	))
	var asked []string
	for _, call := range a.Calls {
		require.Equal(t, stack.API1, call.Replica)
		asked = append(asked, call.To)
	}
	require.Equal(t, []string{"", stack.Redis, stack.Postgres, stack.PSP}, asked)
	for _, edge := range []connection{{clients, stack.Nginx}, {stack.Nginx, stack.API1}, {stack.API1, stack.Redis}, {stack.API1, stack.Postgres}, {stack.API1, stack.PSP}} {
		require.Eventually(t, func() (flows bool) {
			c.change(func(now *state) { flows = now.Rate(edge) > 0 })
			return flows
		}, patience, 10*time.Millisecond, "%v", edge)
	}
}

func TestTraces_RefuseWhatIsNoTrace(t *testing.T) {
	t.Parallel()
	c := newTestConsole(t, never)
	status, _ := c.send(http.MethodPost, "/v1/traces", "", nil, map[string][]string{"not": {"protobuf"}})
	require.Equal(t, http.StatusBadRequest, status)
}
