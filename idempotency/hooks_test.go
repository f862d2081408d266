package idempotency_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
)

func TestHeader_HasAnyName(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]*bundle{
		"X-Request-Token": setup(t, idempotency.Policy{Required: true}, nil, idempotency.WithHeader("X-Request-Token")),
		"X-Upload-Token": setup(t, idempotency.Policy{Required: true, Header: "x-upload-token"}, nil,
			idempotency.WithHeader("X-Request-Token")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := request(t, "", "")
			r.Header.Set(name, "key")
			first, again := b.send(r), b.send(r)
			require.Equal(t, http.StatusCreated, first.Code)
			requireReplay(t, first, again)
			problem := requireProblem(t, b.post(t, "key", ""), http.StatusBadRequest, idempotency.CodeKeyMissing)
			require.Contains(t, strings.ToLower(problem["detail"].(string)), strings.ToLower(name), "it names the header")
			r.Header.Set(name, "a\x7f")
			problem = requireProblem(t, b.send(r), http.StatusBadRequest, idempotency.CodeKeyMalformed)
			require.Contains(t, strings.ToLower(problem["detail"].(string)), strings.ToLower(name))
		})
	}
}

func TestKeyRule_RefusesKeys(t *testing.T) {
	t.Parallel()
	long := func(_ *http.Request, key string) *idempotency.Error {
		if len(key) < 16 {
			return &idempotency.Error{Status: http.StatusUnprocessableEntity, Code: "key_too_short", Message: "Send a UUID"}
		}
		return nil
	}
	b := setup(t, idempotency.Policy{}, nil, idempotency.WithKeyRule(long))
	requireProblem(t, b.post(t, "key", ""), http.StatusUnprocessableEntity, "key_too_short")
	require.Equal(t, idempotency.ResultMalformed, b.lastCheck().Result)
	require.Equal(t, http.StatusCreated, b.post(t, idempotency.NewKey(), "").Code)
	require.Equal(t, http.StatusCreated, b.post(t, "", "").Code, "there is no key to check")
}

// TestReplayHook_SeesReplaysAlone: the first answer comes from the handler, which decides itself.
func TestReplayHook_SeesReplaysAlone(t *testing.T) {
	t.Parallel()
	allowed := true
	b := setup(t, idempotency.Policy{}, nil, idempotency.WithReplayHook(
		func(w http.ResponseWriter, r *http.Request, kept *idempotency.Record) *idempotency.Error {
			w.Header().Set("X-First-Seen", kept.CreatedAt.Format(http.TimeFormat))
			w.Header().Set("Content-Type", "text/plain")
			if !allowed {
				return &idempotency.Error{Status: http.StatusForbidden, Code: "forbidden", Message: "Not yours " + r.URL.Path}
			}
			return nil
		}))
	first := b.post(t, "key", "")
	require.Empty(t, first.Header().Get("X-First-Seen"))
	again := b.post(t, "key", "")
	requireReplay(t, first, again)
	require.NotEmpty(t, again.Header().Get("X-First-Seen"))
	require.Equal(t, "application/json", again.Header().Get("Content-Type"), "the kept one")
	allowed = false
	requireProblem(t, b.post(t, "key", ""), http.StatusForbidden, "forbidden")
	require.Equal(t, idempotency.ResultDenied, b.lastCheck().Result)
	requireProblem(t, b.post(t, "key", `{"other":1}`), http.StatusUnprocessableEntity, idempotency.CodeKeyReused)
	require.Equal(t, 1, b.ran())
}

// TestErrorWriter_SeesConflicts: the code names the conflict, and the observer whom it is with.
func TestErrorWriter_SeesConflicts(t *testing.T) {
	t.Parallel()
	during := func() {}
	b := setup(t, idempotency.Policy{}, func(w http.ResponseWriter, _ *http.Request) { during(); w.WriteHeader(http.StatusCreated) },
		idempotency.WithTraceParent(func(context.Context) string { return "first" }),
		idempotency.WithErrorWriter(func(w http.ResponseWriter, r *http.Request, e *idempotency.Error) {
			w.Header().Set("X-Conflict", e.Code)
			idempotency.WriteProblem(w, r, e)
		}))
	during = func() {
		requireProblem(t, b.post(t, "key", ""), http.StatusConflict, idempotency.CodeInProgress)
		require.Equal(t, "first", b.lastCheck().Original)
	}
	b.post(t, "key", "")
	other := b.post(t, "key", `{"other":1}`)
	requireProblem(t, other, http.StatusUnprocessableEntity, idempotency.CodeKeyReused)
	require.Equal(t, idempotency.CodeKeyReused, other.Header().Get("X-Conflict"))
	require.Equal(t, "first", b.lastCheck().Original)
}
