package checkout

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// paid is the order, paid by card, with 900 cents refunded, and another 1000 reserved by a refund
// that is processing.
var paid = PaidOrder{Order: inStatus(OrderPartiallyRefunded), Refunded: usd(900), Payment: in(charging, func(p *Payment) {
	p.Status, p.ProviderID, p.Refunded = StatusSucceeded, "charge", usd(1900)
})}

// byWallet is the same with a wallet payment.
var byWallet = in(paid, func(p *PaidOrder) { p.Payment.Method, p.Payment.Token, p.Payment.ProviderID = MethodWallet, "", "" })

// refunding is the refund that is processing.
var refunding = Refund{Operation: Operation{ID: oldID, Amount: usd(1000), Status: StatusProcessing, CreatedAt: begun, UpdatedAt: begun},
	PaymentID: oldID, OrderID: orderN, ChargeID: "charge"}

// withRefunded is the payment as a decision leaves it.
func withRefunded(p Payment, amount int64) *Payment {
	return new(in(p, func(p *Payment) { p.Refunded, p.UpdatedAt = usd(amount), now }))
}

func part(amount Money) NewRefund { return NewRefund{PaymentID: oldID, Amount: &amount} }

// refundOf is a new refund.
func refundOf(amount int64, status Status, charge string) Refund {
	return Refund{Operation: Operation{ID: newID, Amount: usd(amount), Status: status, CreatedAt: now, UpdatedAt: now},
		PaymentID: oldID, OrderID: orderN, ChargeID: charge}
}

func TestRefundToWallet_MovesTheMoneyAtOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		wanted NewRefund
		amount int64
	}{{part(usd(500)), 500}, {NewRefund{PaymentID: oldID}, 3000}} {
		refund := refundOf(c.amount, StatusSucceeded, "")
		value, changes, refused := RefundToWallet(byWallet, purse, c.wanted, newID, now)
		requireDecided(t, refund, Changes{CreatedRefund: &refund, RefundedPayment: withRefunded(byWallet.Payment, 1900+c.amount),
			ChangedOrder: becoming(OrderPartiallyRefunded), ChangedWallet: holding(1000 + c.amount),
			Ledger: moved("wallet_refund", newID, "sales", "wallet:"+buyer.String(), c.amount),
			Events: []Event{RefundEvent(refund)}}, value, changes, refused)
	}
}

func TestRefundToWallet_NeedsAWalletThatCanHoldIt(t *testing.T) {
	t.Parallel()
	for code, balance := range map[string]Money{"balance_too_large": usd(MaxBalance), "currency_mismatch": eur(1)} {
		value, changes, refused := RefundToWallet(byWallet, in(purse, func(w *Wallet) { w.Balance = balance }), part(usd(1)), newID, now)
		requireRefused(t, code, false, value, changes, refused)
	}
}

func TestBeginCardRefund_ReservesItsAmount(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		wanted NewRefund
		amount int64
	}{{part(usd(500)), 500}, {part(usd(3000)), 3000}, {NewRefund{PaymentID: oldID}, 3000}} {
		refund := refundOf(c.amount, StatusProcessing, "charge")
		value, changes, refused := BeginCardRefund(paid.Payment, c.wanted, newID, now)
		requireDecided(t, refund, Changes{CreatedRefund: &refund, RefundedPayment: withRefunded(paid.Payment, 1900+c.amount)},
			value, changes, refused)
	}
}

func TestRefund_NeverExceedsThePayment(t *testing.T) {
	t.Parallel()
	all := func(p *Payment) { p.Refunded = usd(4900) }
	for _, c := range []struct {
		change    func(*Payment)
		wanted    NewRefund
		code      string
		retryable bool
	}{
		{func(*Payment) {}, part(usd(3001)), "refund_exceeds_payment", false},
		{func(*Payment) {}, part(eur(1)), "currency_mismatch", false},
		{all, part(usd(1)), "refund_exceeds_payment", false},
		{all, NewRefund{PaymentID: oldID}, "refund_exceeds_payment", false},
		{func(p *Payment) { p.Status = StatusDeclined }, part(usd(1)), "payment_not_succeeded", false},
		{func(p *Payment) { p.Status = StatusProcessing }, part(usd(1)), "payment_processing", true},
	} {
		value, changes, refused := BeginCardRefund(in(paid.Payment, c.change), c.wanted, newID, now)
		requireRefused(t, c.code, c.retryable, value, changes, refused)
		wallet := in(byWallet, func(p *PaidOrder) { c.change(&p.Payment) })
		value, changes, refused = RefundToWallet(wallet, purse, c.wanted, newID, now)
		requireRefused(t, c.code, c.retryable, value, changes, refused)
	}
}

// TestSettleCardRefund_Approved: the order is refunded once all of it is, without what is reserved.
func TestSettleCardRefund_Approved(t *testing.T) {
	t.Parallel()
	settled := in(refunding, func(r *Refund) { r.Status, r.ProviderID, r.UpdatedAt = StatusSucceeded, "at-provider", now })
	for before, status := range map[int64]OrderStatus{0: OrderPartiallyRefunded, 3899: OrderPartiallyRefunded, 3900: OrderRefunded} {
		paid := in(paid, func(p *PaidOrder) { p.Refunded = usd(before) })
		value, changes, refused := SettleCardRefund(paid, refunding, approved, now)
		requireDecided(t, settled, Changes{SettledRefund: &settled, ChangedOrder: becoming(status),
			Ledger: moved("card_refund", oldID, "sales", "provider", 1000), Events: []Event{RefundEvent(settled)}}, value, changes, refused)
	}
}

// TestSettleCardRefund_Declined: the answer is a final error, and the reserved amount may be
// refunded otherwise.
func TestSettleCardRefund_Declined(t *testing.T) {
	t.Parallel()
	settled := in(refunding, func(r *Refund) { r.Status, r.DeclineCode, r.UpdatedAt = StatusDeclined, "card_declined", now })
	value, changes, refused := SettleCardRefund(paid, refunding, declined, now)
	require.Equal(t, RefundDeclined("card_declined"), refused)
	require.Zero(t, value)
	require.Equal(t, Changes{SettledRefund: &settled, RefundedPayment: withRefunded(paid.Payment, 900), Events: []Event{RefundEvent(settled)}}, changes)
}

// TestRefund_AsksForOneRefund at all of its attempts.
func TestRefund_AsksForOneRefund(t *testing.T) {
	t.Parallel()
	known := in(refunding, func(r *Refund) { r.ProviderID = "at-provider" })
	require.Equal(t, RefundRequest{IdempotencyKey: "refund-" + oldID.String(), ChargeID: "charge", Amount: usd(1000),
		Reference: oldID.String(), ProviderID: "at-provider"}, known.instruction())
	again := in(known, func(r *Refund) { r.UpdatedAt = now })
	require.Equal(t, known.instruction(), again.instruction())
}
