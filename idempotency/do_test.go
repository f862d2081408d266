package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/internal/faulty"
)

// counted returns the number of the run.
func counted() func(context.Context) (string, error) {
	runs := 0
	return func(context.Context) (string, error) { runs++; return fmt.Sprint("run ", runs), nil }
}

func requireCode(t *testing.T, code string, err error) {
	t.Helper()
	var refusal *idempotency.Error
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, code, refusal.Code)
	for sentinel, of := range map[error]string{
		idempotency.ErrInProgress: idempotency.CodeInProgress, idempotency.ErrKeyReused: idempotency.CodeKeyReused,
		idempotency.ErrResponseNotKept: idempotency.CodeResponseNotKept,
	} {
		require.Equal(t, code == of, errors.Is(err, sentinel), sentinel)
	}
}

func TestDo_ReturnsTheKeptResult(t *testing.T) {
	t.Parallel()
	s := setupWork(t, idempotency.Policy{}, counted())
	for range 3 {
		result, err := s.do(t.Context(), "key")
		require.NoError(t, err)
		require.Equal(t, "run 1", result)
	}
	require.Equal(t, 1, s.ran())
	require.Equal(t, []idempotency.Result{
		idempotency.ResultAcquired, idempotency.ResultReplay, idempotency.ResultReplay,
	}, s.results())
	require.Equal(t, []string{"acquire", "complete", "acquire", "acquire"}, s.store.Taken(), "two steps, and one for a repetition")
}

// TestDo_KeepsStructures: what a caller gets is the same in the first call and in a repetition.
func TestDo_KeepsStructures(t *testing.T) {
	t.Parallel()
	type receipt struct {
		ID    string
		Cents int64
		At    time.Time
	}
	keys := &idempotency.Keys{Store: setupWork(t, idempotency.Policy{}, nil).store, Scope: "receipts"}
	want := receipt{"r-1", math.MaxInt64, time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)}
	for range 2 {
		got, err := idempotency.Do(t.Context(), keys, "key", nil, func(context.Context) (receipt, error) { return want, nil })
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err := idempotency.Do(t.Context(), keys, "key", nil, func(context.Context) (int, error) { return 1, nil })
	require.ErrorContains(t, err, "kept result", "another type reads it, after a release of the program")
}

// TestDo_RefusesResultsThatJSONDoesNotKeep before the work has an effect.
func TestDo_RefusesResultsThatJSONDoesNotKeep(t *testing.T) {
	t.Parallel()
	s := setupWork(t, idempotency.Policy{}, nil)
	type inner struct{ N, n int }
	_ = inner{}.n // for linters: nothing else uses it
	type embedded struct{ N int }
	type list struct {
		Next *list
		At   time.Time
	}
	requireResult[struct{ n int }](t, s, false)
	requireResult[*inner](t, s, false)
	requireResult[map[string][]inner](t, s, false)
	requireResult[struct{ inner }](t, s, false)
	requireResult[struct{ Mu sync.Mutex }](t, s, false)
	requireResult[struct {
		embedded
		_     int
		Inner inner `json:"-"`
	}](t, s, true)
	requireResult[[]list](t, s, true)
	requireResult[any](t, s, true)
	requireResult[error](t, s, true)
	requireResult[struct{}](t, s, true)
}

func requireResult[T any](t *testing.T, s *workshop, kept bool) {
	t.Helper()
	for range 2 {
		ran := false
		key := fmt.Sprintf("%T", *new(T)) + fmt.Sprint(kept)
		_, err := idempotency.Do(t.Context(), s.Keys, key, nil, func(context.Context) (none T, _ error) { ran = true; return none, nil })
		if kept {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, "is not exported")
		require.False(t, ran)
	}
}

func TestDo_RefusesAnotherRequest(t *testing.T) {
	t.Parallel()
	s := setupWork(t, idempotency.Policy{ExcludedFields: []string{"sent"}}, counted())
	_, err := s.request(t.Context(), "key", map[string]int{"cents": 1, "sent": 1})
	require.NoError(t, err)
	_, err = s.request(t.Context(), "key", []byte(`{"sent":2, "cents":1}`))
	require.NoError(t, err, "the same request")
	_, err = s.request(t.Context(), "key", map[string]int{"cents": 2})
	requireCode(t, idempotency.CodeKeyReused, err)
	require.Equal(t, idempotency.ResultMismatch, s.lastCheck().Result)
	require.Equal(t, 1, s.ran())
}

func TestDo_SeparatesScopes(t *testing.T) {
	t.Parallel()
	s := setupWork(t, idempotency.Policy{}, nil)
	work := counted()
	for _, keys := range []*idempotency.Keys{s.Keys, s.In("a"), s.In("b")} {
		for range 2 {
			_, err := idempotency.Do(t.Context(), keys, "key", nil, work)
			require.NoError(t, err)
		}
	}
	result, err := work(t.Context())
	require.NoError(t, err)
	require.Equal(t, "run 4", result, "once for each scope")
}

func TestDo_KeepsByTheKindOfError(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, tt := range map[string]struct {
		err  error
		runs int
	}{"an error": {broken, 2}, "a final one": {idempotency.Final(broken), 1}, "a wrapped one": {fmt.Errorf("job 7: %w", idempotency.Final(broken)), 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setupWork(t, idempotency.Policy{}, func(context.Context) (string, error) { return "half", tt.err })
			result, first := s.do(t.Context(), "key")
			require.Equal(t, tt.err, first, "as it is")
			require.Equal(t, "half", result)
			_, again := s.do(t.Context(), "key")
			require.ErrorContains(t, again, "broken")
			require.Equal(t, tt.runs, s.ran())
			var final *idempotency.FinalError
			require.Equal(t, tt.runs == 1, errors.As(again, &final))
		})
	}
}

func TestFinal_IsNilForNil(t *testing.T) {
	t.Parallel()
	require.NoError(t, idempotency.Final(nil))
}

func TestDo_ReleasesTheKeyOfWorkThatPanics(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(){"panic": func() { panic("boom") }, "goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setupWork(t, idempotency.Policy{}, func(context.Context) (string, error) { leave(); return "", nil })
			var running sync.WaitGroup
			running.Go(func() {
				defer func() { _ = recover() }()
				_, _ = s.do(t.Context(), "key")
			})
			running.Wait()
			require.Equal(t, []string{"acquire", "release"}, s.store.Taken())
			require.Equal(t, []idempotency.Result{idempotency.ResultAcquired}, s.results())
		})
	}
}

func TestDo_DoesNotRunAgainForALargeResult(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 1<<20)
	s := setupWork(t, idempotency.Policy{}, func(context.Context) (string, error) { return large, nil })
	result, err := s.do(t.Context(), "key")
	require.NoError(t, err)
	require.Equal(t, large, result)
	_, err = s.do(t.Context(), "key")
	requireCode(t, idempotency.CodeResponseNotKept, err)
	require.Equal(t, 1, s.ran())
	record, err := idempotency.Lookup(t.Context(), s.store.Store, "jobs", "key")
	require.NoError(t, err)
	require.Empty(t, record.Response.Body, "it takes no room")

	unwritable := func(context.Context) (func(), error) { return func() {}, nil }
	_, err = idempotency.Do(t.Context(), s.Keys, "no JSON", nil, unwritable)
	require.NoError(t, err)
	_, err = idempotency.Do(t.Context(), s.Keys, "no JSON", nil, unwritable)
	requireCode(t, idempotency.CodeResponseNotKept, err)
}

func TestDo_FailsClosedOrOpen(t *testing.T) {
	t.Parallel()
	for mode, runs := range map[idempotency.FailureMode]int{idempotency.FailClosed: 0, idempotency.FailOpen: 1} {
		s := setupWork(t, idempotency.Policy{FailureMode: mode}, func(ctx context.Context) (string, error) {
			require.True(t, idempotency.ClaimFrom(ctx).Bypassed)
			return "done", nil
		})
		s.store.Fail = faulty.Always(errStore)
		result, err := s.do(t.Context(), "key")
		require.Equal(t, runs, s.ran())
		require.ErrorIs(t, s.lastCheck().Err, errStore)
		if mode == idempotency.FailOpen {
			require.NoError(t, err)
			require.Equal(t, "done", result)
			continue
		}
		requireCode(t, idempotency.CodeStoreUnavailable, err)
	}
}

// TestDo_LetsTheAuthorityAnswer: work finds its claim in the context, as a handler does.
func TestDo_LetsTheAuthorityAnswer(t *testing.T) {
	t.Parallel()
	s := setupWork(t, idempotency.Policy{Authority: true}, func(ctx context.Context) (string, error) {
		claim := idempotency.ClaimFrom(ctx)
		require.Equal(t, "jobs", claim.Scope)
		require.Equal(t, "key", claim.Key)
		claim.Replayed()
		claim.Release()
		return "from the table", nil
	})
	_, err := s.do(t.Context(), "key")
	require.NoError(t, err)
	require.Equal(t, idempotency.ResultReplay, s.lastCheck().Result)
	require.Equal(t, []string{"acquire", "release"}, s.store.Taken())
}

func TestDo_RefusesWrongKeysAndRequests(t *testing.T) {
	t.Parallel()
	s := setupWork(t, idempotency.Policy{}, counted())
	for key, code := range map[string]string{
		"": idempotency.CodeKeyMalformed, "a\nb": idempotency.CodeKeyMalformed, "é": idempotency.CodeKeyMalformed,
		strings.Repeat("k", 256): idempotency.CodeKeyTooLong,
	} {
		_, err := s.do(t.Context(), key)
		requireCode(t, code, err)
	}
	_, err := s.request(t.Context(), "key", func() {})
	require.ErrorContains(t, err, "request")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.do(ended, "key")
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, s.store.Taken())
	require.Panics(t, func() { _, _ = idempotency.Do(t.Context(), &idempotency.Keys{Store: s.store}, "key", nil, s.work) }, "no scope")
	require.Panics(t, func() { _, _ = idempotency.Do(t.Context(), &idempotency.Keys{Scope: "a"}, "key", nil, s.work) }, "no store")
}

// TestDo_EndsWithItsCaller: a consumer that shuts down cancels what it does.
func TestDo_EndsWithItsCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := setupWork(t, idempotency.Policy{}, func(ctx context.Context) (string, error) {
			cancel()
			<-ctx.Done()
			return "", ctx.Err()
		})
		_, err := s.do(ctx, "key")
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, []string{"acquire", "release"}, s.store.Taken())
	})
}

// TestDo_OutlivesItsCallerIfDetached: the caller that comes back gets the result.
func TestDo_OutlivesItsCallerIfDetached(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := setupWork(t, idempotency.Policy{}, func(ctx context.Context) (string, error) {
			cancel()
			require.NoError(t, ctx.Err())
			deadline, ok := ctx.Deadline()
			require.True(t, ok)
			require.Equal(t, idempotency.DefaultDeadline, time.Until(deadline))
			return "done", nil
		})
		s.Detached = true
		_, err := s.do(ctx, "key")
		require.NoError(t, err)
		require.ErrorIs(t, ctx.Err(), context.Canceled)
		again, err := idempotency.Do(t.Context(), s.In("jobs"), "key", "key", s.work)
		require.NoError(t, err)
		require.Equal(t, "done", again)
	})
}

func TestDo_HasADeadlineOnlyIfThePolicyHas(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, limit := range []time.Duration{0, time.Minute} {
			s := setupWork(t, idempotency.Policy{Deadline: limit}, func(ctx context.Context) (string, error) {
				select {
				case <-ctx.Done():
					return "", ctx.Err()
				case <-time.After(time.Hour):
					return "long", nil
				}
			})
			_, err := s.do(t.Context(), "key")
			if limit == 0 {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, context.DeadlineExceeded)
			}
		}
	})
}

func TestDo_WaitsForAnotherAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := setupWork(t, patient, func(context.Context) (string, error) { time.Sleep(5 * time.Second); return "slow", nil })
		var running sync.WaitGroup
		for range 3 {
			running.Go(func() {
				result, err := s.do(t.Context(), "key")
				require.NoError(t, err)
				require.Equal(t, "slow", result)
			})
		}
		running.Wait()
		require.Equal(t, 1, s.ran())
		require.Equal(t, idempotency.ResultReplay, s.lastCheck().Result)
		require.NotZero(t, s.lastCheck().Waited)
	})
}

func TestDo_SaysWhenToAskAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := setupWork(t, idempotency.Policy{}, func(context.Context) (string, error) { time.Sleep(9 * time.Second); return "", nil })
		var running sync.WaitGroup
		running.Go(func() { _, _ = s.do(t.Context(), "key") })
		time.Sleep(4 * time.Second)
		_, err := s.do(t.Context(), "key")
		requireCode(t, idempotency.CodeInProgress, err)
		var refusal *idempotency.Error
		require.ErrorAs(t, err, &refusal)
		require.Equal(t, 4*time.Second, refusal.RetryAfter)
		running.Wait()
	})
}

func TestDo_ReturnsAResultWhoseRecordIsNotCompleted(t *testing.T) {
	t.Parallel()
	s := setupWork(t, idempotency.Policy{}, counted())
	s.store.Fail = faulty.On(faulty.Complete, idempotency.ErrLost)
	result, err := s.do(t.Context(), "key")
	require.NoError(t, err)
	require.Equal(t, "run 1", result)
	require.Equal(t, idempotency.ResultLost, s.lastCheck().Result)
}

type panicking struct{ N int }

func (panicking) MarshalJSON() ([]byte, error) { panic("no JSON") }

func (*panicking) UnmarshalJSON([]byte) error { return nil }

// TestDo_OfAResultThatPanicsInJSON is done, and its key does not stay in progress.
func TestDo_OfAResultThatPanicsInJSON(t *testing.T) {
	t.Parallel()
	s := setupWork(t, idempotency.Policy{}, nil)
	runs := 0
	work := func(context.Context) (panicking, error) { runs++; return panicking{1}, nil }
	result, err := idempotency.Do(t.Context(), s.Keys, "key", nil, work)
	require.NoError(t, err)
	require.Equal(t, panicking{1}, result)
	_, err = idempotency.Do(t.Context(), s.Keys, "key", nil, work)
	require.ErrorIs(t, err, idempotency.ErrResponseNotKept)
	require.Equal(t, 1, runs)
}
