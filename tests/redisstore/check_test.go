package redisstore_test

import (
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/redisstore"
	"github.com/oncepay/oncepay/internal/testenv"
)

func TestCheckServer_RefusesOldServers(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t)
	require.NoError(t, redisstore.CheckServer(t.Context(), openPatient(t, server)))

	for name, tt := range map[string]struct {
		wire *wire
		want string
	}{
		"old":             {&wire{info: "# Server\r\nredis_version:6.2.14\r\n"}, "version 6.2.14 is too old"},
		"very old":        {&wire{info: "redis_version:2.8.0\r\n"}, "too old"},
		"lacks NX GET":    {&wire{reply: "ERR syntax error"}, "SET NX GET: ERR syntax error"},
		"is a replica":    {&wire{reply: "READONLY You can't write against a read only replica."}, "READONLY"},
		"speaks, and new": {&wire{info: "redis_version:255.255.255\r\n"}, ""},
		"hides a version": {&wire{info: "# Server\r\n"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := openPatient(t, server)
			client.AddHook(tt.wire)
			err := redisstore.CheckServer(t.Context(), client)
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestCheckServer_ReportsAnOutage(t *testing.T) {
	t.Parallel()
	client := openPatient(t, "redis://127.0.0.1:1")
	require.ErrorIs(t, redisstore.CheckServer(t.Context(), client), idempotency.ErrUnavailable)
}

// TestCheckServer_ChecksEveryMaster has one master of a cluster be unlike the others.
func TestCheckServer_ChecksEveryMaster(t *testing.T) {
	t.Parallel()
	cluster := testenv.RedisCluster(t)
	for _, odd := range cluster.Masters {
		for want, wire := range map[string]*wire{
			"version 6.2.14 is too old":    {info: "redis_version:6.2.14\r\n"},
			"SET NX GET: ERR syntax error": {reply: "ERR syntax error"},
		} {
			client := openPatient(t, cluster.URL)
			client.(*redis.ClusterClient).OnNewNode(func(node *redis.Client) {
				if node.Options().Addr == odd.Addr {
					node.AddHook(wire)
				}
			})
			require.ErrorContains(t, redisstore.CheckServer(t.Context(), client), want)
		}
	}
}

func TestEvictionPolicy_IsReported(t *testing.T) {
	t.Parallel()
	server := testenv.RedisServer(t)
	client := openPatient(t, server.URL)
	for _, want := range []string{"noeviction", "allkeys-lru", "volatile-ttl"} {
		server.Do("CONFIG", "SET", "maxmemory-policy", want)
		policy, err := redisstore.EvictionPolicy(t.Context(), client)
		require.NoError(t, err)
		require.Equal(t, want, policy)
	}
	_, err := redisstore.EvictionPolicy(t.Context(), openPatient(t, asUser(t, server.URL, redisstore.ACLRules+" -info", server)))
	require.ErrorContains(t, err, "NOPERM")

	cluster := testenv.RedisCluster(t)
	cluster.Masters[1].Do("CONFIG", "SET", "maxmemory-policy", "allkeys-lfu")
	policy, err := redisstore.EvictionPolicy(t.Context(), openPatient(t, cluster.URL))
	require.NoError(t, err)
	require.Equal(t, "allkeys-lfu", policy, "one master suffices to forget")
}
