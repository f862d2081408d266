package httpapi_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// untilRowEnds is how much longer the authority keeps a key.
func (s *shop) untilRowEnds(key string) time.Duration {
	s.t.Helper()
	seconds := value[float64](s, "SELECT extract(epoch FROM expires_at - now())::float8 FROM idempotency_keys WHERE key = $1", key)
	return time.Duration(seconds * float64(time.Second))
}

// untilRecordEnds is how much longer Redis keeps a key. It asks before untilRowEnds does.
func (s *shop) untilRecordEnds(key string) time.Duration {
	s.t.Helper()
	left, err := s.redis.PTTL(s.ctx, s.redisKeys(key)[0]).Result()
	require.NoError(s.t, err)
	require.Positive(s.t, left)
	return left
}

// TestRecord_NeverOutlivesItsRow has Redis forget a record and learn it again from the row.
func TestRecord_NeverOutlivesItsRow(t *testing.T) {
	t.Parallel()
	s := setup(t)
	body, key := orderOf(s.customer().ID, "tee-black", 1), newKey()
	first := s.post("/v1/orders", key, body, http.StatusCreated)
	require.LessOrEqual(t, s.untilRecordEnds(key), s.untilRowEnds(key), "after the first answer")

	_, err := s.pool.Exec(s.ctx, "UPDATE idempotency_keys SET expires_at = now() + interval '5 minutes' WHERE key = $1", key)
	require.NoError(t, err)
	require.NoError(t, s.redis.Del(s.ctx, s.redisKeys(key)...).Err())
	again := s.post("/v1/orders", key, body, http.StatusCreated)
	require.True(t, again.replayed())
	requireSame(t, first, again)
	require.LessOrEqual(t, s.untilRecordEnds(key), s.untilRowEnds(key), "after a replay from the row")

	_, err = s.pool.Exec(s.ctx, "UPDATE idempotency_keys SET expires_at = now() + interval '5 seconds' WHERE key = $1", key)
	require.NoError(t, err)
	require.NoError(t, s.redis.Del(s.ctx, s.redisKeys(key)...).Err())
	require.True(t, s.post("/v1/orders", key, body, http.StatusCreated).replayed())
	found, err := s.redis.Keys(s.ctx, "idempotency:*:"+key).Result()
	require.NoError(t, err)
	require.Empty(t, found, "what ends soon is not put back")
}
