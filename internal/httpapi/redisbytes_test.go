package httpapi_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/httpapi"
)

const fingerprint = "00000000000000000000000000000000000000000000000000000000000000ff"

// foreign is what may lie under one of our keys in Redis and is no record.
var foreign = map[string]string{
	"nothing":        "",
	"text":           "garbage",
	"binary":         "\x00\x01\xff\n\x00",
	"cut":            `{"status":"Completed","requestFingerprint":"` + fingerprint + `","respons`,
	"no end of line": `{"status":"InProgress","requestFingerprint":"` + fingerprint + `"}`,
	"status 999":     `{"status":"Completed","requestFingerprint":"` + fingerprint + `","responseStatusCode":999}` + "\n{}",
	"status 503":     `{"status":"Completed","requestFingerprint":"` + fingerprint + `","responseStatusCode":503}` + "\n{}",
	"no status":      `{"requestFingerprint":"` + fingerprint + `","responseStatusCode":201}` + "\n{}",
	"unknown status": `{"status":"Done","requestFingerprint":"` + fingerprint + `","responseStatusCode":201}` + "\n{}",
	"no fingerprint": `{"status":"Completed","responseStatusCode":201}` + "\n{}",
	"wrong types":    `{"status":"Completed","requestFingerprint":"` + fingerprint + `","responseStatusCode":201,"responseHeaders":"x"}` + "\n{}",
	"huge":           strings.Repeat("garbage ", 1<<17),
}

// TestRedis_DamagedRecordsLetPostgreSQLDecide has a record damaged before its request, and again
// when the request is done. Each time a request replaces it, and nothing happens twice.
func TestRedis_DamagedRecordsLetPostgreSQLDecide(t *testing.T) {
	t.Parallel()
	logs := &logLines{}
	s := setup(t, func(c *httpapi.Config) { c.Logger = slog.New(slog.NewJSONHandler(logs, nil)) })
	customer := s.customer().ID
	prefix := s.redisPrefix()
	for name, damage := range foreign {
		t.Log(name)
		for _, r := range []request{
			{path: "/v1/customers/" + customer.String() + "/top-ups", body: `{"amount":{"amount":500,"currency":"USD"}}`},
			{path: "/v1/orders", body: orderOf(customer, "tee-black", 1)},
		} {
			r.method, r.key = "POST", newKey()
			require.NoError(t, s.redis.Set(s.ctx, prefix+r.key, damage, 0).Err())
			s.do(request{method: "GET", path: keyPath(r.key)}).problem(503, "service_unavailable")
			first := s.do(r)
			require.Equal(t, http.StatusCreated, first.status, first.body)
			require.False(t, first.replayed())
			require.Contains(t, logs.of(r.key), "damaged record replaced")

			before := s.effect()
			require.NoError(t, s.redis.Set(s.ctx, prefix+r.key, damage, 0).Err())
			s.observed()
			for replica, by := range []string{"by PostgreSQL", "by Redis"} {
				r.replica = replica
				again := s.do(r)
				require.True(t, again.replayed(), by)
				requireSame(t, first, again)
			}
			require.Positive(t, s.redis.TTL(s.ctx, prefix+r.key).Val(), "it is a record again, which expires")
			require.Equal(t, before, s.effect())
		}
	}
}

// TestRedis_ADamagedRecordOfARunningPaymentIsTakenOver: the record was damaged while its attempt
// asked the provider. The next request takes the payment over, and the fence lets one of them
// settle.
func TestRedis_ADamagedRecordOfARunningPaymentIsTakenOver(t *testing.T) {
	t.Parallel()
	s := setup(t)
	order := s.order(s.customer().ID).ID
	r := request{method: "POST", path: payments(order), key: newKey(), body: card("tok_slow_2s")}
	first := s.start(r)
	s.eventually(func() bool { return s.charges(order) == 1 }, "the provider has charged the card")
	require.NoError(t, s.redis.Set(s.ctx, s.redisPrefix()+r.key, "damaged", time.Minute).Err())
	r.replica = 1
	second := s.start(r)
	s.eventually(func() bool {
		return value[int](s, `SELECT attempt FROM idempotency_keys WHERE resource_id IS NOT NULL`) == 2
	}, "it is taken over")

	paid := s.await(second)
	require.Equal(t, http.StatusCreated, paid.status, paid.body)
	if overtaken := s.await(first); overtaken.status != http.StatusCreated {
		overtaken.problem(409, "idempotency_in_progress")
	}
	kept := s.do(r)
	require.Equal(t, http.StatusCreated, kept.status, kept.body)
	require.True(t, kept.replayed())
	require.Equal(t, 1, s.charges(order))
	require.Equal(t, "succeeded 2", value[string](s, `SELECT concat_ws(' ', p.status, k.attempt) FROM payments p JOIN idempotency_keys k ON k.resource_id = p.id`))
}

// TestRedis_ValuesOfAnotherTypeAreUnavailable has a list under two keys, which was never a record.
// For what moves money that is as if Redis were away, for an order PostgreSQL decides alone; the
// list is left to whoever put it there.
func TestRedis_ValuesOfAnotherTypeAreUnavailable(t *testing.T) {
	t.Parallel()
	s := setup(t)
	customer := s.customer().ID
	order := s.order(customer).ID
	payKey, orderKey := newKey(), newKey()
	for _, key := range []string{payKey, orderKey} {
		require.NoError(t, s.redis.RPush(s.ctx, s.redisPrefix()+key, "x").Err())
	}
	before := s.effect()
	s.post(payments(order), payKey, card("tok_visa"), 503).problem(503, "idempotency_store_unavailable")
	require.Equal(t, before, s.effect())
	body := orderOf(customer, "tee-black", 1)
	first := s.post("/v1/orders", orderKey, body, http.StatusCreated)
	require.False(t, first.replayed())
	again := s.do(request{method: "POST", path: "/v1/orders", key: orderKey, body: body, replica: 1})
	require.True(t, again.replayed(), "by PostgreSQL")
	requireSame(t, first, again)
	s.post("/v1/orders", orderKey, orderOf(customer, "tee-black", 2), 422).problem(422, "idempotency_key_reused")
	for _, key := range []string{payKey, orderKey} {
		require.Equal(t, []string{"x"}, s.redis.LRange(s.ctx, s.redisPrefix()+key, 0, -1).Val())
	}
}

// redisPrefix begins our account's keys in Redis, where there is one already.
func (s *shop) redisPrefix() string {
	s.t.Helper()
	return s.redisKeys("*")[0][:len("idempotency:")+36] + ":"
}

// redisKeys lists our keys in Redis.
func (s *shop) redisKeys(key string) []string {
	s.t.Helper()
	keys, err := s.redis.Keys(s.ctx, "idempotency:*:"+key).Result()
	require.NoError(s.t, err)
	require.NotEmpty(s.t, keys)
	return keys
}

// rewrite changes the metadata of a record in Redis, which goes on living for as long as it would
// have.
func (s *shop) rewrite(key string, change func(metadata map[string]any)) {
	s.t.Helper()
	name := s.redisKeys(key)[0]
	line, body, found := strings.Cut(s.redis.Get(s.ctx, name).Val(), "\n")
	require.True(s.t, found)
	var metadata map[string]any
	require.NoError(s.t, json.Unmarshal([]byte(line), &metadata))
	change(metadata)
	changed, err := json.Marshal(metadata)
	require.NoError(s.t, err)
	require.NoError(s.t, s.redis.SetArgs(s.ctx, name, string(changed)+"\n"+body, redis.SetArgs{KeepTTL: true}).Err())
}

func TestRedis_ReadsRecordsOfAnOlderVersion(t *testing.T) {
	t.Parallel()
	s := setup(t)
	customer, key := s.customer().ID, newKey()
	body := orderOf(customer, "tee-black", 1)
	first := s.post("/v1/orders", key, body, http.StatusCreated)
	s.rewrite(key, func(metadata map[string]any) {
		for _, name := range []string{"scope", "key", "owner", "createdAt", "expiresAt"} {
			require.Contains(t, metadata, name)
			delete(metadata, name)
		}
		metadata["someday"] = map[string]any{"nested": []any{1, nil}}
	})
	s.observed()
	again := s.post("/v1/orders", key, body, http.StatusCreated)
	require.True(t, again.replayed())
	requireSame(t, first, again)
	s.post("/v1/orders", key, orderOf(customer, "tee-black", 2), 422).problem(422, "idempotency_key_reused")
	require.Equal(t, []check{{"/v1/orders", "replay"}, {"/v1/orders", "mismatch"}}, s.observed(), "by Redis alone")
}

// TestRedis_ClockDifferencesChangeNothing has records written by a replica whose clock is off: what
// they say of time is for people, Redis and PostgreSQL decide by their own.
func TestRedis_ClockDifferencesChangeNothing(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]time.Duration{"an hour fast": time.Hour, "an hour slow": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			customer, key := s.customer().ID, newKey()
			r := request{method: "POST", path: "/v1/orders", key: key, body: orderOf(customer, "tee-black", 1)}
			skew := func(metadata map[string]any) {
				for _, name := range []string{"createdAt", "expiresAt"} {
					at, err := time.Parse(time.RFC3339, metadata[name].(string))
					require.NoError(t, err)
					metadata[name] = at.Add(off)
				}
			}
			release := s.hold("tee-black")
			first := s.start(r)
			s.eventually(func() bool { return s.waiters() == 1 }, "the order is under way")
			s.rewrite(key, skew)

			r.replica = 1
			refused := s.do(r)
			refused.problem(409, "idempotency_in_progress")
			seconds, err := strconv.Atoi(refused.header.Get("Retry-After"))
			require.NoError(t, err)
			require.True(t, seconds >= 1 && seconds <= 15, "within the lease: %d", seconds)
			another := request{method: "POST", path: "/v1/orders", key: key, body: orderOf(customer, "tee-black", 2)}
			s.do(another).problem(409, "idempotency_in_progress")
			waiting := r
			waiting.edit = with("Prefer", "wait=20")
			waited := s.start(waiting)

			release()
			placed := s.await(first)
			require.Equal(t, http.StatusCreated, placed.status, placed.body)
			requireSame(t, placed, s.await(waited))
			s.rewrite(key, skew)
			again := s.do(r)
			require.True(t, again.replayed())
			requireSame(t, placed, again)
			require.Equal(t, 1, value[int](s, `SELECT count(*) FROM orders`))
		})
	}
}

// logLines collects a log, in JSON.
type logLines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// of returns the lines about a key.
func (l *logLines) of(key string) (lines string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		if strings.Contains(line, key) {
			lines += line
		}
	}
	return lines
}
