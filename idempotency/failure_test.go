package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/internal/faulty"
)

var errStore = fmt.Errorf("%w: connection refused", idempotency.ErrUnavailable)

func TestFailClosed_AnswersUnavailable(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{errStore, idempotency.ErrCorrupt, errors.New("anything else")} {
		t.Run(cause.Error(), func(t *testing.T) {
			t.Parallel()
			b := setup(t, idempotency.Policy{}, nil)
			b.store.Fail = faulty.On(faulty.Acquire, cause)
			w := b.post(t, "key", "")
			problem := requireProblem(t, w, http.StatusServiceUnavailable, idempotency.CodeStoreUnavailable)
			require.NotContains(t, problem["error"], cause.Error())
			require.Equal(t, "2", w.Header().Get("Retry-After"))
			require.Zero(t, b.ran())
			require.Equal(t, idempotency.ResultUnavailable, b.lastCheck().Result)
			require.ErrorIs(t, b.lastCheck().Err, cause)
		})
	}
}

func TestFailOpen_RunsTheHandler(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{errStore, idempotency.ErrCorrupt} {
		t.Run(cause.Error(), func(t *testing.T) {
			t.Parallel()
			b := setup(t, idempotency.Policy{FailureMode: idempotency.FailOpen}, func(w http.ResponseWriter, r *http.Request) {
				require.True(t, idempotency.ClaimFrom(r.Context()).Bypassed)
				_, limited := r.Context().Deadline()
				require.True(t, limited)
				w.WriteHeader(http.StatusCreated)
			})
			b.store.Fail = faulty.Always(cause)
			require.Equal(t, http.StatusCreated, b.post(t, "key", "").Code)
			require.Equal(t, http.StatusCreated, b.post(t, "key", "").Code)
			require.Equal(t, 2, b.ran(), "the authority alone decides")
			require.Equal(t, []idempotency.Result{idempotency.ResultBypassed, idempotency.ResultBypassed}, b.results())
			require.ErrorIs(t, b.lastCheck().Err, cause)
		})
	}
}

func TestFailOpen_ReportsAReplayOfTheAuthority(t *testing.T) {
	t.Parallel()
	b := setup(t, idempotency.Policy{FailureMode: idempotency.FailOpen}, func(_ http.ResponseWriter, r *http.Request) {
		idempotency.ClaimFrom(r.Context()).Replayed()
	})
	b.store.Fail = faulty.Always(errStore)
	require.Equal(t, "true", b.post(t, "key", "").Header().Get(idempotency.HeaderReplay))
	require.Equal(t, idempotency.ResultReplay, b.lastCheck().Result)
}

// A lost reply leaves our own record behind, without a heartbeat.
func TestAcquire_IsTidiedUpAfterALostReply(t *testing.T) {
	t.Parallel()
	t.Run("failing closed", func(t *testing.T) {
		t.Parallel()
		b := setup(t, idempotency.Policy{}, nil)
		b.store.Lose = faulty.On(faulty.Acquire, errStore)
		requireProblem(t, b.post(t, "key", ""), http.StatusServiceUnavailable, idempotency.CodeStoreUnavailable)
		b.Wait()
		b.store.Lose = nil
		require.Equal(t, http.StatusCreated, b.post(t, "key", "").Code, "the key was released")
	})
	t.Run("failing open", func(t *testing.T) {
		t.Parallel()
		b := setup(t, idempotency.Policy{FailureMode: idempotency.FailOpen}, nil)
		b.store.Lose = faulty.On(faulty.Acquire, errStore)
		b.post(t, "key", "")
		b.Wait()
		require.Equal(t, []string{"acquire", "release"}, b.store.Taken(), "a paused store might keep the answer for too long")
		b.store.Lose = nil
		require.Equal(t, http.StatusCreated, b.post(t, "key", "").Code)
		require.Equal(t, 2, b.ran(), "the key was released, and the authority is asked again")
	})
	t.Run("failing open, then failing", func(t *testing.T) {
		t.Parallel()
		b := setup(t, idempotency.Policy{FailureMode: idempotency.FailOpen}, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
		})
		b.store.Lose = faulty.On(faulty.Acquire, errStore)
		b.post(t, "key", "")
		b.Wait()
		b.store.Lose = nil
		require.Equal(t, http.StatusBadGateway, b.post(t, "key", "").Code)
		require.Equal(t, 2, b.ran())
	})
}

// TestTidyUp_DelaysNoAnswer has the store hang: answers come at once, and what
// is left behind is bounded in number and in time.
func TestTidyUp_DelaysNoAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, idempotency.Policy{}, nil)
		var hanging, most atomic.Int64
		b.store.Fail = func(ctx context.Context, step string) error {
			if step == "acquire" {
				return errStore
			}
			most.Store(max(most.Load(), hanging.Add(1)))
			defer hanging.Add(-1)
			<-ctx.Done()
			return ctx.Err()
		}
		began := time.Now()
		for range 1000 {
			b.post(t, "key", "")
		}
		require.Zero(t, time.Since(began))
		b.Wait()
		require.LessOrEqual(t, time.Since(began), 2*time.Second)
		require.LessOrEqual(t, most.Load(), int64(64))
		require.Positive(t, most.Load())
	})
}

func TestAcquire_GivesUpOnASilentStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, idempotency.Policy{}, nil)
		b.store.Fail = faulty.Hang(faulty.Acquire)
		began := time.Now()
		requireProblem(t, b.post(t, "key", ""), http.StatusServiceUnavailable, idempotency.CodeStoreUnavailable)
		require.Equal(t, 2*time.Second, time.Since(began))
	})
}

func TestComplete_MayFail(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err  error
		want idempotency.Result
	}{
		"lost":        {idempotency.ErrLost, idempotency.ResultLost},
		"unavailable": {errStore, idempotency.ResultIncomplete},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, idempotency.Policy{}, nil)
			b.store.Fail = faulty.On(faulty.Complete, tt.err)
			w := b.post(t, "key", "")
			require.Equal(t, http.StatusCreated, w.Code, "the handler's answer stands")
			require.Equal(t, "{\"run\":1}\n", w.Body.String())
			require.Equal(t, tt.want, b.lastCheck().Result)
			require.ErrorIs(t, b.lastCheck().Err, tt.err)
		})
	}
}

func TestComplete_DelaysTheAnswerByTwoSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, idempotency.Policy{}, nil)
		b.store.Fail = faulty.Hang(faulty.Complete)
		began := time.Now()
		require.Equal(t, http.StatusCreated, b.post(t, "key", "").Code)
		require.Equal(t, 2*time.Second, time.Since(began))
	})
}

func TestPanic_ReleasesTheKey(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]any{"a value": "boom", "an abort": http.ErrAbortHandler, "an error": errors.New("boom")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, idempotency.Policy{}, func(w http.ResponseWriter, _ *http.Request) {
				if name == "an error" {
					w.WriteHeader(http.StatusInternalServerError)
					write(w, "half of")
				}
				panic(value)
			})
			for range 2 {
				w := httptest.NewRecorder()
				require.PanicsWithValue(t, value, func() { b.handler.ServeHTTP(w, request(t, "key", "")) })
				require.Empty(t, w.Body.String(), "nothing was sent")
			}
			require.Equal(t, 2, b.ran(), "the key was released")
			require.Equal(t, []string{"acquire", "release", "acquire", "release"}, b.store.Taken())
		})
	}
}

func TestPanic_ReleasesTheKeyWhileFailingOpen(t *testing.T) {
	t.Parallel()
	b := setup(t, idempotency.Policy{FailureMode: idempotency.FailOpen}, func(http.ResponseWriter, *http.Request) { panic("boom") })
	b.store.Lose = faulty.On(faulty.Acquire, errStore)
	require.Panics(t, func() { b.post(t, "key", "") })
	b.Wait()
	require.Equal(t, []string{"acquire", "release"}, b.store.Taken())
}

func TestGoexit_ReleasesTheKey(t *testing.T) {
	t.Parallel()
	b := setup(t, idempotency.Policy{}, func(http.ResponseWriter, *http.Request) { runtime.Goexit() })
	var running sync.WaitGroup
	running.Go(func() { b.post(t, "key", "") })
	running.Wait()
	require.Equal(t, []string{"acquire", "release"}, b.store.Taken())
}

// TestMiddleware_WorksOnARealServer checks what a recorder cannot show: connections.
func TestMiddleware_WorksOnARealServer(t *testing.T) {
	t.Parallel()
	started, gone := make(chan struct{}, 1), make(chan struct{})
	b := setup(t, idempotency.Policy{}, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/panic":
			panic(http.ErrAbortHandler)
		case "/slow":
			started <- struct{}{}
			<-gone
			require.NoError(t, r.Context().Err())
			write(w, "finished anyway")
		}
	})
	server := httptest.NewServer(b.handler)
	defer server.Close()
	client := server.Client()
	defer client.CloseIdleConnections()
	post := func(ctx context.Context, path string) (*http.Response, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+path, nil)
		require.NoError(t, err)
		r.Header.Set(idempotency.HeaderKey, path)
		return client.Do(r)
	}

	_, err := post(t.Context(), "/panic")
	require.Error(t, err, "the connection was aborted")

	ctx, disconnect := context.WithCancel(t.Context())
	go func() { <-started; disconnect() }()
	_, err = post(ctx, "/slow")
	require.ErrorIs(t, err, context.Canceled)
	close(gone)
	require.Eventually(t, func() bool {
		response, err := post(t.Context(), "/slow")
		if err != nil {
			return false
		}
		defer func() { _ = response.Body.Close() }()
		return response.StatusCode == http.StatusOK && response.Header.Get(idempotency.HeaderReplay) == "true"
	}, 10*time.Second, 10*time.Millisecond)
	require.Equal(t, 2, b.ran())
}
