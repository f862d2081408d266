package localserver

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

func TestStartRedis_StartsEmptyEachTime(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	dir := t.TempDir()

	first, err := Redis.Start(ctx, Config{Dir: dir, DieWithParent: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, first.Stop()) })
	require.NoError(t, withRedis(t, first.URL, func(c *redis.Client) error { return c.Set(ctx, "k", "v", 0).Err() }))
	require.NoError(t, first.Stop())
	require.False(t, first.Process.Alive())

	second, err := Redis.Start(ctx, Config{Dir: dir, DieWithParent: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, second.Stop()) })
	err = withRedis(t, second.URL, func(c *redis.Client) error { return c.Get(ctx, "k").Err() })
	require.ErrorIs(t, err, redis.Nil)
}

func TestStartRedis_LeavesNothingRunningWhenCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Redis.Start(ctx, Config{})
	require.ErrorIs(t, err, context.Canceled)
}

func withRedis(t *testing.T, url string, do func(*redis.Client) error) error {
	t.Helper()
	options, err := redis.ParseURL(url)
	require.NoError(t, err)
	client := redis.NewClient(options)
	defer func() { _ = client.Close() }()
	return do(client)
}
