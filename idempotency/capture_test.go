package idempotency_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/internal/faulty"
)

// orderedWriter notes when the first byte goes to the client.
type orderedWriter struct {
	http.ResponseWriter
	store *faulty.Store
}

func (w orderedWriter) WriteHeader(code int) {
	w.store.Note("header")
	w.ResponseWriter.WriteHeader(code)
}

func TestAnswer_IsSentAfterTheRecord(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int{"empty": 0, "small": 10, "at the limit": 100, "over the limit": 101, "far over": 100_000} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, idempotency.Policy{}, func(w http.ResponseWriter, _ *http.Request) {
				_, err := io.Copy(w, strings.NewReader(strings.Repeat("x", size)))
				require.NoError(t, err)
			}, idempotency.WithMaxResponse(100))
			w := httptest.NewRecorder()
			b.handler.ServeHTTP(orderedWriter{w, b.store}, request(t, "key", ""))
			require.Equal(t, []string{"acquire", "complete", "header"}, b.store.Taken())
			require.Equal(t, size, w.Body.Len())
		})
	}
}

// TestAnswer_IsWhatNetHTTPSends compares what a client gets through the middleware, and
// again in a replay, with what net/http sends without it.
func TestAnswer_IsWhatNetHTTPSends(t *testing.T) {
	t.Parallel()
	for name, handle := range map[string]http.HandlerFunc{
		"nothing at all":      func(http.ResponseWriter, *http.Request) {},
		"only a body":         func(w http.ResponseWriter, _ *http.Request) { write(w, "<html>") },
		"an empty write":      func(w http.ResponseWriter, _ *http.Request) { write(w, "") },
		"a superfluous code":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(201); w.WriteHeader(500); write(w, "x") },
		"a code after a body": func(w http.ResponseWriter, _ *http.Request) { write(w, "x"); w.WriteHeader(404) },
		"a late header": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(200)
			w.Header().Set("Location", "/late")
		},
		"a removed header": func(w http.ResponseWriter, _ *http.Request) { w.Header().Del("X-Outer"); write(w, "x") },
		"no content":       func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) },
		"content where none may be": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(204)
			_, err := w.Write([]byte("x"))
			require.ErrorIs(t, err, http.ErrBodyNotAllowed)
		},
		"not modified": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("ETag", `"a"`); w.WriteHeader(304) },
		"no type":      func(w http.ResponseWriter, _ *http.Request) { w.Header()["Content-Type"] = nil; write(w, "<html>") },
		"encoded":      func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Encoding", "br"); write(w, "x") },
		"a length":     func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "3"); write(w, "abc") },
		"a redirect":   func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusSeeOther) },
		"an error":     func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusPaymentRequired) },
		"many writes": func(w http.ResponseWriter, _ *http.Request) {
			for range 1000 {
				write(w, "0123456789")
			}
		},
	} {
		for _, method := range []string{http.MethodPost, http.MethodHead} {
			t.Run(name+" "+method, func(t *testing.T) {
				t.Parallel()
				b := setup(t, idempotency.Policy{}, handle)
				outer := func(next http.Handler) http.Handler {
					return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						w.Header().Set("X-Outer", "1")
						next.ServeHTTP(w, r)
					})
				}
				plain := fetch(t, outer(handle), method)
				first := fetch(t, outer(b.handler), method)
				again := fetch(t, outer(b.handler), method)
				require.Equal(t, 1, b.ran())
				require.Equal(t, plain, first)
				require.Equal(t, "true", again.header.Get(idempotency.HeaderReplay))
				again.header.Del(idempotency.HeaderReplay)
				if name == "a removed header" {
					again.header.Del("X-Outer") // what the outer handler sets in this request is its own
				}
				require.Equal(t, first, again)
			})
		}
	}
}

type fetched struct {
	code   int
	header http.Header
	body   string
}

// fetch sends a request through a real server. Headers that depend on how the
// body was cut into packets and on the time are left out.
func fetch(t *testing.T, handler http.Handler, method string) fetched {
	t.Helper()
	server := httptest.NewServer(handler)
	defer server.Close()
	client := server.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	r, err := http.NewRequestWithContext(t.Context(), method, server.URL+"/orders", nil)
	require.NoError(t, err)
	r.Header.Set(idempotency.HeaderKey, "key")
	r.Header.Set("Accept-Encoding", "br")
	response, err := client.Do(r)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	response.Header.Del("Date")
	response.Header.Del("Content-Length")
	return fetched{response.StatusCode, response.Header, string(body)}
}

func TestAnswer_HoldsInformationalResponsesBack(t *testing.T) {
	t.Parallel()
	b := setup(t, idempotency.Policy{}, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusProcessing)
		w.WriteHeader(http.StatusCreated)
	})
	require.Equal(t, http.StatusCreated, b.post(t, "key", "").Code)
	require.Equal(t, http.StatusCreated, b.post(t, "key", "").Code)
	require.Equal(t, 1, b.ran())
}

func TestCapture_HidesTheConnection(t *testing.T) {
	t.Parallel()
	b := setup(t, idempotency.Policy{}, func(w http.ResponseWriter, _ *http.Request) {
		write(w, "x")
		controller := http.NewResponseController(w)
		require.ErrorIs(t, controller.Flush(), http.ErrNotSupported)
		_, _, err := controller.Hijack()
		require.ErrorIs(t, err, http.ErrNotSupported)
		_, flusher := w.(http.Flusher)
		require.False(t, flusher)
	})
	w := b.post(t, "key", "")
	require.Equal(t, "x", w.Body.String())
	require.False(t, w.Flushed)
}

func TestCapture_PanicsOnAnInvalidCode(t *testing.T) {
	t.Parallel()
	b := setup(t, idempotency.Policy{}, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(42) })
	require.Panics(t, func() { b.post(t, "key", "") })
	require.Equal(t, []string{"acquire", "release"}, b.store.Taken())
}

func TestMaxResponse_StreamsALargerAnswer(t *testing.T) {
	t.Parallel()
	b := setup(t, idempotency.Policy{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "/orders/1")
		w.WriteHeader(http.StatusCreated)
		for range 20 {
			write(w, "0123456789")
		}
	}, idempotency.WithMaxResponse(100))
	first := b.post(t, "key", "")
	require.Equal(t, http.StatusCreated, first.Code)
	require.Equal(t, strings.Repeat("0123456789", 20), first.Body.String(), "the client receives everything")

	again := b.post(t, "key", "")
	problem := requireProblem(t, again, http.StatusConflict, idempotency.CodeResponseNotKept)
	require.Contains(t, problem["error"], "status 201")
	require.Equal(t, "/orders/1", again.Header().Get("Location"), "where the client finds what it made")
	require.Empty(t, again.Header().Get("Retry-After"))
	requireProblem(t, b.post(t, "key", "other"), http.StatusUnprocessableEntity, idempotency.CodeKeyReused)
	require.Equal(t, 1, b.ran(), "and never runs again")
	require.Equal(t, []idempotency.Result{idempotency.ResultAcquired, idempotency.ResultNotKept, idempotency.ResultMismatch}, b.results())
}

func TestMaxResponse_StreamsAnAnswerThatIsNotKept(t *testing.T) {
	t.Parallel()
	large := bytes.Repeat([]byte("x"), 1000)
	b := setup(t, idempotency.Policy{}, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Account") == "released" {
			idempotency.ClaimFrom(r.Context()).Release()
		} else {
			w.WriteHeader(http.StatusInternalServerError)
		}
		_, _ = w.Write(large)
	}, idempotency.WithMaxResponse(100))
	for _, account := range []string{"failing", "released"} {
		for range 2 {
			r := request(t, "key", "")
			r.Header.Set("X-Account", account)
			require.Equal(t, large, b.send(r).Body.Bytes())
		}
	}
	require.Equal(t, 4, b.ran())
}

func TestMaxResponse_HoldsAfterAPanic(t *testing.T) {
	t.Parallel()
	b := setup(t, idempotency.Policy{}, func(w http.ResponseWriter, _ *http.Request) {
		write(w, strings.Repeat("x", 1000))
		panic(http.ErrAbortHandler)
	}, idempotency.WithMaxResponse(100))
	require.Panics(t, func() { b.post(t, "key", "") })
	requireProblem(t, b.post(t, "key", ""), http.StatusConflict, idempotency.CodeResponseNotKept)
	require.Equal(t, 1, b.ran(), "the client has seen a 200")
}
