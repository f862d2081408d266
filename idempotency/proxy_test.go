package idempotency_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/transport"
)

// TestHandler_RejectsATimeoutHandlerInside: it answers while its handler goes on.
func TestHandler_RejectsATimeoutHandlerInside(t *testing.T) {
	t.Parallel()
	keys := newShared(idempotency.Policy{})
	slow := http.TimeoutHandler(http.NotFoundHandler(), time.Second, "")
	defer func() { require.Contains(t, recover(), "Policy.Deadline") }()
	http.TimeoutHandler(keys.Handler(http.NotFoundHandler()), time.Second, "") // outside it is right
	keys.Handler(slow)
}

// TestReverseProxy_HasOneEffectWhileTheOutcomeIsUnknown: the upstream has the effect after the
// proxy has lost it.
func TestReverseProxy_HasOneEffectWhileTheOutcomeIsUnknown(t *testing.T) {
	t.Parallel()
	for name, breakOff := range map[string]func(http.ResponseWriter){
		"before its answer": func(http.ResponseWriter) {},
		"within its answer": func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "10")
			w.WriteHeader(http.StatusCreated)
			write(w, "half")
			_ = http.NewResponseController(w).Flush()
		},
		"within its answer in chunks": func(w http.ResponseWriter) {
			write(w, "half")
			_ = http.NewResponseController(w).Flush()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lost, arrived := make(chan struct{}), make(chan struct{}, 3)
			var effects sync.WaitGroup
			upstream := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				arrived <- struct{}{}
				effects.Go(func() { <-lost }) // goes on
				breakOff(w)
				panic(http.ErrAbortHandler)
			}))
			upstream.Start()
			defer upstream.Close()
			target, err := url.Parse(upstream.URL)
			require.NoError(t, err)
			proxy := httputil.NewSingleHostReverseProxy(target)
			proxy.ErrorLog = log.New(io.Discard, "", 0)
			policy := likeAProxy
			policy.UnknownFor = time.Hour
			keys := newShared(policy)
			server := httptest.NewServer(keys.Handler(proxy))
			defer server.Close()
			post := func() (*http.Response, error) {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, nil)
				require.NoError(t, err)
				r.Header.Set(idempotency.HeaderKey, "key")
				r.Header.Set("Connection", "close")
				return server.Client().Do(r)
			}
			if first, err := post(); err == nil {
				require.NoError(t, first.Body.Close())
				require.Equal(t, http.StatusBadGateway, first.StatusCode)
			}
			for range 3 {
				again, err := post()
				require.NoError(t, err)
				require.NoError(t, again.Body.Close())
				require.Equal(t, http.StatusConflict, again.StatusCode)
				require.NotEmpty(t, again.Header.Get("Retry-After"))
			}
			close(lost)
			effects.Wait()
			require.Len(t, arrived, 1)
		})
	}
}

// TestReverseProxy_ThatAnswersNothingIsUnknown: the middleware writes 503 while that goes on.
func TestReverseProxy_ThatAnswersNothingIsUnknown(t *testing.T) {
	t.Parallel()
	lost := make(chan struct{})
	upstream := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-lost }))
	t.Cleanup(upstream.Close)
	t.Cleanup(func() { close(lost) })
	target, err := url.Parse(upstream.URL)
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) {}
	policy := likeAProxy
	policy.Deadline = 50 * time.Millisecond
	b := setup(t, policy, proxy.ServeHTTP)
	require.Equal(t, http.StatusServiceUnavailable, b.post(t, "key", "").Code)
	for range 2 {
		requireProblem(t, b.post(t, "key", ""), http.StatusConflict, idempotency.CodeInProgress)
	}
	require.Equal(t, 1, b.ran())
}

// TestReverseProxy_NeedsOnce: net/http's Transport sends a request with a key, and without a body,
// again by itself.
func TestReverseProxy_NeedsOnce(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		transport http.RoundTripper
		effects   int64
	}{
		"net/http's alone": {&http.Transport{}, 2},
		"once":             {transport.Once(&http.Transport{}), 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var effects atomic.Int64
			upstream := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost && effects.Add(1) == 1 {
					panic(http.ErrAbortHandler) // after the effect
				}
			}))
			t.Cleanup(upstream.Close)
			target, err := url.Parse(upstream.URL)
			require.NoError(t, err)
			proxy := httputil.NewSingleHostReverseProxy(target)
			proxy.ErrorLog, proxy.Transport = log.New(io.Discard, "", 0), tt.transport
			server := httptest.NewServer(newShared(likeAProxy).Handler(proxy))
			t.Cleanup(server.Close)
			for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPost} { // GET leaves a connection
				r, err := http.NewRequestWithContext(t.Context(), method, server.URL, nil)
				require.NoError(t, err)
				if method == http.MethodPost {
					r.Header.Set(idempotency.HeaderKey, "key")
				}
				answer, err := server.Client().Do(r)
				require.NoError(t, err)
				require.NoError(t, answer.Body.Close())
			}
			require.Equal(t, tt.effects, effects.Load())
		})
	}
}
