package transport_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/transport"
)

// script answers one request after the other, and records the requests and the planned
// pauses. Its tests run on synctest's clock, where pauses take no real time.
type script struct {
	t       *testing.T
	answers []func(*http.Request) (*http.Response, error)

	mu      sync.Mutex
	keys    []string
	prefers []string
	bodies  []string
	pauses  []time.Duration
	ended   bool // the last response body was read to its end
	closed  int  // response bodies that were read to the end and closed
}

// scripted returns a transport that gets its answers from a script.
func scripted(t *testing.T, answers ...func(*http.Request) (*http.Response, error)) (*transport.Transport, *script) {
	t.Helper()
	s := &script{t: t, answers: answers}
	onRetry := func(r transport.Retry) { s.pauses = append(s.pauses, r.Wait) }
	return &transport.Transport{Base: s, OnRetry: onRetry}, s
}

// RoundTrip returns the next answer; the last one is repeated.
func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		require.NoError(s.t, err)
		require.NoError(s.t, r.Body.Close())
		s.bodies = append(s.bodies, string(body))
	}
	s.keys = append(s.keys, r.Header.Get("Idempotency-Key"))
	s.prefers = append(s.prefers, r.Header.Get("Prefer"))
	next := s.answers[min(len(s.keys), len(s.answers))-1]
	response, err := next(r)
	if err == nil {
		response.Request = r
		response.Body = &watchedBody{Reader: response.Body, s: s}
	}
	return response, err
}

type watchedBody struct {
	io.Reader
	s *script
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.s.ended = err != nil
	return n, err
}

func (b *watchedBody) Close() error {
	if rest, _ := io.ReadAll(b.Reader); len(rest) == 0 {
		b.s.closed++
	}
	return nil
}

// answerWith makes an answer; headers are name, value, name, value.
func answerWith(code int, body string, headers ...string) func(*http.Request) (*http.Response, error) {
	return func(*http.Request) (*http.Response, error) {
		h := http.Header{}
		for i := 0; i < len(headers); i += 2 {
			h.Set(headers[i], headers[i+1])
		}
		return &http.Response{StatusCode: code, Header: h, Body: io.NopCloser(strings.NewReader(body))}, nil
	}
}

var errReset = errors.New("connection reset")

func noAnswer(*http.Request) (*http.Response, error) { return nil, errReset }

var (
	inProgress = answerWith(409, `{"code":"idempotency_in_progress"}`, "Retry-After", "3")
	created    = answerWith(201, "made")
)

func newRequest(t *testing.T, method, body string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://shop.example/orders", strings.NewReader(body))
	require.NoError(t, err)
	return r
}

// roundTrip returns the answer's status and body.
func roundTrip(t *testing.T, rt *transport.Transport, r *http.Request) (int, string) {
	t.Helper()
	response, err := rt.RoundTrip(r)
	require.NoError(t, err)
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response.StatusCode, string(body)
}

func TestTransport_RepeatsTheSameRequest(t *testing.T) {
	t.Parallel()
	for name, makeBody := range map[string]func() io.Reader{
		"body that can be had again": func() io.Reader { return strings.NewReader(`{"sku":"tee"}`) },
		"body that is buffered":      func() io.Reader { return io.MultiReader(strings.NewReader(`{"sku":"tee"}`)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				rt, s := scripted(t, noAnswer, inProgress, answerWith(503, "later"), created)
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://shop.example/orders", makeBody())
				require.NoError(t, err)
				code, body := roundTrip(t, rt, r)
				require.Equal(t, 201, code)
				require.Equal(t, "made", body)
				require.Equal(t, []string{`{"sku":"tee"}`, `{"sku":"tee"}`, `{"sku":"tee"}`, `{"sku":"tee"}`}, s.bodies)
				require.Len(t, s.keys, 4)
				for _, key := range s.keys {
					require.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, key)
					require.Equal(t, s.keys[0], key)
				}
				require.Equal(t, 3, s.closed, "the two that were retried were drained and closed, and so is the last")
				require.Empty(t, r.Header, "the caller's request is not changed")
			})
		})
	}
}

func TestTransport_GivesAKeyWhereOneIsNeeded(t *testing.T) {
	t.Parallel()
	rt, s := scripted(t, created)
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodPost} {
		roundTrip(t, rt, newRequest(t, method, ""))
		require.NotEmpty(t, s.keys[len(s.keys)-1], method)
		r := newRequest(t, method, "")
		r.Header.Set(idempotency.HeaderKey, "mine")
		roundTrip(t, rt, r)
		require.Equal(t, "mine", s.keys[len(s.keys)-1], method)
	}
	require.NotEqual(t, s.keys[0], s.keys[8], "each request has its own")
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, "PURGE"} {
		roundTrip(t, rt, newRequest(t, method, ""))
		require.Empty(t, s.keys[len(s.keys)-1], method)
	}
}

func TestTransport_DecidesByTheAnswer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		answer func(*http.Request) (*http.Response, error)
		again  bool
	}{
		{"no answer", noAnswer, true},
		{"200", answerWith(200, ""), false},
		{"303", answerWith(303, ""), false},
		{"400", answerWith(400, ""), false},
		{"401", answerWith(401, ""), false},
		{"402", answerWith(402, "declined"), false},
		{"404", answerWith(404, ""), false},
		{"408", answerWith(408, ""), true},
		{"409 in progress", answerWith(409, `{"code":"idempotency_in_progress"}`), true},
		{"409 that ends by itself", answerWith(409, `{"code":"order_being_paid"}`, "Retry-After", "1"), true},
		{"409 out of stock", answerWith(409, `{"code":"out_of_stock"}`), false},
		{"409 response not kept", answerWith(409, `{"code":"idempotency_response_not_kept"}`), false},
		{"409 of another server", answerWith(409, `conflict`), false},
		{"422", answerWith(422, `{"code":"idempotency_key_reused"}`), false},
		{"425", answerWith(425, ""), true},
		{"429", answerWith(429, ""), true},
		{"500", answerWith(500, ""), true},
		{"501", answerWith(501, ""), false},
		{"502", answerWith(502, ""), true},
		{"503", answerWith(503, ""), true},
		{"504", answerWith(504, ""), true},
		{"507", answerWith(507, ""), false},
	} {
		for method, repeatable := range map[string]bool{http.MethodPost: true, http.MethodGet: true, http.MethodPut: true, "PURGE": false} {
			t.Run(tt.name+" "+method, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					rt, s := scripted(t, tt.answer, created)
					response, err := rt.RoundTrip(newRequest(t, method, ""))
					if err == nil {
						require.NoError(t, response.Body.Close())
					}
					require.Equal(t, tt.again && repeatable, len(s.keys) == 2)
				})
			})
		}
	}
}

func TestTransport_ReturnsAConflictWhole(t *testing.T) {
	t.Parallel()
	problem := `{"code":"out_of_stock","detail":"` + strings.Repeat("x", 20<<10) + `"}`
	rt, _ := scripted(t, answerWith(409, problem))
	code, body := roundTrip(t, rt, newRequest(t, http.MethodPost, ""))
	require.Equal(t, 409, code)
	require.Equal(t, problem, body)
}

func TestTransport_BacksOffWithFullJitter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		longest := make([]time.Duration, 8)
		for range 200 {
			rt, s := scripted(t, noAnswer)
			rt.BaseDelay, rt.MaxAttempts, rt.MaxElapsed = time.Second, 9, time.Hour
			began := time.Now()
			_, err := rt.RoundTrip(newRequest(t, http.MethodPost, ""))
			require.ErrorIs(t, err, errReset)
			require.ErrorContains(t, err, "attempt 9")
			require.Len(t, s.pauses, 8)
			total := time.Duration(0)
			for i, pause := range s.pauses {
				longest[i] = max(longest[i], pause)
				total += pause
			}
			require.Equal(t, total, time.Since(began), "it sleeps as long as it says")
		}
		for i, bound := range []time.Duration{1e9, 2e9, 4e9, 8e9, 16e9, 30e9, 30e9, 30e9} {
			require.LessOrEqual(t, longest[i], bound)
			require.Greater(t, longest[i], bound*9/10, "of 200 random pauses one is long")
		}
	})
}

func TestTransport_HasDefaults(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rt, s := scripted(t, noAnswer)
		_, err := rt.RoundTrip(newRequest(t, http.MethodPost, ""))
		require.ErrorIs(t, err, errReset)
		require.LessOrEqual(t, s.pauses[0], transport.DefaultBaseDelay)
		require.Len(t, s.pauses, transport.DefaultMaxAttempts-1)
	})
}

// requirePause checks that a pause is what the server asked for and a random part.
func requirePause(t *testing.T, asked time.Duration, s *script, hint string) {
	t.Helper()
	require.Len(t, s.pauses, 1, hint)
	require.GreaterOrEqual(t, s.pauses[0], asked, hint)
	require.LessOrEqual(t, s.pauses[0], asked+transport.DefaultBaseDelay, hint)
}

// synctest's clock starts at midnight of 2000-01-01 UTC.
func TestTransport_HonoursRetryAfter(t *testing.T) {
	t.Parallel()
	const date, later = "Sat, 01 Jan 2000 01:00:00 GMT", "Sat, 01 Jan 2000 01:00:05 GMT"
	for name, tt := range map[string]struct {
		headers []string
		want    time.Duration
	}{
		"seconds":              {[]string{"Retry-After", "7"}, 7 * time.Second},
		"zero":                 {[]string{"Retry-After", "0"}, 0},
		"date":                 {[]string{"Retry-After", "Sat, 01 Jan 2000 00:00:09 GMT"}, 9 * time.Second},
		"date, clocks differ":  {[]string{"Retry-After", later, "Date", date}, 5 * time.Second},
		"date in the past":     {[]string{"Retry-After", date, "Date", later}, 0},
		"empty":                {[]string{"Retry-After", ""}, 0},
		"not a number":         {[]string{"Retry-After", "soon"}, 0},
		"negative":             {[]string{"Retry-After", "-1"}, 0},
		"fraction of a second": {[]string{"Retry-After", "1.5"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				rt, s := scripted(t, answerWith(503, "", tt.headers...), created)
				code, _ := roundTrip(t, rt, newRequest(t, http.MethodPost, ""))
				require.Equal(t, 201, code)
				requirePause(t, tt.want, s, name)
			})
		})
	}
	for _, value := range []string{"3600", "99999999999999999999", "Fri, 31 Dec 9999 23:59:59 GMT"} {
		t.Run(value, func(t *testing.T) {
			t.Parallel()
			rt, s := scripted(t, answerWith(503, "busy", "Retry-After", value), created)
			code, body := roundTrip(t, rt, newRequest(t, http.MethodPost, ""))
			require.Equal(t, 503, code, "beyond the budget")
			require.Equal(t, "busy", body)
			require.Empty(t, s.pauses)
		})
	}
}

// Clients that an overloaded server sent away return later and later, and not together.
func TestTransport_SpreadsRetriesOfAnOverloadedServer(t *testing.T) {
	t.Parallel()
	for _, code := range []int{429, 503} {
		longest := make([]time.Duration, 5)
		for range 50 {
			synctest.Test(t, func(t *testing.T) {
				rt, s := scripted(t, answerWith(code, "", "Retry-After", "1"))
				rt.MaxAttempts = len(longest) + 1
				_, _ = roundTrip(t, rt, newRequest(t, http.MethodPost, ""))
				for i, pause := range s.pauses {
					require.GreaterOrEqual(t, pause, time.Second)
					require.LessOrEqual(t, pause, time.Second+transport.DefaultBaseDelay<<i)
					longest[i] = max(longest[i], pause)
				}
			})
		}
		require.Greater(t, longest[4], 2*time.Second+transport.DefaultBaseDelay, "not only by the first delay")
	}
}

// TestTransport_AsksToWait after a 409 idempotency_in_progress, and only then.
func TestTransport_AsksToWait(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*transport.Transport, *http.Request)
		first  func(*http.Request) (*http.Response, error)
		want   string
	}{
		"by default":         {func(*transport.Transport, *http.Request) {}, inProgress, "wait=10"},
		"for a set time":     {func(rt *transport.Transport, _ *http.Request) { rt.Wait = 2500 * time.Millisecond }, inProgress, "wait=2"},
		"within the attempt": {func(rt *transport.Transport, _ *http.Request) { rt.AttemptTimeout = 8 * time.Second }, inProgress, "wait=4"},
		"never":              {func(rt *transport.Transport, _ *http.Request) { rt.Wait = -1 }, inProgress, ""},
		"the caller decides": {func(_ *transport.Transport, r *http.Request) { r.Header.Set("Prefer", "wait=3") }, inProgress, "wait=3"},
		"not after a 503":    {func(*transport.Transport, *http.Request) {}, answerWith(503, ""), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				rt, s := scripted(t, tt.first, created)
				r := newRequest(t, http.MethodPost, "")
				tt.change(rt, r)
				before := r.Header.Get("Prefer")
				code, _ := roundTrip(t, rt, r)
				require.Equal(t, 201, code)
				require.Equal(t, []string{before, tt.want}, s.prefers)
				require.Equal(t, before, r.Header.Get("Prefer"), "the caller's request is not changed")
				require.Equal(t, s.keys[0], s.keys[1])
			})
		})
	}
}

func TestTransport_KeepsItsBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rt, s := scripted(t, answerWith(503, "still busy", "Retry-After", "10"))
		rt.MaxElapsed = 25 * time.Second
		code, body := roundTrip(t, rt, newRequest(t, http.MethodPost, ""))
		require.Equal(t, 503, code)
		require.Equal(t, "still busy", body, "the last response is whole")
		require.Len(t, s.keys, 3)

		rt, s = scripted(t, noAnswer)
		rt.MaxAttempts = 1
		_, err := rt.RoundTrip(newRequest(t, http.MethodPost, ""))
		require.ErrorIs(t, err, errReset)
		require.Len(t, s.keys, 1)
	})
}

func TestTransport_RespectsTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		rt, s := scripted(t, answerWith(503, "busy", "Retry-After", "30"), created)
		code, _ := roundTrip(t, rt, newRequest(t, http.MethodPost, "").WithContext(ctx))
		require.Equal(t, 503, code, "a pause that outlasts the deadline is none")
		require.Empty(t, s.pauses)

		ctx, cancel = context.WithCancel(t.Context())
		rt, s = scripted(t, func(*http.Request) (*http.Response, error) { cancel(); return nil, errReset })
		_, err := rt.RoundTrip(newRequest(t, http.MethodPost, "").WithContext(ctx))
		require.ErrorIs(t, err, errReset)
		require.Len(t, s.keys, 1, "the caller left during the attempt")

		ctx, cancel = context.WithCancel(t.Context())
		rt, s = scripted(t, noAnswer)
		rt.OnRetry = func(transport.Retry) { cancel() }
		_, err = rt.RoundTrip(newRequest(t, http.MethodPost, "").WithContext(ctx))
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, "connection reset")
		require.Len(t, s.keys, 1, "the caller left during the pause")
	})
}

func TestTransport_ReportsRetries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var attempts []int
		var reasons []string
		rt, s := scripted(t, noAnswer, inProgress, created)
		type mark struct{}
		ctx := context.WithValue(t.Context(), mark{}, "caller's")
		rt.OnRetry = func(r transport.Retry) {
			attempts, reasons = append(attempts, r.Attempt), append(reasons, r.Reason)
			require.Equal(t, s.keys[0], r.Request.Header.Get("Idempotency-Key"))
			require.Equal(t, "caller's", r.Request.Context().Value(mark{}))
		}
		roundTrip(t, rt, newRequest(t, http.MethodPost, "").WithContext(ctx))
		require.Equal(t, []int{1, 2}, attempts)
		require.Equal(t, []string{"connection reset", "409 Conflict"}, reasons)
	})
}

func TestTransport_SendsALargeBodyOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rt, s := scripted(t, answerWith(503, ""))
		rt.MaxBody = 10
		for _, tt := range []struct {
			size, attempts int
		}{{10, transport.DefaultMaxAttempts}, {11, 1}} {
			s.keys, s.bodies = nil, nil
			sent := strings.Repeat("x", tt.size)
			body := &closable{Reader: strings.NewReader(sent)}
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://shop.example/", body)
			require.NoError(t, err)
			code, _ := roundTrip(t, rt, r)
			require.Equal(t, 503, code)
			require.Len(t, s.keys, tt.attempts)
			require.Equal(t, sent, s.bodies[0])
			require.NotEmpty(t, s.keys[0], "it has a key all the same")
			require.True(t, body.closed)
		}
	})
}

func TestTransport_ClosesAnUnreadableBody(t *testing.T) {
	t.Parallel()
	rt, s := scripted(t, created)
	body := &closable{Reader: io.MultiReader(strings.NewReader("x"), failing{})}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://shop.example/", body)
	require.NoError(t, err)
	response, err := rt.RoundTrip(r)
	if err == nil {
		_ = response.Body.Close()
	}
	require.ErrorIs(t, err, errReset)
	require.True(t, body.closed)
	require.Empty(t, s.keys)
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errReset }

type closable struct {
	io.Reader
	closed bool
}

func (c *closable) Close() error { c.closed = true; return nil }
