package redisstore_test

import (
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/redisstore"
	"github.com/oncepay/oncepay/idempotency/storetest"
	"github.com/oncepay/oncepay/internal/testenv"
)

// patience bounds waits for what should come soon.
const patience = 20 * time.Second

func TestWatch_ReachesAnotherReplica(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t)
	storetest.RunReplicas(t, func(t *testing.T) idempotency.Store {
		return closing(t, redisstore.New(open(t, server)))
	})
}

// TestWatch_SurvivesAnOutage wakes those who wait, who may have missed
// something, and hears again.
func TestWatch_SurvivesAnOutage(t *testing.T) {
	t.Parallel()
	server := testenv.RedisServer(t)
	store, record := closing(t, redisstore.New(open(t, server.URL))), pending("key")
	changed, stop := store.Watch(record.Scope, record.Key)
	defer stop()
	storetest.RequireChange(t, changed)
	server.Stop()
	server.Start()
	storetest.RequireChange(t, changed)
	require.Eventually(t, func() bool {
		existing, err := store.Acquire(t.Context(), record, time.Minute)
		return err == nil && existing == nil
	}, patience, 10*time.Millisecond)
	require.NoError(t, store.Release(t.Context(), record))
	storetest.RequireChange(t, changed)
}

func TestWatch_BeginsDuringAnOutage(t *testing.T) {
	t.Parallel()
	server := testenv.RedisServer(t)
	server.Stop()
	store := closing(t, redisstore.New(open(t, server.URL)))
	began := time.Now()
	changed, stop := store.Watch("acct_1", "key")
	defer stop()
	require.Less(t, time.Since(began), redisstore.DialTimeout, "it doesn't block")
	server.Start()
	storetest.RequireChange(t, changed)
}

func TestClose_EndsTheSubscription(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t)
	unwatched := redisstore.New(open(t, server))
	require.NoError(t, unwatched.Close())
	require.NoError(t, unwatched.Close())

	store := redisstore.New(open(t, server))
	changed, stop := store.Watch("acct_1", "key")
	defer stop()
	storetest.RequireChange(t, changed)
	require.NoError(t, store.Close())
	require.NoError(t, store.Close())
	_, stop = store.Watch("acct_1", "key")
	stop()
	requireServed(t, open(t, server))
}

// TestWatch_IsOptional may not publish or subscribe, as is an ACL user's
// default since Redis 7: all steps succeed nevertheless.
func TestWatch_IsOptional(t *testing.T) {
	t.Parallel()
	server := testenv.RedisServer(t)
	admin := open(t, server.URL)
	require.NoError(t, admin.Do(t.Context(), "ACL", "SETUSER", "shop", "on", ">secret", "~idempotency:*", "resetchannels", "+@all").Err())
	u, err := url.Parse(server.URL)
	require.NoError(t, err)
	u.User = url.UserPassword("shop", "secret")
	store := closing(t, redisstore.New(open(t, u.String())))
	_, stop := store.Watch("acct_1", "complete")
	defer stop()
	for name, step := range steps {
		require.NoError(t, step.prepared(t, store, name), name)
	}
}
