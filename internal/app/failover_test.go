package app

import (
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/outbox"
	"github.com/oncepay/oncepay/internal/testenv"
)

// TestFailover_WithLossIsNoticed promotes a standby that lacks the last order, while Redis has its
// answer and its event.
func TestFailover_WithLossIsNoticed(t *testing.T) {
	t.Parallel()
	pair := testenv.PostgresPair(t)
	cfg := configFor(t, pair.URL, testenv.RedisServer(t).URL)
	_, err := Migrate(t.Context(), cfg, slog.New(slog.DiscardHandler), "up")
	require.NoError(t, err)
	r := serveSeeded(t, cfg)
	customer := r.call(http.MethodPost, "/v1/customers", "customer", `{"name":"Ada","email":"ada@example.com"}`).field(t, "id")
	order := func(key string) answer {
		return r.call(http.MethodPost, "/v1/orders", key, `{"customer_id":"`+customer+`","items":[{"sku":"tee-black","quantity":1}]}`)
	}
	kept := order("kept")
	require.Equal(t, http.StatusCreated, kept.status, kept.body)
	pair.CatchUp()
	pair.Detach()
	lost := order("lost")
	require.Equal(t, http.StatusCreated, lost.status, lost.body)
	require.Equal(t, "true", order("lost").header.Get("X-Idempotent-Replay"))
	require.Eventually(t, func() bool { return r.servers.stream.XLen(t.Context(), outbox.DefaultStream).Val() == 3 }, patience, pause)

	pair.FailOver()
	path := "/v1/orders/" + lost.field(t, "id")
	require.Eventually(t, func() bool { return r.call(http.MethodGet, path, "", "").status == http.StatusNotFound }, patience, pause)
	again := order("lost")
	require.Equal(t, http.StatusCreated, again.status, again.body)
	require.Empty(t, again.header.Get("X-Idempotent-Replay"), "no answer is replayed whose effect is gone")
	require.Equal(t, http.StatusOK, r.call(http.MethodGet, "/v1/orders/"+again.field(t, "id"), "", "").status)
	replayed := order("kept")
	require.Equal(t, "true", replayed.header.Get("X-Idempotent-Replay"))
	require.Equal(t, kept.body, replayed.body)

	require.Eventually(t, func() bool { return r.servers.timeline.Lost() == 1 }, patience, pause)
	named := r.logs.lines(t, "msg", "PostgreSQL has lost an event and what it tells of")
	require.Len(t, named, 1)
	require.Equal(t, lost.field(t, "id"), named[0]["subject"])
	require.Contains(t, r.operations("/metrics").body, "postgres_timeline 2")
	var first int64
	require.NoError(t, r.servers.pool.QueryRow(t.Context(), "SELECT id FROM outbox WHERE subject = $1", again.field(t, "id")).Scan(&first))
	require.Greater(t, first, int64(1_000_000_000), "no position is used twice: "+strconv.FormatInt(first, 10))
}

// TestFailover_BehindAPoolerIsNoticed although the replica's connections stay. No order that is
// placed before it is noticed draws a position that a lost order has.
func TestFailover_BehindAPoolerIsNoticed(t *testing.T) {
	t.Parallel()
	pair := testenv.PostgresPair(t)
	pooler := testenv.PgBouncer(t, localserver.PostgresURL(pair.Primary.Addr), "transaction")
	cfg := configFor(t, testenv.InQueryMode(pooler.URL, "cache_describe"), testenv.RedisServer(t).URL)
	_, err := Migrate(t.Context(), cfg, slog.New(slog.DiscardHandler), "up")
	require.NoError(t, err)
	r := serveSeeded(t, cfg)
	customer := r.call(http.MethodPost, "/v1/customers", "customer", `{"name":"Ada","email":"ada@example.com"}`).field(t, "id")
	order := func(key string) answer {
		return r.call(http.MethodPost, "/v1/orders", key, `{"customer_id":"`+customer+`","items":[{"sku":"tee-black","quantity":1}]}`)
	}
	pair.CatchUp()
	pair.Detach()
	lost := order("lost")
	require.Equal(t, http.StatusCreated, lost.status, lost.body)

	connectAll(t, r.servers.pool) // there will be no new connection
	require.NoError(t, localserver.Promote(t.Context(), pair.Standby.Addr))
	pooler.MoveTo(pair.Standby.Addr)
	var next answer
	require.Eventually(t, func() bool { next = order("next"); return next.status != http.StatusServiceUnavailable }, patience, pause)
	require.Equal(t, http.StatusCreated, next.status, next.body)
	var position int64
	require.NoError(t, r.servers.pool.QueryRow(t.Context(), "SELECT id FROM outbox WHERE subject = $1", next.field(t, "id")).Scan(&position))
	require.Greater(t, position, int64(1_000_000_000), "no position is used twice")
	require.InDelta(t, 2, r.servers.timeline.Number(), 0)
	again := order("lost")
	require.Equal(t, http.StatusCreated, again.status, again.body)
	require.Empty(t, again.header.Get("X-Idempotent-Replay"), "no answer is replayed whose effect is gone")
}

// connectAll makes all connections that a pool may have.
func connectAll(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	for range pool.Config().MaxConns {
		conn, err := pool.Acquire(t.Context())
		require.NoError(t, err)
		defer conn.Release() //nolint:gocritic // all of them are held at once
	}
}

// TestFailover_BackIsNoticedBehindAPooler: to a server that does not have what the other one has.
func TestFailover_BackIsNoticedBehindAPooler(t *testing.T) {
	t.Parallel()
	first, second := testenv.PostgresServer(t), testenv.PostgresServer(t)
	pooler := testenv.PgBouncer(t, first.URL, "transaction")
	r := serve(t, configFor(t, testenv.InQueryMode(pooler.URL, "exec"), testenv.Redis(t)))
	r.awaitReady()
	before := r.servers.timeline.Name()
	pooler.MoveTo(second.Addr)
	require.Eventually(t, func() bool { return r.servers.timeline.Name() != before }, patience, pause)
	pooler.MoveTo(first.Addr)
	require.Eventually(t, func() bool { return r.servers.timeline.Name() == before }, patience, pause)
	require.Equal(t, 2, strings.Count(r.logs.String(), "PostgreSQL was failed over or restored"))
}

// TestFailover_OfASynchronousStandbyLosesNoAnswer cuts the standby off while orders are placed.
// Their commits wait, and their clients give up and try again. Then the primary dies.
func TestFailover_OfASynchronousStandbyLosesNoAnswer(t *testing.T) {
	t.Parallel()
	pair := testenv.PostgresPair(t)
	cfg := configFor(t, pair.URL, testenv.RedisServer(t).URL)
	_, err := Migrate(t.Context(), cfg, slog.New(slog.DiscardHandler), "up")
	require.NoError(t, err)
	pair.Synchronize()
	r := serveSeeded(t, cfg)
	customer := r.call(http.MethodPost, "/v1/customers", "customer", `{"name":"Ada","email":"ada@example.com"}`).field(t, "id")
	place := func(key string) (answer, error) {
		return r.try(http.MethodPost, "/v1/orders", key, `{"customer_id":"`+customer+`","items":[{"sku":"tee-black","quantity":1}]}`)
	}

	const clients, orders = 4, 5
	var buying, cutOff sync.WaitGroup
	started, done := make(chan struct{}, clients), make(chan struct{})
	seen := make([]string, clients*orders)
	for c := range clients {
		cutOff.Add(1)
		released := sync.OnceFunc(cutOff.Done)
		buying.Go(func() {
			for n := c; n < len(seen); n += clients {
				for tries := 1; seen[n] == ""; tries++ {
					got, err := place("order-" + strconv.Itoa(n))
					if err == nil && got.status == http.StatusCreated {
						seen[n] = got.body
					}
					if n >= clients && (tries > 1 || seen[n] != "") {
						released() // it has given up and tried again, or was answered
					}
				}
				if n < clients {
					started <- struct{}{}
					<-done
				}
			}
		})
	}
	for range clients {
		<-started
	}
	pair.Detach()
	close(done)
	cutOff.Wait()
	pair.FailOver()
	buying.Wait()

	for n, body := range seen {
		again := r.call(http.MethodPost, "/v1/orders", "order-"+strconv.Itoa(n), `{"customer_id":"`+customer+`","items":[{"sku":"tee-black","quantity":1}]}`)
		require.Equal(t, "true", again.header.Get("X-Idempotent-Replay"), n)
		require.Equal(t, body, again.body, n)
	}
	var placed int
	require.NoError(t, r.servers.pool.QueryRow(t.Context(), "SELECT count(*) FROM orders").Scan(&placed))
	require.Equal(t, len(seen), placed)
}
