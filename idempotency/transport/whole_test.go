package transport_test

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/memstore"
	"github.com/oncepay/oncepay/idempotency/transport"
)

const half = "half of "

// cuts begin an answer whose connection then breaks.
var cuts = map[string]func(http.ResponseWriter){
	"with a length": func(w http.ResponseWriter) {
		w.Header().Set("Content-Length", "100")
		w.WriteHeader(http.StatusCreated)
		flush(w, half)
	},
	"without any of its body": func(w http.ResponseWriter) {
		w.Header().Set("Content-Length", "100")
		w.WriteHeader(http.StatusCreated)
		flush(w, "")
	},
	"in chunks": func(w http.ResponseWriter) {
		w.WriteHeader(http.StatusCreated)
		flush(w, half)
	},
	"compressed": func(w http.ResponseWriter) {
		w.Header().Set("Content-Encoding", "gzip")
		w.WriteHeader(http.StatusCreated)
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, half)
		_ = z.Flush()
		flush(w, "")
	},
	"a final conflict": func(w http.ResponseWriter) {
		w.WriteHeader(http.StatusConflict)
		flush(w, half)
	},
}

// topUps counts the effects of a service behind the middleware. While cut is set, its answers are
// cut in their bodies.
type topUps struct {
	*httptest.Server
	effects, requests atomic.Int64
	keys              chan string
}

func startTopUps(t *testing.T, cut func(http.ResponseWriter), times int64) *topUps {
	t.Helper()
	s := &topUps{keys: make(chan string, 100)}
	once := idempotency.New(memstore.New(), idempotency.Always(idempotency.Policy{}), idempotency.WithSharedScope())
	handler := once.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, "top-up %d", s.effects.Add(1))
	}))
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.keys <- r.Header.Get(idempotency.HeaderKey)
		if s.requests.Add(1) > times {
			handler.ServeHTTP(w, r)
			return
		}
		handler.ServeHTTP(httptest.NewRecorder(), r)
		cut(w)
		panic(http.ErrAbortHandler)
	}))
	t.Cleanup(s.Close)
	return s
}

func TestTransport_RepeatsAnAnswerThatIsCut(t *testing.T) {
	t.Parallel()
	for name, cut := range cuts {
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodGet} {
			t.Run(name+" "+method, func(t *testing.T) {
				t.Parallel()
				s := startTopUps(t, cut, 2)
				r, err := http.NewRequestWithContext(t.Context(), method, s.URL, strings.NewReader("{}"))
				require.NoError(t, err)
				response, err := quick(t).RoundTrip(r)
				require.NoError(t, err)
				defer func() { require.NoError(t, response.Body.Close()) }()
				body, err := io.ReadAll(response.Body)
				require.NoError(t, err)
				require.Equal(t, int64(3), s.requests.Load())
				first := <-s.keys
				require.Equal(t, first, <-s.keys)
				require.Equal(t, first, <-s.keys)
				require.Equal(t, first, response.Request.Header.Get(idempotency.HeaderKey), "an answer says its key")
				if method != http.MethodGet {
					require.Equal(t, "top-up 1", string(body))
					require.Equal(t, int64(1), s.effects.Load())
				}
			})
		}
	}
}

// TestTransport_LeavesItsKeyToTheCaller has every answer of a call cut. The caller calls again with
// the key of the error.
func TestTransport_LeavesItsKeyToTheCaller(t *testing.T) {
	t.Parallel()
	s := startTopUps(t, cuts["with a length"], 3)
	rt := quick(t)
	rt.MaxAttempts = 3
	client := &http.Client{Transport: rt}
	send := func(key string) (*http.Response, error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, strings.NewReader("{}"))
		require.NoError(t, err)
		if key != "" {
			r.Header.Set(idempotency.HeaderKey, key)
		}
		return client.Do(r)
	}
	_, err := send("")
	var unanswered *transport.Error
	require.ErrorAs(t, err, &unanswered)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.ErrorContains(t, err, "attempt 3: read the answer")
	require.Equal(t, <-s.keys, unanswered.Key)

	response, err := send(unanswered.Key)
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, "top-up 1", string(body))
	require.Equal(t, int64(1), s.effects.Load())
}

// TestTransport_PassesOnWhatItDoesNotRead: the answer is returned before its body has ended, which
// may take longer than an attempt. An error in the body says the key.
func TestTransport_PassesOnWhatItDoesNotRead(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1001)
	for name, tt := range map[string]struct {
		max     int64
		headers []string
		begin   string
	}{
		"longer than the limit":                  {1000, nil, long},
		"longer than the limit, with its length": {1000, []string{"Content-Length", "1002"}, ""},
		"events":                                 {0, []string{"Content-Type", "Text/Event-Stream; charset=utf-8"}, "data: 1\n\n"},
		"without a limit":                        {-1, nil, "x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			returned := make(chan struct{})
			keys := make(chan string, 1)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				keys <- r.Header.Get(idempotency.HeaderKey)
				_, _ = io.Copy(io.Discard, r.Body)
				for i := 0; i < len(tt.headers); i += 2 {
					w.Header().Set(tt.headers[i], tt.headers[i+1])
				}
				flush(w, tt.begin)
				select {
				case <-returned:
				case <-r.Context().Done():
					return
				}
				flush(w, "y")
				panic(http.ErrAbortHandler)
			}))
			defer server.Close()
			rt := quick(t)
			rt.MaxResponse, rt.AttemptTimeout, rt.MaxAttempts = tt.max, 2*time.Second, 1
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader("x"))
			require.NoError(t, err)
			response, err := rt.RoundTrip(r)
			require.NoError(t, err)
			timer := time.AfterFunc(rt.AttemptTimeout+50*time.Millisecond, func() { close(returned) })
			defer timer.Stop()
			require.NoError(t, response.Request.Context().Err())
			body, err := io.ReadAll(response.Body)
			require.Equal(t, tt.begin+"y", string(body))
			var cut *transport.Error
			require.ErrorAs(t, err, &cut)
			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
			require.Equal(t, <-keys, cut.Key)
			require.NoError(t, response.Body.Close())
			require.ErrorIs(t, response.Request.Context().Err(), context.Canceled, "what the attempt held is free")
		})
	}
}

func TestTransport_ReadsUpToTheLimit(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, 999, 1000, 1001, 5000} {
		rt, s := scripted(t, answerWith(201, strings.Repeat("x", size)))
		rt.MaxResponse = 1000
		response, err := rt.RoundTrip(newRequest(t, http.MethodPost, ""))
		require.NoError(t, err)
		require.Equal(t, size <= 1000, s.ended, "%d bytes", size)
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.Len(t, body, size)
		require.NoError(t, response.Body.Close())
		require.Equal(t, 1, s.closed)
	}
}

// TestTransport_LeavesTheAnswerAsItIs has answers without a body, and with a trailer.
func TestTransport_LeavesTheAnswerAsItIs(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/hints":
			w.WriteHeader(http.StatusEarlyHints)
		case "/nothing":
			w.WriteHeader(http.StatusNoContent)
			return
		case "/same":
			w.WriteHeader(http.StatusNotModified)
			return
		case "/trailer":
			w.Header().Set("Trailer", "X-Sum")
			defer w.Header().Set("X-Sum", "4")
		case "/gzip":
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			defer func() { _ = z.Close() }()
			_, _ = io.WriteString(z, "body")
			return
		}
		write(w, "body")
	}))
	defer server.Close()
	rt := quick(t)
	for _, tt := range []struct {
		method, path string
		code         int
		length       int64
		body         string
	}{
		{http.MethodPost, "/", 200, 4, "body"},
		{http.MethodPost, "/hints", 200, 4, "body"},
		{http.MethodHead, "/", 200, 4, ""},
		{http.MethodDelete, "/nothing", 204, 0, ""},
		{http.MethodGet, "/same", 304, 0, ""},
		{http.MethodPost, "/trailer", 200, -1, "body"},
		{http.MethodPost, "/gzip", 200, -1, "body"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), tt.method, server.URL+tt.path, http.NoBody)
		require.NoError(t, err)
		response, err := rt.RoundTrip(r)
		require.NoError(t, err, tt.path)
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err, tt.path)
		require.NoError(t, response.Body.Close())
		require.Equal(t, tt.code, response.StatusCode, tt.path)
		require.Equal(t, tt.length, response.ContentLength, tt.path)
		require.Equal(t, tt.body, string(body), tt.path)
		require.Equal(t, tt.path == "/trailer", response.Trailer.Get("X-Sum") == "4")
		require.Equal(t, tt.path == "/gzip", response.Uncompressed)
	}
}

// TestTransport_EndsWithTheContextInABody has the caller leave while the body is read.
func TestTransport_EndsWithTheContextInABody(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		flush(w, half)
		begun <- struct{}{}
		<-r.Context().Done()
	}))
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-begun; cancel() }()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, strings.NewReader("x"))
	require.NoError(t, err)
	rt := quick(t)
	rt.OnRetry = func(r transport.Retry) { t.Error("repeated after", r.Reason) }
	response, err := rt.RoundTrip(r)
	if err == nil {
		_, err = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
	}
	require.ErrorIs(t, err, context.Canceled)
	var unanswered *transport.Error
	require.True(t, errors.As(err, &unanswered) && unanswered.Key != "")
}
