package main

import (
	"net/http"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/testenv"
)

// bench is the recipe at two replicas, with a look into its Redis.
type bench struct {
	t     *testing.T
	shop  *shop
	urls  [2]string
	redis *redis.Client
}

func setupSetNX(t *testing.T, s *shop) bench {
	t.Helper()
	url := testenv.Redis(t)
	client, err := openRedis(url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return bench{t, s, replicas(t, "setnx", url, s), client}
}

// send sends a request with a key to a replica, and tells what came back.
func (b bench) send(replica int, key, body string) answer {
	b.t.Helper()
	got := post(b.t, b.urls[replica], "a", key, body)
	b.t.Logf("replica %d, key %s, %s: %d %s", replica+1, key, body, got.status, got.body)
	return got
}

// inBackground sends a request that stays in its handler, after its effect, until leave is closed.
func (b bench) inBackground(replica int, key string) <-chan answer {
	b.t.Helper()
	answered := make(chan answer, 1)
	go func() {
		got, _ := try(b.urls[replica], "a", key, "{}")
		answered <- got
	}()
	<-b.shop.enter
	b.t.Logf("replica %d, key %s: the handler has had its effect, and has not returned", replica+1, key)
	return answered
}

// forget removes the recipe's keys, as a FLUSHALL, a failover or their time to live does.
func (b bench) forget(why string) {
	b.t.Helper()
	b.t.Log(why)
	keys, err := b.redis.Keys(b.t.Context(), "setnx:*").Result()
	require.NoError(b.t, err)
	require.NotEmpty(b.t, keys)
	require.NoError(b.t, b.redis.Del(b.t.Context(), keys...).Err())
}

func TestSetNXHole1_ALostRecordIsASecondEffect(t *testing.T) {
	t.Parallel()
	b := setupSetNX(t, &shop{})
	first := b.send(0, "k", "{}")
	b.forget("Redis loses its memory")
	again := b.send(1, "k", "{}")
	require.Equal(t, http.StatusCreated, again.status)
	require.NotEqual(t, first.body, again.body)
	require.EqualValues(t, 2, b.shop.executions.Load(), "effects of one key")
}

func TestSetNXHole2_ADeadReplicaKeepsTheKeyUntilItsTimeIsUp(t *testing.T) {
	t.Parallel()
	b := setupSetNX(t, &shop{enter: make(chan struct{}, 2), leave: make(chan struct{})})
	dead := b.inBackground(0, "k")
	t.Log("replica 1 is dead")
	require.Equal(t, http.StatusConflict, b.send(1, "k", "{}").status)
	left, err := b.redis.TTL(t.Context(), b.name("k")).Result()
	require.NoError(t, err)
	require.Greater(t, left.Seconds(), 50.0, "seconds during which nobody can finish the request")
	b.forget("60 seconds later")
	retry := b.inBackground(1, "k")
	require.EqualValues(t, 2, b.shop.executions.Load(), "effects of one key")
	close(b.shop.leave)
	require.Equal(t, http.StatusCreated, (<-retry).status)
	<-dead
}

func TestSetNXHole3_ASlowHandlerIsOvertaken(t *testing.T) {
	t.Parallel()
	b := setupSetNX(t, &shop{enter: make(chan struct{}, 2), leave: make(chan struct{})})
	slow := b.inBackground(0, "k")
	b.forget("its 60 seconds are over, and it still runs")
	overtaking := b.inBackground(1, "k")
	close(b.shop.leave)
	one, two := <-slow, <-overtaking
	t.Logf("both answer: %s and %s", one.body, two.body)
	require.Equal(t, []int{http.StatusCreated, http.StatusCreated}, []int{one.status, two.status})
	require.NotEqual(t, one.body, two.body, "two answers of one key")
}

func TestSetNXHole4_AnUnknownOutcomeIsASecondEffect(t *testing.T) {
	t.Parallel()
	b := setupSetNX(t, &shop{answer: func(w http.ResponseWriter, n int64) {
		if n == 1 { // the transaction has committed, and its reply was lost
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusCreated)
	}})
	require.Equal(t, http.StatusServiceUnavailable, b.send(0, "k", "{}").status)
	require.Equal(t, http.StatusCreated, b.send(1, "k", "{}").status)
	require.EqualValues(t, 2, b.shop.executions.Load(), "effects of one key")
}

func TestSetNXHole5_AnotherRequestGetsTheAnswerOfTheFirst(t *testing.T) {
	t.Parallel()
	b := setupSetNX(t, &shop{})
	first := b.send(0, "k", `{"quantity":2}`)
	other := b.send(1, "k", `{"quantity":3}`)
	require.Equal(t, http.StatusCreated, other.status, "the client believes that it has ordered three")
	require.Equal(t, first.body, other.body)
	require.EqualValues(t, 1, b.shop.executions.Load())
}

// name is where the recipe keeps a key.
func (b bench) name(key string) string {
	b.t.Helper()
	keys, err := b.redis.Keys(b.t.Context(), "setnx:*:"+key).Result()
	require.NoError(b.t, err)
	require.Len(b.t, keys, 1)
	return keys[0]
}
