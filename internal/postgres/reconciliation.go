package postgres

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/postgres/internal/dbsqlc"
)

var _ checkout.ReconcileStore = (*Store)(nil)

// Take takes the next attempt of operations that no attempt works on.
func (o operations[W, T]) Take(ctx context.Context, grace time.Duration, limit int) ([]checkout.Taken[T], error) {
	return write(ctx, o.store, func(ctx context.Context, q *dbsqlc.Queries) ([]checkout.Taken[T], error) {
		taken, err := o.take(ctx, q, dbsqlc.TakePaymentsParams{GraceSeconds: grace.Seconds(), BatchSize: int32(limit)})
		return taken, translate("take operations", err)
	})
}

// PutOff makes an operation due later, and keeps its ID at the provider.
func (o operations[W, T]) PutOff(ctx context.Context, account uuid.UUID, begun T, providerID string, wait time.Duration) error {
	_, err := write(ctx, o.store, func(ctx context.Context, q *dbsqlc.Queries) (int64, error) {
		return o.putOff(ctx, q, dbsqlc.PutOffPaymentParams{AccountID: account, ID: begun.Common().ID,
			Attempt: begun.Common().Attempt, ProviderID: providerID, WaitSeconds: wait.Seconds()})
	})
	return translate("put off an operation", err)
}

// CountUnsettled counts what is processing. See [checkout.ReconcileStore].
func (s *Store) CountUnsettled(ctx context.Context, deadline time.Duration) (checkout.Unsettled, error) {
	return read(ctx, s, func(ctx context.Context, q *dbsqlc.Queries) (checkout.Unsettled, error) {
		row, err := q.CountUnsettled(ctx, deadline.Seconds())
		return checkout.Unsettled{Processing: int(row.Processing), Overdue: int(row.Overdue),
			Oldest: seconds(row.OldestSeconds)}, translate("count what is unsettled", err)
	})
}

// CountPayments counts the payments that were made no longer ago than since, by state, and all that
// are processing. What it reads grows with the traffic of that time and not with the table.
func (s *Store) CountPayments(ctx context.Context, since time.Duration) (map[checkout.Status]int, error) {
	return read(ctx, s, func(ctx context.Context, q *dbsqlc.Queries) (map[checkout.Status]int, error) {
		rows, err := q.CountPayments(ctx, since.Seconds())
		counts := map[checkout.Status]int{checkout.StatusProcessing: 0, checkout.StatusSucceeded: 0, checkout.StatusDeclined: 0}
		for _, row := range rows {
			counts[checkout.Status(row.Status)] = int(row.Payments)
		}
		return counts, translate("count payments", err)
	})
}

// begunBy is the call that began an operation, as far as its key remembers it. The attempt is
// that of the key; 0: any.
func begunBy(account uuid.UUID, key string, fingerprint []byte, operation string, attempt int32) checkout.Call {
	return checkout.Call{Account: account,
		Claim: &checkout.Claim{Key: key, Fingerprint: [32]byte(fingerprint), Operation: operation, Attempt: attempt}}
}
