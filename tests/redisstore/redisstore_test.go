package redisstore_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/redisstore"
	"github.com/oncepay/oncepay/internal/testenv"
)

func pending(key string) idempotency.Record {
	return idempotency.Record{
		Scope: "acct_1", Key: key, Status: idempotency.StatusInProgress, Owner: idempotency.NewOwner(), CreatedAt: time.Now(),
	}
}

func done(r idempotency.Record) idempotency.Record {
	r.Status = idempotency.StatusCompleted
	r.Response = idempotency.Response{StatusCode: 201, Header: http.Header{"Location": {"/x"}}, Body: []byte(`{"id":1}`)}
	return r
}

func TestRecord_IsReadable(t *testing.T) {
	t.Parallel()
	client := open(t, testenv.Redis(t))
	store, record := redisstore.New(client), pending("k:1")
	_, err := store.Acquire(t.Context(), record, 15*time.Second)
	require.NoError(t, err)
	ttl := client.PTTL(t.Context(), "idempotency:acct_1:k:1").Val()
	require.True(t, ttl > 5*time.Second && ttl <= 15*time.Second, "the key lives for the lease: %s", ttl)

	require.NoError(t, store.Complete(t.Context(), done(record), 48*time.Hour))
	ttl = client.PTTL(t.Context(), "idempotency:acct_1:k:1").Val()
	require.True(t, ttl > 47*time.Hour && ttl <= 48*time.Hour, "the key lives for the ttl: %s", ttl)
	line, body, _ := strings.Cut(client.Get(t.Context(), "idempotency:acct_1:k:1").Val(), "\n")
	require.Equal(t, `{"id":1}`, body)
	for _, name := range []string{"key", "status", "requestFingerprint", "responseStatusCode", "responseHeaders", "createdAt", "expiresAt", "owner"} {
		require.Contains(t, line, `"`+name+`":`)
	}
}

func TestKey_SeparatesPrefixAndScope(t *testing.T) {
	t.Parallel()
	client := open(t, testenv.Redis(t))
	first, second := redisstore.New(client, redisstore.WithPrefix("a:")), redisstore.New(client, redisstore.WithPrefix("b:"))
	for _, store := range []*redisstore.Store{first, second} {
		existing, err := store.Acquire(t.Context(), pending("key"), time.Minute)
		require.NoError(t, err)
		require.Nil(t, existing)
	}
	odd := pending("key")
	odd.Scope = "50%:x"
	_, err := first.Acquire(t.Context(), odd, time.Minute)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"a:acct_1:key", "b:acct_1:key", "a:50%25%3Ax:key"}, client.Keys(t.Context(), "*").Val())
}

func TestAcquire_ReportsAKeyOfAnotherType(t *testing.T) {
	t.Parallel()
	client := open(t, testenv.Redis(t))
	store, record := redisstore.New(client), pending("key")
	require.NoError(t, client.RPush(t.Context(), "idempotency:acct_1:key", "x").Err())
	_, err := store.Acquire(t.Context(), record, time.Minute)
	require.ErrorIs(t, err, idempotency.ErrCorrupt)
	_, err = store.Repair(t.Context(), record, time.Minute)
	require.ErrorIs(t, err, idempotency.ErrCorrupt)
	require.ErrorIs(t, store.Extend(t.Context(), record, time.Minute), idempotency.ErrCorrupt)
	require.ErrorIs(t, store.Complete(t.Context(), done(record), time.Minute), idempotency.ErrCorrupt)
	require.ErrorIs(t, store.Release(t.Context(), record), idempotency.ErrCorrupt)
	require.Equal(t, int64(1), client.LLen(t.Context(), "idempotency:acct_1:key").Val(), "it is left alone")
}

// step is one of a store's four; acquired says that it needs a record.
type step struct {
	acquired bool
	take     func(context.Context, *redisstore.Store, idempotency.Record) error
}

// prepared takes the step on a key of its own, acquired if it has to be.
func (s step) prepared(t *testing.T, store *redisstore.Store, key string) error {
	t.Helper()
	record := pending(key)
	if s.acquired {
		_, err := store.Acquire(t.Context(), record, time.Minute)
		require.NoError(t, err)
	}
	return s.take(t.Context(), store, record)
}

var steps = map[string]step{
	"acquire": {false, func(ctx context.Context, s *redisstore.Store, r idempotency.Record) error {
		existing, err := s.Acquire(ctx, r, time.Minute)
		if existing != nil {
			return idempotency.ErrLost
		}
		return err
	}},
	"extend": {true, func(ctx context.Context, s *redisstore.Store, r idempotency.Record) error {
		return s.Extend(ctx, r, time.Minute)
	}},
	"complete": {true, func(ctx context.Context, s *redisstore.Store, r idempotency.Record) error {
		return s.Complete(ctx, done(r), time.Minute)
	}},
	"release": {true, func(ctx context.Context, s *redisstore.Store, r idempotency.Record) error {
		return s.Release(ctx, r)
	}},
}

// TestStep_IsRepeatedAfterALostReply takes each step through a proxy that passes the
// command on but not the reply: late beyond the read timeout, never, or never
// because the connection ends. The caller must see its step succeed, once.
func TestStep_IsRepeatedAfterALostReply(t *testing.T) {
	t.Parallel()
	const timeout = 2 * time.Second // in which a busy machine can open a connection, and try again
	server := testenv.Redis(t)
	direct := redisstore.New(open(t, server))
	for name, step := range steps { // the server knows all scripts from here on
		require.NoError(t, step.prepared(t, direct, "warm up "+name))
	}
	for name, step := range steps {
		for fault, inject := range map[string]testenv.Fault{
			"late": {Delay: 2 * timeout}, "lost": {Lose: true}, "cut": {Cut: true},
		} {
			t.Run(name+" "+fault, func(t *testing.T) {
				t.Parallel()
				way, detour := through(t, server)
				client, wire := openWith(t, detour, timeout), &wire{}
				require.NoError(t, client.Ping(t.Context()).Err(), "connected before the fault")
				client.AddHook(wire)
				record := pending(name + fault)
				if step.acquired {
					_, err := direct.Acquire(t.Context(), record, time.Minute)
					require.NoError(t, err)
				}
				way.FailNext(record.Key, inject)
				require.NoError(t, step.take(t.Context(), redisstore.New(client), record))
				require.Len(t, wire.drain(), 2, "the step was taken, and once more")
			})
		}
	}
}

// TestStep_TakesOneRoundTrip counts what one request costs, through the middleware: by
// command, and on the wire.
func TestStep_TakesOneRoundTrip(t *testing.T) {
	t.Parallel()
	way, detour := through(t, testenv.Redis(t))
	client, wire := open(t, detour), &wire{}
	handler := idempotency.New(redisstore.New(client), idempotency.Always(idempotency.Policy{}), idempotency.WithSharedScope()).Handler(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/fail" {
				w.WriteHeader(http.StatusInternalServerError)
			}
		}))
	send := func(path, key string) []string {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(`{}`))
		r.Header.Set(idempotency.HeaderKey, key)
		handler.ServeHTTP(httptest.NewRecorder(), r)
		return wire.drain()
	}
	send("/", "loads complete.lua")
	send("/fail", "loads release.lua")
	client.AddHook(wire)
	require.Equal(t, 2, way.Count(func() { send("/", "on the wire") }))
	require.Equal(t, 1, way.Count(func() { send("/", "on the wire") }), "a replay")
	require.Equal(t, []string{"set", "evalsha"}, send("/", "new"))
	require.Equal(t, []string{"set"}, send("/", "new"), "a replay")
	require.Equal(t, []string{"set"}, send("/other", "new"), "a mismatch")
	require.Equal(t, []string{"set", "evalsha"}, send("/fail", "failing"))
}

// TestMiddleware_HasOneEffectOnTwoReplicas has two instances share a server: one key, one run, and
// each returns the other's answer.
func TestMiddleware_HasOneEffectOnTwoReplicas(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t)
	var runs atomic.Int64
	replica := func() http.Handler {
		store := redisstore.New(open(t, server))
		return idempotency.New(store, idempotency.Always(idempotency.Policy{}), idempotency.WithSharedScope()).Handler(
			http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", fmt.Sprint("/orders/", runs.Add(1)))
				w.WriteHeader(http.StatusCreated)
				_, _ = w.Write([]byte("binary \x00\xff\n"))
			}))
	}
	replicas := []http.Handler{replica(), replica()}
	send := func(i int) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(`{}`))
		r.Header.Set(idempotency.HeaderKey, "key")
		w := httptest.NewRecorder()
		replicas[i%2].ServeHTTP(w, r)
		return w
	}
	codes := make([]int, 20)
	var running sync.WaitGroup
	for i := range codes {
		running.Go(func() { codes[i] = send(i).Code })
	}
	running.Wait()
	require.Equal(t, int64(1), runs.Load())
	require.Contains(t, codes, http.StatusCreated)
	require.Subset(t, []int{http.StatusCreated, http.StatusConflict}, codes)
	for i := range replicas {
		w := send(i)
		require.Equal(t, http.StatusCreated, w.Code)
		require.Equal(t, "true", w.Header().Get(idempotency.HeaderReplay))
		require.Equal(t, "/orders/1", w.Header().Get("Location"))
		require.Equal(t, "binary \x00\xff\n", w.Body.String())
	}
}

// wire sees each command that goes out, and may answer in the server's place.
type wire struct {
	reply string
	info  string

	mu   sync.Mutex
	seen []string
}

type refusal string

func (r refusal) Error() string { return string(r) }
func (refusal) RedisError()     {}

func (w *wire) DialHook(next redis.DialHook) redis.DialHook { return next }

func (w *wire) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (w *wire) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "hello" { // a new connection's own
			return next(ctx, cmd)
		}
		w.mu.Lock()
		w.seen = append(w.seen, cmd.Name())
		w.mu.Unlock()
		if info, ok := cmd.(*redis.StringCmd); ok && w.info != "" && cmd.Name() == "info" {
			info.SetVal(w.info)
			return nil
		}
		if w.reply != "" && cmd.Name() != "info" {
			cmd.SetErr(refusal(w.reply))
			return refusal(w.reply)
		}
		return next(ctx, cmd)
	}
}

func (w *wire) drain() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := w.seen
	w.seen = nil
	return seen
}

func (w *wire) count() int { return len(w.drain()) }
