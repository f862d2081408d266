package idempotency_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/internal/faulty"
)

// These tests run on synctest's clock: their seconds pass at once.

func TestHeartbeat_KeepsTheKeyOfASlowHandler(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, idempotency.Policy{Deadline: time.Hour}, func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(10*time.Minute + time.Second)
			require.NoError(t, r.Context().Err())
			write(w, "slow")
		})
		var running sync.WaitGroup
		running.Go(func() { b.post(t, "key", "") })
		time.Sleep(9 * time.Minute)
		w := b.post(t, "key", "")
		requireProblem(t, w, http.StatusConflict, idempotency.CodeInProgress)
		running.Wait()
		require.Equal(t, "slow", b.post(t, "key", "").Body.String())
		require.Equal(t, 1, b.ran())
		beats := len(slices.DeleteFunc(b.store.Taken(), func(step string) bool { return step != "extend" }))
		require.Equal(t, 120, beats, "one every five seconds")
	})
}

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

// cancelledHandler answers 503 once its context ends, and says when and why.
type cancelledHandler struct {
	after time.Duration
	cause error
}

func (h *cancelledHandler) serve(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	<-r.Context().Done()
	h.after, h.cause = time.Since(began), context.Cause(r.Context())
	w.WriteHeader(http.StatusServiceUnavailable)
}

func TestHeartbeat_CancelsTheHandlerOnALostLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var h cancelledHandler
		b := setup(t, idempotency.Policy{Deadline: time.Hour}, h.serve)
		b.store.Fail = faulty.On(faulty.Extend, idempotency.ErrLost)
		require.Equal(t, http.StatusServiceUnavailable, b.post(t, "key", "").Code)
		require.ErrorIs(t, h.cause, idempotency.ErrLost)
		require.Equal(t, 5*time.Second, h.after)
		require.Equal(t, idempotency.ResultLost, b.lastCheck().Result)
		require.ErrorIs(t, b.lastCheck().Err, idempotency.ErrLost)
	})
}

func TestHandler_AnswersAfterALostLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, idempotency.Policy{}, func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(20 * time.Second)
			write(w, "committed")
		})
		b.store.Fail = faulty.On(faulty.Extend, idempotency.ErrLost)
		var running sync.WaitGroup
		var first *httptest.ResponseRecorder
		running.Go(func() { first = b.post(t, "key", "") })
		time.Sleep(16 * time.Second)
		second := b.post(t, "key", "") // takes the key over
		running.Wait()
		require.Equal(t, "committed", first.Body.String(), "what an authority may have committed is told")
		require.Equal(t, "committed", second.Body.String())
		require.Equal(t, []idempotency.Result{idempotency.ResultLost, idempotency.ResultLost}, b.results())
	})
}

// TestHeartbeat_CancelsTheHandlerInTime cancels the handler before anybody else could hold the
// key, and as late as that allows.
func TestHeartbeat_CancelsTheHandlerInTime(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(context.Context, string) error{
		"at once":     faulty.On(faulty.Extend, idempotency.ErrUnavailable),
		"by silence":  faulty.Hang(faulty.Extend),
		"as they can": faulty.On(faulty.Extend, idempotency.ErrCorrupt),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var h cancelledHandler
				b := setup(t, idempotency.Policy{Deadline: time.Hour}, h.serve)
				b.store.Fail = fail
				b.post(t, "key", "")
				require.ErrorIs(t, h.cause, idempotency.ErrUnavailable)
				require.GreaterOrEqual(t, h.after, 12500*time.Millisecond)
				require.LessOrEqual(t, h.after, 13750*time.Millisecond, "before the lease of 15 s ends")
				require.Equal(t, idempotency.ResultLost, b.lastCheck().Result)
			})
		})
	}
}

func TestHeartbeat_SurvivesFailures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, idempotency.Policy{Deadline: time.Hour}, func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(10 * time.Minute)
			require.NoError(t, r.Context().Err())
			write(w, "done")
		})
		began := time.Now()
		b.store.Fail = func(_ context.Context, step string) error {
			if step == "extend" && time.Since(began)%(20*time.Second) < 6*time.Second {
				return idempotency.ErrUnavailable // often, but never for too long
			}
			return nil
		}
		first := b.post(t, "key", "")
		requireReplay(t, first, b.post(t, "key", ""))
		require.Equal(t, []idempotency.Result{idempotency.ResultAcquired, idempotency.ResultReplay}, b.results())
	})
}

func TestHeartbeat_MakesALastAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, idempotency.Policy{}, func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(20 * time.Second)
			require.NoError(t, r.Context().Err())
			write(w, "done")
		})
		began := time.Now()
		b.store.Fail = func(ctx context.Context, step string) error {
			if step == "extend" && time.Since(began) < 12500*time.Millisecond {
				return idempotency.ErrUnavailable
			}
			return ctx.Err()
		}
		require.Equal(t, "done", b.post(t, "key", "").Body.String())
		require.Equal(t, []idempotency.Result{idempotency.ResultAcquired}, b.results())
	})
}

func TestHeartbeat_EndsWithTheHandler(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, idempotency.Policy{}, nil)
		b.post(t, "key", "")
		time.Sleep(time.Minute)
		require.Equal(t, []string{"acquire", "complete"}, b.store.Taken())
	})
}

func TestCheck_ExcludesTheHandlersTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, idempotency.Policy{}, func(http.ResponseWriter, *http.Request) { time.Sleep(9 * time.Second) })
		b.store.Fail = func(context.Context, string) error { time.Sleep(time.Second); return nil }
		b.post(t, "key", "")
		require.Equal(t, 2*time.Second, b.lastCheck().Duration, "acquire and complete")
	})
}
