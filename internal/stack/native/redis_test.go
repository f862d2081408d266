package native

import (
	"context"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/stack/sentinel"
	"github.com/oncepay/oncepay/internal/stack/stacktest"
	"github.com/oncepay/oncepay/internal/stack/switchboard"
	"github.com/oncepay/oncepay/internal/stack/topology"
	"github.com/oncepay/oncepay/internal/wait"
)

// replicatedStack runs the Redis of a stack with Sentinel and nothing else.
func replicatedStack(t *testing.T) *Driver {
	t.Helper()
	d := newDriver(t, topology.Topology{Redis: topology.Sentinel})
	require.NoError(t, d.ensureRedis(stacktest.Context(t)))
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
func forbidFailovers(t *testing.T, d *Driver) {
	t.Helper()
	for _, name := range topology.Sentinels {
		require.NoError(t, redisAt(t, d.Addr(name), func(c *redis.Client) error {
			return c.Do(t.Context(), "SENTINEL", "SET", sentinel.MasterName, "down-after-milliseconds", stacktest.Timeout.Milliseconds()).Err()
		}))
	}
}

func TestSentinel_PromotesAReplicaThatHasMissedWrites(t *testing.T) {
	t.Parallel()
	d, ctx := replicatedStack(t), stacktest.Context(t)
	first, second := d.Addr(topology.Redis), d.Addr(topology.RedisReplica)
	master, err := sentinel.Master(ctx, d.Topology)
	require.NoError(t, err)
	require.Equal(t, first, master)
	copied := func(key string) func() bool {
		return func() bool {
			return redisAt(t, second, func(c *redis.Client) error { return c.Get(ctx, key).Err() }) == nil
		}
	}
	require.NoError(t, redisAt(t, first, func(c *redis.Client) error { return c.Set(ctx, "kept", 1, 0).Err() }))
	require.Eventually(t, copied("kept"), stacktest.Timeout, localserver.PollInterval)

	require.NoError(t, sentinel.CutReplication(ctx, d.Topology))
	require.True(t, sentinel.ReplicationIsCut(ctx, d.Topology))
	require.NoError(t, redisAt(t, first, func(c *redis.Client) error { return c.Set(ctx, "lost", 1, 0).Err() }))
	require.NoError(t, d.Kill(ctx, topology.Redis))
	appointed := func() bool { master, err := sentinel.Master(ctx, d.Topology); return err == nil && master == second }
	require.Eventually(t, appointed, stacktest.Timeout, localserver.PollInterval)
	forbidFailovers(t, d)
	require.True(t, copied("kept")())
	require.False(t, copied("lost")(), "it never got there")

	// The old primary starts as what it is from now on.
	require.NoError(t, d.Start(ctx, topology.Redis))
	ping := func(ctx context.Context) error { return localserver.PingRedis(ctx, first) }
	require.NoError(t, wait.For(ctx, stacktest.Timeout, localserver.PollInterval, ping))
	err = redisAt(t, first, func(c *redis.Client) error { return c.Set(ctx, "astray", 1, 0).Err() })
	require.ErrorContains(t, err, "READONLY")

	require.NoError(t, sentinel.HealReplication(ctx, d.Topology))
	require.False(t, sentinel.ReplicationIsCut(ctx, d.Topology))
	for _, name := range slices.Concat(topology.SentinelServices, []string{topology.Redis}) {
		require.NoError(t, wait.For(ctx, stacktest.Timeout, localserver.PollInterval, d.probe(name)), name)
	}
	rolesAreSwapped := func() bool {
		return sentinel.Role(ctx, d.Topology, topology.Redis) == "replica" && sentinel.Role(ctx, d.Topology, topology.RedisReplica) == "master"
	}
	require.Eventually(t, rolesAreSwapped, stacktest.Timeout, localserver.PollInterval)
	flush, err := switchboard.Parse("flush", topology.Redis)
	require.NoError(t, err)
	require.NoError(t, switchboard.Board{Deployment: d.Deployment, Driver: d}.Do(ctx, flush), "it goes to the master")
	require.False(t, copied("kept")())
}

func TestUp_ReturnsWhenSentinelsCanAgree(t *testing.T) {
	t.Parallel()
	d, ctx := replicatedStack(t), stacktest.Context(t)
	for _, name := range topology.Sentinels {
		require.NoError(t, redisAt(t, d.Addr(name), func(c *redis.Client) error { return c.Do(ctx, "SENTINEL", "CKQUORUM", sentinel.MasterName).Err() }))
	}
}

func TestProbe_RefusesAReplacedMaster(t *testing.T) {
	t.Parallel()
	d, ctx := replicatedStack(t), stacktest.Context(t)
	require.NoError(t, d.Pause(ctx, topology.Redis))
	appointed := func() bool {
		master, err := sentinel.Master(ctx, d.Topology)
		return err == nil && master == d.Addr(topology.RedisReplica)
	}
	require.Eventually(t, appointed, stacktest.Timeout, localserver.PollInterval)
	require.NoError(t, d.Resume(ctx, topology.Redis))
	require.ErrorContains(t, d.Probe(ctx, topology.Redis), "Sentinel says") // for some ten seconds, until Sentinel has told it
	require.Equal(t, "replica", sentinel.Role(ctx, d.Topology, topology.Redis))
}

func TestSentinel_KeepsItsNameOverARestart(t *testing.T) {
	t.Parallel()
	d, ctx := replicatedStack(t), stacktest.Context(t)
	id := func() (id string) {
		require.NoError(t, redisAt(t, d.Addr(topology.Sentinel1), func(c *redis.Client) (err error) {
			id, err = c.Do(ctx, "SENTINEL", "MYID").Text()
			return err
		}))
		return id
	}
	before := id()
	require.NoError(t, d.Kill(ctx, topology.Sentinel1))
	require.NoError(t, d.Start(ctx, topology.Sentinel1))
	require.NoError(t, wait.For(ctx, stacktest.Timeout, localserver.PollInterval, d.probe(topology.Sentinel1)))
	require.Equal(t, before, id(), "under a new name it would raise the quorum")
}

// TestRedis_RefusesWritesInsteadOfForgetting where its memory ends.
func TestRedis_RefusesWritesInsteadOfForgetting(t *testing.T) {
	t.Parallel()
	d := newDriver(t, topology.Topology{})
	require.NoError(t, d.ensureRedis(stacktest.Context(t)))
	for setting, want := range map[string]string{"maxmemory": "2147483648", "maxmemory-policy": "noeviction"} {
		require.NoError(t, redisAt(t, d.Addr(topology.Redis), func(c *redis.Client) error {
			found, err := c.ConfigGet(t.Context(), setting).Result()
			require.Equal(t, want, found[setting])
			return err
		}))
	}
}
