package postgres

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/postgres/internal/dbsqlc"
)

// A notice of the provider's settles what is processing at whichever attempt:
// that is the fence for all of them, since no attempt settles what is settled.
// Whose operation it is, and under which key, is read beforehand; neither
// changes, apart from the key being finished.

// verdictError stops a settlement: nothing but the verdict follows from the notice.
type verdictError checkout.Verdict

func (v verdictError) Error() string { return "the notice settles nothing, it is " + string(v) }

func verdictOf(v checkout.Verdict) error {
	if v == checkout.VerdictSettled {
		return nil
	}
	return verdictError(v)
}

// SettlePaymentByNotice settles a payment. See [checkout.NoticeStore].
func (s *Store) SettlePaymentByNotice(ctx context.Context, id uuid.UUID, n checkout.Notice,
	render checkout.Render[checkout.Payment],
) (checkout.Verdict, error) {
	row, err := read(ctx, s, func(ctx context.Context, q *dbsqlc.Queries) (dbsqlc.FindPaymentRow, error) {
		return q.FindPayment(ctx, id)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return s.RecordNotice(ctx, n)
	}
	if err != nil {
		return "", translate("find the payment of a notice", err)
	}
	call := waitingCall(row.Payment.AccountID, row.Key, row.Fingerprint, row.Operation)
	fence := func(p checkout.Payment) error { return verdictOf(p.Heed(n)) }
	return heed(ctx, s, call, n, render, settlePayment(paymentOf(row.Payment), n.Result, fence))
}

// SettleRefundByNotice settles a refund. See [checkout.NoticeStore].
func (s *Store) SettleRefundByNotice(ctx context.Context, id uuid.UUID, n checkout.Notice,
	render checkout.Render[checkout.Refund],
) (checkout.Verdict, error) {
	row, err := read(ctx, s, func(ctx context.Context, q *dbsqlc.Queries) (dbsqlc.FindRefundRow, error) {
		return q.FindRefund(ctx, id)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return s.RecordNotice(ctx, n)
	}
	if err != nil {
		return "", translate("find the refund of a notice", err)
	}
	call := waitingCall(row.Refund.AccountID, row.Key, row.Fingerprint, row.Operation)
	fence := func(r checkout.Refund) error { return verdictOf(r.Heed(n)) }
	return heed(ctx, s, call, n, render, settleRefund(refundOf(row.Refund), n.Result, fence))
}

// RecordNotice records an event that nothing follows from. See
// [checkout.NoticeStore].
func (s *Store) RecordNotice(ctx context.Context, n checkout.Notice) (checkout.Verdict, error) {
	nothing := func(ctx context.Context, tx *transaction) (struct{}, error) {
		if err := tx.load(ctx); err != nil {
			return struct{}{}, err
		}
		return struct{}{}, verdictError(checkout.VerdictUnknown)
	}
	return heed(ctx, s, checkout.Call{}, n, nil, nothing)
}

// heed records an event and settles what it tells of in one transaction.
func heed[T any](ctx context.Context, s *Store, call checkout.Call, n checkout.Notice,
	render checkout.Render[T], settle command[T],
) (checkout.Verdict, error) {
	ctx, cancel := context.WithTimeout(ctx, transactionTimeout)
	defer cancel()
	tx, err := s.begin(ctx, call.Account)
	if err != nil {
		return "", err
	}
	defer tx.close(ctx)
	tx.started = tx.RecordPSPEvent(ctx, []dbsqlc.RecordPSPEventParams{{EventID: n.EventID, Type: n.Type, Subject: n.Subject}})
	if call.Claim != nil {
		tx.LockKey(ctx, []dbsqlc.LockKeyParams{{AccountID: call.Account, Key: call.Claim.Key}})
	}
	value, err := settle(ctx, tx)
	var other verdictError
	switch {
	case errors.Is(err, errKeyTaken): // not the client's key, but the event's ID
		return checkout.VerdictDuplicate, nil
	case errors.As(err, &other):
		tx.judge(ctx, n, checkout.Verdict(other))
		return checkout.Verdict(other), tx.commit(ctx)
	}
	tx.judge(ctx, n, checkout.VerdictSettled)
	_, err = keep(ctx, tx, call, render, value, err)
	return checkout.VerdictSettled, err
}

// judge queues the verdict on an event that was recorded.
func (tx *transaction) judge(ctx context.Context, n checkout.Notice, verdict checkout.Verdict) {
	tx.JudgePSPEvent(ctx, []dbsqlc.JudgePSPEventParams{{EventID: n.EventID, Verdict: string(verdict)}})
}

// waitingCall is the call that began an operation, with no claim when its key
// waits for no reply any more.
func waitingCall(account uuid.UUID, key *string, fingerprint []byte, operation *string) checkout.Call {
	if key == nil {
		return checkout.Call{Account: account}
	}
	return begunBy(account, *key, fingerprint, *operation)
}
