package idempotency_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
)

// These tests are about HTTP requests that wait. What all waiters do is tested in wait_test.go.

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

// abandonKey acquires a key for a request that equals request's, for 30 s, and
// does nothing with it.
func (b *bundle) abandonKey(t *testing.T, key string) error {
	t.Helper()
	r := request(t, key, "")
	_, err := b.store.Store.Acquire(t.Context(), idempotency.Record{
		Scope: "ada", Key: key, Status: idempotency.StatusInProgress, Owner: idempotency.NewOwner(), Fingerprint: idempotency.FingerprintOf(r, nil),
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
