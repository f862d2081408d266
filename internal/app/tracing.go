package app

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/exaring/otelpgx"
	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/extra/redisotel/v9"
	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/internal/app/metrics"
	"github.com/oncepay/oncepay/internal/httpapi"
)

// flushTimeout bounds what the stop waits for the last spans to be sent.
const flushTimeout = 2 * time.Second

// w3c is how a request says which trace it belongs to: by the header traceparent, to the provider,
// and within records.
var w3c = propagation.TraceContext{}

// tracing makes a span of each request, with those of what it asks Redis, PostgreSQL and the
// provider for, and sends them to an OpenTelemetry collector in the background: one that is slow or
// away costs spans and no request. Spans hold no keys, no values of queries, no paths as the client
// sent them and no headers. Without a collector it is nil, whose methods leave everything as it is.
type tracing struct {
	provider  *sdktrace.TracerProvider
	dependent trace.TracerProvider // for spans that make sense only within others
	public    bool                 // a client's trace is a link: it must not decide what is sampled
	log       *slog.Logger
}

// newTracing connects to nothing yet. Besides the collector's URL, it reads the environment
// variables that OpenTelemetry defines: OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES,
// OTEL_TRACES_SAMPLER, OTEL_BSP_… and OTEL_EXPORTER_OTLP_….
func newTracing(ctx context.Context, cfg Config, log *slog.Logger) (*tracing, error) {
	url := cfg.tracesURL()
	if url == "" {
		return nil, nil
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(url))
	if err != nil {
		return nil, fmt.Errorf("make the traces' exporter: %w", err)
	}
	origin, err := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(semconv.ServiceName("oncepay"), semconv.ServiceInstanceID(cfg.Replica)),
		resource.WithFromEnv()) // wins
	if err != nil {
		return nil, fmt.Errorf("describe the traces' origin (OTEL_RESOURCE_ATTRIBUTES): %w", err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(origin))
	return &tracing{provider: provider, dependent: dependentTracers{provider}, public: cfg.Environment == Production, log: log}, nil
}

// stop sends what there is to send, within flushTimeout.
func (t *tracing) stop() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		t.log.Warn("the last traces were not sent", "error", err)
	}
}

// requests makes a span of each request. Its name and its route come later, by nameSpan.
func (t *tracing) requests(next http.Handler) http.Handler {
	if t == nil {
		return next
	}
	return otelhttp.NewHandler(next, "request", otelhttp.WithTracerProvider(t.provider), otelhttp.WithPropagators(w3c),
		otelhttp.WithPublicEndpointFn(func(*http.Request) bool { return t.public }))
}

// calls makes a span of each request to the provider, and sends the span's ID with it.
func (t *tracing) calls(next http.RoundTripper) http.RoundTripper {
	if t == nil {
		return next
	}
	return otelhttp.NewTransport(next, otelhttp.WithTracerProvider(t.dependent), otelhttp.WithPropagators(w3c))
}

// commands makes a span of each command to Redis, without its arguments, which contain keys and
// answers.
func (t *tracing) commands(client redis.UniversalClient) error {
	if t == nil {
		return nil
	}
	return redisotel.InstrumentTracing(client, redisotel.WithTracerProvider(t.dependent), redisotel.WithDBStatement(false),
		redisotel.WithCallerEnabled(false))
}

// queries makes a span of each query, with its text and without its values.
func (t *tracing) queries() pgx.QueryTracer {
	if t == nil {
		return nil
	}
	return otelpgx.NewTracer(otelpgx.WithTracerProvider(t.provider), otelpgx.WithSpanNameCtxFunc(queryName))
}

// queryName is a query's name in sql/queries, or its first word.
func queryName(ctx context.Context, sql string) string {
	if named, ok := strings.CutPrefix(sql, "-- name: "); ok {
		name, _, _ := strings.Cut(named, " ")
		return name
	}
	return otelpgx.SQLOperationName(ctx, sql)
}

// traceParents returns the function that names a request for others, or nil.
func (t *tracing) traceParents() func(context.Context) string {
	if t == nil {
		return nil
	}
	return func(ctx context.Context) string {
		carrier := propagation.MapCarrier{}
		w3c.Inject(ctx, carrier)
		return carrier.Get("traceparent")
	}
}

// nameSpan adds to a request's span what is known once it is answered. What the client made up,
// such as a path with a key in it, is replaced.
func nameSpan(r *http.Request, route string) {
	span := trace.SpanFromContext(r.Context())
	if !span.IsRecording() {
		return
	}
	method := metrics.KnownMethod(r.Method)
	span.SetName(strings.TrimSpace(method + " " + route))
	span.SetAttributes(semconv.HTTPRoute(route), semconv.URLPath(route), attribute.String("request_id", httpapi.RequestID(r.Context())))
	if method != r.Method {
		span.SetAttributes(semconv.HTTPRequestMethodOriginal(method))
	}
}

// noteCheck adds to a request's span how its idempotency check ended, and links a replay to the
// request that it repeats.
func noteCheck(ctx context.Context, store string, check idempotency.Check) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(attribute.String("idempotency.result", string(check.Result)), attribute.String("idempotency.store", store),
		attribute.Float64("idempotency.check_ms", milliseconds(check.Duration)),
		attribute.Float64("idempotency.waited_ms", milliseconds(check.Waited)))
	original := trace.SpanContextFromContext(w3c.Extract(context.Background(), propagation.MapCarrier{"traceparent": check.Original}))
	if original.IsValid() && original.SpanID() != span.SpanContext().SpanID() {
		span.AddLink(trace.Link{SpanContext: original, Attributes: []attribute.KeyValue{attribute.String("idempotency.link", "original")}})
	}
}

// dependentTracers make spans only within others: what background work asks the servers for belongs
// to no request.
type dependentTracers struct{ trace.TracerProvider }

// Tracer implements trace.TracerProvider.
func (p dependentTracers) Tracer(name string, options ...trace.TracerOption) trace.Tracer {
	return dependentTracer{p.TracerProvider.Tracer(name, options...)}
}

type dependentTracer struct{ trace.Tracer }

// Start implements trace.Tracer.
func (t dependentTracer) Start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return ctx, noop.Span{}
	}
	return t.Tracer.Start(ctx, name, options...)
}

// tracedLog adds to a line the trace that it belongs to.
type tracedLog struct{ slog.Handler }

// Handle implements slog.Handler.
func (l tracedLog) Handle(ctx context.Context, line slog.Record) error {
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		line.AddAttrs(slog.String("trace_id", span.TraceID().String()), slog.String("span_id", span.SpanID().String()))
	}
	return l.Handler.Handle(ctx, line)
}

// WithAttrs implements slog.Handler.
func (l tracedLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return tracedLog{l.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (l tracedLog) WithGroup(name string) slog.Handler { return tracedLog{l.Handler.WithGroup(name)} }
