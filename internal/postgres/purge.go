package postgres

import (
	"context"
	"time"

	"github.com/oncepay/oncepay/internal/postgres/internal/dbsqlc"
	"github.com/oncepay/oncepay/internal/purge"
)

var _ purge.Store = (*Store)(nil)

// PurgeKeys deletes keys whose time is up, or makes tombstones of them. See [purge.Store].
func (s *Store) PurgeKeys(ctx context.Context, limit int) (int, error) {
	purged, err := s.keys.Purge(ctx, limit)
	return purged, translate("purge idempotency keys", err)
}

// PurgeProviderEvents deletes old provider events. See [purge.Store].
func (s *Store) PurgeProviderEvents(ctx context.Context, age time.Duration, limit int) (int, error) {
	return s.purge(ctx, "provider events", func(ctx context.Context, q *dbsqlc.Queries) (int64, error) {
		return q.PurgeProviderEvents(ctx, dbsqlc.PurgeProviderEventsParams{AgeSeconds: age.Seconds(), BatchSize: int32(limit)})
	})
}

// PurgeEvents deletes old events that every consumer group has handled. See [purge.Store].
func (s *Store) PurgeEvents(ctx context.Context, age time.Duration, limit int) (int, error) {
	return s.purge(ctx, "events", func(ctx context.Context, q *dbsqlc.Queries) (int64, error) {
		return q.PurgeEvents(ctx, dbsqlc.PurgeEventsParams{AgeSeconds: age.Seconds(), BatchSize: int32(limit)})
	})
}

// PurgeInbox deletes what the groups' cursors have passed long ago. See [purge.Store].
func (s *Store) PurgeInbox(ctx context.Context, age time.Duration, limit int) (int, error) {
	return s.purge(ctx, "the inbox", func(ctx context.Context, q *dbsqlc.Queries) (int64, error) {
		return q.PurgeInbox(ctx, dbsqlc.PurgeInboxParams{AgeSeconds: age.Seconds(), BatchSize: int32(limit)})
	})
}

func (s *Store) purge(ctx context.Context, what string, batch func(context.Context, *dbsqlc.Queries) (int64, error)) (int, error) {
	purged, err := write(ctx, s, batch)
	return int(purged), translate("purge "+what, err)
}
