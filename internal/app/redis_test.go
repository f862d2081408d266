package app

import (
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency/redisstore"
	"github.com/oncepay/oncepay/internal/outbox"
	"github.com/oncepay/oncepay/internal/testenv"
)

// TestRedis_RefusalsFollowTheFailureMode has Redis answer errors while a replica runs: orders fail
// open, payments fail closed.
func TestRedis_RefusalsFollowTheFailureMode(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]struct{ begin, end []any }{
		"out of memory": {[]any{"CONFIG", "SET", "maxmemory", 1}, []any{"CONFIG", "SET", "maxmemory", 0}},
		"read only":     {[]any{"REPLICAOF", "127.0.0.1", 1}, []any{"REPLICAOF", "NO", "ONE"}},
		"no permission": {[]any{"ACL", "SETUSER", "default", "-set"}, []any{"ACL", "SETUSER", "default", "+set"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redis := testenv.RedisServer(t)
			r := serveSeeded(t, configFor(t, testenv.Postgres(t), redis.URL))
			redis.Do(refusal.begin...)

			path := "/v1/orders/" + r.placeOrder() + "/payments"
			refused := r.call(http.MethodPost, path, "pay", cardPayment("tok_visa"))
			require.Equal(t, http.StatusServiceUnavailable, refused.status, refused.body)
			require.Equal(t, "idempotency_store_unavailable", refused.field(t, "code"))
			require.NotEmpty(t, refused.header.Get("Retry-After"))

			redis.Do(refusal.end...)
			require.Eventually(t, func() bool {
				return r.call(http.MethodPost, path, "pay", cardPayment("tok_visa")).status == http.StatusCreated
			}, patience, pause)
			require.Equal(t, "true", r.call(http.MethodPost, path, "pay", cardPayment("tok_visa")).header.Get("X-Idempotent-Replay"))
		})
	}
}

// TestRedis_ServesAsInProduction takes payments and events through each kind of Redis, with a user
// that may do no more than that.
func TestRedis_ServesAsInProduction(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(t *testing.T) (at string, servers []*testenv.Server){
		"Sentinel": func(t *testing.T) (string, []*testenv.Server) {
			servers := testenv.RedisSentinel(t)
			return servers.URL, []*testenv.Server{servers.Primary, servers.Replica}
		},
		"Cluster": func(t *testing.T) (string, []*testenv.Server) {
			servers := testenv.RedisCluster(t)
			return servers.URL, servers.Masters
		},
		"TLS": func(t *testing.T) (string, []*testenv.Server) {
			server := testenv.RedisTLS(t)
			return server.URL, []*testenv.Server{server}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at, servers := start(t)
			for _, server := range servers {
				rules := strings.Join([]string{redisstore.ACLRules, redisstore.ACLClusterRules, outbox.ACLRules}, " ")
				command := []any{"ACL", "SETUSER", "shop", "on", ">hunter2"}
				for rule := range strings.FieldsSeq(rules) {
					command = append(command, rule)
				}
				server.Do(command...)
			}
			r := serveSeeded(t, configFor(t, testenv.Postgres(t), strings.Replace(at, "://", "://shop:hunter2@", 1)))
			path := "/v1/orders/" + r.placeOrder() + "/payments"
			first := r.call(http.MethodPost, path, "pay", cardPayment("tok_visa"))
			require.Equal(t, http.StatusCreated, first.status, first.body)
			again := r.call(http.MethodPost, path, "pay", cardPayment("tok_visa"))
			require.Equal(t, "true", again.header.Get("X-Idempotent-Replay"))
			require.Equal(t, first.body, again.body)

			consumed := regexp.MustCompile(`events_consumed_total\{group="order-confirmations",result="handled"\} [1-9]`)
			require.Eventually(t, func() bool { return consumed.MatchString(r.operations("/metrics").body) }, patience, pause)
			require.Contains(t, r.operations("/readyz").body, `"redis":{"ok":true`)
			for _, line := range r.logs.lines(t, "level", "WARN") {
				require.Contains(t, line["msg"], "set maxmemory", "nothing was refused")
			}
			require.Empty(t, r.logs.lines(t, "level", "ERROR"))
			require.NotContains(t, r.logs.String(), "hunter2")
		})
	}
}

// The rules are those that TestRedis_ServesAsInProduction shows to suffice.
func TestOperationsPage_SaysWhatARedisUserNeeds(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	for _, rules := range []string{redisstore.ACLRules, redisstore.ACLClusterRules, outbox.ACLRules} {
		require.Contains(t, string(page), rules)
	}
}

func TestRedis_EvictionIsLogged(t *testing.T) {
	t.Parallel()
	for policy, want := range map[string]int{"noeviction": 0, "allkeys-lru": 1} {
		redis := testenv.RedisServer(t, "--maxmemory-policy", policy)
		r := serveSeeded(t, configFor(t, testenv.Postgres(t), redis.URL))
		warnings := r.logs.lines(t, "level", "ERROR")
		require.Len(t, warnings, want, policy)
		for _, warning := range warnings {
			require.Contains(t, warning["msg"], "set maxmemory-policy noeviction")
			require.Equal(t, policy, warning["maxmemory_policy"])
		}
	}
}

func TestRedis_UnknownEvictionIsLogged(t *testing.T) {
	t.Parallel()
	redis := testenv.RedisServer(t)
	redis.Do("ACL", "SETUSER", "default", "-info")
	r := serveSeeded(t, configFor(t, testenv.Postgres(t), redis.URL))
	require.Len(t, r.logs.lines(t, "msg", "can't tell whether Redis evicts keys; its maxmemory-policy should be noeviction"), 1)
}

// TestRedis_ShowsHowFullItIs, so that an alert comes before it refuses writes.
func TestRedis_ShowsHowFullItIs(t *testing.T) {
	t.Parallel()
	const warning = "nothing bounds the memory of Redis, and no alert warns before it is full: set maxmemory"
	for limit, bounded := range map[string]bool{"0": false, "64mb": true} {
		redis := testenv.RedisServer(t, "--maxmemory", limit)
		r := serveSeeded(t, configFor(t, testenv.Postgres(t), redis.URL))
		require.Equal(t, bounded, len(r.logs.lines(t, "msg", warning)) == 0, limit)
		found := regexp.MustCompile(`(?m)^redis_memory_used_ratio (\S+)$`).FindStringSubmatch(r.operations("/metrics").body)
		require.NotNil(t, found)
		use, err := strconv.ParseFloat(found[1], 64)
		require.NoError(t, err)
		require.Equal(t, bounded, use > 0.001 && use < 1, "%s: %f", limit, use)
	}
}

func TestRedis_WaitIsLoggedWithoutThePassword(t *testing.T) {
	t.Parallel()
	first, second := unusedAddr(t), unusedAddr(t)
	r := serve(t, configFor(t, testenv.Postgres(t), "redis+sentinel://shop:hunter2@"+first+","+second+"/oncepay"))
	require.Eventually(t, func() bool {
		return strings.Contains(r.logs.String(), "waiting for Redis at "+first+","+second)
	}, patience, pause)
	require.NotContains(t, r.logs.String(), "hunter2")
}
