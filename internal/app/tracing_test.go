package app

import (
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/oncepay/oncepay/internal/pspsim"
)

// traceCollector takes traces over OTLP/HTTP, as a real one does.
type traceCollector struct {
	url string

	mu       sync.Mutex
	received []*spans.ResourceSpans
}

func newTraceCollector(t *testing.T) *traceCollector {
	t.Helper()
	c := &traceCollector{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var request collector.ExportTraceServiceRequest
		if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, &request) != nil {
			http.Error(w, "not what OTLP says", http.StatusBadRequest)
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.received = append(c.received, request.ResourceSpans...)
	}))
	t.Cleanup(server.Close)
	c.url = server.URL
	return c
}

// all returns every span received, and fails when there is none.
func (c *traceCollector) all(t *testing.T) (all []*spans.Span) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range c.received {
		for _, scope := range resource.ScopeSpans {
			all = append(all, scope.Spans...)
		}
	}
	require.NotEmpty(t, all)
	return all
}

// named returns the spans of a name, in the order in which they began.
func named(all []*spans.Span, name string) (found []*spans.Span) {
	for _, span := range all {
		if span.Name == name {
			found = append(found, span)
		}
	}
	return found
}

// within says which spans, by name, a trace has.
func within(all []*spans.Span, of *spans.Span) map[string]int {
	names := map[string]int{}
	for _, span := range all {
		if string(span.TraceId) == string(of.TraceId) {
			names[span.Name]++
		}
	}
	return names
}

func attributeOf(span *spans.Span, name string) string {
	for _, attribute := range span.Attributes {
		if attribute.Key == name {
			return attribute.Value.GetStringValue()
		}
	}
	return ""
}

// tracedConfig is testConfig with a collector, and with a provider that passes on the headers
// traceparent.
func tracedConfig(t *testing.T, collectorURL string) (cfg Config, seen func() []string) {
	t.Helper()
	sim, err := pspsim.New(filepath.Join(t.TempDir(), "journal"), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	var mu sync.Mutex
	var parents []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		parents = append(parents, r.Header.Get("Traceparent"))
		mu.Unlock()
		sim.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		server.Close()
		require.NoError(t, sim.Close())
	})
	cfg = testConfig(t)
	cfg.PSPURL, cfg.OTLPEndpoint = server.URL, collectorURL
	cfg.AuthCacheTTL = patience // a busy machine's test would look the API key up again, which costs a span
	return cfg, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return parents
	}
}

const paymentSpan = "POST /v1/orders/{order_id}/payments"

func TestTracing_OfAPaymentAndItsReplay(t *testing.T) {
	t.Parallel()
	c := newTraceCollector(t)
	cfg, seen := tracedConfig(t, c.url)
	r := serveSeeded(t, cfg)
	path := "/v1/orders/" + r.placeOrder() + "/payments"
	require.Equal(t, http.StatusCreated, r.call(http.MethodPost, path, "pay", cardPayment("tok_visa")).status)
	require.Equal(t, "true", r.call(http.MethodPost, path, "pay", cardPayment("tok_visa")).header.Get("X-Idempotent-Replay"))
	r.stop()
	require.NoError(t, r.awaitEnd(), "which sends the last spans")

	all := c.all(t)
	payments := named(all, paymentSpan)
	require.Len(t, payments, 2)
	original, replay := payments[0], payments[1]
	require.Equal(t, "acquired", attributeOf(original, "idempotency.result"))
	require.Equal(t, "redis", attributeOf(original, "idempotency.store"))
	require.Equal(t, "/v1/orders/{order_id}/payments", attributeOf(original, "http.route"))
	require.Empty(t, original.Links)

	asked := within(all, original)
	for _, name := range []string{"set", "evalsha", "ClaimKey", "FinishKey", "COMMIT", "HTTP POST"} {
		require.Positive(t, asked[name], "%s in %v", name, asked)
	}
	require.Contains(t, seen()[0], hex.EncodeToString(original.TraceId), "the provider gets the trace")

	require.Equal(t, "replay", attributeOf(replay, "idempotency.result"))
	requireLinked(t, replay, original)
	require.Equal(t, map[string]int{paymentSpan: 1, "set": 1}, within(all, replay), "a replay costs one round trip")

	line := r.logs.lines(t, "key", "pay")[0]
	require.Equal(t, hex.EncodeToString(original.TraceId), line["trace_id"])
}

func requireLinked(t *testing.T, replay, original *spans.Span) {
	t.Helper()
	require.Len(t, replay.Links, 1)
	require.Equal(t, original.TraceId, replay.Links[0].TraceId)
	require.Equal(t, original.SpanId, replay.Links[0].SpanId)
	require.NotEqual(t, original.TraceId, replay.TraceId)
}

func TestTracing_LinksAReplayByTheAuthority(t *testing.T) {
	t.Parallel()
	for _, store := range []string{StoreRedis, StorePostgres} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			c := newTraceCollector(t)
			cfg, _ := tracedConfig(t, c.url)
			cfg.Store = store
			r := serveSeeded(t, cfg)
			path := "/v1/orders/" + r.placeOrder() + "/payments"
			for range 3 {
				require.Equal(t, http.StatusCreated, r.call(http.MethodPost, path, "pay", cardPayment("tok_visa")).status)
				if len(r.logs.lines(t, "key", "pay")) == 1 {
					r.loseRecords()
				}
			}
			r.stop()
			require.NoError(t, r.awaitEnd())

			payments := named(c.all(t), paymentSpan)
			require.Len(t, payments, 3)
			for _, replay := range payments[1:] { // by the authority, and by the record that was put back
				require.Equal(t, "replay", attributeOf(replay, "idempotency.result"))
				require.Equal(t, store, attributeOf(replay, "idempotency.store"))
				requireLinked(t, replay, payments[0])
			}
		})
	}
}

// loseRecords empties the store, as a failover to an empty server does.
func (r *testReplica) loseRecords() {
	r.t.Helper()
	require.NoError(r.t, r.servers.redis.(*redis.Client).FlushDB(r.t.Context()).Err())
	_, err := r.servers.pool.Exec(r.t.Context(), "TRUNCATE idempotency_records")
	require.NoError(r.t, err)
}

func TestTracing_ContinuesTheClientsTrace(t *testing.T) {
	t.Parallel()
	c := newTraceCollector(t)
	cfg, _ := tracedConfig(t, c.url)
	r := serveSeeded(t, cfg)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+r.Addr()+"/v1/products", nil)
	require.NoError(t, err)
	request.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	r.stop()
	require.NoError(t, r.awaitEnd())
	asked := named(c.all(t), "GET /v1/products")
	require.Len(t, asked, 1)
	require.Equal(t, "0af7651916cd43dd8448eb211c80319c", hex.EncodeToString(asked[0].TraceId))
}

func TestTracing_HoldsNoSecrets(t *testing.T) {
	t.Parallel()
	c := newTraceCollector(t)
	cfg, _ := tracedConfig(t, c.url)
	r := serveSeeded(t, cfg)
	r.sendSecrets()
	r.stop()
	require.NoError(t, r.awaitEnd())
	for _, span := range c.all(t) {
		for _, secret := range secrets {
			require.NotContains(t, span.String(), secret)
		}
	}
}

func TestTracing_LeavesBackgroundWorkOut(t *testing.T) {
	t.Parallel()
	c := newTraceCollector(t)
	cfg, _ := tracedConfig(t, c.url)
	r := serveSeeded(t, cfg)
	r.placeOrder() // something for the workers to publish
	require.Eventually(t, func() bool {
		published, err := r.servers.pool.Exec(t.Context(), "SELECT FROM outbox_cursor WHERE position > 0")
		return err == nil && published.RowsAffected() > 0
	}, patience, pause)
	require.Equal(t, http.StatusOK, r.operations("/readyz").status)
	r.stop()
	require.NoError(t, r.awaitEnd())
	for _, span := range c.all(t) {
		require.True(t, len(span.ParentSpanId) > 0 || span.Kind == spans.Span_SPAN_KIND_SERVER, span.String())
	}
}

// TestTracing_HangingCollectorCostsNothing: more spans than are kept wait for it.
func TestTracing_HangingCollectorCostsNothing(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() {
		close(release)
		hanging.Close()
	})
	cfg, _ := tracedConfig(t, hanging.URL)
	cfg.RateLimit = 100_000 // one client sends all of it
	r := serveSeeded(t, cfg)
	path := "/v1/orders/" + r.placeOrder() + "/payments"
	require.Equal(t, http.StatusCreated, r.call(http.MethodPost, path, "pay", cardPayment("tok_visa")).status)
	client := &http.Client{Timeout: 2 * time.Second}
	defer client.CloseIdleConnections()
	for range 1200 { // of three spans each: the queue and a batch hold 2560
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+r.Addr()+"/v1/products/tee-black", nil)
		require.NoError(t, err)
		request.Header.Set("Authorization", "Bearer sk_test_demo")
		response, err := client.Do(request)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, response.Body) // for the connection to be used again
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, http.StatusOK, response.StatusCode)
	}
	began := time.Now()
	r.stop()
	require.NoError(t, r.awaitEnd())
	require.Less(t, time.Since(began), flushTimeout+5*time.Second)
	require.Contains(t, r.logs.String(), "the last traces were not sent")
}

func TestTracing_NeedsACollector(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	traced, err := newTracing(t.Context(), cfg, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.Nil(t, traced)
	cfg.OTLPEndpoint, cfg.TelemetryDisabled = "http://127.0.0.1:4318", true
	require.Empty(t, cfg.tracesURL())
	require.Nil(t, traced.queries())
	require.Nil(t, traced.traceParents())
	handler := http.NotFoundHandler()
	require.Equal(t, fmt.Sprintf("%p", handler), fmt.Sprintf("%p", traced.requests(handler)))
	require.Equal(t, http.DefaultTransport, traced.calls(http.DefaultTransport))
}

func TestTracing_URLFollowsTheSpecification(t *testing.T) {
	t.Parallel()
	for want, environ := range map[string][]string{
		"":                               nil,
		"http://c:4318/v1/traces":        {"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318"},
		"http://c:4318/prefix/v1/traces": {"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318/prefix/"},
		"https://t/here":                 {"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=https://t/here"},
	} {
		cfg, err := ParseConfig(environ)
		require.NoError(t, err)
		require.Equal(t, want, cfg.tracesURL())
	}
	for _, wrong := range []string{"OTEL_EXPORTER_OTLP_ENDPOINT=c:4318", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=c",
		"OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_SDK_DISABLED=perhaps"} {
		name, _, _ := strings.Cut(wrong, "=")
		_, err := ParseConfig([]string{wrong})
		require.ErrorContains(t, err, name)
	}
}

// TestTracing_LinksTheClientsTraceInProduction: a stranger must not decide what is sampled, nor put
// spans into another trace.
func TestTracing_LinksTheClientsTraceInProduction(t *testing.T) {
	t.Parallel()
	c := newTraceCollector(t)
	tracing, err := newTracing(t.Context(), Config{Environment: Production, OTLPEndpoint: c.url}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/products", nil)
	r.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	tracing.requests(http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(), r)
	tracing.stop()
	span := c.all(t)[0]
	require.NotEqual(t, "0af7651916cd43dd8448eb211c80319c", hex.EncodeToString(span.TraceId))
	require.Len(t, span.Links, 1)
	require.Equal(t, "0af7651916cd43dd8448eb211c80319c", hex.EncodeToString(span.Links[0].TraceId))
}
