package app

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/pspsim"
	"github.com/oncepay/oncepay/internal/testenv"
)

func TestMain(m *testing.M) {
	QuietRedis(slog.New(slog.DiscardHandler))
	QuietTracing(slog.New(slog.DiscardHandler))
	testenv.Main(m)
}

const (
	// patience bounds every wait of these tests.
	patience = 30 * time.Second
	// pause is between two looks at something that is about to change.
	pause = 10 * time.Millisecond
)

// testReplica is a replica that runs as it does in production, on free ports.
type testReplica struct {
	*App
	t    *testing.T
	logs *logBuffer
	stop context.CancelFunc
	done chan error // what Serve returned
}

// testConfig is a configuration on servers of the test's own, with demo data.
func testConfig(t *testing.T) Config {
	t.Helper()
	return configFor(t, testenv.Postgres(t), testenv.Redis(t))
}

func configFor(t *testing.T, databaseURL, redisURL string) Config {
	t.Helper()
	cfg, err := ParseConfig([]string{
		"ENVIRONMENT=development", "REPLICA=api-test", "HTTP_ADDR=127.0.0.1:0", "OPS_ADDR=127.0.0.1:0", "STARTUP_DEADLINE=20s", "SHUTDOWN_NOTICE=0s",
		"DATABASE_URL=" + databaseURL, "REDIS_URL=" + redisURL, "PSP_URL=" + provider(t),
	})
	require.NoError(t, err)
	return cfg
}

// provider starts a payment provider and returns its URL.
func provider(t *testing.T) string {
	t.Helper()
	sim, err := pspsim.New(filepath.Join(t.TempDir(), "journal"), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	server := httptest.NewServer(sim)
	t.Cleanup(func() {
		server.Close()
		require.NoError(t, sim.Close())
	})
	return server.URL
}

// serve runs a replica until the test ends or stops it.
func serve(t *testing.T, cfg Config, options ...Option) *testReplica {
	t.Helper()
	logs := &logBuffer{}
	cfg.LogLevel = slog.LevelDebug
	a, err := New(t.Context(), cfg, cfg.NewLogger(logs), options...)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background()) // t.Context would end before the cleanup below
	r := &testReplica{App: a, t: t, logs: logs, stop: stop, done: make(chan error, 1)}
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		r.done <- a.Serve(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-finished
	})
	return r
}

// serveSeeded is serve on a database with demo data, and waits until the replica is ready.
func serveSeeded(t *testing.T, cfg Config, options ...Option) *testReplica {
	t.Helper()
	require.NoError(t, Seed(t.Context(), cfg, slog.New(slog.DiscardHandler)))
	r := serve(t, cfg, options...)
	r.awaitReady()
	return r
}

func (r *testReplica) awaitReady() {
	r.t.Helper()
	select {
	case <-r.Ready():
	case err := <-r.done:
		r.t.Fatalf("the replica ended: %v\n%s", err, r.logs)
	case <-time.After(patience):
		r.t.Fatalf("the replica is not ready:\n%s", r.logs)
	}
}

// awaitEnd returns what Serve returned.
func (r *testReplica) awaitEnd() error {
	r.t.Helper()
	select {
	case err := <-r.done:
		return err
	case <-time.After(patience):
		r.t.Fatalf("the replica does not end:\n%s", r.logs)
		return nil
	}
}

// answer is what came back for a request.
type answer struct {
	status int
	header http.Header
	body   string
}

// field returns a member of the body's JSON object.
func (a answer) field(t *testing.T, name string) string {
	t.Helper()
	var object map[string]any
	require.NoError(t, json.Unmarshal([]byte(a.body), &object), a.body)
	text, _ := object[name].(string)
	return text
}

// call sends a request with the demo account's API key.
func (r *testReplica) call(method, path, key, body string) answer {
	r.t.Helper()
	answer, err := r.try(method, path, key, body)
	require.NoError(r.t, err)
	return answer
}

func (r *testReplica) try(method, path, key, body string) (answer, error) {
	return request(r.t.Context(), method, "http://"+r.Addr()+path, key, body)
}

// operations asks the operations server.
func (r *testReplica) operations(path string) answer {
	r.t.Helper()
	answer, err := request(r.t.Context(), http.MethodGet, "http://"+r.OpsAddr()+path, "", "")
	require.NoError(r.t, err)
	return answer
}

func request(ctx context.Context, method, url, key, body string) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Authorization", "Bearer sk_test_demo")
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	return answer{status: res.StatusCode, header: res.Header, body: string(text)}, err
}

// placeOrder makes a customer and an order, and returns the order's ID.
func (r *testReplica) placeOrder() string {
	r.t.Helper()
	customer := r.call(http.MethodPost, "/v1/customers", "customer-"+r.t.Name(), `{"name":"Ada","email":"ada@example.com"}`)
	require.Equal(r.t, http.StatusCreated, customer.status, customer.body)
	order := r.call(http.MethodPost, "/v1/orders", "order-"+r.t.Name(),
		`{"customer_id":"`+customer.field(r.t, "id")+`","items":[{"sku":"tee-black","quantity":1}]}`)
	require.Equal(r.t, http.StatusCreated, order.status, order.body)
	return order.field(r.t, "id")
}

func cardPayment(token string) string { return `{"method":{"type":"card","token":"` + token + `"}}` }

// logBuffer collects a replica's log.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// lines returns the log's lines whose member name has the value.
func (b *logBuffer) lines(t *testing.T, name string, value any) (found []map[string]any) {
	t.Helper()
	for text := range strings.Lines(b.String()) {
		var line map[string]any
		require.NoError(t, json.Unmarshal([]byte(text), &line), text)
		if line[name] == value {
			found = append(found, line)
		}
	}
	return found
}
