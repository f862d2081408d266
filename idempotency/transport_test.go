package idempotency_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
)

// script answers one request after the other, and notes what came and how long
// the client paused.
type script struct {
	t       *testing.T
	answers []func(*http.Request) (*http.Response, error)

	mu     sync.Mutex
	keys   []string
	bodies []string
	pauses []time.Duration
	closed int // response bodies that were read to the end and closed
}

// scripted makes a transport that plays a script, without waiting: pauses are as
// long as they can be.
func scripted(t *testing.T, answers ...func(*http.Request) (*http.Response, error)) (*idempotency.Transport, *script) {
	t.Helper()
	s := &script{t: t, answers: answers}
	now := time.Date(2025, 1, 1, 12, 0, 0, 0, time.UTC)
	return &idempotency.Transport{
		Base: s,
		Now:  func() time.Time { return now },
		Sleep: func(ctx context.Context, d time.Duration) error {
			s.pauses = append(s.pauses, d)
			now = now.Add(d)
			return ctx.Err()
		},
		Random: func() float64 { return 1 },
	}, s
}

// RoundTrip plays the next answer; the last one goes on for ever.
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

// roundTrip gives the answer's status and body.
func roundTrip(t *testing.T, transport *idempotency.Transport, r *http.Request) (int, string) {
	t.Helper()
	response, err := transport.RoundTrip(r)
	require.NoError(t, err)
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response.StatusCode, string(body)
}

func TestTransportRetriesTheSameRequest(t *testing.T) {
	t.Parallel()
	for name, makeBody := range map[string]func() io.Reader{
		"body that can be had again": func() io.Reader { return strings.NewReader(`{"sku":"tee"}`) },
		"body that is buffered":      func() io.Reader { return io.MultiReader(strings.NewReader(`{"sku":"tee"}`)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			transport, s := scripted(t, noAnswer, inProgress, answerWith(503, "later"), created)
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://shop.example/orders", makeBody())
			require.NoError(t, err)
			code, body := roundTrip(t, transport, r)
			require.Equal(t, 201, code)
			require.Equal(t, "made", body)
			require.Equal(t, []string{`{"sku":"tee"}`, `{"sku":"tee"}`, `{"sku":"tee"}`, `{"sku":"tee"}`}, s.bodies)
			require.Len(t, s.keys, 4)
			for _, key := range s.keys {
				require.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, key)
				require.Equal(t, s.keys[0], key)
			}
			require.Equal(t, 3, s.closed, "the two that were retried were drained and closed, and so is the last")
			require.Empty(t, r.Header, "the caller's request is left alone")
		})
	}
}

func TestTransportKeys(t *testing.T) {
	t.Parallel()
	transport, s := scripted(t, created)
	for _, method := range []string{http.MethodPost, http.MethodPatch, http.MethodPost} {
		roundTrip(t, transport, newRequest(t, method, ""))
	}
	require.NotContains(t, s.keys, "")
	require.NotEqual(t, s.keys[0], s.keys[2], "each request has its own")
	r := newRequest(t, http.MethodPost, "")
	r.Header.Set(idempotency.HeaderKey, "mine")
	roundTrip(t, transport, r)
	require.Equal(t, "mine", s.keys[3])
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete, http.MethodHead, http.MethodOptions} {
		roundTrip(t, transport, newRequest(t, method, ""))
		require.Empty(t, s.keys[len(s.keys)-1], method)
	}
}

func TestTransportDecides(t *testing.T) {
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
		{"409 of somebody else", answerWith(409, `conflict`), false},
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
				transport, s := scripted(t, tt.answer, created)
				response, err := transport.RoundTrip(newRequest(t, method, ""))
				if err == nil {
					require.NoError(t, response.Body.Close())
				}
				require.Equal(t, tt.again && repeatable, len(s.keys) == 2)
			})
		}
	}
}

func TestTransportReturnsAConflictWhole(t *testing.T) {
	t.Parallel()
	problem := `{"code":"out_of_stock","detail":"` + strings.Repeat("x", 20<<10) + `"}`
	transport, _ := scripted(t, answerWith(409, problem))
	code, body := roundTrip(t, transport, newRequest(t, http.MethodPost, ""))
	require.Equal(t, 409, code)
	require.Equal(t, problem, body)
}

func TestTransportPauses(t *testing.T) {
	t.Parallel()
	transport, s := scripted(t, noAnswer)
	transport.BaseDelay, transport.MaxAttempts, transport.MaxElapsed = time.Second, 9, time.Hour
	_, err := transport.RoundTrip(newRequest(t, http.MethodPost, ""))
	require.ErrorIs(t, err, errReset)
	require.ErrorContains(t, err, "attempt 9")
	require.Equal(t, []time.Duration{1e9, 2e9, 4e9, 8e9, 16e9, 30e9, 30e9, 30e9}, s.pauses)

	transport, s = scripted(t, noAnswer)
	transport.Random = func() float64 { return 0.25 }
	_, err = transport.RoundTrip(newRequest(t, http.MethodPost, ""))
	require.ErrorIs(t, err, errReset)
	require.Equal(t, idempotency.DefaultBaseDelay/4, s.pauses[0], "full jitter")
	require.Len(t, s.pauses, idempotency.DefaultMaxAttempts-1)
}

func TestTransportHonoursRetryAfter(t *testing.T) {
	t.Parallel()
	const date, later = "Wed, 01 Jan 2025 13:00:00 GMT", "Wed, 01 Jan 2025 13:00:05 GMT"
	for name, tt := range map[string]struct {
		headers []string
		want    time.Duration
	}{
		"seconds":           {[]string{"Retry-After", "7"}, 7 * time.Second},
		"none at all":       {[]string{"Retry-After", "0"}, 0},
		"date":              {[]string{"Retry-After", "Wed, 01 Jan 2025 12:00:09 GMT"}, 9 * time.Second},
		"date, clocks off":  {[]string{"Retry-After", later, "Date", date}, 5 * time.Second},
		"date that is over": {[]string{"Retry-After", date, "Date", later}, 0},
	} {
		transport, s := scripted(t, answerWith(503, "", tt.headers...), created)
		code, _ := roundTrip(t, transport, newRequest(t, http.MethodPost, ""))
		require.Equal(t, 201, code, name)
		require.Equal(t, []time.Duration{tt.want + idempotency.DefaultBaseDelay}, s.pauses, name)
	}
	for _, value := range []string{"", "soon", "-1", "1.5"} {
		transport, s := scripted(t, answerWith(503, "", "Retry-After", value), created)
		roundTrip(t, transport, newRequest(t, http.MethodPost, ""))
		require.Equal(t, []time.Duration{idempotency.DefaultBaseDelay}, s.pauses, "as without: %q", value)
	}
	for _, value := range []string{"3600", "99999999999999999999", "Fri, 31 Dec 9999 23:59:59 GMT"} {
		transport, s := scripted(t, answerWith(503, "busy", "Retry-After", value), created)
		code, body := roundTrip(t, transport, newRequest(t, http.MethodPost, ""))
		require.Equal(t, 503, code, "it is beyond the budget: %s", value)
		require.Equal(t, "busy", body)
		require.Empty(t, s.pauses)
	}
}

func TestTransportHasABudget(t *testing.T) {
	t.Parallel()
	transport, s := scripted(t, answerWith(503, "still busy", "Retry-After", "10"))
	transport.MaxElapsed = 25 * time.Second
	code, body := roundTrip(t, transport, newRequest(t, http.MethodPost, ""))
	require.Equal(t, 503, code)
	require.Equal(t, "still busy", body, "the last response is whole")
	require.Len(t, s.keys, 3)

	transport, s = scripted(t, noAnswer)
	transport.MaxAttempts = 1
	_, err := transport.RoundTrip(newRequest(t, http.MethodPost, ""))
	require.ErrorIs(t, err, errReset)
	require.Len(t, s.keys, 1)
}

func TestTransportRespectsTheContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	transport, s := scripted(t, answerWith(503, "busy", "Retry-After", "30"), created)
	code, _ := roundTrip(t, transport, newRequest(t, http.MethodPost, "").WithContext(ctx))
	require.Equal(t, 503, code, "a pause that outlasts the deadline is none")
	require.Empty(t, s.pauses)

	ctx, cancel = context.WithCancel(t.Context())
	transport, s = scripted(t, func(*http.Request) (*http.Response, error) { cancel(); return nil, errReset })
	_, err := transport.RoundTrip(newRequest(t, http.MethodPost, "").WithContext(ctx))
	require.ErrorIs(t, err, errReset)
	require.Len(t, s.keys, 1, "the caller left during the attempt")

	ctx, cancel = context.WithCancel(t.Context())
	transport, s = scripted(t, noAnswer)
	transport.OnRetry = func(int, string, time.Duration) { cancel() }
	_, err = transport.RoundTrip(newRequest(t, http.MethodPost, "").WithContext(ctx))
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "connection reset")
	require.Len(t, s.keys, 1, "the caller left during the pause")
}

func TestTransportTellsOfRetries(t *testing.T) {
	t.Parallel()
	type retry struct {
		attempt int
		reason  string
		wait    time.Duration
	}
	var told []retry
	transport, _ := scripted(t, noAnswer, inProgress, created)
	transport.OnRetry = func(attempt int, reason string, wait time.Duration) {
		told = append(told, retry{attempt, reason, wait})
	}
	roundTrip(t, transport, newRequest(t, http.MethodPost, ""))
	require.Equal(t, []retry{
		{1, "connection reset", idempotency.DefaultBaseDelay},
		{2, "409 Conflict", 3*time.Second + idempotency.DefaultBaseDelay},
	}, told)
}

func TestTransportSendsWhatItCannotBufferOnce(t *testing.T) {
	t.Parallel()
	transport, s := scripted(t, answerWith(503, ""))
	transport.MaxBody = 10
	for _, tt := range []struct {
		size, attempts int
	}{{10, idempotency.DefaultMaxAttempts}, {11, 1}} {
		s.keys, s.bodies = nil, nil
		sent := strings.Repeat("x", tt.size)
		body := &closable{Reader: strings.NewReader(sent)}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://shop.example/", body)
		require.NoError(t, err)
		code, _ := roundTrip(t, transport, r)
		require.Equal(t, 503, code)
		require.Len(t, s.keys, tt.attempts)
		require.Equal(t, sent, s.bodies[0])
		require.NotEmpty(t, s.keys[0], "it has a key all the same")
		require.True(t, body.closed)
	}
}

func TestTransportClosesABodyThatItCannotRead(t *testing.T) {
	t.Parallel()
	transport, s := scripted(t, created)
	body := &closable{Reader: io.MultiReader(strings.NewReader("x"), failing{})}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://shop.example/", body)
	require.NoError(t, err)
	response, err := transport.RoundTrip(r)
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

func TestNewKeysDiffer(t *testing.T) {
	t.Parallel()
	keys := map[string]bool{}
	for range 1000 {
		key := idempotency.NewKey()
		keys[key] = true
		parsed, _, problem := idempotency.ParseKey(http.Header{"Idempotency-Key": {key}})
		require.Nil(t, problem)
		require.Equal(t, key, parsed)
	}
	require.Len(t, keys, 1000)
}
