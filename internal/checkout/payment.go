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

// Status is a state of a payment or a refund.
type Status string

// The states of a payment or a refund. Processing means that the provider may or may not have moved
// the money: an unknown outcome is no failure.
const (
	StatusProcessing Status = "processing"
	StatusSucceeded  Status = "succeeded"
	StatusDeclined   Status = "declined"
)

// Payment pays one order in full.
type Payment struct {
	ID          uuid.UUID
	OrderID     uuid.UUID
	CustomerID  uuid.UUID
	Method      Method
	Token       string // the provider's token of the card; never a card number
	Amount      Money
	Refunded    Money // includes refunds that are still processing
	Status      Status
	DeclineCode string
	ProviderID  string // the provider's charge; empty for the wallet
	Attempt     int32  // the fence: only the newest attempt may settle
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// NewPayment asks for the payment of an order.
type NewPayment struct {
	OrderID uuid.UUID
	Method  Method
	Token   string // for MethodCard
}

// MaxDeclines is how many card payments of one order may be declined. A shopper has a few cards and
// mistypes some of them; more of them are card testing: somebody tries out which stolen cards work.
const MaxDeclines = 20

// StartPayment decides the payment of an order, of which so many payments were declined; a wallet
// payment succeeds at once, a card payment has to be charged first.
func StartPayment(id uuid.UUID, order Order, declines int64, wanted NewPayment, now time.Time) (Payment, *Error) {
	if err := order.CheckPayable(); err != nil {
		return Payment{}, err
	}
	if wanted.Method == MethodCard && declines >= MaxDeclines {
		return Payment{}, conflict("too_many_declines", "%d card payments of the order were declined, so it takes no more. Nothing was charged.", MaxDeclines)
	}
	payment := Payment{ID: id, OrderID: order.ID, CustomerID: order.CustomerID, Method: wanted.Method,
		Amount: order.Total, Refunded: Money{Currency: order.Total.Currency},
		Status: StatusSucceeded, Attempt: 1, CreatedAt: now, UpdatedAt: now}
	if wanted.Method == MethodCard {
		payment.Status, payment.Token = StatusProcessing, wanted.Token
	}
	return payment, nil
}

// Settle is the payment after the provider's answer, which must not be unknown.
func (p Payment) Settle(result GatewayResult, now time.Time) Payment {
	p.Status, p.ProviderID, p.UpdatedAt = StatusSucceeded, result.ProviderID, now
	if result.Outcome == OutcomeDeclined {
		p.Status, p.DeclineCode = StatusDeclined, result.DeclineCode
	}
	return p
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
		Reference: p.OrderID.String(), Token: p.Token}
}

// Declined is the final answer to a payment that the provider refused.
func Declined(code string) *Error {
	return &Error{Kind: KindDeclined, Code: "payment_declined",
		Message: "The payment was declined (" + code + "). Nothing was charged."}
}
