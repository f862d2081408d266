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

// These tests are about how long a record is kept. The lease is 15 s.

func TestRecord_EndsOneLeaseBeforeItsTTL(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, idempotency.Policy{TTL: time.Hour}, nil)
		first := b.post(t, "key", "")
		time.Sleep(time.Hour - 16*time.Second)
		requireReplay(t, first, b.post(t, "key", ""))
		time.Sleep(time.Second)
		require.Equal(t, "{\"run\":2}\n", b.post(t, "key", "").Body.String())
	})
}

// TestRecord_CountsItsTTLFromTheArrival: what was promised when the change was committed must
// not end before the record does.
func TestRecord_CountsItsTTLFromTheArrival(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, idempotency.Policy{TTL: time.Hour, Deadline: 2 * time.Hour}, func(http.ResponseWriter, *http.Request) {
			time.Sleep(40 * time.Minute)
		})
		began := time.Now()
		b.post(t, "key", "")
		require.LessOrEqual(t, b.expiry(t, "key").Sub(began), time.Hour)
	})
}

func TestRecord_OfALateCompleteEndsNoLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, idempotency.Policy{TTL: time.Hour}, nil)
		b.store.Fail = func(_ context.Context, step string) error {
			if step == faulty.Complete {
				time.Sleep(14 * time.Second) // on the wire; later the lease has ended
			}
			return nil
		}
		began := time.Now()
		b.post(t, "key", "")
		require.LessOrEqual(t, b.expiry(t, "key").Sub(began), time.Hour)
	})
}

func TestClaim_KeepForLimitsTheRecord(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		remaining time.Duration
		want      time.Duration // from the arrival; 0: not kept
	}{
		"less than the TTL": {10 * time.Minute, 10 * time.Minute},
		"more than the TTL": {10 * time.Hour, time.Hour},
		"nothing":           {0, 0},
		"less than a lease": {10 * time.Second, 0},
		"negative":          {-time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup(t, idempotency.Policy{TTL: time.Hour}, func(w http.ResponseWriter, r *http.Request) {
					claim := idempotency.ClaimFrom(r.Context())
					claim.Replayed()
					time.Sleep(time.Second) // a pause after the authority's reply
					claim.KeepFor(tt.remaining)
					write(w, "from the authority")
				})
				began := time.Now()
				require.Equal(t, "from the authority", b.post(t, "key", "").Body.String())
				if tt.want == 0 {
					record, err := idempotency.Lookup(t.Context(), b.memory(), "ada", "key")
					require.NoError(t, err)
					require.Nil(t, record)
					return
				}
				lifetime := b.expiry(t, "key").Sub(began)
				require.LessOrEqual(t, lifetime, tt.want)
				require.Greater(t, lifetime, tt.want-20*time.Second)
			})
		})
	}
}

// memory is the store below the faulty one.
func (b *bundle) memory() idempotency.Store { return b.store.Store }

// expiry returns when a record ends.
func (b *bundle) expiry(t *testing.T, key string) time.Time {
	t.Helper()
	record, err := idempotency.Lookup(t.Context(), b.memory(), "ada", key)
	require.NoError(t, err)
	require.NotNil(t, record)
	return record.ExpiresAt
}

// TestFinish_IsRepeatedInTheBackground: the store cannot be reached for a moment after the
// handler. Without repetition the key stays blocked until the lease ends.
func TestFinish_IsRepeatedInTheBackground(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		code   int
		replay bool
	}{"complete": {http.StatusCreated, true}, "release": {http.StatusBadGateway, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup(t, idempotency.Policy{}, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(tt.code) })
				began := time.Now()
				b.store.Fail = func(_ context.Context, step string) error {
					if step == name && time.Since(began) < 3*time.Second {
						return errStore
					}
					return nil
				}
				require.Equal(t, tt.code, b.post(t, "key", "").Code)
				require.Zero(t, time.Since(began), "the client does not wait for it")
				require.Equal(t, idempotency.ResultIncomplete, b.lastCheck().Result)
				time.Sleep(6 * time.Second)
				again := b.post(t, "key", "")
				require.Equal(t, tt.code, again.Code)
				require.Equal(t, tt.replay, again.Header().Get(idempotency.HeaderReplay) == "true")
			})
		})
	}
}

func TestFinish_IsNotRepeatedBeyondTheLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, idempotency.Policy{}, nil)
		b.store.Fail = faulty.On(faulty.Complete, errStore)
		b.post(t, "key", "")
		time.Sleep(16 * time.Second)
		steps := len(b.store.Taken())
		require.Greater(t, steps, 5)
		require.Less(t, steps, 20)
		time.Sleep(time.Minute)
		require.Len(t, b.store.Taken(), steps)
	})
}

// TestFinish_IsNotRepeatedAfterAStepThatOutlastedTheLease: another attempt may hold the key.
func TestFinish_IsNotRepeatedAfterAStepThatOutlastedTheLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, idempotency.Policy{Lease: time.Second}, nil)
		b.store.Fail = func(ctx context.Context, step string) error {
			if step != faulty.Complete {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}
		b.post(t, "key", "")
		steps := len(b.store.Taken())
		time.Sleep(time.Minute)
		require.Len(t, b.store.Taken(), steps)
	})
}

func TestWait_EndsRepetitions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, idempotency.Policy{Lease: time.Hour}, nil)
		b.store.Fail = faulty.On(faulty.Complete, errStore)
		b.post(t, "key", "")
		began := time.Now()
		b.Wait()
		require.LessOrEqual(t, time.Since(began), 2*time.Second)
		b.Wait() // again
	})
}
