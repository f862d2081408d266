package idempotency_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/internal/faulty"
)

// patient waits for longer than any handler of these tests takes.
var patient = idempotency.Policy{Wait: time.Minute, Deadline: time.Hour}

// notifying lets the memory's notifications through the tap, which hides them.
type notifying struct{ *faulty.Store }

func (s notifying) Watch(scope, key string) (<-chan struct{}, func()) {
	return s.Store.Store.(idempotency.Watcher).Watch(scope, key)
}

func asWatcher(s *faulty.Store) idempotency.Store { return notifying{s} }
func asStore(s *faulty.Store) idempotency.Store   { return s }

// slow answers after five seconds.
func slow(w http.ResponseWriter, _ *http.Request) {
	time.Sleep(5 * time.Second)
	write(w, "slow")
}

// sent is a request under way.
type sent struct {
	*httptest.ResponseRecorder
	took time.Duration
	done chan struct{}
}

func (s *sent) wait() *sent { <-s.done; return s }

func (b *bundle) start(r *http.Request) *sent {
	s := &sent{ResponseRecorder: httptest.NewRecorder(), done: make(chan struct{})}
	go func() {
		defer close(s.done)
		began := time.Now()
		b.handler.ServeHTTP(s, r)
		s.took = time.Since(began)
	}()
	return s
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
				b := setupOn(t, tt.wrap, patient, slow)
				first := b.start(request(t, "key", ""))
				time.Sleep(time.Second)
				second := b.start(request(t, "key", "")).wait()
				requireReplay(t, first.wait().ResponseRecorder, second.ResponseRecorder)
				require.Equal(t, 1, b.ran())
				require.LessOrEqual(t, second.took, 4*time.Second+tt.late)
				check := b.lastCheck()
				require.Equal(t, idempotency.ResultReplay, check.Result)
				require.Equal(t, second.took, check.Waited)
				require.Zero(t, check.Duration, "which doesn't count it")
				require.Zero(t, b.Waiting())
			})
		})
	}
}

// TestWaiter_StopsItsWatch counts the watches that have begun and not ended.
func TestWaiter_StopsItsWatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var watches atomic.Int64
		b := setupOn(t, func(s *faulty.Store) idempotency.Store { return counting{notifying{s}, &watches} }, patient, slow)
		first := b.start(request(t, "key", ""))
		time.Sleep(time.Second)
		second := b.start(request(t, "key", ""))
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
		b := setupOn(t, asWatcher, patient, slow)
		first := b.start(request(t, "key", ""))
		time.Sleep(time.Second)
		b.start(request(t, "key", "")).wait()
		first.wait()
		require.LessOrEqual(t, len(b.store.Taken()), 16)
	})
}

func TestWaiter_RunsIfTheFirstAnswerIsNotKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var b *bundle
		b = setup(t, patient, func(w http.ResponseWriter, _ *http.Request) {
			run := b.ran()
			time.Sleep(5 * time.Second)
			if run == 1 {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			write(w, "second")
		})
		first := b.start(request(t, "key", ""))
		time.Sleep(time.Second)
		second, third := b.start(request(t, "key", "")), b.start(request(t, "key", ""))
		require.Equal(t, http.StatusServiceUnavailable, first.wait().Code)
		require.Equal(t, "second", second.wait().Body.String())
		require.Equal(t, "second", third.wait().Body.String())
		require.Equal(t, 2, b.ran(), "one of the two that waited ran, the other waited on")
		require.Len(t, b.results(), 3)
		require.NotZero(t, b.lastCheck().Waited)
	})
}

// TestWaiter_TakesOverWhenTheLeaseEnds leaves a record behind, as a killed
// process does: no notification tells of its end.
func TestWaiter_TakesOverWhenTheLeaseEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, idempotency.Policy{Wait: time.Minute, Lease: 30 * time.Second}, nil)
		require.NoError(t, b.abandonKey(t, "key"))
		s := b.start(request(t, "key", "")).wait()
		require.Equal(t, http.StatusCreated, s.Code)
		require.GreaterOrEqual(t, s.took, 30*time.Second)
		require.Less(t, s.took, 30*time.Second+100*time.Millisecond, "without delay")
	})
}

// abandonKey acquires a key for a request that equals request's, for 30 s, and
// does nothing with it.
func (b *bundle) abandonKey(t *testing.T, key string) error {
	t.Helper()
	r := request(t, key, "")
	_, err := b.store.Store.Acquire(t.Context(), idempotency.Record{
		Key: key, Status: idempotency.StatusInProgress, Owner: idempotency.NewOwner(), Fingerprint: idempotency.FingerprintOf(r, nil),
	}, 30*time.Second)
	return err
}

func TestWaiter_GetsAConflictAtTheBound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, idempotency.Policy{Wait: 10 * time.Second}, nil)
		require.NoError(t, b.abandonKey(t, "key"))
		s := b.start(request(t, "key", "")).wait()
		requireProblem(t, s.ResponseRecorder, http.StatusConflict, idempotency.CodeInProgress)
		require.Equal(t, 10*time.Second, s.took)
		require.Equal(t, 10*time.Second, b.lastCheck().Waited)
		require.Equal(t, idempotency.ResultConflict, b.lastCheck().Result)
		require.Equal(t, "1", s.Header().Get("Retry-After"), "the record does not say since when")
	})
}

// TestWaiter_WithAnotherRequestIsAnsweredByTheEndOfTheFirst: the key belongs to the first request
// once its answer is kept, and to the other one if it is not.
func TestWaiter_WithAnotherRequestIsAnsweredByTheEndOfTheFirst(t *testing.T) {
	t.Parallel()
	for name, kept := range map[string]bool{"kept": true, "refused": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup(t, patient, func(w http.ResponseWriter, r *http.Request) {
					if !kept {
						idempotency.ClaimFrom(r.Context()).Release()
					}
					slow(w, r)
				})
				first := b.start(request(t, "key", ""))
				time.Sleep(time.Second)
				second := b.start(request(t, "key", `{"other":1}`)).wait()
				require.GreaterOrEqual(t, second.took, 4*time.Second)
				require.Equal(t, "slow", first.wait().Body.String())
				if kept {
					requireProblem(t, second.ResponseRecorder, http.StatusUnprocessableEntity, idempotency.CodeKeyReused)
				} else {
					require.Equal(t, "slow", second.Body.String())
				}
			})
		})
	}
}

func TestWaiter_EndsWithItsClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, patient, nil)
		require.NoError(t, b.abandonKey(t, "key"))
		ctx, leave := context.WithTimeout(t.Context(), 3*time.Second)
		defer leave()
		s := b.start(request(t, "key", "").WithContext(ctx)).wait()
		require.Equal(t, 3*time.Second, s.took)
		require.Equal(t, idempotency.ResultConflict, b.lastCheck().Result)
		require.Zero(t, b.ran())
		require.Zero(t, b.Waiting())
	})
}

func TestMaxWaiters_LimitsWaiters(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, idempotency.Policy{MaxWait: time.Minute, Wait: time.Minute}, slow, idempotency.WithMaxWaiters(2))
		first := b.start(request(t, "key", ""))
		time.Sleep(time.Second)
		waiters := []*sent{b.start(request(t, "key", "")), b.start(request(t, "key", ""))}
		synctest.Wait()
		require.Equal(t, 2, b.Waiting())
		r := request(t, "key", "")
		r.Header.Set("Prefer", "wait=3")
		beyond := b.start(r).wait()
		requireProblem(t, beyond.ResponseRecorder, http.StatusConflict, idempotency.CodeInProgress)
		require.Zero(t, beyond.took)
		require.Empty(t, beyond.Header().Get("Preference-Applied"))
		for _, s := range waiters {
			requireReplay(t, first.wait().ResponseRecorder, s.wait().ResponseRecorder)
		}
		require.Zero(t, b.Waiting())
	})
}

func TestPrefer_SetsTheBound(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		prefer  []string
		maxWait time.Duration
		took    time.Duration
		applied string
	}{
		{nil, time.Minute, 2 * time.Second, ""}, // the policy's
		{[]string{"wait=7"}, time.Minute, 7 * time.Second, "wait=7"},
		{[]string{"wait=7"}, 0, 2 * time.Second, ""},
		{[]string{"wait=700"}, 20 * time.Second, 20 * time.Second, "wait=20"},
		{[]string{"wait=99999999999999999999999"}, 20 * time.Second, 20 * time.Second, "wait=20"},
		{[]string{"wait=0"}, time.Minute, 0, "wait=0"},
		{[]string{`respond-async , WAIT = "7" ; x=y`}, time.Minute, 7 * time.Second, "wait=7"},
		{[]string{"respond-async", "handling=lenient, wait=7, wait=9"}, time.Minute, 7 * time.Second, "wait=7"},
		{[]string{"wait"}, time.Minute, 2 * time.Second, ""},
		{[]string{"wait=-7"}, time.Minute, 2 * time.Second, ""},
		{[]string{"wait=soon"}, time.Minute, 2 * time.Second, ""},
		{[]string{"waiting=7"}, time.Minute, 2 * time.Second, ""},
	} {
		t.Run(fmt.Sprint(tt.prefer, tt.maxWait), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup(t, idempotency.Policy{Wait: 2 * time.Second, MaxWait: tt.maxWait}, nil)
				require.NoError(t, b.abandonKey(t, "key"))
				r := request(t, "key", "")
				r.Header["Prefer"] = tt.prefer
				s := b.start(r).wait()
				requireProblem(t, s.ResponseRecorder, http.StatusConflict, idempotency.CodeInProgress)
				require.Equal(t, tt.took, s.took)
				require.Equal(t, tt.applied, s.Header().Get("Preference-Applied"))
			})
		})
	}
}

func TestPrefer_AppliedIsNotKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, idempotency.Policy{MaxWait: time.Minute, Lease: 30 * time.Second}, nil, idempotency.WithHeaderAllowList("Preference-Applied"))
		require.NoError(t, b.abandonKey(t, "key"))
		r := request(t, "key", "")
		r.Header.Set("Prefer", "wait=40")
		s := b.start(r).wait()
		require.Equal(t, http.StatusCreated, s.Code)
		require.Equal(t, "wait=40", s.Header().Get("Preference-Applied"))
		require.Empty(t, b.post(t, "key", "").Header().Get("Preference-Applied"), "it didn't wait")
	})
}

// TestWaiter_OutlastsAnOutage also covers an acquisition whose reply
// was lost: it is known as our own later, or released at the end.
func TestWaiter_OutlastsAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, idempotency.Policy{Wait: 40 * time.Second, Lease: 30 * time.Second}, nil)
		require.NoError(t, b.abandonKey(t, "recovers"))
		began := time.Now()
		failing := func(_ context.Context, step string) error {
			if since := time.Since(began); step == "acquire" && since > time.Second && since < 35*time.Second {
				return idempotency.ErrUnavailable
			}
			return nil
		}
		b.store.Lose = failing
		require.Equal(t, http.StatusCreated, b.start(request(t, "recovers", "")).wait().Code)

		began = time.Now()
		b.store.Lose = func(ctx context.Context, step string) error {
			if time.Since(began) > time.Second {
				return faulty.On(faulty.Acquire, idempotency.ErrUnavailable)(ctx, step)
			}
			return nil
		}
		require.NoError(t, b.abandonKey(t, "is lost"))
		s := b.start(request(t, "is lost", "")).wait()
		requireProblem(t, s.ResponseRecorder, http.StatusConflict, idempotency.CodeInProgress)
		b.Wait()
		b.store.Lose = nil
		s = b.start(request(t, "is lost", "")).wait()
		require.Equal(t, http.StatusCreated, s.Code)
		require.Zero(t, s.took, "the record that the store kept was released")
	})
}

// TestWaiter_RunsOneAtATime sends a crowd, all of which wait for a handler that
// fails four times.
func TestWaiter_RunsOneAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var b *bundle
		b = setup(t, patient, func(w http.ResponseWriter, _ *http.Request) {
			run := b.ran()
			time.Sleep(time.Second)
			if run < 5 {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			write(w, "answer")
		})
		var mu sync.Mutex
		codes := map[int]int{}
		var running sync.WaitGroup
		for range 50 {
			running.Go(func() {
				code := b.post(t, "key", "").Code
				mu.Lock()
				defer mu.Unlock()
				codes[code]++
			})
		}
		running.Wait()
		require.Equal(t, map[int]int{http.StatusBadGateway: 4, http.StatusOK: 46}, codes)
		require.Equal(t, 5, b.ran())
	})
}
