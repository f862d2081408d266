package pgstore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/idempotency"
)

var _ idempotency.Reader = (*Store)(nil)

const lookupSQL = `
SELECT owner, status, fingerprint, created_at, expires_at - clock_timestamp(),
	response_status, response_headers, response_body, body_omitted, trace_parent
FROM idempotency_records WHERE scope = $1 AND key = $2 AND expires_at > clock_timestamp()`

// Lookup implements [idempotency.Reader].
func (s *Store) Lookup(ctx context.Context, scope, key string) (*idempotency.Record, error) {
	var found []idempotency.Record
	err := s.repeated(ctx, func(ctx context.Context) error {
		rows, err := s.db.Query(ctx, s.named(lookupSQL), scope, key)
		if err != nil {
			return err
		}
		found, err = pgx.CollectRows(rows, scanRecord)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look up: %w", translate(err))
	}
	if len(found) == 0 {
		return nil, nil
	}
	found[0].Scope, found[0].Key = scope, key
	return &found[0], nil
}
