package idempotency_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/internal/faulty"
)

// patient waits for longer than any work of these tests takes.
var patient = idempotency.Policy{Wait: time.Minute, Deadline: time.Hour}

// notifying lets the memory's notifications through the tap, which hides them.
type notifying struct{ *faulty.Store }

func (s notifying) Watch(scope, key string) (<-chan struct{}, func()) {
	return s.Store.Store.(idempotency.Watcher).Watch(scope, key)
}

func asWatcher(s *faulty.Store) idempotency.Store { return notifying{s} }
func asStore(s *faulty.Store) idempotency.Store   { return s }

// slowly takes five seconds.
func slowly(context.Context) (string, error) {
	time.Sleep(5 * time.Second)
	return "slow", nil
}

// doing is a call of Do under way.
type doing struct {
	result string
	err    error
	took   time.Duration
	done   chan struct{}
}

func (d *doing) wait() *doing { <-d.done; return d }

func (s *workshop) start(ctx context.Context, key string) *doing {
	d := &doing{done: make(chan struct{})}
	go func() {
		defer close(d.done)
		began := time.Now()
		d.result, d.err = s.do(ctx, key)
		d.took = time.Since(began)
	}()
	return d
}

func (s *workshop) take(t *testing.T, key string) *doing {
	t.Helper()
	d := s.start(t.Context(), key).wait()
	require.NoError(t, d.err)
	return d
}

func TestWaiter_GetsTheAnswer(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		wrap func(*faulty.Store) idempotency.Store
		late time.Duration
	}{"woken": {asWatcher, 0}, "looking": {asStore, time.Second}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := setupWorkOn(t, tt.wrap, patient, slowly)
				first := s.start(t.Context(), "key")
				time.Sleep(time.Second)
				second := s.take(t, "key")
				require.Equal(t, first.wait().result, second.result)
				require.Equal(t, 1, s.ran())
				require.LessOrEqual(t, second.took, 4*time.Second+tt.late)
				check := s.lastCheck()
				require.Equal(t, idempotency.ResultReplay, check.Result)
				require.Equal(t, second.took, check.Waited)
				require.Zero(t, check.Duration, "which doesn't count it")
			})
		})
	}
}

// TestWaiter_StopsItsWatch counts the watches that have begun and not ended.
func TestWaiter_StopsItsWatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var watches atomic.Int64
		s := setupWorkOn(t, func(s *faulty.Store) idempotency.Store { return counting{notifying{s}, &watches} }, patient, slowly)
		first := s.start(t.Context(), "key")
		time.Sleep(time.Second)
		second := s.start(t.Context(), "key")
		synctest.Wait()
		require.EqualValues(t, 1, watches.Load())
		first.wait()
		second.wait()
		require.Zero(t, watches.Load())
	})
}

type counting struct {
	notifying
	watches *atomic.Int64
}

func (s counting) Watch(scope, key string) (<-chan struct{}, func()) {
	s.watches.Add(1)
	changed, stop := s.notifying.Watch(scope, key)
	return changed, func() { s.watches.Add(-1); stop() }
}

// TestWaiter_TakesFewSteps counts what waiting for four seconds costs a store that
// notifies: a look when the watch has begun, one at the end, and the net's.
func TestWaiter_TakesFewSteps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := setupWorkOn(t, asWatcher, patient, slowly)
		first := s.start(t.Context(), "key")
		time.Sleep(time.Second)
		s.take(t, "key")
		first.wait()
		require.LessOrEqual(t, len(s.store.Taken()), 16)
	})
}

func TestWaiter_RunsIfTheFirstAnswerIsNotKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s *workshop
		s = setupWork(t, patient, func(context.Context) (string, error) {
			run := s.ran()
			time.Sleep(5 * time.Second)
			if run == 1 {
				return "", errors.New("for now")
			}
			return "second", nil
		})
		first := s.start(t.Context(), "key")
		time.Sleep(time.Second)
		second, third := s.start(t.Context(), "key"), s.start(t.Context(), "key")
		require.ErrorContains(t, first.wait().err, "for now")
		require.Equal(t, "second", second.wait().result)
		require.Equal(t, "second", third.wait().result)
		require.Equal(t, 2, s.ran(), "one of the two that waited ran, the other waited on")
		require.Len(t, s.results(), 3)
		require.NotZero(t, s.lastCheck().Waited)
	})
}

// TestWaiter_TakesOverWhenTheLeaseEnds leaves a record behind, as a killed
// process does: no notification tells of its end.
func TestWaiter_TakesOverWhenTheLeaseEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := setupWork(t, idempotency.Policy{Wait: time.Minute, Lease: 30 * time.Second}, counted())
		require.NoError(t, s.leaveBehind("key"))
		d := s.take(t, "key")
		require.GreaterOrEqual(t, d.took, 30*time.Second)
		require.Less(t, d.took, 30*time.Second+100*time.Millisecond, "without delay")
	})
}

func TestWaiter_EndsWithItsCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := setupWork(t, patient, counted())
		require.NoError(t, s.leaveBehind("key"))
		ctx, leave := context.WithTimeout(t.Context(), 3*time.Second)
		defer leave()
		d := s.start(ctx, "key").wait()
		require.Equal(t, 3*time.Second, d.took)
		requireCode(t, idempotency.CodeInProgress, d.err)
		require.Equal(t, idempotency.ResultConflict, s.lastCheck().Result)
		require.Zero(t, s.ran())
	})
}

// TestWaiter_OutlastsAnOutage also covers an acquisition whose reply
// was lost: it is known as our own later, or released at the end.
func TestWaiter_OutlastsAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := setupWork(t, idempotency.Policy{Wait: 40 * time.Second, Lease: 30 * time.Second}, counted())
		require.NoError(t, s.leaveBehind("recovers"))
		began := time.Now()
		s.store.Lose = func(_ context.Context, step string) error {
			if since := time.Since(began); step == faulty.Acquire && since > time.Second && since < 35*time.Second {
				return idempotency.ErrUnavailable
			}
			return nil
		}
		s.take(t, "recovers")

		began = time.Now()
		s.store.Lose = func(ctx context.Context, step string) error {
			if time.Since(began) > time.Second {
				return faulty.On(faulty.Acquire, idempotency.ErrUnavailable)(ctx, step)
			}
			return nil
		}
		require.NoError(t, s.leaveBehind("is lost"))
		requireCode(t, idempotency.CodeInProgress, s.start(t.Context(), "is lost").wait().err)
		s.Wait()
		s.store.Lose = nil
		require.Zero(t, s.take(t, "is lost").took, "the record that the store kept was released")
	})
}

// TestWaiter_RunsOneAtATime has a crowd wait for work that fails four times.
func TestWaiter_RunsOneAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s *workshop
		s = setupWork(t, patient, func(context.Context) (string, error) {
			run := s.ran()
			time.Sleep(time.Second)
			if run < 5 {
				return "", errors.New("for now")
			}
			return "answer", nil
		})
		var failed, answered atomic.Int64
		var running sync.WaitGroup
		for range 50 {
			running.Go(func() {
				if result, err := s.do(t.Context(), "key"); err != nil {
					failed.Add(1)
				} else if result == "answer" {
					answered.Add(1)
				}
			})
		}
		running.Wait()
		require.EqualValues(t, 4, failed.Load())
		require.EqualValues(t, 46, answered.Load())
		require.Equal(t, 5, s.ran())
	})
}
