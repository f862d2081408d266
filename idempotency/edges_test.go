package idempotency_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/internal/faulty"
	"github.com/oncepay/oncepay/idempotency/memstore"
)

// TestScope_EmptyIsRefused: all anonymous callers would share their answers.
func TestScope_EmptyIsRefused(t *testing.T) {
	t.Parallel()
	nobody := idempotency.WithScope(func(*http.Request) string { return "" })
	b := setup(t, idempotency.Policy{}, nil, idempotency.WithSharedScope(), nobody)
	for range 2 {
		requireProblem(t, b.post(t, "key", ""), http.StatusUnauthorized, idempotency.CodeScopeMissing)
	}
	require.Zero(t, b.ran())
	require.Equal(t, idempotency.ResultRejected, b.lastCheck().Result)
	require.ErrorContains(t, b.lastCheck().Err, "inside authentication")
	require.Equal(t, http.StatusCreated, b.post(t, "", "").Code, "without a key nothing is shared")

	shared := setup(t, idempotency.Policy{}, nil, nobody, idempotency.WithSharedScope())
	requireReplay(t, shared.post(t, "key", ""), shared.post(t, "key", ""))
}

// TestRefusal_IsLoggedIfTheServerIsAtFault, once. What a client did wrong is not.
func TestRefusal_IsLoggedIfTheServerIsAtFault(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		send func(*bundle) *httptest.ResponseRecorder
		want string
	}{
		"consumed": {func(b *bundle) *httptest.ResponseRecorder {
			r := request(t, "key", "body")
			_, _ = io.ReadAll(r.Body)
			return b.send(r)
		}, "must put a copy back"},
		"late": {func(b *bundle) *httptest.ResponseRecorder { return b.post(t, "late", "") }, "context deadline exceeded"},
		"store": {func(b *bundle) *httptest.ResponseRecorder {
			b.store.Fail = faulty.On(faulty.Acquire, errors.New("store is away"))
			return b.post(t, "key", "")
		}, "store is away"},
		"malformed key": {func(b *bundle) *httptest.ResponseRecorder { return b.post(t, "\x01", "") }, ""},
		"too large":     {func(b *bundle) *httptest.ResponseRecorder { return b.post(t, "key", strings.Repeat("x", 200)) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			b := setup(t, idempotency.Policy{Deadline: time.Millisecond}, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
				idempotency.WithLogger(slog.New(slog.NewTextHandler(&log, nil))), idempotency.WithMaxBody(100))
			w := tt.send(b)
			require.GreaterOrEqual(t, w.Code, 400)
			if tt.want == "" {
				require.Empty(t, log.String())
				return
			}
			require.Contains(t, log.String(), tt.want)
			require.Equal(t, 1, strings.Count(log.String(), "\n"), log.String())
		})
	}
}

// deadlineWriter is the writer of a server whose deadlineWriter can be set.
type deadlineWriter struct {
	http.ResponseWriter
	set []string
}

func (d *deadlineWriter) SetReadDeadline(time.Time) error { d.set = append(d.set, "read"); return nil }
func (d *deadlineWriter) SetWriteDeadline(time.Time) error {
	d.set = append(d.set, "write")
	return nil
}
func (d *deadlineWriter) EnableFullDuplex() error { d.set = append(d.set, "duplex"); return nil }

func TestCapture_PassesDeadlinesOn(t *testing.T) {
	t.Parallel()
	keys := idempotency.New(memstore.New(), idempotency.Always(idempotency.Policy{}), idempotency.WithSharedScope())
	w := &deadlineWriter{ResponseWriter: httptest.NewRecorder()}
	handler := keys.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		controller := http.NewResponseController(w)
		require.NoError(t, controller.SetReadDeadline(time.Now()))
		require.NoError(t, controller.SetWriteDeadline(time.Now()))
		require.NoError(t, controller.EnableFullDuplex())
	}))
	handler.ServeHTTP(w, request(t, "key", ""))
	require.Equal(t, []string{"read", "write", "duplex"}, w.set)
}
