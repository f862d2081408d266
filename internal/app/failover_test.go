package app

import (
	"log/slog"
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

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
	require.Eventually(t, func() bool { return r.stream.XLen(t.Context(), outbox.DefaultStream).Val() == 3 }, patience, pause)

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

	require.Eventually(t, func() bool { return r.timeline.lost.Load() == 1 }, patience, pause)
	named := r.logs.lines(t, "msg", "PostgreSQL has lost an event and what it tells of")
	require.Len(t, named, 1)
	require.Equal(t, lost.field(t, "id"), named[0]["subject"])
	require.Contains(t, r.operations("/metrics").body, "postgres_timeline 2")
	var first int64
	require.NoError(t, r.pool.QueryRow(t.Context(), "SELECT id FROM outbox WHERE subject = $1", again.field(t, "id")).Scan(&first))
	require.Greater(t, first, int64(1_000_000_000), "no position is used twice: "+strconv.FormatInt(first, 10))
}
