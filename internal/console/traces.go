package console

import (
	"cmp"
	"encoding/hex"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/oncepay/oncepay/internal/stack"
)

// systems are the servers that a replica asks, by what OpenTelemetry calls their databases. The
// provider has none.
var systems = map[string]string{"redis": stack.Redis, "postgresql": stack.Postgres, "": stack.PSP}

// noise are the names of what a driver of PostgreSQL does by itself: it takes a connection out of
// its pool, or announces what follows.
var noise = regexp.MustCompile(`(?i)^(begin$|connect$|pool\.acquire$|batch|prepare)`)

// serveTraces takes spans over OTLP/HTTP. An ExportTraceServiceRequest has the fields of TracesData
// (opentelemetry-proto, trace_service.proto).
func (s *Server) serveTraces(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	var data traces.TracesData
	if err != nil || proto.Unmarshal(raw, &data) != nil {
		http.Error(w, "this takes OTLP as protobuf", http.StatusBadRequest)
		return
	}
	for _, from := range data.ResourceSpans {
		replica := attributes(from.GetResource().GetAttributes())["service.instance.id"]
		for _, scope := range from.ScopeSpans {
			for _, span := range scope.Spans {
				s.note(span, replica)
			}
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf") // of an empty ExportTraceServiceResponse
}

// attributes are those whose values are text.
func attributes(list []*common.KeyValue) map[string]string {
	texts := map[string]string{}
	for _, a := range list {
		texts[a.Key] = a.GetValue().GetStringValue()
	}
	return texts
}

// note counts a span on its connection, and adds it to the attempt that it belongs to, unless it
// says nothing about a connection.
func (s *Server) note(span *traces.Span, replica string) {
	has := attributes(span.Attributes)
	began, ended := int64(span.StartTimeUnixNano), int64(span.EndTimeUnixNano) //nolint:gosec // until the year 2262
	c := call{
		Span: hex.EncodeToString(span.SpanId), Replica: replica, Name: span.Name,
		Began: time.Unix(0, began), Took: time.Duration(ended - began),
		Failed: span.GetStatus().GetCode() == traces.Status_STATUS_CODE_ERROR,
	}
	switch span.Kind {
	case traces.Span_SPAN_KIND_SERVER:
		c.Name = has["idempotency.result"]
	case traces.Span_SPAN_KIND_CLIENT:
		c.To = systems[cmp.Or(has["db.system.name"], has["db.system"])]
		sentAgain := strings.HasPrefix(span.GetStatus().GetMessage(), "NOSCRIPT") // the script itself comes next
		if sentAgain || (c.To == stack.Postgres && noise.MatchString(c.Name)) {
			return
		}
	default:
		return
	}
	s.change(func(now *state) {
		door := stack.Nginx
		for _, a := range now.Attempts {
			if a.Trace == hex.EncodeToString(span.TraceId) {
				a.add(c)
				door = a.Door
			}
		}
		switch {
		case c.To != "":
			now.count(connection{replica, c.To}, 1)
		case door == stack.Nginx:
			if has["http.route"] != "/v1/webhooks/psp" { // the provider's events are not drawn
				now.count(connection{clients, stack.Nginx}, 1)
			}
			now.count(connection{stack.Nginx, replica}, 1)
		}
	})
}
