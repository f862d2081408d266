package tiers

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/redisstore"
	"github.com/oncepay/oncepay/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// TestReadRecord_FindsTheNewestOfExactlyThisKey among records of earlier generations, and of keys
// that end like it.
func TestReadRecord_FindsTheNewestOfExactlyThisKey(t *testing.T) {
	t.Parallel()
	url := testenv.RedisServer(t).URL
	options, err := redis.ParseURL(url)
	require.NoError(t, err)
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	now := time.Now()
	for _, kept := range []struct {
		generation, key string
		age             time.Duration
	}{{"1", "pay", time.Hour}, {"2", "pay", time.Minute}, {"3", "pay", 2 * time.Hour}, {"3", "re:pay", 0}} {
		store := redisstore.New(client, redisstore.WithGeneration(func() string { return kept.generation }))
		record := idempotency.Record{Scope: kept.generation, Key: kept.key, Status: idempotency.StatusInProgress, Owner: "owner", CreatedAt: now.Add(-kept.age)}
		_, err := store.Acquire(t.Context(), record, time.Hour)
		require.NoError(t, err)
		require.NoError(t, store.Close())
	}
	for key, generation := range map[string]string{"pay": "2", "re:pay": "3"} {
		found, err := readRecord(t.Context(), options.Addr, key)
		require.NoError(t, err)
		require.NotNil(t, found, key)
		require.Equal(t, generation, found.Account, key)
	}
	found, err := readRecord(t.Context(), options.Addr, "ay")
	require.NoError(t, err)
	require.Nil(t, found)
}
