package idempotency_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/internal/faulty"
)

// stricter sends a request that a check in front of the middleware rejects with 400.
func (b *bundle) stricter(r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	b.Reject(w, r, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "rejected", http.StatusBadRequest) })
	return w
}

func TestReject_GivesTheKeptAnswer(t *testing.T) {
	t.Parallel()
	b := setup(t, idempotency.Policy{ExcludedFields: []string{"sent"}, Headers: []string{"If-Match"}}, nil)
	first := b.post(t, "key", `{"sent":1}`)
	requireReplay(t, first, b.stricter(request(t, `"key"`, `{"sent":2}`)))
	require.Equal(t, idempotency.ResultReplay, b.lastCheck().Result)
	require.Equal(t, "application/json", first.Header().Get("Content-Type"))
	otherVersion := request(t, "key", `{"sent":1}`)
	otherVersion.Header.Set("If-Match", "1")
	otherScope := request(t, "key", `{"sent":1}`)
	otherScope.Header.Set("X-Account", "another")
	for name, r := range map[string]*http.Request{
		"body": request(t, "key", `{"amount":1}`), "header": otherVersion, "scope": otherScope,
		"key": request(t, "another", `{"sent":1}`), "no key": request(t, "", `{"sent":1}`), "malformed key": request(t, "a,b", `{"sent":1}`),
		"unreadable body": httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/orders", io.MultiReader(strings.NewReader(`{`), failingReader{})),
	} {
		w := b.stricter(r)
		require.Equal(t, http.StatusBadRequest, w.Code, name)
		require.Equal(t, "rejected\n", w.Body.String(), name)
	}
	require.Equal(t, 1, b.ran())
	for _, step := range b.store.Taken()[2:] {
		require.Equal(t, faulty.Lookup, step, "no key is acquired")
	}
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestReject_LeavesTheKeyFree(t *testing.T) {
	t.Parallel()
	b := setup(t, idempotency.Policy{Required: true}, nil)
	require.Equal(t, http.StatusBadRequest, b.stricter(request(t, "key", "")).Code)
	require.Equal(t, []idempotency.Result{idempotency.ResultRejected}, b.results())
	require.Equal(t, http.StatusCreated, b.post(t, "key", "").Code)
	require.Equal(t, []idempotency.Result{idempotency.ResultRejected, idempotency.ResultAcquired}, b.results())
}

func TestReject_WaitsForWhatIsInProgress(t *testing.T) {
	t.Parallel()
	during := func() {}
	b := setup(t, idempotency.Policy{}, func(w http.ResponseWriter, _ *http.Request) { during(); w.WriteHeader(http.StatusCreated) })
	during = func() {
		w := b.stricter(request(t, "key", "1"))
		requireProblem(t, w, http.StatusConflict, idempotency.CodeInProgress)
		require.NotEmpty(t, w.Header().Get("Retry-After"))
		require.Equal(t, http.StatusBadRequest, b.stricter(request(t, "key", "2")).Code, "this one is certainly not executed")
	}
	requireReplay(t, b.post(t, "key", "1"), b.stricter(request(t, "key", "1")))
}

// TestReject_LeavesTheDecisionToTheAuthority where the store has lost the answer, or is away.
func TestReject_LeavesTheDecisionToTheAuthority(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]idempotency.Policy{"fail open": {FailureMode: idempotency.FailOpen}, "fail closed": {Authority: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, policy, nil)
			ask := func(w http.ResponseWriter, r *http.Request) {
				claim := idempotency.ClaimFrom(r.Context())
				require.True(t, claim.Bypassed)
				require.Equal(t, idempotency.FingerprintOf(r, []byte("body")), claim.Fingerprint)
				claim.Replayed()
				w.WriteHeader(http.StatusCreated)
				write(w, claim.Key)
			}
			for range 2 {
				w := httptest.NewRecorder()
				b.Reject(w, request(t, "key", "body"), ask)
				require.Equal(t, http.StatusCreated, w.Code)
				require.Equal(t, "key", w.Body.String())
				require.Equal(t, "true", w.Header().Get(idempotency.HeaderReplay))
				require.Equal(t, idempotency.ResultReplay, b.lastCheck().Result)
				b.store.Fail = faulty.Always(errStore)
			}
			require.Equal(t, []string{faulty.Lookup, faulty.Lookup}, b.store.Taken(), "nothing is kept")
		})
	}
}

func TestReject_WithoutAStoreAndAnAuthorityIsNotFinal(t *testing.T) {
	t.Parallel()
	b := setup(t, idempotency.Policy{}, nil)
	b.store.Fail = faulty.Always(errStore)
	requireProblem(t, b.stricter(request(t, "key", "")), http.StatusServiceUnavailable, idempotency.CodeStoreUnavailable)
	require.Equal(t, idempotency.ResultUnavailable, b.lastCheck().Result)

	unread := setupOn(t, func(s *faulty.Store) idempotency.Store { return struct{ idempotency.Store }{s} }, idempotency.Policy{}, nil)
	unread.post(t, "key", "")
	require.Equal(t, http.StatusBadRequest, unread.stricter(request(t, "key", "")).Code, "no Reader: only what the check says is known")
}

func TestReject_NeedsTheBody(t *testing.T) {
	t.Parallel()
	b := setup(t, idempotency.Policy{}, nil)
	r := request(t, "key", "body")
	_, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	requireProblem(t, b.stricter(r), http.StatusInternalServerError, idempotency.CodeBodyConsumed)
}

func TestKeyRule_RejectsNoKeyThatHasAnAnswer(t *testing.T) {
	t.Parallel()
	refused := &idempotency.Error{Status: http.StatusBadRequest, Code: "no_uuid", Message: "Send a UUID"}
	var rule *idempotency.Error
	b := setup(t, idempotency.Policy{}, nil, idempotency.WithKeyRule(func(*http.Request, string) *idempotency.Error { return rule }))
	first := b.post(t, "key", "")
	rule = refused
	requireReplay(t, first, b.post(t, "key", ""))
	requireProblem(t, b.post(t, "key", "another"), http.StatusBadRequest, "no_uuid")
	requireProblem(t, b.post(t, "another", ""), http.StatusBadRequest, "no_uuid")
	require.Equal(t, idempotency.ResultMalformed, b.lastCheck().Result)
}
