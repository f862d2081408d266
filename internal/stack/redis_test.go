package stack

import (
	"context"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/wait"
)

// replicatedStack runs the Redis of a stack with Sentinel and nothing else.
func replicatedStack(t *testing.T) *nativeDriver {
	t.Helper()
	d := newDriver(t, Topology{Redis: Sentinel})
	for _, names := range [][]string{{Redis}, {RedisReplica}, sentinels} { // as `up` does
		require.NoError(t, d.ensure(testContext(t), names...))
	}
	return d
}

func redisAt(t *testing.T, addr string, do func(*redis.Client) error) error {
	t.Helper()
	options, err := redis.ParseURL(localserver.RedisURL(addr))
	require.NoError(t, err)
	client := redis.NewClient(options)
	defer func() { _ = client.Close() }()
	return do(client)
}

// forbidFailovers has the sentinels take no stall of a master for its death from now on. If a busy
// machine does not run it for about a second, they would otherwise appoint the other server again.
func forbidFailovers(t *testing.T, d *nativeDriver) {
	t.Helper()
	for _, name := range sentinels {
		require.NoError(t, redisAt(t, d.Addr(name), func(c *redis.Client) error {
			return c.Do(t.Context(), "SENTINEL", "SET", localserver.MasterName, "down-after-milliseconds", testTimeout.Milliseconds()).Err()
		}))
	}
}

func TestSentinel_PromotesAReplicaThatHasMissedWrites(t *testing.T) {
	t.Parallel()
	d, ctx := replicatedStack(t), testContext(t)
	first, second := d.Addr(Redis), d.Addr(RedisReplica)
	master, err := d.RedisMaster(ctx)
	require.NoError(t, err)
	require.Equal(t, first, master)
	copied := func(key string) func() bool {
		return func() bool {
			return redisAt(t, second, func(c *redis.Client) error { return c.Get(ctx, key).Err() }) == nil
		}
	}
	require.NoError(t, redisAt(t, first, func(c *redis.Client) error { return c.Set(ctx, "kept", 1, 0).Err() }))
	require.Eventually(t, copied("kept"), testTimeout, localserver.PollInterval)

	require.NoError(t, d.setReplication(ctx, false))
	require.True(t, d.replicationIsCut(ctx))
	require.NoError(t, redisAt(t, first, func(c *redis.Client) error { return c.Set(ctx, "lost", 1, 0).Err() }))
	require.NoError(t, d.control(ctx, "kill", Redis))
	appointed := func() bool { master, err := d.RedisMaster(ctx); return err == nil && master == second }
	require.Eventually(t, appointed, testTimeout, localserver.PollInterval)
	forbidFailovers(t, d)
	require.True(t, copied("kept")())
	require.False(t, copied("lost")(), "it never got there")

	// The old primary starts as what it is from now on.
	require.NoError(t, d.control(ctx, "start", Redis))
	ping := func(ctx context.Context) error { return localserver.PingRedis(ctx, first) }
	require.NoError(t, wait.For(ctx, testTimeout, localserver.PollInterval, ping))
	err = redisAt(t, first, func(c *redis.Client) error { return c.Set(ctx, "astray", 1, 0).Err() })
	require.ErrorContains(t, err, "READONLY")

	require.NoError(t, d.setReplication(ctx, true))
	require.False(t, d.replicationIsCut(ctx))
	for _, name := range slices.Concat(append([]string{RedisReplica}, sentinels...), []string{Redis}) {
		require.NoError(t, wait.For(ctx, testTimeout, localserver.PollInterval, probing(d, name)), name)
	}
	rolesAreSwapped := func() bool {
		return d.redisRole(ctx, Redis) == "replica" && d.redisRole(ctx, RedisReplica) == "master"
	}
	require.Eventually(t, rolesAreSwapped, testTimeout, localserver.PollInterval)
	require.NoError(t, d.flush(ctx, "flush", nil), "it goes to the master")
	require.False(t, copied("kept")())
}

func TestUp_ReturnsWhenSentinelsCanAgree(t *testing.T) {
	t.Parallel()
	d, ctx := replicatedStack(t), testContext(t)
	for _, name := range sentinels {
		require.NoError(t, redisAt(t, d.Addr(name), func(c *redis.Client) error { return c.Do(ctx, "SENTINEL", "CKQUORUM", localserver.MasterName).Err() }))
	}
}

func TestProbe_RefusesAReplacedMaster(t *testing.T) {
	t.Parallel()
	d, ctx := replicatedStack(t), testContext(t)
	require.NoError(t, d.control(ctx, "pause", Redis))
	appointed := func() bool {
		master, err := d.RedisMaster(ctx)
		return err == nil && master == d.Addr(RedisReplica)
	}
	require.Eventually(t, appointed, testTimeout, localserver.PollInterval)
	require.NoError(t, d.control(ctx, "resume", Redis))
	require.ErrorContains(t, d.probe(ctx, Redis), "Sentinel says") // for some ten seconds, until Sentinel has told it
	require.Equal(t, "replica", d.redisRole(ctx, Redis))
}

func TestSentinel_KeepsItsNameOverARestart(t *testing.T) {
	t.Parallel()
	d, ctx := replicatedStack(t), testContext(t)
	id := func() (id string) {
		require.NoError(t, redisAt(t, d.Addr(Sentinel1), func(c *redis.Client) (err error) {
			id, err = c.Do(ctx, "SENTINEL", "MYID").Text()
			return err
		}))
		return id
	}
	before := id()
	require.NoError(t, d.control(ctx, "kill", Sentinel1))
	require.NoError(t, d.control(ctx, "start", Sentinel1))
	require.NoError(t, wait.For(ctx, testTimeout, localserver.PollInterval, probing(d, Sentinel1)))
	require.Equal(t, before, id(), "under a new name it would raise the quorum")
}

// TestRedis_RefusesWritesInsteadOfForgetting where its memory ends.
func TestRedis_RefusesWritesInsteadOfForgetting(t *testing.T) {
	t.Parallel()
	d := newDriver(t, Topology{})
	require.NoError(t, d.ensure(testContext(t), Redis))
	for setting, want := range map[string]string{"maxmemory": "2147483648", "maxmemory-policy": "noeviction"} {
		require.NoError(t, redisAt(t, d.Addr(Redis), func(c *redis.Client) error {
			found, err := c.ConfigGet(t.Context(), setting).Result()
			require.Equal(t, want, found[setting])
			return err
		}))
	}
}
