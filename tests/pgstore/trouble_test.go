package pgstore_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/pgstore"
	"github.com/oncepay/oncepay/internal/testenv"
)

// step is one of a store's four; acquired says that it needs a record.
type step struct {
	acquired bool
	take     func(context.Context, *pgstore.Store, idempotency.Record) error
}

var steps = map[string]step{
	"acquire": {false, func(ctx context.Context, s *pgstore.Store, r idempotency.Record) error {
		existing, err := s.Acquire(ctx, r, time.Minute)
		if existing != nil {
			return idempotency.ErrLost
		}
		return err
	}},
	"extend": {true, func(ctx context.Context, s *pgstore.Store, r idempotency.Record) error {
		return s.Extend(ctx, r, time.Minute)
	}},
	"complete": {true, func(ctx context.Context, s *pgstore.Store, r idempotency.Record) error {
		return s.Complete(ctx, done(r), time.Minute)
	}},
	"release": {true, func(ctx context.Context, s *pgstore.Store, r idempotency.Record) error {
		return s.Release(ctx, r)
	}},
}

// TestStep_IsRepeatedAfterALostReply takes each step through a proxy that passes the
// statement on but not the reply: late beyond the timeout, never, or never
// because the connection ends. The caller must see its step succeed, once.
func TestStep_IsRepeatedAfterALostReply(t *testing.T) {
	t.Parallel()
	const timeout = 5 * time.Second // in which a busy machine can open a connection, and try again
	server := testenv.EmptyPostgres(t)
	pool, _ := open(t, server)
	require.NoError(t, pgstore.Migrate(t.Context(), pool))
	direct := newStore(pool)
	for name, step := range steps {
		for fault, inject := range map[string]testenv.Fault{"late": {Delay: 2 * timeout}, "lost": {Lose: true}, "cut": {Cut: true}} {
			t.Run(name+" "+fault, func(t *testing.T) {
				t.Parallel()
				way, detour := through(t, server)
				broken, wire := open(t, detour)
				store, record := pgstore.New(broken, pgstore.WithAttemptTimeout(timeout)), pending(name+fault)
				if step.acquired {
					record = held(t, direct, name+fault, time.Minute)
				}
				require.NoError(t, broken.Ping(t.Context()), "connected before the fault")
				wire.drain()
				way.FailNext(record.Key, inject)
				require.NoError(t, step.take(t.Context(), store, record))
				require.GreaterOrEqual(t, wire.drain(), 2, "the step was taken, and once more")
			})
		}
	}
}

func TestStep_ReportsAnOutage(t *testing.T) {
	t.Parallel()
	server, pool := outage(t)
	server.Stop()
	requireUnavailable(t, pgstore.New(pool), time.Second)
	server.Start()
	requireServed(t, pool)
}

// TestStep_ReportsASilentDatabase pauses the way there, as a paused
// server goes on serving connections at hand.
func TestStep_ReportsASilentDatabase(t *testing.T) {
	t.Parallel()
	server := testenv.EmptyPostgres(t)
	way, detour := through(t, server)
	pool, _ := open(t, detour)
	require.NoError(t, pgstore.Migrate(t.Context(), pool))
	way.Partition()
	requireUnavailable(t, pgstore.New(pool), 2*pgstore.AttemptTimeout+time.Second)
	way.Heal()
	requireServed(t, pool)
}

func outage(t *testing.T) (*testenv.Server, *pgxpool.Pool) {
	t.Helper()
	server := testenv.PostgresServer(t)
	pool, _ := open(t, server.URL)
	require.NoError(t, pgstore.Migrate(t.Context(), pool))
	return server, pool
}

func requireUnavailable(t *testing.T, store *pgstore.Store, within time.Duration) {
	t.Helper()
	for name, step := range steps {
		began := time.Now()
		err := step.take(t.Context(), store, pending(name))
		require.ErrorIs(t, err, idempotency.ErrUnavailable, name)
		require.NotErrorIs(t, err, idempotency.ErrLost, name)
		require.Less(t, time.Since(began), within, "%s gives up soon", name)
	}
	_, err := store.Sweep(t.Context())
	require.ErrorIs(t, err, idempotency.ErrUnavailable)
}

func requireServed(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	store, record := pgstore.New(pool), pending("served again")
	require.Eventually(t, func() bool {
		existing, err := store.Acquire(t.Context(), record, time.Minute)
		return err == nil && existing == nil
	}, 20*time.Second, 20*time.Millisecond, "it recovers by itself")
	require.NoError(t, store.Complete(t.Context(), done(record), time.Minute))
}

// TestStep_ReportsARefusingDatabase covers answers: no table, and a session
// that may not write.
func TestStep_ReportsARefusingDatabase(t *testing.T) {
	t.Parallel()
	server := testenv.EmptyPostgres(t)
	pool, wire := open(t, server)
	require.NoError(t, pool.Ping(t.Context()), "connected before")
	wire.drain()
	requireUnavailable(t, newStore(pool), 2*time.Second)
	require.Equal(t, len(steps)+1, wire.drain(), "an answer of the server is not asked for again")

	require.NoError(t, pgstore.Migrate(t.Context(), pool))
	readOnly, _ := open(t, server+"&default_transaction_read_only=on")
	require.NoError(t, readOnly.Ping(t.Context()), "connected before")
	requireUnavailable(t, newStore(readOnly), 2*time.Second)
}

// TestStep_IsRepeatedAfterADeadlock has PostgreSQL end the first transaction that writes. Some
// states say that the next one will fare better (PostgreSQL manual, appendix A).
func TestStep_IsRepeatedAfterADeadlock(t *testing.T) {
	t.Parallel()
	for state, again := range map[string]bool{"40001": true, "40P01": true, "57P01": true, "57P02": true, "53100": false} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			pool := migrated(t)
			_, err := pool.Exec(t.Context(), `CREATE SEQUENCE writes;
				CREATE FUNCTION end_the_first() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
					IF nextval('writes') = 1 THEN RAISE EXCEPTION 'victim' USING ERRCODE = '`+state+`'; END IF;
					RETURN NEW;
				END $$;
				CREATE TRIGGER victim BEFORE INSERT ON idempotency_records FOR EACH ROW EXECUTE FUNCTION end_the_first()`)
			require.NoError(t, err)
			store, record := newStore(pool), pending("key")
			_, err = store.Acquire(t.Context(), record, time.Minute)
			if again {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, idempotency.ErrUnavailable)
			}
			existing, err := store.Acquire(t.Context(), record, time.Minute)
			require.NoError(t, err)
			require.Nil(t, existing)
		})
	}
}

// TestStep_IsRepeatedWhenAPreparedStatementDoesNotFit has the session forget all statements, and a
// migration change the types of results.
func TestStep_IsRepeatedWhenAPreparedStatementDoesNotFit(t *testing.T) {
	t.Parallel()
	for state, disturb := range map[string]string{
		"26000": "DEALLOCATE ALL",
		"0A000": "ALTER TABLE idempotency_records ALTER COLUMN trace_parent TYPE varchar(90)",
	} {
		pool := migrated(t)
		store := newStore(pool, pgstore.WithoutNotify()) // all on one connection
		round := func(key string) {
			record := held(t, store, key, time.Minute)
			require.NoError(t, store.Extend(t.Context(), record, time.Minute), state)
			require.NoError(t, store.Complete(t.Context(), done(record), time.Minute), state)
			require.NoError(t, store.Release(t.Context(), held(t, store, key+" released", time.Minute)), state)
		}
		round("first")
		_, err := pool.Exec(t.Context(), disturb)
		require.NoError(t, err)
		round("second")
	}
}

// TestStep_DoesNotFailWithItsNotification has the commit of each transaction that notifies fail, as
// while a listener of any application fills the server's queue of notifications. Without it, the
// answer would be lost, and the handler would run again.
func TestStep_DoesNotFailWithItsNotification(t *testing.T) {
	t.Parallel()
	server := testenv.EmptyPostgres(t)
	direct, _ := open(t, server)
	require.NoError(t, pgstore.Migrate(t.Context(), direct))
	_, err := direct.Exec(t.Context(), `CREATE SCHEMA full_queue;
		CREATE TABLE full_queue.notified ();
		CREATE FUNCTION full_queue.fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			RAISE EXCEPTION 'too many notifications in the NOTIFY queue' USING ERRCODE = 'program_limit_exceeded';
		END $$;
		CREATE CONSTRAINT TRIGGER fail AFTER INSERT ON full_queue.notified DEFERRABLE INITIALLY DEFERRED
			FOR EACH ROW EXECUTE FUNCTION full_queue.fail();
		CREATE FUNCTION full_queue.pg_notify(text, text) RETURNS void LANGUAGE sql AS 'INSERT INTO full_queue.notified DEFAULT VALUES'`)
	require.NoError(t, err)
	pool, wire := open(t, server+"&search_path=full_queue,public,pg_catalog")
	_, err = pool.Exec(t.Context(), "SELECT pg_notify('a', 'b')")
	require.ErrorContains(t, err, "NOTIFY queue")
	wire.drain()
	store := newStore(pool)
	record := held(t, store, "key", time.Minute)
	require.NoError(t, store.Complete(t.Context(), done(record), time.Minute))
	require.NoError(t, store.Release(t.Context(), held(t, store, "another", time.Minute)))
	store.Close()
	require.Greater(t, wire.drain(), 4, "it did try to notify")
	met, err := store.Acquire(t.Context(), pending("key"), time.Minute)
	require.NoError(t, err)
	require.Equal(t, idempotency.StatusCompleted, met.Status)
}

func TestStep_ReportsAnEndedContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := newStore(migrated(t)).Acquire(ctx, pending("key"), time.Minute)
	require.ErrorIs(t, err, idempotency.ErrUnavailable)
	require.ErrorIs(t, err, context.Canceled)
}

// TestStep_TakesOneRoundTrip counts what one request costs, through the middleware: by
// statement, and on the wire. Notifications are sent in the background, and not counted here.
func TestStep_TakesOneRoundTrip(t *testing.T) {
	t.Parallel()
	way, detour := through(t, testenv.EmptyPostgres(t))
	pool, wire := open(t, detour+"&pool_max_conns=1")
	require.NoError(t, pgstore.Migrate(t.Context(), pool))
	handler := idempotency.New(newStore(pool, pgstore.WithoutNotify()), idempotency.Always(idempotency.Policy{}), idempotency.WithSharedScope()).Handler(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/fail" {
				w.WriteHeader(http.StatusInternalServerError)
			}
		}))
	send := func(path, key string) int {
		wire.drain()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(`{}`))
		r.Header.Set(idempotency.HeaderKey, key)
		handler.ServeHTTP(httptest.NewRecorder(), r)
		return wire.drain()
	}
	send("/", "prepares complete")
	send("/fail", "prepares release")
	require.Equal(t, 2, way.Count(func() { send("/", "on the wire") }))
	require.Equal(t, 1, way.Count(func() { send("/", "on the wire") }), "a replay")
	require.Equal(t, 2, send("/", "new"))
	require.Equal(t, 1, send("/", "new"), "a replay")
	require.Equal(t, 1, send("/other", "new"), "a mismatch")
	require.Equal(t, 2, send("/fail", "failing"))
}
