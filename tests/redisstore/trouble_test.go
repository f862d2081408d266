package redisstore_test

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/redisstore"
	"github.com/oncepay/oncepay/internal/testenv"
)

func TestStep_ReportsAnOutage(t *testing.T) {
	t.Parallel()
	server := testenv.RedisServer(t)
	client := open(t, server.URL)
	require.NoError(t, client.Ping(t.Context()).Err())
	server.Stop()
	requireUnavailable(t, client)
	server.Start()
	requireServed(t, client)
}

func TestStep_ReportsASilentServer(t *testing.T) {
	t.Parallel()
	server := testenv.RedisServer(t)
	client := open(t, server.URL)
	require.NoError(t, client.Ping(t.Context()).Err())
	server.Pause()
	requireUnavailable(t, client)
	server.Resume()
	requireServed(t, client)
}

// requireServed also covers scripts that a new server does not know yet.
func requireServed(t *testing.T, client redis.UniversalClient) {
	t.Helper()
	store, record := redisstore.New(client), pending("served again")
	require.Eventually(t, func() bool {
		existing, err := store.Acquire(t.Context(), record, time.Minute)
		return err == nil && existing == nil
	}, 10*time.Second, 20*time.Millisecond, "it recovers by itself")
	require.NoError(t, store.Extend(t.Context(), record, time.Minute))
	require.NoError(t, store.Complete(t.Context(), done(record), time.Minute))
}

func requireUnavailable(t *testing.T, client redis.UniversalClient) {
	t.Helper()
	store := redisstore.New(client)
	for name, step := range steps {
		began := time.Now()
		err := step.take(t.Context(), store, pending(name))
		require.ErrorIs(t, err, idempotency.ErrUnavailable, name)
		require.NotErrorIs(t, err, idempotency.ErrLost, name)
		require.Less(t, time.Since(began), 5*time.Second, "%s gives up soon", name)
	}
}

func TestStep_ReportsAnEndedContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := redisstore.New(open(t, testenv.Redis(t))).Acquire(ctx, pending("key"), time.Minute)
	require.ErrorIs(t, err, idempotency.ErrUnavailable)
	require.ErrorIs(t, err, context.Canceled)
}

// refusals are by what the server answers: how it is started, and then brought to that.
var refusals = map[string]struct {
	start  func(t *testing.T) *testenv.Server
	cause  func(t *testing.T, server *testenv.Server)
	spared string // the step that succeeds
}{
	"OOM":        {start: alone(), cause: do("CONFIG", "SET", "maxmemory", 1), spared: "release"}, // which makes room
	"READONLY":   {start: alone(), cause: do("REPLICAOF", "127.0.0.1", 1)},
	"NOREPLICAS": {start: alone(), cause: do("CONFIG", "SET", "min-replicas-to-write", 1)},
	"MASTERDOWN": {
		start: alone("--replica-read-only", "no", "--replica-serve-stale-data", "no"), cause: do("REPLICAOF", "127.0.0.1", 1),
	},
	"LOADING": {
		start: alone("--enable-debug-command", "yes", "--rdbcompression", "no", "--loading-process-events-interval-bytes", "1024"),
		cause: load,
	},
	"NOPERM": {start: alone(), cause: do("ACL", "SETUSER", "default", "-@all", "+acl")},
	"NOAUTH": {start: alone(), cause: do("CONFIG", "SET", "requirepass", "secret")},
	"CLUSTERDOWN": {
		start: func(t *testing.T) *testenv.Server { return testenv.RedisClusterOfOne(t) },
		cause: do("CLUSTER", "DELSLOTSRANGE", 0, 16383),
	},
}

func alone(settings ...string) func(*testing.T) *testenv.Server {
	return func(t *testing.T) *testenv.Server { return testenv.RedisServer(t, settings...) }
}

func do(command ...any) func(*testing.T, *testenv.Server) {
	return func(_ *testing.T, server *testenv.Server) { server.Do(command...) }
}

// load has the server load its data for longer than the test takes.
func load(t *testing.T, server *testenv.Server) {
	admin := openPatient(t, server.URL)
	for range 1000 {
		require.NoError(t, admin.Set(t.Context(), string(idempotency.NewOwner()), strings.Repeat("x", 2048), 0).Err())
	}
	server.Do("CONFIG", "SET", "key-load-delay", 20_000) // µs
	reloaded := make(chan error, 1)
	go func() { reloaded <- admin.Do(context.Background(), "DEBUG", "RELOAD").Err() }()
	t.Cleanup(func() {
		require.NoError(t, openPatient(t, server.URL).ConfigSet(context.Background(), "key-load-delay", "0").Err())
		require.NoError(t, <-reloaded)
	})
	require.Eventually(t, func() bool {
		return redis.IsLoadingError(admin.Ping(t.Context()).Err())
	}, patience, time.Millisecond)
}

// TestStep_ReportsARefusingServer brings servers to refuse what they did before.
func TestStep_ReportsARefusingServer(t *testing.T) {
	t.Parallel()
	for refusal, trouble := range refusals {
		t.Run(refusal, func(t *testing.T) {
			t.Parallel()
			server := trouble.start(t)
			at := server.URL
			requireServed(t, openPatient(t, at))
			before, held := redisstore.New(openPatient(t, at)), map[string]idempotency.Record{}
			for name, step := range steps {
				require.NoError(t, step.prepared(t, before, "scripts are known "+name))
				held[name] = pending(name)
				if step.acquired {
					_, err := before.Acquire(t.Context(), held[name], time.Minute)
					require.NoError(t, err)
				}
			}
			trouble.cause(t, server)

			client, wire := openPatient(t, at), &wire{}
			client.AddHook(wire)
			for name, step := range steps {
				err := step.take(t.Context(), redisstore.New(client), held[name])
				asked := wire.count()
				if name == trouble.spared {
					require.NoError(t, err)
					continue
				}
				require.ErrorIs(t, err, idempotency.ErrUnavailable, name)
				require.NotErrorIs(t, err, idempotency.ErrLost, name)
				require.ErrorContains(t, err, refusal, name)
				require.Equal(t, 1, asked, "%s: an answer of the server is not asked for again", name)
			}
			require.Error(t, redisstore.CheckServer(t.Context(), client), "nor can a service start with it")
		})
	}
}

// TestStep_LeavesAReadOnlyServer has the servers' name lead to another one after a failover. The
// connections to the old one must not stay.
func TestStep_LeavesAReadOnlyServer(t *testing.T) {
	t.Parallel()
	demoted, successor := testenv.RedisServer(t), testenv.RedisServer(t)
	o, err := redisstore.Options(demoted.URL)
	require.NoError(t, err)
	var addr atomic.Value
	addr.Store(demoted.Addr)
	o.Dialer = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, addr.Load().(string))
	}
	client := redisstore.NewClient(o)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	store := redisstore.New(client)
	_, err = store.Acquire(t.Context(), pending("before"), time.Minute)
	require.NoError(t, err)

	demoted.Do("REPLICAOF", "127.0.0.1", 1)
	addr.Store(successor.Addr)
	_, err = store.Acquire(t.Context(), pending("during"), time.Minute)
	require.ErrorIs(t, err, idempotency.ErrUnavailable)
	_, err = store.Acquire(t.Context(), pending("after"), time.Minute)
	require.NoError(t, err)
}

// TestStep_SurvivesScriptFlush has the server forget all scripts before each step.
func TestStep_SurvivesScriptFlush(t *testing.T) {
	t.Parallel()
	server := testenv.RedisServer(t)
	store := redisstore.New(openPatient(t, server.URL))
	for range 2 {
		for name, step := range steps {
			record := pending(string(idempotency.NewOwner()))
			if step.acquired {
				_, err := store.Acquire(t.Context(), record, time.Minute)
				require.NoError(t, err)
			}
			server.Do("SCRIPT", "FLUSH")
			require.NoError(t, step.take(t.Context(), store, record), name)
		}
	}
}
