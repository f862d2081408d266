package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/postgres/internal/dbsqlc"
)

// A provider event settles what is processing at whichever attempt. That is the fence for all
// attempts, because no attempt settles what is settled. The operation and its key are read before
// the transaction; neither changes, except that the key may be finished.

// verdictError stops a settlement: the event leads to this verdict and to nothing else.
type verdictError checkout.Verdict

func (v verdictError) Error() string { return "the provider event settles nothing: " + string(v) }

func verdictOf(v checkout.Verdict) error {
	if v == checkout.VerdictSettled {
		return nil
	}
	return verdictError(v)
}

// SettlePaymentByProviderEvent settles a payment. See [checkout.ProviderEventStore].
func (s *Store) SettlePaymentByProviderEvent(ctx context.Context, id uuid.UUID, e checkout.ProviderEvent,
	render checkout.Render[checkout.Payment],
) (checkout.Verdict, error) {
	row, err := read(ctx, s, func(ctx context.Context, q *dbsqlc.Queries) (dbsqlc.FindPaymentRow, error) {
		return q.FindPayment(ctx, id)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return s.RecordProviderEvent(ctx, e)
	}
	if err != nil {
		return "", translate("find the payment of a provider event", err)
	}
	call := waitingCall(row.Payment.AccountID, row.Key, row.Fingerprint, row.Operation)
	fence := func(p checkout.Payment) error { return verdictOf(p.Match(e)) }
	return settleByEvent(ctx, s, call, e, render, settlePayment(paymentOf(row.Payment), e.Result, fence))
}

// SettleRefundByProviderEvent settles a refund. See [checkout.ProviderEventStore].
func (s *Store) SettleRefundByProviderEvent(ctx context.Context, id uuid.UUID, e checkout.ProviderEvent,
	render checkout.Render[checkout.Refund],
) (checkout.Verdict, error) {
	row, err := read(ctx, s, func(ctx context.Context, q *dbsqlc.Queries) (dbsqlc.FindRefundRow, error) {
		return q.FindRefund(ctx, id)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return s.RecordProviderEvent(ctx, e)
	}
	if err != nil {
		return "", translate("find the refund of a provider event", err)
	}
	call := waitingCall(row.Refund.AccountID, row.Key, row.Fingerprint, row.Operation)
	fence := func(r checkout.Refund) error { return verdictOf(r.Match(e)) }
	return settleByEvent(ctx, s, call, e, render, settleRefund(refundOf(row.Refund), e.Result, fence))
}

// RecordProviderEvent records an event that leads to nothing. See [checkout.ProviderEventStore].
func (s *Store) RecordProviderEvent(ctx context.Context, e checkout.ProviderEvent) (checkout.Verdict, error) {
	nothing := func(ctx context.Context, tx *transaction) (struct{}, error) {
		if err := tx.load(ctx); err != nil {
			return struct{}{}, err
		}
		return struct{}{}, verdictError(checkout.VerdictUnknown)
	}
	return settleByEvent(ctx, s, checkout.Call{}, e, nil, nothing)
}

// settleByEvent records an event and settles what it is about in one transaction.
func settleByEvent[T any](ctx context.Context, s *Store, call checkout.Call, e checkout.ProviderEvent,
	render checkout.Render[T], settle command[T],
) (checkout.Verdict, error) {
	ctx, cancel := context.WithTimeout(ctx, transactionTimeout)
	defer cancel()
	tx, err := s.begin(ctx, call.Account)
	if err != nil {
		return "", err
	}
	defer tx.close(ctx)
	tx.started = tx.insertProviderEvent(ctx, e)
	value, err := settle(ctx, tx)
	var other verdictError
	switch {
	case errors.Is(err, errKeyTaken): // not the client's key but the event's ID
		return checkout.VerdictDuplicate, nil
	case errors.As(err, &other):
		tx.setVerdict(ctx, e, checkout.Verdict(other))
		return checkout.Verdict(other), tx.commit(ctx)
	}
	tx.setVerdict(ctx, e, checkout.VerdictSettled)
	_, err = keep(ctx, tx, call, render, value, err)
	return checkout.VerdictSettled, err
}

// insertProviderEvent queues the record of an event. No row means that it was received before.
func (tx *transaction) insertProviderEvent(ctx context.Context, e checkout.ProviderEvent) rowOf[time.Time] {
	return tx.InsertProviderEvent(ctx, []dbsqlc.InsertProviderEventParams{{EventID: e.ID, Type: e.Type, Subject: e.Subject}})
}

// setVerdict queues the verdict on an event that was recorded.
func (tx *transaction) setVerdict(ctx context.Context, e checkout.ProviderEvent, verdict checkout.Verdict) {
	tx.SetProviderEventVerdict(ctx, []dbsqlc.SetProviderEventVerdictParams{{EventID: e.ID, Verdict: string(verdict)}})
}

// waitingCall is the call that began an operation. It has no claim when no key waits for an answer.
func waitingCall(account uuid.UUID, key *string, fingerprint []byte, operation *string) checkout.Call {
	if key == nil {
		return checkout.Call{Account: account}
	}
	return begunBy(account, *key, fingerprint, *operation)
}
