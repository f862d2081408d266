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

// PayFromWallet pays an order at once.
func (s *Store) PayFromWallet(ctx context.Context, call checkout.Call, wanted checkout.NewPayment,
	render checkout.Render[checkout.Payment],
) (checkout.Answer, error) {
	return once(ctx, s, call, render, func(ctx context.Context, tx *transaction) (checkout.Payment, error) {
		lockOrder := tx.lockOrder(ctx, wanted.OrderID)
		lockWallet := tx.lockWalletOfOrder(ctx, wanted.OrderID)
		if err := tx.load(ctx); err != nil {
			return checkout.Payment{}, err
		}
		order, err := lockOrder()
		if err != nil {
			return checkout.Payment{}, err
		}
		wallet, err := lockWallet()
		if err != nil {
			return checkout.Payment{}, err
		}
		payment, refused := checkout.StartPayment(newID(), order, 0, wanted, tx.now) // the wallet asks no provider
		if refused != nil {
			return checkout.Payment{}, refused
		}
		if wallet, refused = wallet.Debit(payment.Amount); refused != nil {
			return checkout.Payment{}, refused
		}
		tx.insertPayment(ctx, payment)
		tx.setBalance(ctx, wallet.CustomerID, wallet.Balance)
		return payment, tx.paid(ctx, order, payment)
	})
}

// BeginCardPayment is phase one of a card payment. See [checkout.Store].
func (s *Store) BeginCardPayment(ctx context.Context, call checkout.Call, wanted checkout.NewPayment,
	render checkout.Render[checkout.Payment],
) (checkout.Begun[checkout.Payment], error) {
	start := func(ctx context.Context, tx *transaction) (checkout.Payment, error) {
		lockOrder := tx.lockOrder(ctx, wanted.OrderID)
		countDeclines := tx.CountDeclines(ctx, []dbsqlc.CountDeclinesParams{{AccountID: tx.account, OrderID: wanted.OrderID}})
		if err := tx.load(ctx); err != nil {
			return checkout.Payment{}, err
		}
		order, err := lockOrder()
		if err != nil {
			return checkout.Payment{}, err
		}
		declines, err := one(countDeclines)
		if err != nil {
			return checkout.Payment{}, translate("count the declines", err)
		}
		payment, refused := checkout.StartPayment(newID(), order, declines, wanted, tx.now)
		if refused != nil {
			return checkout.Payment{}, refused
		}
		tx.insertPayment(ctx, payment)
		tx.claimInProgress(ctx, *call.Claim, payment.ID)
		return payment, tx.setStatus(ctx, order, checkout.OrderPaying)
	}
	return phaseOne(ctx, s, call, render, start, (*transaction).resumePayment)
}

// SettleCardPayment is phase three of a card payment. See [checkout.Store].
func (s *Store) SettleCardPayment(ctx context.Context, call checkout.Call, begun checkout.Payment, result checkout.GatewayResult,
	render checkout.Render[checkout.Payment],
) (checkout.Answer, error) {
	return phaseThree(ctx, s, call, render, settlePayment(begun, result, fencePayment(begun)))
}

// settlePayment settles a payment unless the fence, which sees the locked payment, returns an
// error.
func settlePayment(begun checkout.Payment, result checkout.GatewayResult, fence func(checkout.Payment) error) command[checkout.Payment] {
	return func(ctx context.Context, tx *transaction) (checkout.Payment, error) {
		lockOrder := tx.lockOrder(ctx, begun.OrderID)
		lockPayment := tx.lockPayment(ctx, begun.ID)
		if err := tx.load(ctx); err != nil {
			return checkout.Payment{}, err
		}
		order, err := lockOrder()
		if err != nil {
			return checkout.Payment{}, err
		}
		payment, err := lockPayment()
		if err != nil {
			return checkout.Payment{}, err
		}
		if err := fence(payment); err != nil {
			return checkout.Payment{}, err
		}
		return tx.settlePayment(ctx, order, payment.Settle(result, tx.now))
	}
}

// settlePayment queues a settled payment and what follows from it. The payment is locked, and the
// caller has checked the fence: the condition in the statement only repeats it.
func (tx *transaction) settlePayment(ctx context.Context, order checkout.Order, payment checkout.Payment) (checkout.Payment, error) {
	tx.SettlePayment(ctx, []dbsqlc.SettlePaymentParams{{AccountID: tx.account, ID: payment.ID, Attempt: payment.Attempt,
		Status: string(payment.Status), DeclineCode: payment.DeclineCode, ProviderID: payment.ProviderID, UpdatedAt: payment.UpdatedAt}})
	if payment.Status == checkout.StatusDeclined {
		return tx.declined(ctx, order, payment)
	}
	return payment, tx.paid(ctx, order, payment)
}

// paid queues what follows from a succeeded payment.
func (tx *transaction) paid(ctx context.Context, order checkout.Order, payment checkout.Payment) error {
	tx.post(ctx, payment.Ledger(newID()))
	if err := tx.setStatus(ctx, order, checkout.OrderPaid); err != nil {
		return err
	}
	return tx.publish(ctx, checkout.PaymentEvent(payment))
}

// declined queues what follows from a declined payment, and returns the error that is its answer.
// The order may be paid by other means.
func (tx *transaction) declined(ctx context.Context, order checkout.Order, payment checkout.Payment) (checkout.Payment, error) {
	if err := tx.setStatus(ctx, order, checkout.OrderPending); err != nil {
		return checkout.Payment{}, err
	}
	if err := tx.publish(ctx, checkout.PaymentEvent(payment)); err != nil {
		return checkout.Payment{}, err
	}
	return checkout.Payment{}, checkout.Declined(payment.DeclineCode)
}

func (tx *transaction) lockPayment(ctx context.Context, id uuid.UUID) later[checkout.Payment] {
	query := tx.LockPayment(ctx, []dbsqlc.LockPaymentParams{{AccountID: tx.account, ID: id}})
	return func() (checkout.Payment, error) {
		row, err := one(query)
		return paymentOf(row), found("payment", err)
	}
}

// resumePayment queues the next attempt of the payment that a key in progress began.
func (tx *transaction) resumePayment(ctx context.Context, claim checkout.Claim) later[checkout.Payment] {
	query := tx.ResumePayment(ctx, []dbsqlc.ResumePaymentParams{{AccountID: tx.account, Key: claim.Key, Fingerprint: claim.Fingerprint[:]}})
	return func() (checkout.Payment, error) {
		row, err := one(query)
		return paymentOf(row), err
	}
}

func (tx *transaction) insertPayment(ctx context.Context, p checkout.Payment) {
	tx.InsertPayment(ctx, []dbsqlc.InsertPaymentParams{{ID: p.ID, AccountID: tx.account, OrderID: p.OrderID,
		CustomerID: p.CustomerID, Method: string(p.Method), Token: p.Token, Amount: p.Amount.Amount,
		Currency: p.Amount.Currency, Refunded: p.Refunded.Amount, Status: string(p.Status), DeclineCode: p.DeclineCode,
		ProviderID: p.ProviderID, Attempt: p.Attempt, CreatedAt: p.CreatedAt, UpdatedAt: p.UpdatedAt}})
}

func paymentOf(row dbsqlc.Payment) checkout.Payment {
	return checkout.Payment{ID: row.ID, OrderID: row.OrderID, CustomerID: row.CustomerID, Method: checkout.Method(row.Method),
		Token: row.Token, Amount: checkout.Money{Amount: row.Amount, Currency: row.Currency},
		Refunded: checkout.Money{Amount: row.Refunded, Currency: row.Currency}, Status: checkout.Status(row.Status),
		DeclineCode: row.DeclineCode, ProviderID: row.ProviderID, Attempt: row.Attempt,
		CreatedAt: row.CreatedAt, UpdatedAt: row.UpdatedAt}
}
