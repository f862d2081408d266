package redisstore_test

import (
	"net"
	"os/exec"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency/redisstore"
)

// startRedis runs an empty redis-server for one test, and gives its address.
func startRedis(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := listener.Addr().String()
	_, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	require.NoError(t, listener.Close())

	server := exec.Command("redis-server", "--port", port, "--bind", "127.0.0.1",
		"--save", "", "--appendonly", "no", "--dir", t.TempDir(), "--logfile", "redis.log")
	require.NoError(t, server.Start(), "redis-server 7.0 or later is needed")
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	client := open(t, addr)
	require.Eventually(t, func() bool { return client.Ping(t.Context()).Err() == nil }, 10*time.Second, 20*time.Millisecond)
	return addr
}

// open makes a client as programs do.
func open(t testing.TB, addr string) *redis.Client {
	t.Helper()
	client, err := redisstore.Open("redis://" + addr)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client
}
