package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/oncepay/oncepay/idempotency/authority"
	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/postgres/internal/dbsqlc"
)

var _ checkout.ReconcileStore = (*Store)(nil)

// TakeDue takes the next attempts in the rows of the keys, and then loads their payments and
// refunds. One that cannot be loaded is due again after the grace. See [checkout.ReconcileStore].
func (s *Store) TakeDue(ctx context.Context, grace time.Duration, limit int) (due checkout.Due, err error) {
	attempts, err := s.keys.Due(ctx, grace, limit)
	if err != nil || len(attempts) == 0 {
		return due, translate("take what is due", err)
	}
	taken := make(map[uuid.UUID]authority.Attempt, len(attempts))
	ids := make([]uuid.UUID, len(attempts))
	for i, attempt := range attempts {
		if ids[i], err = uuid.Parse(attempt.ID); err != nil {
			return due, fmt.Errorf("read what a key began: %w", err)
		}
		taken[ids[i]] = attempt
	}
	payments, paymentsErr := write(ctx, s, func(ctx context.Context, q *dbsqlc.Queries) ([]dbsqlc.Payment, error) {
		return q.StampPayments(ctx, ids)
	})
	refunds, refundsErr := write(ctx, s, func(ctx context.Context, q *dbsqlc.Queries) ([]dbsqlc.Refund, error) {
		return q.StampRefunds(ctx, ids)
	})
	for _, row := range payments {
		due.Payments = append(due.Payments, checkout.Taken[checkout.Payment]{Value: paymentOf(row), Call: callOf(row.AccountID, taken[row.ID])})
	}
	for _, row := range refunds {
		due.Refunds = append(due.Refunds, checkout.Taken[checkout.Refund]{Value: refundOf(row), Call: callOf(row.AccountID, taken[row.ID])})
	}
	return due, translate("load what is due", errors.Join(paymentsErr, refundsErr))
}

// PutOff makes an operation due later, and keeps its ID at the provider.
func (o operations[W, T]) PutOff(ctx context.Context, taken checkout.Taken[T], providerID string, wait time.Duration) error {
	attempt := attemptOf(taken)
	var idErr error
	if providerID != "" {
		_, idErr = write(ctx, o.store, func(ctx context.Context, q *dbsqlc.Queries) (struct{}, error) {
			return struct{}{}, o.keepID(ctx, q, dbsqlc.KeepChargeIDParams{AccountID: taken.Call.Account, ID: taken.Value.Common().ID,
				Key: attempt.Key, Attempt: attempt.Number, ProviderID: providerID})
		})
	}
	return translate("put off an operation", errors.Join(idErr, o.store.keys.PutOff(ctx, attempt, wait)))
}

// CountUnsettled counts what is processing. See [checkout.ReconcileStore].
func (s *Store) CountUnsettled(ctx context.Context, deadline time.Duration) (checkout.Unsettled, error) {
	count, err := s.keys.Unsettled(ctx, deadline)
	return checkout.Unsettled{Processing: count.InProgress, Overdue: count.Overdue, Oldest: count.Oldest},
		translate("count what is unsettled", err)
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

// callOf is the call that began an operation, as far as its key remembers it.
func callOf(account uuid.UUID, a authority.Attempt) checkout.Call {
	return checkout.Call{Account: account,
		Claim: &checkout.Claim{Key: a.Key, Fingerprint: a.Fingerprint, Operation: a.Operation, Attempt: a.Number}}
}
