package recipes_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/memstore"
)

// made stands for an application's handler.
var made = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })

func post(ctx context.Context, handler http.Handler) {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/orders", http.NoBody)
	r.Header.Set(idempotency.HeaderKey, "key")
	handler.ServeHTTP(httptest.NewRecorder(), r)
}

// Checks as metrics of Prometheus: how they ended, and how long they took.
func Example_prometheus() {
	checks := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "idempotency_checks_total"}, []string{"result"})
	seconds := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "idempotency_check_seconds"})
	prometheus.NewRegistry().MustRegister(checks, seconds)
	keys := idempotency.New(memstore.New(), idempotency.Always(idempotency.Policy{}), idempotency.WithSharedScope(),
		idempotency.WithObserver(func(_ *http.Request, c idempotency.Check) {
			checks.WithLabelValues(string(c.Result)).Inc()
			seconds.Observe(c.Duration.Seconds())
		}))
	for range 3 {
		post(context.Background(), keys.Handler(made))
	}
	fmt.Println(testutil.ToFloat64(checks.WithLabelValues("acquired")), testutil.ToFloat64(checks.WithLabelValues("replay")))

	// Output: 1 2
}

// Checks in traces of OpenTelemetry: the span of a replay links to the one whose answer it repeats.
func Example_openTelemetry() {
	spans := tracetest.NewInMemoryExporter()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)).Tracer("")
	format := propagation.TraceContext{}
	keys := idempotency.New(memstore.New(), idempotency.Always(idempotency.Policy{}), idempotency.WithSharedScope(),
		idempotency.WithTraceParent(func(ctx context.Context) string {
			carrier := propagation.MapCarrier{}
			format.Inject(ctx, carrier)
			return carrier.Get("traceparent")
		}),
		idempotency.WithObserver(func(r *http.Request, c idempotency.Check) {
			span := trace.SpanFromContext(r.Context())
			span.SetAttributes(attribute.String("idempotency.result", string(c.Result)))
			original := format.Extract(context.Background(), propagation.MapCarrier{"traceparent": c.Original})
			if from := trace.SpanContextFromContext(original); from.IsValid() {
				span.AddLink(trace.Link{SpanContext: from})
			}
		}))
	for range 2 {
		ctx, span := tracer.Start(context.Background(), "POST /orders") // as otelhttp does, outside
		post(ctx, keys.Handler(made))
		span.End()
	}
	first, again := spans.GetSpans()[0], spans.GetSpans()[1]
	fmt.Println(first.Attributes[0].Value.AsString(), len(first.Links))
	fmt.Println(again.Attributes[0].Value.AsString(), again.Links[0].SpanContext.TraceID() == first.SpanContext.TraceID())

	// Output:
	// acquired 0
	// replay true
}
