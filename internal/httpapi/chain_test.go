package httpapi

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
)

// serve sends one request through a server whose router has one more route.
func serve(t *testing.T, change func(*Config), h http.HandlerFunc, edit func(*http.Request)) *httptest.ResponseRecorder {
	t.Helper()
	s := testServer(t, change)
	s.routes.Post("/probe", h)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/probe", http.NoBody)
	if edit != nil {
		edit(r)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func TestRequestID_IsTheClientsIfItIsSane(t *testing.T) {
	t.Parallel()
	for sent, kept := range map[string]bool{
		"req-1": true, "0193a1b2-c3d4:5.6_7": true, strings.Repeat("x", 64): true,
		"": false, strings.Repeat("x", 65): false, "a b": false, "a\tb": false, `a"b`: false, "4242424242424242": false, "4242.4242_4242:4242": false,
	} {
		var inside string
		w := serve(t, nil, func(_ http.ResponseWriter, r *http.Request) { inside = RequestID(r.Context()) },
			func(r *http.Request) { r.Header.Set("X-Request-ID", sent) })
		require.Equal(t, inside, w.Header().Get("X-Request-ID"))
		require.NotEmpty(t, inside)
		require.Equal(t, kept, inside == sent, sent)
		require.Equal(t, "api-1", w.Header().Get("X-Served-By"))
	}
	require.Empty(t, RequestID(t.Context()))
}

func TestClientIP_ComesFromTrustedProxies(t *testing.T) {
	t.Parallel()
	trusted := func(c *Config) { c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")} }
	for _, c := range []struct {
		change           func(*Config)
		peer, sent, want string
	}{
		{trusted, "10.0.0.1:1", "1.1.1.1, 203.0.113.9, 10.2.2.2", "203.0.113.9"},
		{trusted, "203.0.113.7:1", "1.1.1.1", "203.0.113.7"},
		{trusted, "10.0.0.1:1", "10.2.2.2", "10.0.0.1"}, // everybody is trusted, as on one machine
		{trusted, "10.0.0.1:1", "203.0.113.9, garbage", "10.0.0.1"},
		{nil, "10.0.0.1:1", "1.1.1.1", "10.0.0.1"},
	} {
		var ip string
		serve(t, c.change, func(_ http.ResponseWriter, r *http.Request) { ip = middleware.GetClientIP(r.Context()) },
			func(r *http.Request) { r.RemoteAddr = c.peer; r.Header.Set("X-Forwarded-For", c.sent) })
		require.Equal(t, c.want, ip)
	}
}

func TestPanic_IsAProblem(t *testing.T) {
	t.Parallel()
	w := serve(t, nil, func(http.ResponseWriter, *http.Request) { panic("secret") }, nil)
	require.Equal(t, http.StatusInternalServerError, w.Code)
	require.Equal(t, problemType, w.Header().Get("Content-Type"))
	require.Contains(t, w.Body.String(), `"internal_error"`)
	require.NotContains(t, w.Body.String(), "secret")
}

func TestPanic_AfterTheHeadBreaksTheConnection(t *testing.T) {
	t.Parallel()
	require.PanicsWithValue(t, http.ErrAbortHandler, func() {
		serve(t, nil, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, nil)
	})
	require.PanicsWithValue(t, "late", func() {
		serve(t, nil, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusOK)
			panic("late")
		}, nil)
	})
}

func TestLimitTime_LeavesRoomForTheWait(t *testing.T) {
	t.Parallel()
	s := testServer(t, nil)
	money := s.policies["POST /v1/orders/{order_id}/payments"]
	s.policies["POST /paid"] = money
	var left time.Duration
	for path, withKey := range map[string]time.Duration{"/plain": s.cfg.OrderDeadline, "/paid": preparation + money.MaxWait} {
		s.routes.With(s.limitTime).Post(path, func(_ http.ResponseWriter, r *http.Request) {
			deadline, _ := r.Context().Deadline()
			left = time.Until(deadline)
		})
		for key, want := range map[string]time.Duration{"": s.cfg.OrderDeadline, "k": withKey} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, http.NoBody)
			r.Header.Set(idempotency.HeaderKey, key)
			s.ServeHTTP(httptest.NewRecorder(), r)
			require.InDelta(t, want, left, float64(time.Second), "%s, key %q", path, key)
		}
	}
}

func TestBody_IsBounded(t *testing.T) {
	t.Parallel()
	var read error
	serve(t, nil, func(_ http.ResponseWriter, r *http.Request) { _, read = io.Copy(io.Discard, r.Body) },
		func(r *http.Request) {
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(strings.Repeat("x", maxBody+1))), -1
		})
	require.Equal(t, http.StatusRequestEntityTooLarge, problemOf(readProblem(read)).status)
	require.Equal(t, http.StatusBadRequest, problemOf(readProblem(io.ErrUnexpectedEOF)).status)
}

func TestAccessLog_HasNoBodiesAndQueries(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	var route string
	var status int
	change := func(c *Config) {
		c.Logger = slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		c.ObserveRequest = func(_ *http.Request, pattern string, code int, _ time.Duration) { route, status = pattern, code }
	}
	serve(t, change, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }, func(r *http.Request) {
		r.URL.RawQuery = "q=hidden"
		r.Header.Set("Idempotency-Key", "hidden")
		r.Header.Set("Authorization", "Bearer hidden")
		r.Body = io.NopCloser(strings.NewReader("hidden"))
	})
	require.Equal(t, "/probe", route)
	require.Equal(t, http.StatusTeapot, status)
	require.Contains(t, log.String(), `"event":"http_request"`)
	require.Contains(t, log.String(), `"status":418`)
	require.NotContains(t, log.String(), "hidden")

	log.Reset()
	serve(t, change, func(http.ResponseWriter, *http.Request) {}, func(r *http.Request) { r.URL.Path = "/v1/products/4242424242424242" })
	require.NotContains(t, log.String(), "42424242", "four digits may be anything")
}

func TestAccessLog_HidesTheKeyInAPath(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s := testServer(t, func(c *Config) { c.Logger = slog.New(slog.NewJSONHandler(&log, nil)) })
	s.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/v1/idempotency-keys/hidden", http.NoBody))
	require.Contains(t, log.String(), `"path":"/v1/idempotency-keys/{key}"`)
	require.NotContains(t, log.String(), "hidden")
}

// A route that the description doesn't have is a mistake of ours, found by the tests of the routes;
// should it happen all the same, nothing gets through.
func TestValidation_RefusesARouteWithoutADescription(t *testing.T) {
	t.Parallel()
	v, err := loadValidator()
	require.NoError(t, err)
	w := serve(t, nil, func(w http.ResponseWriter, r *http.Request) {
		require.NotEmpty(t, chi.RouteContext(r.Context()).RoutePattern())
		testServer(t, nil).fail(w, r, v.check(r, nil))
	}, nil)
	require.Equal(t, http.StatusInternalServerError, w.Code)
}
