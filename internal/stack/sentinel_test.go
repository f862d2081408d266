package stack

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/wait"
)

// replicatedStack runs the Redis of a stack with Sentinel and nothing else.
func replicatedStack(t *testing.T) *Stack {
	t.Helper()
	s := emptyStack(t, Options{Redis: Sentinel})
	require.NoError(t, s.state.update(func(d *stateData) { d.Redis = Sentinel }))
	require.NoError(t, (&native{Stack: s}).makeDirs())
	t.Cleanup(func() { require.NoError(t, s.driver.down(context.WithoutCancel(t.Context()), false)) })
	require.NoError(t, (&native{Stack: s}).ensureRedis(testContext(t)))
	return s
}

// emptyStack is one in which nothing runs, at ports that it holds.
func emptyStack(t *testing.T, opts Options) *Stack {
	t.Helper()
	opts.Dir = t.TempDir()
	var s *Stack
	var held []*localserver.Port
	t.Cleanup(func() { release(held) })
	require.Eventually(t, func() bool {
		opts.PortOffset = rand.IntN(maxOffset)
		var err error
		s, err = New(opts)
		require.NoError(t, err)
		release(held)
		held, err = holdAll(s.ports)
		return err == nil
	}, testTimeout, pollInterval)
	s.driver = &native{Stack: s}
	return s
}

func holdAll(p ports) (held []*localserver.Port, err error) {
	for _, name := range slices.Concat(Services, sentinelServices, []string{PostgresStandby}) {
		for _, number := range p.allPorts(name) {
			port, err := localserver.HoldPort(number)
			if err != nil {
				return held, err
			}
			held = append(held, port)
		}
	}
	return held, nil
}

func redisAt(t *testing.T, addr string, do func(*redis.Client) error) error {
	t.Helper()
	options, err := redis.ParseURL(localserver.RedisURL(addr))
	require.NoError(t, err)
	client := redis.NewClient(options)
	defer func() { _ = client.Close() }()
	return do(client)
}

func TestSentinel_PromotesAReplicaThatHasMissedWrites(t *testing.T) {
	t.Parallel()
	s, ctx := replicatedStack(t), testContext(t)
	first, second := s.addr(Redis), s.addr(RedisReplica)
	master, err := s.RedisMaster(ctx)
	require.NoError(t, err)
	require.Equal(t, first, master)
	copied := func(key string) func() bool {
		return func() bool {
			return redisAt(t, second, func(c *redis.Client) error { return c.Get(ctx, key).Err() }) == nil
		}
	}
	require.NoError(t, redisAt(t, first, func(c *redis.Client) error { return c.Set(ctx, "kept", 1, 0).Err() }))
	require.Eventually(t, copied("kept"), testTimeout, pollInterval)

	require.NoError(t, s.cutReplication(ctx))
	require.True(t, s.replicationIsCut(ctx))
	require.NoError(t, redisAt(t, first, func(c *redis.Client) error { return c.Set(ctx, "lost", 1, 0).Err() }))
	require.NoError(t, s.driver.kill(ctx, Redis))
	appointed := func() bool { master, err := s.RedisMaster(ctx); return err == nil && master == second }
	require.Eventually(t, appointed, testTimeout, pollInterval)
	require.True(t, copied("kept")())
	require.False(t, copied("lost")(), "it never got there")

	// The old primary starts as what it is from now on.
	require.NoError(t, s.driver.start(ctx, Redis))
	require.NoError(t, wait.For(ctx, testTimeout, pollInterval, func(ctx context.Context) error { return localserver.PingRedis(ctx, first) }))
	err = redisAt(t, first, func(c *redis.Client) error { return c.Set(ctx, "astray", 1, 0).Err() })
	require.ErrorContains(t, err, "READONLY")

	require.NoError(t, s.healReplication(ctx))
	require.False(t, s.replicationIsCut(ctx))
	for _, name := range slices.Concat(sentinelServices, []string{Redis}) {
		require.NoError(t, wait.For(ctx, testTimeout, pollInterval, func(ctx context.Context) error { return s.probe(ctx, name) }), name)
	}
	// A machine so busy that the new master misses its pings may see another failover. There is one
	// master then, too: the one that Sentinel names.
	agreed := func() bool {
		master, err := s.RedisMaster(ctx)
		roles := map[string]string{first: s.redisRole(ctx, Redis), second: s.redisRole(ctx, RedisReplica)}
		return err == nil && roles[master] == "master" && slices.Contains(slices.Collect(maps.Values(roles)), "replica")
	}
	require.Eventually(t, agreed, testTimeout, pollInterval)
	require.NoError(t, flush(ctx, s, nil), "it goes to the master")
	require.Eventually(t, func() bool { return !copied("kept")() }, testTimeout, pollInterval)
}

func TestUp_ReturnsWhenSentinelsCanAgree(t *testing.T) {
	t.Parallel()
	s, ctx := replicatedStack(t), testContext(t)
	for _, name := range sentinels {
		require.NoError(t, redisAt(t, s.addr(name), func(c *redis.Client) error { return c.Do(ctx, "SENTINEL", "CKQUORUM", masterName).Err() }))
	}
}

func TestProbe_RefusesAReplacedMaster(t *testing.T) {
	t.Parallel()
	s, ctx := replicatedStack(t), testContext(t)
	require.NoError(t, s.driver.pause(ctx, Redis))
	require.Eventually(t, func() bool { master, err := s.RedisMaster(ctx); return err == nil && master == s.addr(RedisReplica) }, testTimeout, pollInterval)
	require.NoError(t, s.driver.resume(ctx, Redis))
	require.ErrorContains(t, s.probe(ctx, Redis), "Sentinel says") // for some ten seconds, until Sentinel has told it
	require.Equal(t, "replica", s.redisRole(ctx, Redis))
}

func TestSentinel_KeepsItsNameOverARestart(t *testing.T) {
	t.Parallel()
	s, ctx := replicatedStack(t), testContext(t)
	id := func() (id string) {
		require.NoError(t, redisAt(t, s.addr(Sentinel1), func(c *redis.Client) (err error) {
			id, err = c.Do(ctx, "SENTINEL", "MYID").Text()
			return err
		}))
		return id
	}
	before := id()
	require.NoError(t, s.driver.kill(ctx, Sentinel1))
	require.NoError(t, s.driver.start(ctx, Sentinel1))
	require.NoError(t, wait.For(ctx, testTimeout, pollInterval, func(ctx context.Context) error { return s.probe(ctx, Sentinel1) }))
	require.Equal(t, before, id(), "as a stranger it would raise the number of those who must agree")
}

func TestSentinel_RedisIsFoundPastTheProxy(t *testing.T) {
	t.Parallel()
	s := emptyStack(t, Options{})
	_, err := s.findEdge(API1, Redis)
	require.NoError(t, err)
	require.Equal(t, localserver.RedisURL(s.via(API1, Redis)), s.redisURL(API1))

	require.NoError(t, s.state.update(func(d *stateData) { d.Redis = Sentinel }))
	_, err = s.findEdge(Redis, API1)
	require.ErrorContains(t, err, "past the switchboard")
	_, err = s.findEdge(API1, Postgres)
	require.NoError(t, err)
	require.Equal(t, "redis+sentinel://"+s.addr(Sentinel1)+","+s.addr(Sentinel2)+","+s.addr(Sentinel3)+"/oncepay", s.redisURL(API1))
}

func TestRedisKind_IsChosenAtTheFirstUp(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	s := emptyStack(t, Options{Redis: Sentinel, Driver: Compose})
	_, err := s.settle(ctx)
	require.ErrorContains(t, err, "only the native driver")

	s = emptyStack(t, Options{Redis: Sentinel})
	_, err = s.settle(ctx)
	require.NoError(t, err)
	require.Equal(t, Native, s.state.data.Driver)
	require.Contains(t, s.services(), RedisReplica)

	s.Redis = "" // as a later command has it
	_, err = s.settle(ctx)
	require.NoError(t, err)
	require.True(t, s.isReplicated())

	s.Redis = Single
	_, err = s.settle(ctx)
	require.ErrorContains(t, err, "take it down first")
}

func TestKill_NeedsAReplicaOfRedis(t *testing.T) {
	t.Parallel()
	s := emptyStack(t, Options{Driver: Native})
	require.NoError(t, s.locked(testContext(t), func(ctx context.Context) error { _, err := s.settle(ctx); return err }))
	err := s.Do(testContext(t), "kill", RedisReplica)
	require.ErrorContains(t, err, "--redis sentinel")
}
