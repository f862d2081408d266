package postgres

import (
	"context"

	"github.com/google/uuid"

	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/postgres/internal/dbsqlc"
)

// RefundToWallet refunds a payment from the wallet, or a part of it, at once.
func (s *Store) RefundToWallet(ctx context.Context, call checkout.Call, wanted checkout.NewRefund,
	render checkout.Render[checkout.Refund],
) (checkout.Answer, error) {
	return once(ctx, s, call, render, func(ctx context.Context, tx *transaction) (checkout.Refund, error) {
		lockPaid := tx.lockPaid(ctx, wanted.PaymentID)
		lockWallet := tx.lockWalletOfPayment(ctx, wanted.PaymentID)
		if err := tx.load(ctx); err != nil {
			return checkout.Refund{}, err
		}
		paid, err := lockPaid()
		if err != nil {
			return checkout.Refund{}, err
		}
		wallet, err := lockWallet()
		if err != nil {
			return checkout.Refund{}, err
		}
		refund, refused := checkout.StartRefund(newID(), paid.payment, wanted, tx.now)
		if refused != nil {
			return checkout.Refund{}, refused
		}
		if wallet, refused = wallet.Credit(refund.Amount); refused != nil {
			return checkout.Refund{}, refused
		}
		tx.insertRefund(ctx, refund)
		tx.setRefunded(ctx, paid.payment, +refund.Amount.Amount)
		tx.setBalance(ctx, wallet.CustomerID, wallet.Balance)
		return refund, tx.refunded(ctx, paid, refund)
	})
}

// BeginCardRefund is phase one of a card refund. It reserves the amount, so that refunds that are
// processing can't exceed the payment together.
func (s *Store) BeginCardRefund(ctx context.Context, call checkout.Call, wanted checkout.NewRefund,
	render checkout.Render[checkout.Refund],
) (checkout.Begun[checkout.Refund], error) {
	start := func(ctx context.Context, tx *transaction) (checkout.Refund, error) {
		lockPayment := tx.lockPayment(ctx, wanted.PaymentID)
		if err := tx.load(ctx); err != nil {
			return checkout.Refund{}, err
		}
		payment, err := lockPayment()
		if err != nil {
			return checkout.Refund{}, err
		}
		refund, refused := checkout.StartRefund(newID(), payment, wanted, tx.now)
		if refused != nil {
			return checkout.Refund{}, refused
		}
		tx.insertRefund(ctx, refund)
		tx.setRefunded(ctx, payment, +refund.Amount.Amount)
		tx.claimInProgress(ctx, *call.Claim, refund.ID)
		return refund, nil
	}
	return phaseOne(ctx, s, call, render, start, (*transaction).resumeRefund)
}

// SettleCardRefund is phase three of a card refund. A declined one releases its reserved amount.
func (s *Store) SettleCardRefund(ctx context.Context, call checkout.Call, begun checkout.Refund, result checkout.GatewayResult,
	render checkout.Render[checkout.Refund],
) (checkout.Answer, error) {
	return phaseThree(ctx, s, call, render, settleRefund(begun, result, fenceRefund(begun)))
}

// settleRefund settles a refund unless the fence, which sees the locked refund, returns an error.
func settleRefund(begun checkout.Refund, result checkout.GatewayResult, fence func(checkout.Refund) error) command[checkout.Refund] {
	return func(ctx context.Context, tx *transaction) (checkout.Refund, error) {
		lockPaid := tx.lockPaid(ctx, begun.PaymentID)
		lockRefund := tx.lockRefund(ctx, begun.ID)
		if err := tx.load(ctx); err != nil {
			return checkout.Refund{}, err
		}
		paid, err := lockPaid()
		if err != nil {
			return checkout.Refund{}, err
		}
		refund, err := lockRefund()
		if err != nil {
			return checkout.Refund{}, err
		}
		if err := fence(refund); err != nil {
			return checkout.Refund{}, err
		}
		refund = refund.Settle(result, tx.now)
		tx.settleRefund(ctx, refund)
		if refund.Status == checkout.StatusDeclined {
			return tx.refundDeclined(ctx, paid.payment, refund)
		}
		return refund, tx.refunded(ctx, paid, refund)
	}
}

// refundDeclined queues what follows from a declined refund, and returns the error that is its
// answer.
func (tx *transaction) refundDeclined(ctx context.Context, payment checkout.Payment, refund checkout.Refund) (checkout.Refund, error) {
	tx.setRefunded(ctx, payment, -refund.Amount.Amount)
	if err := tx.publish(ctx, checkout.RefundEvent(refund)); err != nil {
		return checkout.Refund{}, err
	}
	return checkout.Refund{}, checkout.RefundDeclined(refund.DeclineCode)
}

// paidOrder is a payment with its order, both locked, and how much of it is refunded, without
// refunds that are processing.
type paidOrder struct {
	order    checkout.Order
	payment  checkout.Payment
	refunded checkout.Money
}

// lockPaid queues the locks. The sum is read after them, so it is up to date.
func (tx *transaction) lockPaid(ctx context.Context, payment uuid.UUID) later[paidOrder] {
	lockOrder, lockPayment := tx.lockOrderOfPayment(ctx, payment), tx.lockPayment(ctx, payment)
	sum := tx.SettledRefunds(ctx, []dbsqlc.SettledRefundsParams{{AccountID: tx.account, PaymentID: payment}})
	return func() (paid paidOrder, err error) {
		if paid.order, err = lockOrder(); err != nil {
			return paid, err
		}
		if paid.payment, err = lockPayment(); err != nil {
			return paid, err
		}
		paid.refunded.Currency = paid.payment.Amount.Currency
		paid.refunded.Amount, err = one(sum)
		return paid, translate("add up refunds", err)
	}
}

// refunded queues what follows from a succeeded refund.
func (tx *transaction) refunded(ctx context.Context, paid paidOrder, refund checkout.Refund) error {
	tx.post(ctx, refund.Ledger(newID(), paid.payment))
	after := checkout.Money{Amount: paid.refunded.Amount + refund.Amount.Amount, Currency: paid.refunded.Currency}
	if err := tx.setStatus(ctx, paid.order, paid.order.AfterRefund(after)); err != nil {
		return err
	}
	return tx.publish(ctx, checkout.RefundEvent(refund))
}

func (tx *transaction) lockRefund(ctx context.Context, id uuid.UUID) later[checkout.Refund] {
	query := tx.LockRefund(ctx, []dbsqlc.LockRefundParams{{AccountID: tx.account, ID: id}})
	return func() (checkout.Refund, error) {
		row, err := one(query)
		return refundOf(row), found("refund", err)
	}
}

// resumeRefund queues the next attempt of the refund that a key in progress began.
func (tx *transaction) resumeRefund(ctx context.Context, claim checkout.Claim) later[checkout.Refund] {
	query := tx.ResumeRefund(ctx, []dbsqlc.ResumeRefundParams{{AccountID: tx.account, Key: claim.Key, Fingerprint: claim.Fingerprint[:]}})
	return func() (checkout.Refund, error) {
		row, err := one(query)
		return refundOf(row), err
	}
}

// settleRefund queues a settled refund, which is locked. The caller has checked the fence: the
// condition in the statement only repeats it.
func (tx *transaction) settleRefund(ctx context.Context, r checkout.Refund) {
	tx.SettleRefund(ctx, []dbsqlc.SettleRefundParams{{AccountID: tx.account, ID: r.ID, Attempt: r.Attempt,
		Status: string(r.Status), DeclineCode: r.DeclineCode, ProviderID: r.ProviderID, UpdatedAt: r.UpdatedAt}})
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
