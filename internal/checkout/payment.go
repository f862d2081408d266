package checkout

import (
	"time"

	"github.com/google/uuid"
)

// Method is how an order is paid.
type Method string

// The payment methods.
const (
	MethodCard   Method = "card"
	MethodWallet Method = "wallet"
)

// Payment pays one order in full.
type Payment struct {
	Operation
	OrderID    uuid.UUID
	CustomerID uuid.UUID
	Method     Method
	Token      string // the provider's token of the card; never a card number
	Refunded   Money  // includes refunds that are still processing
}

// NewPayment asks for the payment of an order.
type NewPayment struct {
	OrderID  uuid.UUID
	Method   Method
	Token    string // for MethodCard
	supports supported
}

// PayFromWallet decides the payment of an order from its customer's wallet, both locked. It
// succeeds at once.
func PayFromWallet(order Order, wallet Wallet, id uuid.UUID, now time.Time) (Payment, Changes, *Error) {
	if refused := order.checkPayable(); refused != nil {
		return Payment{}, Changes{}, refused
	}
	payment := newPayment(order, MethodWallet, StatusSucceeded, id, now)
	wallet, refused := wallet.debit(payment.Amount, now)
	if refused != nil {
		return Payment{}, Changes{}, refused
	}
	changes := payment.succeeded(order)
	changes.CreatedPayment, changes.ChangedWallet = &payment, &wallet
	return payment, changes, nil
}

// checkPayable returns why a payment of the order may not start.
func (o Order) checkPayable() *Error {
	switch o.Status {
	case OrderPending:
		return nil
	case OrderPaying:
		return payingNow(o.UpdatedAt)
	case OrderCancelled, OrderExpired:
		return conflict("order_"+string(o.Status), "The order is %s and can't be paid.", o.Status)
	default:
		return conflict("order_already_paid", "The order is already paid.")
	}
}

// MaxDeclines is how many card payments of one order may be declined. A shopper has a few cards and
// mistypes some of them; more of them are card testing: somebody tries out which stolen cards work.
const MaxDeclines = 20

// BeginCardPayment decides whether the provider may be asked to charge a locked order, of which so
// many payments were declined. Until it has answered, the order can be neither paid otherwise nor
// cancelled.
func BeginCardPayment(order Order, declines int64, wanted NewPayment, id uuid.UUID, now time.Time) (Payment, Changes, *Error) {
	if refused := order.checkPayable(); refused != nil {
		return Payment{}, Changes{}, refused
	}
	if declines >= MaxDeclines {
		return Payment{}, Changes{}, conflict("too_many_declines", "%d card payments of the order were declined, so it takes no more. Nothing was charged.", MaxDeclines)
	}
	if refused := wanted.supports.check(order.Total); refused != nil { // it was placed by an earlier release, or with another provider
		return Payment{}, Changes{}, refused
	}
	payment := newPayment(order, MethodCard, StatusProcessing, id, now)
	payment.Token = wanted.Token
	return payment, Changes{CreatedPayment: &payment, ChangedOrder: order.as(OrderPaying, now)}, nil
}

// SettleCardPayment decides what follows from the provider's answer, which must not be unknown, to
// a payment that is processing. The order of a declined one may be paid by other means.
func SettleCardPayment(order Order, payment Payment, result GatewayResult, now time.Time) (Payment, Changes, *Error) {
	payment.Operation = payment.settled(result, now)
	if payment.Status == StatusDeclined {
		return Payment{}, Changes{SettledPayment: &payment, ChangedOrder: order.as(OrderPending, now),
			Events: []Event{PaymentEvent(payment)}}, Declined(payment.DeclineCode)
	}
	changes := payment.succeeded(order)
	changes.SettledPayment = &payment
	return payment, changes, nil
}

// newPayment is the payment of an order in full.
func newPayment(order Order, method Method, status Status, id uuid.UUID, now time.Time) Payment {
	return Payment{Operation: Operation{ID: id, Amount: order.Total, Status: status, CreatedAt: now, UpdatedAt: now},
		OrderID: order.ID, CustomerID: order.CustomerID, Method: method, Refunded: Money{Currency: order.Total.Currency}}
}

// succeeded is what follows from a succeeded payment of the order.
func (p Payment) succeeded(order Order) Changes {
	return Changes{ChangedOrder: order.as(OrderPaid, p.UpdatedAt), Ledger: p.ledger(), Events: []Event{PaymentEvent(p)}}
}

// What the provider's keys begin with; our ID follows.
const (
	chargeKeyPrefix = "payment-"
	refundKeyPrefix = "refund-"
)

// charge is the provider's side of the payment. Its key derives from the payment and not from the
// attempt: every attempt asks for the same charge.
func (p Payment) charge() ChargeRequest {
	return ChargeRequest{IdempotencyKey: chargeKeyPrefix + p.ID.String(), Amount: p.Amount,
		Reference: p.OrderID.String(), Token: p.Token, Begun: p.CreatedAt, ProviderID: p.ProviderID}
}

// Declined is the final answer to a payment that the provider refused.
func Declined(code string) *Error {
	return &Error{Kind: KindDeclined, Code: "payment_declined",
		Message: "The payment was declined (" + code + "). Nothing was charged."}
}
