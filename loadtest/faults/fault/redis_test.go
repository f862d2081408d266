package fault

import (
	"context"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/loadtest/books"
)

func server(t *testing.T) (addr string) {
	t.Helper()
	s, err := localserver.Redis.Start(t.Context(), localserver.Config{DieWithParent: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Stop()) })
	return s.Addr
}

func TestMissing_CountsTheEventsThatAReplicaLacks(t *testing.T) {
	t.Parallel()
	add := func(addr string, ids ...string) {
		client := redis.NewClient(&redis.Options{Addr: addr})
		defer func() { _ = client.Close() }()
		for _, id := range ids {
			require.NoError(t, client.XAdd(t.Context(), &redis.XAddArgs{Stream: books.EventStream, ID: id, Values: []string{"event_id", id}}).Err())
		}
	}
	master, replica := server(t), server(t)
	add(master, "1-0", "2-0", "3-0")
	for _, test := range []struct {
		copied  []string
		missing int
	}{{nil, 3}, {[]string{"1-0"}, 2}, {[]string{"2-0", "3-0"}, 0}} {
		add(replica, test.copied...)
		n, err := missing(t.Context(), replica, master)
		require.NoError(t, err)
		require.Equal(t, test.missing, n)
	}
}

func TestRun_BreaksNothingWhenItsVictimIsNotReady(t *testing.T) {
	t.Parallel()
	panics := func(context.Context) error { panic("it was not ready") }
	f := &Run{prepare: func(context.Context) error { return errors.New("never ready") }, Inject: panics, Heal: panics}
	f.Prepare(t.Context())
	require.ErrorIs(t, f.Inject(t.Context()), ErrNotFired)
	require.NoError(t, f.Heal(t.Context()))
}

func TestPairOf_NeedsBothServersReady(t *testing.T) {
	t.Parallel()
	first, second := stack.ServiceStatus{Name: "redis", State: "ready", Role: "replica"}, stack.ServiceStatus{Name: "redis-replica", State: "ready", Role: "master"}
	nginx := stack.ServiceStatus{Name: "nginx", State: "ready"}
	master, replica := pairOf([]stack.ServiceStatus{nginx, first, second})
	require.Equal(t, []string{"redis-replica", "redis"}, []string{master, replica})
	first.State = "not ready"
	master, replica = pairOf([]stack.ServiceStatus{nginx, first, second})
	require.Equal(t, []string{"redis-replica", ""}, []string{master, replica}, "its copy is not up to date")
}
