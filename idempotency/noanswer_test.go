package idempotency_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/internal/faulty"
)

func TestDeadline_OfAHandlerThatWroteNothingIsNoAnswer(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]idempotency.Policy{
		"failing closed": {Deadline: time.Minute},
		"failing open":   {Deadline: time.Minute, FailureMode: idempotency.FailOpen},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup(t, policy, func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Location", "/orders/1")
					<-r.Context().Done()
				})
				for range 2 {
					w := b.post(t, "key", "")
					requireProblem(t, w, http.StatusServiceUnavailable, idempotency.CodeRequestTimeout)
					require.Equal(t, "2", w.Header().Get("Retry-After"))
				}
				require.Equal(t, 2, b.ran(), "the key was released")
			})
		})
	}
}

// TestDeadline_KeepsWhatWasWritten: a handler that is late and has answered is done.
func TestDeadline_KeepsWhatWasWritten(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(http.ResponseWriter){
		"a status": func(w http.ResponseWriter) { w.WriteHeader(http.StatusNoContent) },
		"a body":   func(w http.ResponseWriter) { write(w, "done") },
		"no bytes": func(w http.ResponseWriter) { write(w, "") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup(t, idempotency.Policy{}, func(w http.ResponseWriter, r *http.Request) {
					<-r.Context().Done()
					answer(w)
				})
				requireReplay(t, b.post(t, "key", ""), b.post(t, "key", ""))
				require.Equal(t, 1, b.ran())
			})
		})
	}
}

func TestLostLease_OfAHandlerThatWroteNothingIsNoAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, idempotency.Policy{}, func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			require.ErrorIs(t, context.Cause(r.Context()), idempotency.ErrLost)
		})
		b.store.Fail = faulty.On(faulty.Extend, idempotency.ErrLost)
		requireProblem(t, b.post(t, "key", ""), http.StatusServiceUnavailable, idempotency.CodeRequestTimeout)
		require.Equal(t, idempotency.ResultLost, b.lastCheck().Result)
	})
}
