package testenv

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSentinels_PromoteTheReplica(t *testing.T) {
	t.Parallel()
	r := RedisSentinel(t)
	r.Primary.Do("SET", "kept", "v")
	r.Primary.Do("WAIT", 1, 1000)
	r.CutReplication()
	r.Primary.Do("SET", "lost", "v")
	r.Primary.Stop()
	r.AwaitPromotion()
	promoted := openRedis(t, r.Replica.URL)
	require.Equal(t, []string{"kept"}, promoted.Keys(t.Context(), "*").Val())
	require.NoError(t, promoted.Set(t.Context(), "new", "v", 0).Err())
}

func TestCluster_SharesTheKeys(t *testing.T) {
	t.Parallel()
	r := RedisCluster(t)
	for key, master := range map[string]int{"b": 0, "c": 1, "a": 2} { // CLUSTER KEYSLOT: 3300, 7365, 15495
		r.Masters[master].Do("SET", key, "v")
	}
	require.ErrorContains(t, openRedis(t, r.Masters[0].URL).Get(t.Context(), "a").Err(), "MOVED 15495 "+r.Masters[2].Addr)
}

func TestRedisTLS_AnswersOverTLS(t *testing.T) {
	t.Parallel()
	server := RedisTLS(t)
	require.Regexp(t, `^rediss://127\.0\.0\.1:\d+/0\?ca_file=/`, server.URL)
	server.Do("PING")
}
