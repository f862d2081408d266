package transport_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/memstore"
	"github.com/oncepay/oncepay/idempotency/transport"
)

// These tests use net/http's own transport, and real connections.

func quick(t *testing.T) *transport.Transport {
	t.Helper()
	base := &http.Transport{}
	t.Cleanup(base.CloseIdleConnections)
	return &transport.Transport{Base: base, BaseDelay: time.Millisecond, MaxDelay: 20 * time.Millisecond}
}

func post(t *testing.T, rt http.RoundTripper, url, body string) (int, string, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	require.NoError(t, err)
	response, err := (&http.Client{Transport: rt}).Do(r)
	if err != nil {
		return 0, "", err
	}
	defer func() { require.NoError(t, response.Body.Close()) }()
	read, err := io.ReadAll(response.Body)
	return response.StatusCode, string(read), err
}

// TestTransport_HasOneEffectWithTheMiddleware has client and server play together: answers get
// lost on the way, and handlers fail before they have done anything.
func TestTransport_HasOneEffectWithTheMiddleware(t *testing.T) {
	t.Parallel()
	var effects, requests atomic.Int64
	keys := idempotency.New(memstore.New(), idempotency.Always(idempotency.Policy{Required: true}), idempotency.WithSharedScope())
	handler := keys.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if requests.Load()%3 == 1 {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, "effect %d", effects.Add(1))
	}))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1)%3 == 2 {
			handler.ServeHTTP(httptest.NewRecorder(), r) // and its answer is lost
			panic(http.ErrAbortHandler)
		}
		handler.ServeHTTP(w, r)
	}))
	defer server.Close()
	rt := quick(t)
	for i := range 20 {
		code, body, err := post(t, rt, server.URL, fmt.Sprint(i))
		require.NoError(t, err)
		require.Equal(t, http.StatusCreated, code)
		require.Equal(t, fmt.Sprint("effect ", i+1), body)
	}
	require.Equal(t, int64(60), requests.Load(), "failed, lost, replayed")
}

func TestTransport_TimesOutAnAttempt(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(http.ResponseWriter){
		"before the header": func(http.ResponseWriter) {},
		"before the body":   func(w http.ResponseWriter) { flush(w, "") },
		"in the body":       func(w http.ResponseWriter) { flush(w, "half") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				if requests.Add(1) == 1 {
					begin(w)
					<-r.Context().Done() // until the client gives up
					return
				}
				write(w, "in time")
			}))
			defer server.Close()
			rt := quick(t)
			rt.AttemptTimeout = time.Second
			rt.OnRetry = func(r transport.Retry) { assert.Contains(t, r.Reason, "no answer in time") }
			code, body, err := post(t, rt, server.URL, "x")
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, code)
			require.Equal(t, "in time", body)
			require.Equal(t, int64(2), requests.Load())
		})
	}
}

// TestTransport_RepeatsAfterAConflictWithoutBody sends the header of a 409 and no body, which
// would say what kind of conflict it is.
func TestTransport_RepeatsAfterAConflictWithoutBody(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusConflict)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	defer server.Close()
	rt := quick(t)
	rt.AttemptTimeout, rt.MaxAttempts = 200*time.Millisecond, 2
	_, _, err := post(t, rt, server.URL, "x")
	require.ErrorContains(t, err, "attempt 2: no answer in time")
}

func TestTransport_ReturnsTheLastTimeout(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	defer server.Close()
	rt := quick(t)
	rt.AttemptTimeout, rt.MaxAttempts = 50*time.Millisecond, 2
	_, _, err := post(t, rt, server.URL, "x")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "attempt 2: no answer in time")
}

// TestTransport_RetriesOnOneConnection: responses that are not returned are drained.
func TestTransport_RetriesOnOneConnection(t *testing.T) {
	t.Parallel()
	var connections, requests atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if requests.Add(1) < 5 {
			w.WriteHeader(http.StatusServiceUnavailable)
			write(w, strings.Repeat("x", 32<<10))
		}
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	code, _, err := post(t, quick(t), server.URL, "x")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, int64(5), requests.Load())
	require.Equal(t, int64(1), connections.Load())
}

// TestTransport_LimitsReadingAnUnwantedResponse has a first answer without an end: one
// that says nothing more, and one that says more and more.
func TestTransport_LimitsReadingAnUnwantedResponse(t *testing.T) {
	t.Parallel()
	var sent atomic.Int64
	for name, goOn := range map[string]func(http.ResponseWriter, *http.Request){
		"silent": func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		},
		"endless": func(w http.ResponseWriter, _ *http.Request) {
			for chunk := make([]byte, 32<<10); ; sent.Add(int64(len(chunk))) {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if requests.Add(1) > 1 {
					return
				}
				w.WriteHeader(http.StatusServiceUnavailable)
				goOn(w, r)
			}))
			defer server.Close()
			rt := quick(t)
			rt.MaxElapsed = time.Minute
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, strings.NewReader("x"))
			require.NoError(t, err)
			response, err := rt.RoundTrip(r)
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			require.Equal(t, http.StatusOK, response.StatusCode)
			require.Less(t, sent.Load(), int64(32<<20), "what the buffers of the connection hold")
		})
	}
}

// TestTransport_ReturnsAConnectionWhole switches protocols: the body then is the
// connection, to be written to.
func TestTransport_ReturnsAConnectionWhole(t *testing.T) {
	t.Parallel()
	conn, other := net.Pipe()
	defer func() { require.NoError(t, other.Close()) }()
	rt := &transport.Transport{Base: roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusSwitchingProtocols, Header: http.Header{}, Body: conn}, nil
	})}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://example.com", http.NoBody)
	require.NoError(t, err)
	response, err := rt.RoundTrip(r)
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	require.Implements(t, (*io.Writer)(nil), response.Body)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestTransport_SendsOneRequestPerAttempt has the server drop a connection from the client's
// pool just when the second request has come: net/http would send it again by
// itself, since it has a key.
func TestTransport_SendsOneRequestPerAttempt(t *testing.T) {
	t.Parallel()
	server := startDropping(t)
	rt := quick(t)
	var retries atomic.Int64
	rt.OnRetry = func(transport.Retry) { retries.Add(1) }
	for range 2 {
		code, body, err := post(t, rt, server.url, "body")
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, code)
		require.Equal(t, "ok", body)
	}
	require.Equal(t, int64(3), server.requests.Load())
	require.Equal(t, int64(1), retries.Load(), "the one that was sent again is an attempt that was counted")
}

// dropping answers every request on its connections but the second one over
// all, at which it closes the connection.
type dropping struct {
	url      string
	requests atomic.Int64
}

func startDropping(t *testing.T) *dropping {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	d := &dropping{url: "http://" + listener.Addr().String()}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { d.serve(conn) })
		}
	})
	t.Cleanup(running.Wait)
	t.Cleanup(func() { require.NoError(t, listener.Close()) })
	return d
}

func (d *dropping) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	reader := bufio.NewReader(conn)
	for {
		r, err := http.ReadRequest(reader)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		if d.requests.Add(1) == 2 {
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	}
}

func TestTransport_DoesNotRetryAnUntrustedServer(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	rt := quick(t)
	rt.OnRetry = func(r transport.Retry) { require.Fail(t, "retried", r.Reason) }
	_, _, err := post(t, rt, server.URL, "x")
	require.ErrorContains(t, err, "certificate")
}

// TestTransport_DoesNotRepeatWhatCannotBeSent, with a connection that is kept and without one.
func TestTransport_DoesNotRepeatWhatCannotBeSent(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)
	for name, spoil := range map[string]func(*http.Request){
		"scheme":         func(r *http.Request) { r.URL.Scheme = "ftp" },
		"no host":        func(r *http.Request) { r.URL.Host = "" },
		"port":           func(r *http.Request) { r.URL.Host = "127.0.0.1:99999" },
		"method":         func(r *http.Request) { r.Method = "PO ST" },
		"name of header": func(r *http.Request) { r.Header["a b"] = []string{"x"} },
		"header":         func(r *http.Request) { r.Header.Set("X-Name", "a\nb") },
		"https of http":  func(r *http.Request) { r.URL.Scheme = "https" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rt := quick(t)
			_, _, err := post(t, rt, server.URL, "x")
			require.NoError(t, err)
			rt.OnRetry = func(r transport.Retry) { require.Fail(t, "retried", r.Reason) }
			r := newRequest(t, http.MethodPost, "x")
			r.Header.Set("Idempotency-Key", "key")
			r.URL.Scheme, r.URL.Host = "http", strings.TrimPrefix(server.URL, "http://")
			spoil(r)
			response, err := rt.RoundTrip(r)
			if err == nil {
				_ = response.Body.Close()
			}
			require.Error(t, err)
			require.ErrorContains(t, err, "attempt 1")
		})
	}
}

func TestTransport_RepeatsTheAnswersThatAreNamed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rt, s := scripted(t, answerWith(507, ""), answerWith(521, ""), created)
		code, _ := roundTrip(t, rt, newRequest(t, http.MethodPost, ""))
		require.Equal(t, 507, code)
		rt.RetryIf = func(r *http.Response) bool { return r.StatusCode == 507 || r.StatusCode >= 520 }
		code, _ = roundTrip(t, rt, newRequest(t, http.MethodPost, ""))
		require.Equal(t, 201, code)
		require.Len(t, s.keys, 3)
	})
}

func TestTransport_IsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	seen := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		seen[r.Header.Get(idempotency.HeaderKey)]++
		first := seen[r.Header.Get(idempotency.HeaderKey)] == 1
		mu.Unlock()
		if first {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		_, _ = w.Write(body)
	}))
	defer server.Close()
	rt := quick(t)
	var running sync.WaitGroup
	for i := range 32 {
		running.Go(func() {
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader(fmt.Sprint(i)))
			response, err := rt.RoundTrip(r)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = response.Body.Close() }()
			if body, err := io.ReadAll(response.Body); err != nil || string(body) != fmt.Sprint(i) {
				t.Errorf("request %d got %q, %v", i, body, err)
			}
		})
	}
	running.Wait()
	require.Len(t, seen, 32)
	for key, n := range seen {
		require.Equal(t, 2, n, key)
	}
}

// flush sends a part of an answer.
func flush(w http.ResponseWriter, s string) {
	write(w, s)
	_ = http.NewResponseController(w).Flush()
}

func write(w io.Writer, s string) { _, _ = io.WriteString(w, s) }

func TestTransport_TakesAnEmptyKeyForNone(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	seen := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		key := r.Header.Get(idempotency.HeaderKey)
		if seen[key]++; seen[key] == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	for _, given := range []string{"", " \t"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader("{}"))
		require.NoError(t, err)
		r.Header.Set(idempotency.HeaderKey, given)
		answer, err := quick(t).RoundTrip(r)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, http.StatusOK, answer.StatusCode)
	}
	require.Len(t, seen, 2, "a key of its own for each")
	require.NotContains(t, seen, "")
}
