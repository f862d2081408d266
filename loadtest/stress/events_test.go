package main

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/testenv"
)

// testTimeout bounds a test's waits.
const testTimeout = time.Minute

// TestReadEvents_MeasuresLags has a hundred events of known lags, and some before that do not
// count.
func TestReadEvents_MeasuresLags(t *testing.T) {
	t.Parallel()
	url := testenv.Postgres(t)
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(ctx)) }()
	exec := func(sql string, args ...any) {
		t.Helper()
		_, err := conn.Exec(ctx, sql, args...)
		require.NoError(t, err)
	}
	write := func(kind string, ago time.Duration) {
		t.Helper()
		exec(`INSERT INTO outbox (event_id, account_id, type, aggregate, subject, data, created_at)
			SELECT gen_random_uuid(), id, $1, 'order', gen_random_uuid(), '{}', clock_timestamp() - $2::interval FROM accounts`, kind, ago)
	}
	exec(`INSERT INTO accounts (id, name) VALUES (gen_random_uuid(), 'a')`)
	for range 100 {
		write("order.placed", time.Hour)
	}
	var since time.Time
	require.NoError(t, conn.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&since))

	none, err := readEvents(ctx, url, since)
	require.NoError(t, err)
	require.Equal(t, &published{}, none)

	for range 100 {
		write("order.placed", 0)
	}
	exec(`UPDATE outbox_cursor SET position = 200`)
	exec(`INSERT INTO inbox (consumer, position, event_id, created_at)
		SELECT 'c', id, event_id, created_at + (id - 100) * interval '10 ms' FROM outbox WHERE created_at >= $1`, since)
	e, err := readEvents(ctx, url, since)
	require.NoError(t, err)
	require.Equal(t, &published{Written: 100,
		Consumed: latency{P50: 500, P95: 950, P99: 990, Max: 1000}}, e)

	// No consumer acts on the first of these. The second comes while the reader waits for it.
	write("order.updated", 0)
	exec(`UPDATE outbox_cursor SET position = 201`)
	write("payment.succeeded", 0)
	late := make(chan error, 1)
	go func() { late <- publishLate(ctx, url) }()
	e, err = readEvents(ctx, url, since)
	require.NoError(t, err)
	require.NoError(t, <-late)
	require.Equal(t, 102, e.Written)
	require.Zero(t, e.Outstanding)
}

// publishLate waits until the reader has asked. Then it publishes what is left, and lets it take
// effect.
func publishLate(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	for asked := false; !asked; {
		err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
			AND state = 'idle' AND query LIKE '%WITH written AS%')`).Scan(&asked)
		if err != nil {
			return err
		}
	}
	_, err = conn.Exec(ctx, `WITH published AS (UPDATE outbox_cursor SET position = 202)
		INSERT INTO inbox (consumer, position, event_id) SELECT 'c', id, event_id FROM outbox WHERE id = 202`)
	return err
}

func TestReadEvents_WaitsForABoundedTime(t *testing.T) {
	t.Parallel()
	url := testenv.Postgres(t)
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(ctx)) }()
	_, err = conn.Exec(ctx, `INSERT INTO outbox (event_id, account_id, type, aggregate, subject, data)
		SELECT gen_random_uuid(), gen_random_uuid(), kind, 'order', gen_random_uuid(), '{}'
		FROM unnest(ARRAY ['order.placed', 'order.cancelled']) kind`)
	require.NoError(t, err)
	_, err = conn.Exec(ctx, `UPDATE outbox_cursor SET position = 1`)
	require.NoError(t, err)
	e, err := readEvents(ctx, url, time.Time{})
	require.NoError(t, err)
	require.Equal(t, 2, e.Outstanding, "one has no effect, the other is not published")
}

func TestReadEvents_NeedsADatabase(t *testing.T) {
	t.Parallel()
	_, err := readEvents(t.Context(), "postgres://127.0.0.1:1/x", time.Time{})
	require.ErrorContains(t, err, "measure events")
}
