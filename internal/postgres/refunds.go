package postgres

import (
	"context"

	"github.com/google/uuid"

	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/postgres/internal/dbsqlc"
)

// Refunds lists the refunds of a payment, newest first. Only an empty list asks whether there is
// such a payment.
func (s *Store) Refunds(ctx context.Context, account, payment uuid.UUID, page checkout.Page) ([]checkout.Refund, error) {
	return read(ctx, s, func(ctx context.Context, q *dbsqlc.Queries) ([]checkout.Refund, error) {
		rows, err := q.ListRefunds(ctx, dbsqlc.ListRefundsParams{AccountID: account, PaymentID: payment, Before: page.Before, PageSize: page.Limit})
		if err != nil {
			return nil, translate("list refunds", err)
		}
		if len(rows) == 0 {
			_, err = q.GetPayment(ctx, dbsqlc.GetPaymentParams{AccountID: account, ID: payment})
		}
		refunds := make([]checkout.Refund, len(rows))
		for i, row := range rows {
			refunds[i] = refundOf(row)
		}
		return refunds, found("payment", err)
	})
}

// RefundToWallet refunds a payment from the wallet, or a part of it, at once.
func (s *Store) RefundToWallet(ctx context.Context, call checkout.Call, wanted checkout.NewRefund) (checkout.Answer, error) {
	return once(ctx, s, call, func(ctx context.Context, tx *transaction) decision[checkout.Refund] {
		paid := tx.lockPaid(ctx, wanted.PaymentID)
		wallet := tx.lockWalletOfPayment(ctx, wanted.PaymentID)
		return func() (checkout.Refund, checkout.Changes, *checkout.Error) {
			return checkout.RefundToWallet(paid(), *wallet, wanted, newID(), tx.Now())
		}
	})
}

// CardRefunds keeps card refunds.
func (s *Store) CardRefunds() checkout.Operations[checkout.NewRefund, checkout.Refund] {
	return operations[checkout.NewRefund, checkout.Refund]{store: s, begin: beginCardRefund, settle: settleCardRefund,
		resume: (*transaction).resumeRefund, find: findRefund, keepID: keepRefundID}
}

func beginCardRefund(wanted checkout.NewRefund) command[checkout.Refund] {
	return func(ctx context.Context, tx *transaction) decision[checkout.Refund] {
		payment := tx.lockPayment(ctx, wanted.PaymentID)
		return func() (checkout.Refund, checkout.Changes, *checkout.Error) {
			return checkout.BeginCardRefund(*payment, wanted, newID(), tx.Now())
		}
	}
}

func settleCardRefund(ctx context.Context, tx *transaction, begun checkout.Refund) (*checkout.Refund, settlement[checkout.Refund]) {
	paid := tx.lockPaid(ctx, begun.PaymentID)
	refund := tx.lockRefund(ctx, begun.ID)
	return refund, func(result checkout.GatewayResult) (checkout.Refund, checkout.Changes, *checkout.Error) {
		return checkout.SettleCardRefund(paid(), *refund, result, tx.Now())
	}
}

func findRefund(ctx context.Context, q *dbsqlc.Queries, id uuid.UUID) (checkout.Taken[checkout.Refund], error) {
	row, err := q.FindRefund(ctx, id)
	return checkout.Taken[checkout.Refund]{Value: refundOf(row.Refund),
		Call: waitingCall(row.Refund.AccountID, row.Key, row.Fingerprint, row.Operation)}, err
}

func keepRefundID(ctx context.Context, q *dbsqlc.Queries, known dbsqlc.KeepChargeIDParams) error {
	return q.KeepRefundID(ctx, dbsqlc.KeepRefundIDParams(known))
}

// lockPaid queues the locks of a payment's order and of the payment. What is refunded is read after
// them, so it is up to date.
func (tx *transaction) lockPaid(ctx context.Context, payment uuid.UUID) func() checkout.PaidOrder {
	order, paid := tx.lockOrderOfPayment(ctx, payment), tx.lockPayment(ctx, payment)
	query := tx.SettledRefunds(ctx, []dbsqlc.SettledRefundsParams{{AccountID: tx.account, PaymentID: payment}})
	refunded := loaded(tx, func() (int64, error) {
		sum, err := one(query)
		return sum, translate("add up refunds", err)
	})
	return func() checkout.PaidOrder {
		return checkout.PaidOrder{Order: *order, Payment: *paid,
			Refunded: checkout.Money{Amount: *refunded, Currency: paid.Amount.Currency}}
	}
}

func (tx *transaction) lockRefund(ctx context.Context, id uuid.UUID) *checkout.Refund {
	query := tx.LockRefund(ctx, []dbsqlc.LockRefundParams{{AccountID: tx.account, ID: id}})
	return loaded(tx, func() (checkout.Refund, error) {
		row, err := one(query)
		return refundOf(row), found("refund", err)
	})
}

// resumeRefund queues the load of the refund that a key in progress began.
func (tx *transaction) resumeRefund(ctx context.Context, claim checkout.Claim) func() (checkout.Refund, error) {
	query := tx.ResumeRefund(ctx, []dbsqlc.ResumeRefundParams{{AccountID: tx.account, Key: claim.Key, Fingerprint: claim.Fingerprint[:]}})
	return func() (checkout.Refund, error) {
		row, err := one(query)
		return refundOf(row), err
	}
}

// settleRefund queues a settled refund; see settlePayment.
func (tx *transaction) settleRefund(ctx context.Context, r checkout.Refund) {
	tx.SettleRefund(ctx, []dbsqlc.SettleRefundParams{{AccountID: tx.account, ID: r.ID,
		Status: string(r.Status), DeclineCode: r.DeclineCode, ProviderID: r.ProviderID, UpdatedAt: r.UpdatedAt}})
}

func (tx *transaction) insertRefund(ctx context.Context, r checkout.Refund) {
	tx.InsertRefund(ctx, []dbsqlc.InsertRefundParams{{ID: r.ID, AccountID: tx.account, PaymentID: r.PaymentID,
		OrderID: r.OrderID, Amount: r.Amount.Amount, Currency: r.Amount.Currency, Status: string(r.Status),
		DeclineCode: r.DeclineCode, ProviderID: r.ProviderID, ChargeID: r.ChargeID,
		CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt}})
}

func refundOf(row dbsqlc.Refund) checkout.Refund {
	return checkout.Refund{
		Operation: checkout.Operation{ID: row.ID, Amount: checkout.Money{Amount: row.Amount, Currency: row.Currency},
			Status: checkout.Status(row.Status), DeclineCode: row.DeclineCode, ProviderID: row.ProviderID,
			CreatedAt: row.CreatedAt, UpdatedAt: row.UpdatedAt},
		PaymentID: row.PaymentID, OrderID: row.OrderID, ChargeID: row.ChargeID}
}
