package postgres

import (
	"context"

	"github.com/google/uuid"

	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/postgres/internal/dbsqlc"
)

// Payment returns one payment.
func (s *Store) Payment(ctx context.Context, account, id uuid.UUID) (checkout.Payment, error) {
	return read(ctx, s, func(ctx context.Context, q *dbsqlc.Queries) (checkout.Payment, error) {
		row, err := q.GetPayment(ctx, dbsqlc.GetPaymentParams{AccountID: account, ID: id})
		return paymentOf(row), found("payment", err)
	})
}

// Payments lists the payments of an order, newest first. Only an empty list asks whether there is
// such an order.
func (s *Store) Payments(ctx context.Context, account, order uuid.UUID, page checkout.Page) ([]checkout.Payment, error) {
	return read(ctx, s, func(ctx context.Context, q *dbsqlc.Queries) ([]checkout.Payment, error) {
		rows, err := q.ListPayments(ctx, dbsqlc.ListPaymentsParams{AccountID: account, OrderID: order, Before: page.Before, PageSize: page.Limit})
		if err != nil {
			return nil, translate("list payments", err)
		}
		if len(rows) == 0 {
			_, err = q.GetOrder(ctx, dbsqlc.GetOrderParams{AccountID: account, ID: order})
		}
		payments := make([]checkout.Payment, len(rows))
		for i, row := range rows {
			payments[i] = paymentOf(row)
		}
		return payments, found("order", err)
	})
}

// PayFromWallet pays an order at once.
func (s *Store) PayFromWallet(ctx context.Context, call checkout.Call, wanted checkout.NewPayment) (checkout.Answer, error) {
	return once(ctx, s, call, func(ctx context.Context, tx *transaction) decision[checkout.Payment] {
		order := tx.lockOrder(ctx, wanted.OrderID)
		wallet := tx.lockWalletOfOrder(ctx, wanted.OrderID)
		return func() (checkout.Payment, checkout.Changes, *checkout.Error) {
			return checkout.PayFromWallet(*order, *wallet, newID(), tx.Now())
		}
	})
}

// CardPayments keeps card payments.
func (s *Store) CardPayments() checkout.Operations[checkout.NewPayment, checkout.Payment] {
	return operations[checkout.NewPayment, checkout.Payment]{store: s, begin: beginCardPayment, settle: settleCardPayment,
		resume: (*transaction).resumePayment, find: findPayment, keepID: keepChargeID}
}

func beginCardPayment(wanted checkout.NewPayment) command[checkout.Payment] {
	return func(ctx context.Context, tx *transaction) decision[checkout.Payment] {
		order := tx.lockOrder(ctx, wanted.OrderID)
		declines := tx.countDeclines(ctx, wanted.OrderID)
		return func() (checkout.Payment, checkout.Changes, *checkout.Error) {
			return checkout.BeginCardPayment(*order, *declines, wanted, newID(), tx.Now())
		}
	}
}

func settleCardPayment(ctx context.Context, tx *transaction, begun checkout.Payment) (*checkout.Payment, settlement[checkout.Payment]) {
	order := tx.lockOrder(ctx, begun.OrderID)
	payment := tx.lockPayment(ctx, begun.ID)
	return payment, func(result checkout.GatewayResult) (checkout.Payment, checkout.Changes, *checkout.Error) {
		return checkout.SettleCardPayment(*order, *payment, result, tx.Now())
	}
}

func findPayment(ctx context.Context, q *dbsqlc.Queries, id uuid.UUID) (checkout.Taken[checkout.Payment], error) {
	row, err := q.FindPayment(ctx, id)
	return checkout.Taken[checkout.Payment]{Value: paymentOf(row.Payment),
		Call: waitingCall(row.Payment.AccountID, row.Key, row.Fingerprint, row.Operation)}, err
}

func keepChargeID(ctx context.Context, q *dbsqlc.Queries, known dbsqlc.KeepChargeIDParams) error {
	return q.KeepChargeID(ctx, known)
}

func (tx *transaction) countDeclines(ctx context.Context, order uuid.UUID) *int64 {
	query := tx.CountDeclines(ctx, []dbsqlc.CountDeclinesParams{{AccountID: tx.account, OrderID: order}})
	return loaded(tx, func() (int64, error) {
		declines, err := one(query)
		return declines, translate("count the declines", err)
	})
}

func (tx *transaction) lockPayment(ctx context.Context, id uuid.UUID) *checkout.Payment {
	query := tx.LockPayment(ctx, []dbsqlc.LockPaymentParams{{AccountID: tx.account, ID: id}})
	return loaded(tx, func() (checkout.Payment, error) {
		row, err := one(query)
		return paymentOf(row), found("payment", err)
	})
}

// resumePayment queues the load of the payment that a key in progress began.
func (tx *transaction) resumePayment(ctx context.Context, claim checkout.Claim) func() (checkout.Payment, error) {
	query := tx.ResumePayment(ctx, []dbsqlc.ResumePaymentParams{{AccountID: tx.account, Key: claim.Key, Fingerprint: claim.Fingerprint[:]}})
	return func() (checkout.Payment, error) {
		row, err := one(query)
		return paymentOf(row), err
	}
}

// settlePayment queues a settled payment, which is locked and was processing.
func (tx *transaction) settlePayment(ctx context.Context, p checkout.Payment) {
	tx.SettlePayment(ctx, []dbsqlc.SettlePaymentParams{{AccountID: tx.account, ID: p.ID,
		Status: string(p.Status), DeclineCode: p.DeclineCode, ProviderID: p.ProviderID, UpdatedAt: p.UpdatedAt}})
}

// setRefunded queues how much of a payment is refunded or being refunded.
func (tx *transaction) setRefunded(ctx context.Context, p checkout.Payment) {
	tx.SetRefunded(ctx, []dbsqlc.SetRefundedParams{{AccountID: tx.account, ID: p.ID,
		Refunded: p.Refunded.Amount, UpdatedAt: p.UpdatedAt}})
}

func (tx *transaction) insertPayment(ctx context.Context, p checkout.Payment) {
	tx.InsertPayment(ctx, []dbsqlc.InsertPaymentParams{{ID: p.ID, AccountID: tx.account, OrderID: p.OrderID,
		CustomerID: p.CustomerID, Method: string(p.Method), Token: p.Token, Amount: p.Amount.Amount,
		Currency: p.Amount.Currency, Refunded: p.Refunded.Amount, Status: string(p.Status), DeclineCode: p.DeclineCode,
		ProviderID: p.ProviderID, CreatedAt: p.CreatedAt, UpdatedAt: p.UpdatedAt}})
}

func paymentOf(row dbsqlc.Payment) checkout.Payment {
	return checkout.Payment{
		Operation: checkout.Operation{ID: row.ID, Amount: checkout.Money{Amount: row.Amount, Currency: row.Currency},
			Status: checkout.Status(row.Status), DeclineCode: row.DeclineCode, ProviderID: row.ProviderID,
			CreatedAt: row.CreatedAt, UpdatedAt: row.UpdatedAt},
		OrderID: row.OrderID, CustomerID: row.CustomerID, Method: checkout.Method(row.Method), Token: row.Token,
		Refunded: checkout.Money{Amount: row.Refunded, Currency: row.Currency}}
}
