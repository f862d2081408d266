package postgres

import (
	"context"
	"time"

	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/postgres/internal/dbsqlc"
)

var _ checkout.PurgeStore = (*Store)(nil)

// PurgeKeys forgets finished keys whose time is up. See [checkout.PurgeStore].
func (s *Store) PurgeKeys(ctx context.Context, limit int) (int, error) {
	return s.purge(ctx, "idempotency keys", func(ctx context.Context, q *dbsqlc.Queries) (int64, error) {
		return q.PurgeKeys(ctx, int32(limit))
	})
}

// PurgeNotices forgets old events of the provider's. See [checkout.PurgeStore].
func (s *Store) PurgeNotices(ctx context.Context, age time.Duration, limit int) (int, error) {
	return s.purge(ctx, "the provider's events", func(ctx context.Context, q *dbsqlc.Queries) (int64, error) {
		return q.PurgePSPEvents(ctx, dbsqlc.PurgePSPEventsParams{AgeSeconds: age.Seconds(), BatchSize: int32(limit)})
	})
}

// PurgeEvents forgets events that were published long ago. See
// [checkout.PurgeStore].
func (s *Store) PurgeEvents(ctx context.Context, age time.Duration, limit int) (int, error) {
	return s.purge(ctx, "published events", func(ctx context.Context, q *dbsqlc.Queries) (int64, error) {
		return q.PurgeEvents(ctx, dbsqlc.PurgeEventsParams{AgeSeconds: age.Seconds(), BatchSize: int32(limit)})
	})
}

// PurgeInbox forgets events that had their effect long ago and are not in the
// outbox any more. See [checkout.PurgeStore].
func (s *Store) PurgeInbox(ctx context.Context, age time.Duration, limit int) (int, error) {
	return s.purge(ctx, "the inbox", func(ctx context.Context, q *dbsqlc.Queries) (int64, error) {
		return q.PurgeInbox(ctx, dbsqlc.PurgeInboxParams{AgeSeconds: age.Seconds(), BatchSize: int32(limit)})
	})
}

func (s *Store) purge(ctx context.Context, what string, batch func(context.Context, *dbsqlc.Queries) (int64, error)) (int, error) {
	purged, err := write(ctx, s, batch)
	return int(purged), translate("purge "+what, err)
}
