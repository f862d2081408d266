package checkout

import "github.com/google/uuid"

// Event says what happened. It is written by the transaction that made it happen and published
// afterwards.
type Event struct {
	Type      string    // such as "order.placed"
	Aggregate string    // "order", "payment", …; events of one subject keep their order
	Subject   uuid.UUID // the aggregate's ID
	Data      any       // rendered as JSON
}

// OrderEvent is what happened to an order.
func OrderEvent(what string, o Order) Event {
	return Event{Type: "order." + what, Aggregate: "order", Subject: o.ID, Data: map[string]any{
		"order_id": o.ID, "customer_id": o.CustomerID, "status": o.Status,
		"total": map[string]any{"amount": o.Total.Amount, "currency": o.Total.Currency}}}
}

// PaymentEvent is what happened to a payment. It belongs to its order, so that "order.placed"
// always comes before "payment.succeeded".
func PaymentEvent(p Payment) Event {
	return Event{Type: "payment." + string(p.Status), Aggregate: "order", Subject: p.OrderID, Data: map[string]any{
		"payment_id": p.ID, "order_id": p.OrderID, "method": p.Method,
		"amount": map[string]any{"amount": p.Amount.Amount, "currency": p.Amount.Currency}}}
}

// RefundEvent is what happened to a refund; it belongs to its order, too.
func RefundEvent(r Refund) Event {
	return Event{Type: "refund." + string(r.Status), Aggregate: "order", Subject: r.OrderID, Data: map[string]any{
		"refund_id": r.ID, "payment_id": r.PaymentID, "order_id": r.OrderID,
		"amount": map[string]any{"amount": r.Amount.Amount, "currency": r.Amount.Currency}}}
}

// CustomerCreated says that there is a new customer.
func CustomerCreated(c Customer) Event {
	return Event{Type: "customer.created", Aggregate: "customer", Subject: c.ID, Data: map[string]any{"customer_id": c.ID}}
}

// CustomerUpdated says that a customer has another name or e-mail address.
func CustomerUpdated(c Customer) Event {
	return Event{Type: "customer.updated", Aggregate: "customer", Subject: c.ID, Data: map[string]any{"customer_id": c.ID}}
}

// ToppedUp says that a wallet has more in it.
func ToppedUp(t TopUp) Event {
	return Event{Type: "wallet.topped_up", Aggregate: "customer", Subject: t.CustomerID, Data: map[string]any{
		"top_up_id": t.ID, "customer_id": t.CustomerID,
		"amount": map[string]any{"amount": t.Amount.Amount, "currency": t.Amount.Currency}}}
}
