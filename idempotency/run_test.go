package idempotency_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
)

func TestDeadline_EndsTheHandler(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, idempotency.Policy{Deadline: 40 * time.Second}, func(w http.ResponseWriter, r *http.Request) {
			began := time.Now()
			<-r.Context().Done()
			require.ErrorIs(t, r.Context().Err(), context.DeadlineExceeded)
			require.Equal(t, 40*time.Second, time.Since(began))
			time.Sleep(time.Minute) // it takes its time to stop
			w.WriteHeader(http.StatusGatewayTimeout)
		})
		require.Equal(t, http.StatusGatewayTimeout, b.post(t, "key", "").Code)
		require.Equal(t, []idempotency.Result{idempotency.ResultAcquired}, b.results(), "the key was held to the end")
		require.NotContains(t, b.store.Taken(), "complete")
	})
}

func TestHandler_RunsOnAfterADisconnect(t *testing.T) {
	t.Parallel()
	type contextKey struct{}
	ctx, disconnect := context.WithCancel(context.WithValue(t.Context(), contextKey{}, "value"))
	b := setup(t, idempotency.Policy{}, func(w http.ResponseWriter, r *http.Request) {
		disconnect()
		require.NoError(t, r.Context().Err())
		require.Equal(t, "value", r.Context().Value(contextKey{}))
		write(w, "done")
	})
	first := b.send(request(t, "key", "").WithContext(ctx))
	requireReplay(t, first, b.post(t, "key", ""))
	require.Equal(t, 1, b.ran())
}

func TestHandler_RunsForAClientThatIsGone(t *testing.T) {
	t.Parallel()
	ctx, disconnect := context.WithCancel(t.Context())
	disconnect()
	b := setup(t, idempotency.Policy{}, nil)
	b.store.Fail = func(ctx context.Context, _ string) error { return ctx.Err() }
	first := b.send(request(t, "key", "").WithContext(ctx))
	requireReplay(t, first, b.post(t, "key", ""))
}

// TestHeartbeat_CancelsTheHandlerInTime cancels the handler before anybody else could hold the
// key, and as late as that allows.
func TestCheck_ExcludesTheHandlersTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, idempotency.Policy{}, func(http.ResponseWriter, *http.Request) { time.Sleep(9 * time.Second) })
		b.store.Fail = func(context.Context, string) error { time.Sleep(time.Second); return nil }
		b.post(t, "key", "")
		require.Equal(t, 2*time.Second, b.lastCheck().Duration, "acquire and complete")
	})
}
