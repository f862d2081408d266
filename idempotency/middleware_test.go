package idempotency_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/memstore"
)

func TestReplay_ReturnsTheKeptAnswer(t *testing.T) {
	t.Parallel()
	etag := strings.Join([]string{"E", "Tag"}, "") // a spelling that is not canonical
	b := setup(t, idempotency.Policy{}, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		h := w.Header()
		h.Set("Content-Type", "text/plain")
		h.Set("Location", "/orders/1")
		h.Add("Link", "<a>")
		h.Add("Link", "<b>")
		h[etag] = []string{`"v1"`}
		h.Set("Set-Cookie", "session=1")
		h.Set("X-Trace", "1")
		w.WriteHeader(http.StatusCreated)
		write(w, "you sent ")
		write(w, string(body)+"\x00\xff")
	})
	first := b.post(t, "key", "hello")
	require.Equal(t, http.StatusCreated, first.Code)
	require.Equal(t, "you sent hello\x00\xff", first.Body.String())
	require.Equal(t, "session=1", first.Header().Get("Set-Cookie"), "the first client gets all of it")
	require.Empty(t, first.Header().Get(idempotency.HeaderReplay))

	again := b.post(t, `"key"`, "hello")
	requireReplay(t, first, again)
	require.Equal(t, "/orders/1", again.Header().Get("Location"))
	require.Equal(t, []string{"<a>", "<b>"}, again.Header()["Link"])
	require.Equal(t, "text/plain", again.Header().Get("Content-Type"))
	require.Equal(t, []string{`"v1"`}, again.Header()[etag])
	require.NotContains(t, again.Header(), "Set-Cookie")
	require.NotContains(t, again.Header(), "X-Trace")
	require.Equal(t, 1, b.ran())
	require.Equal(t, []string{"acquire", "complete", "acquire"}, b.store.Taken())
	require.Equal(t, []idempotency.Result{idempotency.ResultAcquired, idempotency.ResultReplay}, b.results())
	require.Equal(t, "key", b.lastCheck().Key)
}

func TestOutcome_DecidesWhatIsKept(t *testing.T) {
	t.Parallel()
	type outcome struct {
		code   int
		status idempotency.Status // "": released
	}
	for _, tt := range []outcome{
		{200, idempotency.StatusCompleted}, {201, idempotency.StatusCompleted}, {202, idempotency.StatusCompleted},
		{204, idempotency.StatusCompleted}, {299, idempotency.StatusCompleted}, {302, idempotency.StatusCompleted},
		{304, idempotency.StatusCompleted}, {400, idempotency.StatusFailed}, {402, idempotency.StatusFailed},
		{409, idempotency.StatusFailed}, {422, idempotency.StatusFailed}, {499, idempotency.StatusFailed},
		{408, ""}, {425, ""}, {429, ""}, {307, ""}, {308, ""}, {401, ""}, {403, ""}, {404, ""}, {405, ""}, {415, ""}, {500, ""}, {502, ""}, {503, ""}, {504, ""}, {599, ""}, {600, ""},
	} {
		t.Run(strconv.Itoa(tt.code), func(t *testing.T) {
			t.Parallel()
			b := setup(t, idempotency.Policy{}, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(tt.code) })
			first, again := b.post(t, "key", ""), b.post(t, "key", "")
			require.Equal(t, tt.code, first.Code)
			if tt.status == "" {
				require.Equal(t, 2, b.ran())
				require.Empty(t, again.Header().Get(idempotency.HeaderReplay))
				require.Equal(t, []string{"acquire", "release", "acquire", "release"}, b.store.Taken())
				return
			}
			requireReplay(t, first, again)
			existing, err := b.store.Acquire(t.Context(), idempotency.Record{Scope: "ada", Key: "key", Owner: "x"}, time.Minute)
			require.NoError(t, err)
			require.Equal(t, tt.status, existing.Status)
		})
	}
}

func TestClaim_Release(t *testing.T) {
	t.Parallel()
	b := setup(t, idempotency.Policy{}, func(w http.ResponseWriter, r *http.Request) {
		idempotency.ClaimFrom(r.Context()).Release()
		w.WriteHeader(http.StatusConflict)
	})
	require.Equal(t, http.StatusConflict, b.post(t, "key", "duplicate").Code)
	require.Equal(t, http.StatusConflict, b.post(t, "key", "corrected").Code)
	require.Equal(t, 2, b.ran())
}

func TestClaim_Replayed(t *testing.T) {
	t.Parallel()
	b := setup(t, idempotency.Policy{}, func(w http.ResponseWriter, r *http.Request) {
		idempotency.ClaimFrom(r.Context()).Replayed()
		w.WriteHeader(http.StatusCreated)
		write(w, "as the database had it")
	})
	first := b.post(t, "key", "")
	requireReplay(t, first, first)
	requireReplay(t, first, b.post(t, "key", ""))
	require.Equal(t, 1, b.ran(), "the record was put back")
	require.Equal(t, []idempotency.Result{idempotency.ResultReplay, idempotency.ResultReplay}, b.results())
}

func TestPolicy_RequiresAKey(t *testing.T) {
	t.Parallel()
	b := setup(t, idempotency.Policy{Required: true}, nil)
	for name, tt := range map[string]struct{ key, code, message string }{
		"missing":   {"", idempotency.CodeKeyMissing, "Idempotency-Key header is required"},
		"too long":  {strings.Repeat("k", 256), idempotency.CodeKeyTooLong, "Idempotency-Key must not exceed 255 characters"},
		"malformed": {"a\x01", idempotency.CodeKeyMalformed, "Idempotency-Key must not contain control characters"},
		"empty":     {`""`, idempotency.CodeKeyMalformed, "Idempotency-Key must not be empty"},
	} {
		problem := requireProblem(t, b.post(t, tt.key, "{}"), http.StatusBadRequest, tt.code)
		require.Equal(t, tt.message, problem["error"], name)
	}
	require.Zero(t, b.ran())
	require.Empty(t, b.store.Taken(), "no key is burned")
}

func TestPolicy_AllowsNoKey(t *testing.T) {
	t.Parallel()
	b := setup(t, idempotency.Policy{}, func(_ http.ResponseWriter, r *http.Request) {
		require.Nil(t, idempotency.ClaimFrom(r.Context()))
	})
	b.post(t, "", "{}")
	b.post(t, "", "{}")
	require.Equal(t, 2, b.ran())
	require.Empty(t, b.results())
	requireProblem(t, b.post(t, `"`, "{}"), http.StatusBadRequest, idempotency.CodeKeyMalformed)
}

func TestPolicy_NilPassesThrough(t *testing.T) {
	t.Parallel()
	runs := 0
	m := idempotency.New(memstore.New(), func(*http.Request) *idempotency.Policy { return nil }, idempotency.WithSharedScope())
	handler := m.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		runs++
		require.Nil(t, idempotency.ClaimFrom(r.Context()))
		require.NoError(t, http.NewResponseController(w).Flush(), "the writer is the server's own")
	}))
	handler.ServeHTTP(httptest.NewRecorder(), request(t, "key", ""))
	handler.ServeHTTP(httptest.NewRecorder(), request(t, "a\x00", ""))
	require.Equal(t, 2, runs)
}

func TestClaim_HasWhatAnAuthorityNeeds(t *testing.T) {
	t.Parallel()
	var claim *idempotency.Claim
	policy := idempotency.Policy{TTL: time.Hour, ExcludedFields: []string{"t"}}
	b := setup(t, policy, func(_ http.ResponseWriter, r *http.Request) { claim = idempotency.ClaimFrom(r.Context()) })
	r := request(t, "key", `{"t":1}`)
	r.Header.Set("X-Account", "acct_1")
	b.send(r)
	require.Equal(t, "acct_1", claim.Scope)
	require.Equal(t, "key", claim.Key)
	require.Equal(t, time.Hour, claim.TTL)
	require.Equal(t, fingerprint("{}"), claim.Fingerprint)
	require.Len(t, string(claim.Owner), 32)
	require.False(t, claim.Bypassed)
}

func TestMismatch_IsUnprocessable(t *testing.T) {
	t.Parallel()
	const message = "Idempotency key has already been used with a different request payload."
	b := setup(t, idempotency.Policy{ExcludedFields: []string{"sent_at"}}, nil)
	first := b.post(t, "key", `{"a":1,"sent_at":1}`)
	problem := requireProblem(t, b.post(t, "key", `{"a":2}`), http.StatusUnprocessableEntity, idempotency.CodeKeyReused)
	require.Equal(t, message, problem["error"])

	otherPath := request(t, "key", `{"a":1,"sent_at":1}`)
	otherPath.URL.Path = "/payments"
	requireProblem(t, b.send(otherPath), http.StatusUnprocessableEntity, idempotency.CodeKeyReused)
	otherMethod := request(t, "key", `{"a":1,"sent_at":1}`)
	otherMethod.Method = http.MethodPatch
	requireProblem(t, b.send(otherMethod), http.StatusUnprocessableEntity, idempotency.CodeKeyReused)

	requireReplay(t, first, b.post(t, "key", `{"sent_at":2,"a":1}`))
	otherScope := request(t, "key", `{"a":2}`)
	otherScope.Header.Set("X-Account", "acct_2")
	require.Equal(t, http.StatusCreated, b.send(otherScope).Code)
	require.Equal(t, 2, b.ran())
	require.Equal(t, idempotency.ResultMismatch, b.checks[1].Result)
}

func TestConflict_WhileInProgress(t *testing.T) {
	t.Parallel()
	started, finish := make(chan struct{}), make(chan struct{})
	b := setup(t, idempotency.Policy{}, func(w http.ResponseWriter, _ *http.Request) {
		close(started)
		<-finish
		write(w, "done")
	})
	var first *httptest.ResponseRecorder
	var running sync.WaitGroup
	running.Go(func() { first = b.post(t, "key", "a") })
	<-started
	conflict := b.post(t, "key", "a")
	problem := requireProblem(t, conflict, http.StatusConflict, idempotency.CodeInProgress)
	require.Equal(t, "A request with this idempotency key is already being processed. Retry after the original request completes.", problem["error"])
	seconds, err := strconv.Atoi(conflict.Header().Get("Retry-After"))
	require.NoError(t, err)
	require.Equal(t, 1, seconds, "the attempt has just begun")
	undecided := b.post(t, "key", "b")
	requireProblem(t, undecided, http.StatusConflict, idempotency.CodeInProgress)
	require.Equal(t, "1", undecided.Header().Get("Retry-After"))
	close(finish)
	running.Wait()
	requireReplay(t, first, b.post(t, "key", "a"))
	mismatch := b.post(t, "key", "b")
	requireProblem(t, mismatch, http.StatusUnprocessableEntity, idempotency.CodeKeyReused)
	require.Empty(t, mismatch.Header().Get("Retry-After"), "it is final")
	require.Equal(t, 1, b.ran())
	require.Equal(t, []idempotency.Result{
		idempotency.ResultConflict, idempotency.ResultConflict, idempotency.ResultAcquired, idempotency.ResultReplay, idempotency.ResultMismatch,
	}, b.results())
}

// pendingStore always answers with one record in progress.
type pendingStore struct {
	idempotency.Store
	record idempotency.Record
}

func (s pendingStore) Acquire(_ context.Context, pending idempotency.Record, _ time.Duration) (*idempotency.Record, error) {
	s.record.Fingerprint, s.record.Status = pending.Fingerprint, idempotency.StatusInProgress
	return &s.record, nil
}

func TestConflict_RetryAfterGrowsWithTheAttempt(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		lease, age time.Duration
		want       string
	}{
		"just begun":             {15 * time.Second, 100 * time.Millisecond, "1"},
		"a while ago":            {15 * time.Second, 4500 * time.Millisecond, "5"},
		"long ago":               {15 * time.Second, time.Hour, "15"},
		"a clock ahead":          {15 * time.Second, -time.Hour, "1"},
		"a lease under a second": {200 * time.Millisecond, time.Hour, "1"},
		"a fraction of a lease":  {2500 * time.Millisecond, time.Hour, "3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				record := idempotency.Record{CreatedAt: time.Now().Add(-tt.age), ExpiresAt: time.Now().Add(tt.lease)}
				require.Equal(t, tt.want, conflict(t, record, tt.lease).Header().Get("Retry-After"))
			})
		})
	}
	dead := idempotency.Record{CreatedAt: time.Now().Add(-time.Minute), ExpiresAt: time.Now().Add(4200 * time.Millisecond)}
	require.Equal(t, "5", conflict(t, dead, 15*time.Second).Header().Get("Retry-After"), "its lease ends then, unless its holder lives")
	require.Equal(t, "1", conflict(t, idempotency.Record{}, time.Minute).Header().Get("Retry-After"), "a record without times")
}

// conflict returns the answer to a request whose key another one holds.
func conflict(t *testing.T, record idempotency.Record, lease time.Duration) *httptest.ResponseRecorder {
	t.Helper()
	m := idempotency.New(pendingStore{record: record}, idempotency.Always(idempotency.Policy{Lease: lease}), idempotency.WithSharedScope())
	w := httptest.NewRecorder()
	m.Handler(http.NotFoundHandler()).ServeHTTP(w, request(t, "key", ""))
	requireProblem(t, w, http.StatusConflict, idempotency.CodeInProgress)
	return w
}

func TestMiddleware_RunsOneOfMany(t *testing.T) {
	t.Parallel()
	b := setup(t, idempotency.Policy{}, nil)
	var running sync.WaitGroup
	answers := make([]*httptest.ResponseRecorder, 50)
	for i := range answers {
		running.Go(func() { answers[i] = b.post(t, "key", "{}") })
	}
	running.Wait()
	require.Equal(t, 1, b.ran())
	for _, w := range answers {
		require.Contains(t, []int{http.StatusCreated, http.StatusConflict}, w.Code)
	}
	require.Equal(t, "{\"run\":1}\n", b.post(t, "key", "{}").Body.String())
}

func TestMiddleware_NestedIsOne(t *testing.T) {
	t.Parallel()
	b := setup(t, idempotency.Policy{}, nil)
	b.handler = b.Handler(b.handler)
	require.Equal(t, http.StatusCreated, b.post(t, "key", "").Code)
	require.Equal(t, []string{"acquire", "complete"}, b.store.Taken())
}

func TestBody_IsLimitedAndReadable(t *testing.T) {
	t.Parallel()
	b := setup(t, idempotency.Policy{}, nil, idempotency.WithMaxBody(10))
	require.Equal(t, http.StatusCreated, b.post(t, "ten", strings.Repeat("x", 10)).Code)
	problem := requireProblem(t, b.post(t, "eleven", strings.Repeat("x", 11)), http.StatusRequestEntityTooLarge, idempotency.CodeBodyTooLarge)
	require.Equal(t, "Request body must not exceed 10 bytes", problem["error"])

	broken := request(t, "broken", "")
	broken.Body = io.NopCloser(iotest.ErrReader(errors.New("connection reset")))
	w := b.send(broken)
	requireProblem(t, w, http.StatusBadRequest, idempotency.CodeBodyUnreadable)
	require.NotContains(t, w.Body.String(), "connection reset", "causes are for the log")

	outer := request(t, "outer limit", "")
	outer.Body = http.MaxBytesReader(nil, io.NopCloser(strings.NewReader("xxxxx")), 4)
	requireProblem(t, b.send(outer), http.StatusRequestEntityTooLarge, idempotency.CodeBodyTooLarge)

	empty := request(t, "no body", "")
	empty.Body = nil
	require.Equal(t, http.StatusCreated, b.send(empty).Code)
	require.Equal(t, 2, b.ran())
	require.Equal(t, idempotency.ResultRejected, b.checks[1].Result)
	require.Error(t, b.checks[1].Err)
}

func TestErrorWriter_IsReplaceable(t *testing.T) {
	t.Parallel()
	b := setup(t, idempotency.Policy{Required: true}, nil, idempotency.WithErrorWriter(
		func(w http.ResponseWriter, r *http.Request, e *idempotency.Error) {
			require.Equal(t, "/orders", r.URL.Path)
			http.Error(w, "own: "+e.Code, e.Status)
		}))
	w := b.post(t, "", "")
	require.Equal(t, http.StatusBadRequest, w.Code)
	require.Equal(t, "own: idempotency_key_missing\n", w.Body.String())
}

func TestHeaderAllowList_ReplacesTheDefault(t *testing.T) {
	t.Parallel()
	b := setup(t, idempotency.Policy{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Order", "1")
		w.Header().Set("Location", "/orders/1")
		w.Header().Set("Set-Cookie", "session=1")
		w.Header().Set("Content-Length", "0")
	}, idempotency.WithHeaderAllowList("x-order", "set-cookie", "Content-Length"))
	b.post(t, "key", "")
	again := b.post(t, "key", "")
	require.Equal(t, "1", again.Header().Get("X-Order"))
	require.NotContains(t, again.Header(), "Location", "the list replaces the default one")
	require.NotContains(t, again.Header(), "Set-Cookie", "not even if asked for")
	require.NotContains(t, again.Header(), "Content-Length")
}

func TestReplay_LeavesAStoredCookieOut(t *testing.T) {
	t.Parallel()
	b := setup(t, idempotency.Policy{}, nil)
	record := idempotency.Record{
		Scope: "ada", Key: "key", Owner: idempotency.NewOwner(), Status: idempotency.StatusInProgress,
		Fingerprint: idempotency.FingerprintOf(request(t, "key", ""), nil),
	}
	_, err := b.store.Acquire(t.Context(), record, time.Minute)
	require.NoError(t, err)
	record.Status = idempotency.StatusCompleted
	record.Response = idempotency.Response{StatusCode: 200, Header: http.Header{"Set-Cookie": {"session=1"}, "Link": {"<a>"}}}
	require.NoError(t, b.store.Complete(t.Context(), record, time.Minute))
	w := b.post(t, "key", "")
	require.Equal(t, "<a>", w.Header().Get("Link"))
	require.NotContains(t, w.Header(), "Set-Cookie", "wherever it was set")
}

func TestNew_PanicsOnNonsense(t *testing.T) {
	t.Parallel()
	always, shared := idempotency.Always(idempotency.Policy{}), idempotency.WithSharedScope()
	for name, make := range map[string]func(){
		"no store":              func() { idempotency.New(nil, always, shared) },
		"no policies":           func() { idempotency.New(memstore.New(), nil, shared) },
		"forgotten scope":       func() { idempotency.New(memstore.New(), always) },
		"no scope":              func() { idempotency.New(memstore.New(), always, idempotency.WithScope(nil)) },
		"no logger":             func() { idempotency.New(memstore.New(), always, shared, idempotency.WithLogger(nil)) },
		"negative body limit":   func() { idempotency.New(memstore.New(), always, shared, idempotency.WithMaxBody(-1)) },
		"negative answer limit": func() { idempotency.New(memstore.New(), always, shared, idempotency.WithMaxResponse(-1)) },
		"negative waiters":      func() { idempotency.New(memstore.New(), always, shared, idempotency.WithMaxWaiters(-1)) },
	} {
		require.Panics(t, make, name)
	}
}
