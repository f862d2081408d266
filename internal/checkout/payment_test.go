package checkout

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// moved is a ledger transaction of one movement.
func moved(kind string, subject uuid.UUID, debit, credit string, amount int64) []LedgerTransaction {
	return []LedgerTransaction{{Kind: kind, Subject: subject, Entries: []LedgerEntry{{debit, usd(amount)}, {credit, usd(-amount)}}}}
}

// What a provider may answer.
var (
	approved = GatewayResult{Outcome: OutcomeApproved, ProviderID: "at-provider"}
	declined = GatewayResult{Outcome: OutcomeDeclined, DeclineCode: "card_declined"}
	noAnswer = GatewayResult{Outcome: OutcomeUnknown}
)

// charging is a card payment of the pending order, at its second attempt.
var charging = Payment{Operation: Operation{ID: oldID, Amount: usd(4900), Status: StatusProcessing, CreatedAt: begun, UpdatedAt: begun},
	OrderID: orderN, CustomerID: buyer, Method: MethodCard, Token: "tok_visa", Refunded: usd(0)}

func TestPayFromWallet_MovesTheMoneyAtOnce(t *testing.T) {
	t.Parallel()
	payment := Payment{Operation: Operation{ID: newID, Amount: usd(4900), Status: StatusSucceeded, CreatedAt: now, UpdatedAt: now},
		OrderID: orderN, CustomerID: buyer, Method: MethodWallet, Refunded: usd(0)}
	for balance, left := range map[int64]int64{4900: 0, 5000: 100} {
		wallet := in(purse, func(w *Wallet) { w.Balance.Amount = balance })
		value, changes, refused := PayFromWallet(pending, wallet, newID, now)
		requireDecided(t, payment, Changes{CreatedPayment: &payment, ChangedOrder: becoming(OrderPaid), ChangedWallet: holding(left),
			Ledger: moved("wallet_payment", newID, "wallet:"+buyer.String(), "sales", 4900),
			Events: []Event{PaymentEvent(payment)}}, value, changes, refused)
	}
}

func TestPayFromWallet_NeedsTheMoney(t *testing.T) {
	t.Parallel()
	for code, balance := range map[string]Money{"insufficient_funds": usd(4899), "currency_mismatch": eur(4900)} {
		value, changes, refused := PayFromWallet(pending, in(purse, func(w *Wallet) { w.Balance = balance }), newID, now)
		requireRefused(t, code, false, value, changes, refused)
	}
}

func TestPayment_IsForAPendingOrder(t *testing.T) {
	t.Parallel()
	rich := in(purse, func(w *Wallet) { w.Balance = usd(MaxBalance) })
	for status, code := range map[OrderStatus]string{OrderPaying: "order_being_paid", OrderPaid: "order_already_paid",
		OrderPartiallyRefunded: "order_already_paid", OrderRefunded: "order_already_paid",
		OrderCancelled: "order_cancelled", OrderExpired: "order_expired"} {
		value, changes, refused := PayFromWallet(inStatus(status), rich, newID, now)
		requireRefused(t, code, status == OrderPaying, value, changes, refused)
		value, changes, refused = BeginCardPayment(inStatus(status), 0, NewPayment{Token: "tok_visa"}, newID, now)
		requireRefused(t, code, status == OrderPaying, value, changes, refused)
	}
}

func TestBeginCardPayment_KeepsTheOrderForTheProvidersAnswer(t *testing.T) {
	t.Parallel()
	payment := in(charging, func(p *Payment) { p.ID, p.CreatedAt, p.UpdatedAt = newID, now, now })
	wanted := NewPayment{OrderID: orderN, Method: MethodCard, Token: "tok_visa"}
	value, changes, refused := BeginCardPayment(pending, MaxDeclines-1, wanted, newID, now)
	requireDecided(t, payment, Changes{CreatedPayment: &payment, ChangedOrder: becoming(OrderPaying)}, value, changes, refused)

	value, changes, refused = BeginCardPayment(pending, MaxDeclines, wanted, newID, now)
	requireRefused(t, "too_many_declines", false, value, changes, refused)

	wanted.supports = func(Money) bool { return false }
	value, changes, refused = BeginCardPayment(pending, 0, wanted, newID, now)
	requireRefused(t, "amount_not_supported", false, value, changes, refused)
}

func TestSettleCardPayment_Approved(t *testing.T) {
	t.Parallel()
	settled := in(charging, func(p *Payment) { p.Status, p.ProviderID, p.UpdatedAt = StatusSucceeded, "at-provider", now })
	value, changes, refused := SettleCardPayment(inStatus(OrderPaying), charging, approved, now)
	requireDecided(t, settled, Changes{SettledPayment: &settled, ChangedOrder: becoming(OrderPaid),
		Ledger: moved("card_payment", oldID, "provider", "sales", 4900), Events: []Event{PaymentEvent(settled)}}, value, changes, refused)
}

// TestSettleCardPayment_Declined: the answer is a final error, and the order may be paid by other
// means.
func TestSettleCardPayment_Declined(t *testing.T) {
	t.Parallel()
	settled := in(charging, func(p *Payment) { p.Status, p.DeclineCode, p.UpdatedAt = StatusDeclined, "card_declined", now })
	value, changes, refused := SettleCardPayment(inStatus(OrderPaying), charging, declined, now)
	require.Equal(t, Declined("card_declined"), refused)
	require.Zero(t, value)
	require.Equal(t, Changes{SettledPayment: &settled, ChangedOrder: becoming(OrderPending), Events: []Event{PaymentEvent(settled)}}, changes)
}

// TestPayment_AsksForOneCharge at all of its attempts.
func TestPayment_AsksForOneCharge(t *testing.T) {
	t.Parallel()
	known := in(charging, func(p *Payment) { p.ProviderID = "at-provider" })
	require.Equal(t, ChargeRequest{IdempotencyKey: "payment-" + oldID.String(), Amount: usd(4900), Reference: orderN.String(),
		Token: "tok_visa", Begun: begun, ProviderID: "at-provider"}, known.charge())
	again := in(known, func(p *Payment) { p.UpdatedAt = now })
	require.Equal(t, known.charge(), again.charge())
}

func TestDeclined_SaysThatNoMoneyMoved(t *testing.T) {
	t.Parallel()
	require.Equal(t, &Error{Kind: KindDeclined, Code: "payment_declined", Message: "The payment was declined (stolen_card). Nothing was charged."},
		Declined("stolen_card"))
	require.Equal(t, &Error{Kind: KindDeclined, Code: "refund_declined", Message: "The provider declined the refund (too_old). Nothing was refunded."},
		RefundDeclined("too_old"))
}
