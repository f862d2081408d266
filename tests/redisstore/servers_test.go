package redisstore_test

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency/redisstore"
	"github.com/oncepay/oncepay/idempotency/storetest"
	"github.com/oncepay/oncepay/internal/testenv"
)

// servers are Redis as it is run: each returns its URL.
var servers = map[string]func(t *testing.T) string{
	"alone":            func(t *testing.T) string { return testenv.Redis(t) },
	"Sentinel":         func(t *testing.T) string { return testenv.RedisSentinel(t).URL },
	"Sentinel and TLS": func(t *testing.T) string { return testenv.RedisSentinelTLS(t).URL },
	"Cluster":          func(t *testing.T) string { return testenv.RedisCluster(t).URL },
	"TLS":              func(t *testing.T) string { return testenv.RedisTLS(t).URL },
	"mutual TLS":       func(t *testing.T) string { return testenv.RedisMutualTLS(t).URL },
	"TLS and a user with the fewest rights": func(t *testing.T) string {
		server := testenv.RedisTLS(t)
		t.Cleanup(func() { requireNothingRefused(t, server) })
		return asUser(t, server.URL, redisstore.ACLRules, server)
	},
	"Cluster, TLS and a user with the fewest rights": func(t *testing.T) string {
		cluster := testenv.RedisCluster(t)
		t.Cleanup(func() { requireNothingRefused(t, cluster.Masters...) })
		return asUser(t, cluster.TLSURL, redisstore.ACLRules+" "+redisstore.ACLClusterRules, cluster.Masters...)
	},
}

// password has to be encoded in a URL.
const password = "p@ss/word"

// asUser makes a user on the servers, and returns the URL for it.
func asUser(t *testing.T, at, rules string, servers ...*testenv.Server) string {
	t.Helper()
	for _, server := range servers {
		command := []any{"ACL", "SETUSER", "shop", "on", ">" + password}
		for rule := range strings.FieldsSeq(rules) {
			command = append(command, rule)
		}
		server.Do(command...)
	}
	return strings.Replace(at, "://", "://shop:"+url.QueryEscape(password)+"@", 1)
}

// requireNothingRefused fails unless the users of the servers could do all that they tried.
func requireNothingRefused(t *testing.T, servers ...*testenv.Server) {
	t.Helper()
	for _, server := range servers {
		log, err := openPatient(t, "redis://"+server.Addr).Do(context.Background(), "ACL", "LOG").Result()
		require.NoError(t, err)
		require.Empty(t, log)
	}
}

func TestStore_PassesTheSuite(t *testing.T) {
	t.Parallel()
	for name, start := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := openPatient(t, start(t))
			require.NoError(t, redisstore.CheckServer(t.Context(), client))
			policy, err := redisstore.EvictionPolicy(t.Context(), client)
			require.NoError(t, err)
			require.Equal(t, redisstore.NoEviction, policy)
			storetest.Run(t, func(t *testing.T) storetest.Bench {
				return storetest.Bench{
					Store: closing(t, redisstore.New(client)),
					Plant: func(t testing.TB, scope, key string, data []byte) {
						require.NoError(t, client.Set(t.Context(), "idempotency:"+scope+":"+key, data, time.Hour).Err())
					},
				}
			})
		})
	}
}
