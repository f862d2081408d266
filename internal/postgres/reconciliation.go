package postgres

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/postgres/internal/dbsqlc"
)

var _ checkout.ReconcileStore = (*Store)(nil)

// TakePayments takes the next attempt of card payments that no attempt works on. See
// [checkout.ReconcileStore].
func (s *Store) TakePayments(ctx context.Context, grace time.Duration, limit int) ([]checkout.Taken[checkout.Payment], error) {
	return write(ctx, s, func(ctx context.Context, q *dbsqlc.Queries) ([]checkout.Taken[checkout.Payment], error) {
		rows, err := q.TakePayments(ctx, dbsqlc.TakePaymentsParams{GraceSeconds: grace.Seconds(), BatchSize: int32(limit)})
		taken := make([]checkout.Taken[checkout.Payment], len(rows))
		for i, row := range rows {
			taken[i] = checkout.Taken[checkout.Payment]{Value: paymentOf(row.Payment),
				Call: begunBy(row.Payment.AccountID, row.Key, row.Fingerprint, row.Operation)}
		}
		return taken, translate("take payments", err)
	})
}

// PutOffPayment makes a payment due later. See [checkout.ReconcileStore].
func (s *Store) PutOffPayment(ctx context.Context, account uuid.UUID, payment checkout.Payment, wait time.Duration) error {
	_, err := write(ctx, s, func(ctx context.Context, q *dbsqlc.Queries) (int64, error) {
		return q.PutOffPayment(ctx, dbsqlc.PutOffPaymentParams{AccountID: account, ID: payment.ID, Attempt: payment.Attempt,
			WaitSeconds: wait.Seconds()})
	})
	return translate("put off a payment", err)
}

// TakeRefunds takes the next attempt of card refunds that no attempt works on. See
// [checkout.ReconcileStore].
func (s *Store) TakeRefunds(ctx context.Context, grace time.Duration, limit int) ([]checkout.Taken[checkout.Refund], error) {
	return write(ctx, s, func(ctx context.Context, q *dbsqlc.Queries) ([]checkout.Taken[checkout.Refund], error) {
		rows, err := q.TakeRefunds(ctx, dbsqlc.TakeRefundsParams{GraceSeconds: grace.Seconds(), BatchSize: int32(limit)})
		taken := make([]checkout.Taken[checkout.Refund], len(rows))
		for i, row := range rows {
			taken[i] = checkout.Taken[checkout.Refund]{Value: refundOf(row.Refund),
				Call: begunBy(row.Refund.AccountID, row.Key, row.Fingerprint, row.Operation)}
		}
		return taken, translate("take refunds", err)
	})
}

// PutOffRefund makes a refund due later. See [checkout.ReconcileStore].
func (s *Store) PutOffRefund(ctx context.Context, account uuid.UUID, refund checkout.Refund, wait time.Duration) error {
	_, err := write(ctx, s, func(ctx context.Context, q *dbsqlc.Queries) (int64, error) {
		return q.PutOffRefund(ctx, dbsqlc.PutOffRefundParams{AccountID: account, ID: refund.ID, Attempt: refund.Attempt,
			WaitSeconds: wait.Seconds()})
	})
	return translate("put off a refund", err)
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

// begunBy is the call that began an operation, as far as its key remembers it.
func begunBy(account uuid.UUID, key string, fingerprint []byte, operation string) checkout.Call {
	return checkout.Call{Account: account, Claim: &checkout.Claim{Key: key, Fingerprint: [32]byte(fingerprint), Operation: operation}}
}
