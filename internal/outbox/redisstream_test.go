package outbox_test

import (
	"context"
	"net"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency/redisstore"
	"github.com/oncepay/oncepay/internal/outbox"
	"github.com/oncepay/oncepay/internal/testenv"
)

// viaProxy is a shop whose stream is reached by a proxy.
func viaProxy(t *testing.T) (*shop, *testenv.Proxy) {
	t.Helper()
	at, err := url.Parse(testenv.Redis(t))
	require.NoError(t, err)
	s := setupShop(t, at.String())
	proxy := testenv.NewProxy(t, at.Host)
	at.Host = proxy.Addr
	s.stream = outbox.NewRedisStream(open(t, at.String()))
	return s, proxy
}

func TestRedisStream_DoesNotRepeatWhenAReplyIsLost(t *testing.T) {
	t.Parallel()
	s, proxy := viaProxy(t)
	s.publish(s.orderPlaced()) // connects
	for name, fault := range map[string]testenv.Fault{"lost": {Lose: true}, "cut": {Cut: true}} {
		before := s.client.XLen(s.ctx, outbox.DefaultStream).Val()
		proxy.FailNext("xadd", fault)
		require.Error(t, s.stream.Publish(s.ctx, []outbox.Event{s.orderPlaced(), s.orderPlaced()}), name)
		require.Equal(t, before+2, s.client.XLen(s.ctx, outbox.DefaultStream).Val(), "%s: sent once, by a client that doesn't retry", name)
	}
}

// The only node of a cluster loses its reply: go-redis would send the events again by itself.
func TestRedisStream_DoesNotRepeatInACluster(t *testing.T) {
	t.Parallel()
	server := testenv.RedisClusterOfOne(t)
	proxy := testenv.NewProxy(t, server.Addr)
	options, err := redisstore.Options(server.URL)
	require.NoError(t, err)
	outbox.SetTimeouts(options)
	options.Dialer = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, proxy.Addr)
	}
	client := redisstore.NewClient(options)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	stream, events := outbox.NewRedisStream(client), []outbox.Event{{Data: []byte("{}")}, {Data: []byte("{}")}}
	for i, fault := range []testenv.Fault{{Lose: true}, {Cut: true}} {
		proxy.FailNext("xadd", fault)
		require.Error(t, stream.Publish(t.Context(), events))
		require.Equal(t, int64(2*(i+1)), client.XLen(t.Context(), outbox.DefaultStream).Val())
	}
}

func TestRedisStream_PublishesABatchInOneRoundTrip(t *testing.T) {
	t.Parallel()
	s, proxy := viaProxy(t)
	s.publish(s.orderPlaced())
	require.Equal(t, 1, proxy.Count(func() { s.publish(s.orderPlaced(), s.orderPlaced(), s.orderPlaced()) }))
}
