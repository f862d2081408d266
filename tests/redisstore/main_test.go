package redisstore_test

import (
	"net/url"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency/redisstore"
	"github.com/oncepay/oncepay/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// open makes a client as programs do.
func open(t testing.TB, server string) redis.UniversalClient {
	t.Helper()
	client, err := redisstore.Open(server)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client
}

// openPatient makes one that a busy machine does not time out.
func openPatient(t testing.TB, server string) redis.UniversalClient {
	t.Helper()
	return openWith(t, server, patience)
}

// openWith makes one with this timeout for all that it does.
func openWith(t testing.TB, server string, timeout time.Duration) redis.UniversalClient {
	t.Helper()
	o, err := redisstore.Options(server)
	require.NoError(t, err)
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = timeout, timeout, timeout, timeout
	client := redisstore.NewClient(o)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client
}

// closing has a store that is watched closed with the test.
func closing(t testing.TB, store *redisstore.Store) *redisstore.Store {
	t.Helper()
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
}

// through starts a proxy in front of a server, and returns it with the server's
// URL by that way.
func through(t testing.TB, server string) (way *testenv.Proxy, detour string) {
	t.Helper()
	u, err := url.Parse(server)
	require.NoError(t, err)
	way = testenv.NewProxy(t, u.Host)
	u.Host = way.Addr
	return way, u.String()
}
