package postgres

import (
	"context"

	"github.com/google/uuid"

	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/postgres/internal/dbsqlc"
)

// RefundToWallet gives back a payment from the wallet, or a part of it, at once.
func (s *Store) RefundToWallet(ctx context.Context, call checkout.Call, wanted checkout.NewRefund,
	render checkout.Render[checkout.Refund],
) (checkout.Reply, error) {
	return once(ctx, s, call, render, func(ctx context.Context, tx *transaction) (checkout.Refund, error) {
		paid := tx.lockPaid(ctx, wanted.PaymentID)
		lockWallet := tx.LockWalletOfPayment(ctx, []dbsqlc.LockWalletOfPaymentParams{{AccountID: tx.account, PaymentID: wanted.PaymentID}})
		if err := tx.load(ctx); err != nil {
			return checkout.Refund{}, err
		}
		order, payment, settled, err := paid.read()
		if err != nil {
			return checkout.Refund{}, err
		}
		row, err := one(lockWallet)
		if err != nil {
			return checkout.Refund{}, found("customer", err)
		}
		refund, refused := checkout.StartRefund(newID(), payment, wanted, tx.now)
		if refused != nil {
			return checkout.Refund{}, refused
		}
		wallet, refused := walletOf(row).Credit(refund.Amount)
		if refused != nil {
			return checkout.Refund{}, refused
		}
		tx.insertRefund(ctx, refund)
		tx.setRefunded(ctx, payment, +refund.Amount.Amount)
		tx.setBalance(ctx, wallet.CustomerID, wallet.Balance)
		return refund, tx.refunded(ctx, order, payment, refund, settled)
	})
}

// BeginCardRefund is phase one of a card refund. It reserves the amount, so
// that refunds that are processing can't exceed the payment together.
func (s *Store) BeginCardRefund(ctx context.Context, call checkout.Call, wanted checkout.NewRefund,
	render checkout.Render[checkout.Refund],
) (checkout.Begun[checkout.Refund], error) {
	start := func(ctx context.Context, tx *transaction) (checkout.Refund, error) {
		lock := tx.LockPayment(ctx, []dbsqlc.LockPaymentParams{{AccountID: tx.account, ID: wanted.PaymentID}})
		if err := tx.load(ctx); err != nil {
			return checkout.Refund{}, err
		}
		row, err := one(lock)
		if err != nil {
			return checkout.Refund{}, found("payment", err)
		}
		payment := paymentOf(row)
		refund, refused := checkout.StartRefund(newID(), payment, wanted, tx.now)
		if refused != nil {
			return checkout.Refund{}, refused
		}
		tx.insertRefund(ctx, refund)
		tx.setRefunded(ctx, payment, +refund.Amount.Amount)
		tx.pointKey(ctx, call, refund.ID)
		return refund, nil
	}
	resume := func(ctx context.Context, tx *transaction) later[checkout.Refund] {
		query := tx.ResumeRefund(ctx, []dbsqlc.ResumeRefundParams{{AccountID: tx.account, Key: call.Claim.Key,
			Fingerprint: call.Claim.Fingerprint[:]}})
		return func() (checkout.Refund, error) {
			row, err := one(query)
			return refundOf(row), err
		}
	}
	return phaseOne(ctx, s, call, render, start, resume)
}

// SettleCardRefund is phase three of a card refund. A declined one gives its
// reserved amount back.
func (s *Store) SettleCardRefund(ctx context.Context, call checkout.Call, begun checkout.Refund, result checkout.GatewayResult,
	render checkout.Render[checkout.Refund],
) (checkout.Reply, error) {
	return phaseThree(ctx, s, call, render, settleRefund(begun, result, func(r checkout.Refund) error {
		if r.Status != checkout.StatusProcessing || r.Attempt != begun.Attempt {
			return errFenceLost
		}
		return nil
	}))
}

// settleRefund settles a refund unless its fence, which looks at the refund when
// it is locked, gives an error.
func settleRefund(begun checkout.Refund, result checkout.GatewayResult, fence func(checkout.Refund) error) command[checkout.Refund] {
	return func(ctx context.Context, tx *transaction) (checkout.Refund, error) {
		paid := tx.lockPaid(ctx, begun.PaymentID)
		lockRefund := tx.LockRefund(ctx, []dbsqlc.LockRefundParams{{AccountID: tx.account, ID: begun.ID}})
		if err := tx.load(ctx); err != nil {
			return checkout.Refund{}, err
		}
		order, payment, settled, err := paid.read()
		if err != nil {
			return checkout.Refund{}, err
		}
		row, err := one(lockRefund)
		if err != nil {
			return checkout.Refund{}, found("refund", err)
		}
		refund := refundOf(row)
		if err := fence(refund); err != nil {
			return checkout.Refund{}, err
		}
		refund = refund.Settle(result, tx.now)
		tx.SettleRefund(ctx, []dbsqlc.SettleRefundParams{{AccountID: tx.account, ID: refund.ID, Attempt: refund.Attempt,
			Status: string(refund.Status), DeclineCode: refund.DeclineCode, ProviderID: refund.ProviderID, UpdatedAt: refund.UpdatedAt}})
		if refund.Status == checkout.StatusDeclined {
			return tx.refundDeclined(ctx, payment, refund)
		}
		return refund, tx.refunded(ctx, order, payment, refund, settled)
	}
}

// refundDeclined queues what follows from a declined refund, and gives the error
// that is its reply.
func (tx *transaction) refundDeclined(ctx context.Context, payment checkout.Payment, refund checkout.Refund) (checkout.Refund, error) {
	tx.setRefunded(ctx, payment, -refund.Amount.Amount)
	if err := tx.publish(ctx, checkout.RefundEvent(refund)); err != nil {
		return checkout.Refund{}, err
	}
	return checkout.Refund{}, checkout.RefundDeclined(refund.DeclineCode)
}

// paidOrder is a payment with its order, both locked, and how much of it has
// been refunded.
type paidOrder struct {
	order   rowOf[dbsqlc.LockOrderOfPaymentRow]
	payment rowOf[dbsqlc.Payment]
	settled rowOf[int64]
}

// lockPaid queues the locks. The sum is read after them, so it is up to date.
func (tx *transaction) lockPaid(ctx context.Context, payment uuid.UUID) paidOrder {
	return paidOrder{
		order:   tx.LockOrderOfPayment(ctx, []dbsqlc.LockOrderOfPaymentParams{{AccountID: tx.account, PaymentID: payment}}),
		payment: tx.LockPayment(ctx, []dbsqlc.LockPaymentParams{{AccountID: tx.account, ID: payment}}),
		settled: tx.SettledRefunds(ctx, []dbsqlc.SettledRefundsParams{{AccountID: tx.account, PaymentID: payment}}),
	}
}

// read gives what was locked; settled excludes refunds that are processing.
func (p paidOrder) read() (order checkout.Order, payment checkout.Payment, settled checkout.Money, err error) {
	orderRow, err := one(p.order)
	if err != nil {
		return order, payment, settled, found("payment", err)
	}
	if order, err = orderOf(orderRow.Order, orderRow.Items); err != nil {
		return order, payment, settled, err
	}
	row, err := one(p.payment)
	if err != nil {
		return order, payment, settled, found("payment", err)
	}
	sum, err := one(p.settled)
	return order, paymentOf(row), checkout.Money{Amount: sum, Currency: row.Currency}, translate("add up refunds", err)
}

// refunded queues what follows from a succeeded refund.
func (tx *transaction) refunded(ctx context.Context, order checkout.Order,
	payment checkout.Payment, refund checkout.Refund, before checkout.Money,
) error {
	tx.post(ctx, refund.Ledger(newID(), payment))
	after := checkout.Money{Amount: before.Amount + refund.Amount.Amount, Currency: before.Currency}
	if err := tx.setStatus(ctx, order, order.AfterRefund(after)); err != nil {
		return err
	}
	return tx.publish(ctx, checkout.RefundEvent(refund))
}

// setRefunded queues a change of how much of a payment is refunded or being refunded.
func (tx *transaction) setRefunded(ctx context.Context, payment checkout.Payment, change int64) {
	tx.SetRefunded(ctx, []dbsqlc.SetRefundedParams{{AccountID: tx.account, ID: payment.ID,
		Refunded: payment.Refunded.Amount + change, UpdatedAt: tx.now}})
}

func (tx *transaction) insertRefund(ctx context.Context, r checkout.Refund) {
	tx.InsertRefund(ctx, []dbsqlc.InsertRefundParams{{ID: r.ID, AccountID: tx.account, PaymentID: r.PaymentID,
		OrderID: r.OrderID, Amount: r.Amount.Amount, Currency: r.Amount.Currency, Status: string(r.Status),
		DeclineCode: r.DeclineCode, ProviderID: r.ProviderID, ChargeID: r.ChargeID, Attempt: r.Attempt,
		CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt}})
}

func refundOf(row dbsqlc.Refund) checkout.Refund {
	return checkout.Refund{ID: row.ID, PaymentID: row.PaymentID, OrderID: row.OrderID,
		Amount: checkout.Money{Amount: row.Amount, Currency: row.Currency}, Status: checkout.Status(row.Status),
		DeclineCode: row.DeclineCode, ProviderID: row.ProviderID, ChargeID: row.ChargeID, Attempt: row.Attempt,
		CreatedAt: row.CreatedAt, UpdatedAt: row.UpdatedAt}
}
