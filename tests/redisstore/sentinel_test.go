package redisstore_test

import (
	"errors"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/redisstore"
	"github.com/oncepay/oncepay/internal/testenv"
)

// unhurried are timeouts for a busy machine, and for servers that hang.
const unhurried = "?dial_timeout=2s&read_timeout=2s&pool_timeout=2s"

// TestSentinel_FailsOverDuringARequest kills the primary while a handler runs. Its answer is stored
// only where its key is still held: by the new primary, if it heard of the key.
func TestSentinel_FailsOverDuringARequest(t *testing.T) {
	t.Parallel()
	for name, replicated := range map[string]bool{"with the key": true, "without the key": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := testenv.RedisSentinel(t)
			store, record := redisstore.New(open(t, servers.URL+unhurried)), pending("key")
			if !replicated {
				servers.CutReplication()
			}
			existing, err := store.Acquire(t.Context(), record, time.Minute)
			require.NoError(t, err)
			require.Nil(t, existing)
			if replicated {
				servers.Primary.Do("WAIT", 1, 5000)
			}
			servers.Primary.Stop()
			require.ErrorIs(t, store.Complete(t.Context(), done(record), time.Minute), idempotency.ErrUnavailable)
			servers.AwaitPromotion()

			require.Eventually(t, func() bool {
				err = store.Complete(t.Context(), done(record), time.Minute)
				return !errors.Is(err, idempotency.ErrUnavailable)
			}, patience, 10*time.Millisecond)
			stored, lookupErr := redisstore.New(openPatient(t, servers.Replica.URL)).Lookup(t.Context(), "acct_1", "key")
			require.NoError(t, lookupErr)
			if replicated {
				require.NoError(t, err)
				require.Equal(t, idempotency.StatusCompleted, stored.Status)
				return
			}
			require.ErrorIs(t, err, idempotency.ErrLost)
			require.Nil(t, stored)

			servers.Sentinels[0].Stop()
			requireServed(t, open(t, servers.URL+unhurried))
		})
	}
}

// TestSentinel_LeavesAReplacedPrimary has the primary hang until it is replaced, and come back
// believing that it still is one.
func TestSentinel_LeavesAReplacedPrimary(t *testing.T) {
	t.Parallel()
	servers := testenv.RedisSentinel(t)
	client := open(t, servers.URL+unhurried)
	require.NoError(t, client.Ping(t.Context()).Err(), "it has a connection to the old one")
	servers.Primary.Pause()
	servers.AwaitPromotion()
	servers.Primary.Resume()
	requireServed(t, client)
	stored, err := redisstore.New(openPatient(t, servers.Replica.URL)).Lookup(t.Context(), "acct_1", "served again")
	require.NoError(t, err)
	require.NotNil(t, stored, "by the new one")
}

// TestSentinel_OrderlyFailoverLosesNothing moves the primary by order, under way.
func TestSentinel_OrderlyFailoverLosesNothing(t *testing.T) {
	t.Parallel()
	servers := testenv.RedisSentinel(t)
	store, record := redisstore.New(open(t, servers.URL+unhurried)), pending("key")
	_, err := store.Acquire(t.Context(), record, time.Minute)
	require.NoError(t, err)
	servers.Sentinels[0].Do("SENTINEL", "FAILOVER", "oncepay")
	servers.AwaitPromotion()
	require.Eventually(t, func() bool { return store.Complete(t.Context(), done(record), time.Minute) == nil }, patience, 10*time.Millisecond)
	stored, err := redisstore.New(openPatient(t, servers.Replica.URL)).Lookup(t.Context(), "acct_1", "key")
	require.NoError(t, err)
	require.Equal(t, idempotency.StatusCompleted, stored.Status)
}

// TestSentinel_MayRequireALogin gives a user the fewest rights at the Sentinels, and fails over.
func TestSentinel_MayRequireALogin(t *testing.T) {
	t.Parallel()
	servers := testenv.RedisSentinel(t)
	_ = asUser(t, "", redisstore.ACLSentinelRules, servers.Sentinels...)
	login := "&sentinel_username=shop&sentinel_password=" + url.QueryEscape(password)
	client := open(t, servers.URL+unhurried+login)
	require.NoError(t, client.Ping(t.Context()).Err())
	servers.Primary.Stop()
	servers.AwaitPromotion()
	requireServed(t, client)
	requireNothingRefused(t, servers.Sentinels...)

	stranger := open(t, servers.URL+unhurried+"&sentinel_username=shop&sentinel_password=guessed")
	_, err := redisstore.New(stranger).Acquire(t.Context(), pending("key"), time.Minute)
	require.ErrorIs(t, err, idempotency.ErrUnavailable)
	require.ErrorContains(t, err, "WRONGPASS")
}
