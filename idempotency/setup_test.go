package idempotency_test

import (
	"cmp"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/internal/faulty"
	"github.com/oncepay/oncepay/idempotency/memstore"
)

// bundle is a middleware on a store in memory, around a handler.
type bundle struct {
	*idempotency.Middleware
	store   *faulty.Store
	handler http.Handler

	mu     sync.Mutex
	runs   int
	checks []idempotency.Check
}

// setup wraps a handler; a nil one answers 201 with its run's number.
func setup(t *testing.T, policy idempotency.Policy, handle http.HandlerFunc, opts ...idempotency.Option) *bundle {
	t.Helper()
	return setupOn(t, func(s *faulty.Store) idempotency.Store { return s }, policy, handle, opts...)
}

// setupOn has the middleware see the store as wrapped.
func setupOn(t *testing.T, wrap func(*faulty.Store) idempotency.Store, policy idempotency.Policy, handle http.HandlerFunc, opts ...idempotency.Option) *bundle {
	t.Helper()
	b := &bundle{store: &faulty.Store{Store: memstore.New()}}
	opts = append([]idempotency.Option{
		idempotency.WithScope(func(r *http.Request) string { return cmp.Or(r.Header.Get("X-Account"), "ada") }),
		idempotency.WithLogger(slog.New(slog.DiscardHandler)),
		idempotency.WithObserver(func(_ *http.Request, c idempotency.Check) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.checks = append(b.checks, c)
		}),
	}, opts...)
	b.Middleware = idempotency.New(wrap(b.store), func(*http.Request) *idempotency.Policy { return &policy }, opts...)
	b.handler = b.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		b.runs++
		run := b.runs
		b.mu.Unlock()
		if handle != nil {
			handle(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(map[string]int{"run": run})
	}))
	t.Cleanup(b.Wait)
	return b
}

func (b *bundle) ran() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.runs
}

// results returns what the observer got.
func (b *bundle) results() []idempotency.Result {
	b.mu.Lock()
	defer b.mu.Unlock()
	results := make([]idempotency.Result, 0, len(b.checks))
	for _, check := range b.checks {
		results = append(results, check.Result)
	}
	return results
}

func (b *bundle) lastCheck() idempotency.Check {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.checks[len(b.checks)-1]
}

// request makes a POST /orders; key "" sends none.
func request(t *testing.T, key, body string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/orders", strings.NewReader(body))
	if key != "" {
		r.Header.Set(idempotency.HeaderKey, key)
	}
	return r
}

func (b *bundle) send(r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	b.handler.ServeHTTP(w, r)
	return w
}

func (b *bundle) post(t *testing.T, key, body string) *httptest.ResponseRecorder {
	t.Helper()
	return b.send(request(t, key, body))
}

// requireProblem checks a problem's status and code, and returns its members.
func requireProblem(t *testing.T, w *httptest.ResponseRecorder, status int, code string) map[string]any {
	t.Helper()
	require.Equal(t, status, w.Code, w.Body.String())
	require.Equal(t, "application/problem+json", w.Header().Get("Content-Type"))
	require.Empty(t, w.Header().Get(idempotency.HeaderReplay))
	var problem map[string]any
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &problem))
	require.Equal(t, code, problem["code"])
	require.EqualValues(t, status, problem["status"])
	require.Equal(t, http.StatusText(status), problem["title"])
	require.Equal(t, problem["error"], problem["detail"])
	require.NotEmpty(t, problem["type"])
	return problem
}

func requireReplay(t *testing.T, first, again *httptest.ResponseRecorder) {
	t.Helper()
	require.Equal(t, first.Code, again.Code)
	require.Equal(t, first.Body.Bytes(), again.Body.Bytes())
	require.Equal(t, "true", again.Header().Get(idempotency.HeaderReplay))
}

func write(w io.Writer, s string) { _, _ = io.WriteString(w, s) }
