package main

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/testenv"
	"github.com/oncepay/oncepay/loadtest/shop"
)

// TestReadLag_MeasuresEvents has a hundred events of known lags, and some before that do not count.
func TestReadLag_MeasuresEvents(t *testing.T) {
	t.Parallel()
	l := &load{config: config{Database: testenv.Postgres(t)}, shop: &shop.Shop{}}
	conn, err := pgx.Connect(t.Context(), l.Database)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(t.Context())) }()
	_, err = conn.Exec(t.Context(), `
		INSERT INTO outbox (event_id, account_id, type, aggregate, subject, data, created_at)
			SELECT gen_random_uuid(), gen_random_uuid(), 'order.placed', 'order', gen_random_uuid(), '{}',
				CASE WHEN n > 100 THEN clock_timestamp() ELSE clock_timestamp() - interval '1 hour' END
			FROM generate_series(1, 200) n;
		INSERT INTO inbox (consumer, position, event_id, created_at)
			SELECT 'c', id, event_id, created_at + (id - 100) * interval '10 ms' FROM outbox`)
	require.NoError(t, err)
	l.shop.Opened = time.Now().Add(time.Hour)
	require.NoError(t, l.readLag(t.Context()))
	require.Equal(t, [3]time.Duration{}, l.lag, "there is no event since then")
	l.shop.Opened = time.Now().Add(-time.Minute)
	require.NoError(t, l.readLag(t.Context()))
	require.Equal(t, [3]time.Duration{500 * time.Millisecond, 990 * time.Millisecond, time.Second}, l.lag)

	l.Database = "postgres://127.0.0.1:1/x"
	require.ErrorContains(t, l.readLag(t.Context()), "open the books")
}
