package checkout

import (
	"time"

	"github.com/google/uuid"
)

// OrderStatus is a state of an order.
type OrderStatus string

// The states of an order. Pending, paying and paid hold stock; cancelled and expired have returned
// it.
const (
	OrderPending           OrderStatus = "pending"
	OrderPaying            OrderStatus = "paying" // a card payment is processing
	OrderPaid              OrderStatus = "paid"
	OrderCancelled         OrderStatus = "cancelled"
	OrderExpired           OrderStatus = "expired"
	OrderPartiallyRefunded OrderStatus = "partially_refunded"
	OrderRefunded          OrderStatus = "refunded"
)

// Order is what a customer wants to buy, at the prices of the moment it was placed, with the stock
// reserved for it.
type Order struct {
	ID              uuid.UUID
	CustomerID      uuid.UUID
	Status          OrderStatus
	Items           []OrderItem
	Total           Money
	ShippingAddress *Address
	CreatedAt       time.Time
	UpdatedAt       time.Time
	ExpiresAt       time.Time // when an unpaid order returns its stock
}

// OrderItem is a line of an order.
type OrderItem struct {
	SKU       string
	Name      string
	Quantity  int32
	UnitPrice Money
}

// Address is where an order is sent.
type Address struct {
	Line1      string
	Line2      string
	City       string
	PostalCode string
	Country    string // ISO 3166-1 alpha-2
}

// NewOrder asks for an order.
type NewOrder struct {
	CustomerID uuid.UUID
	Items      []Wanted
	supports   supported
}

// Wanted is how many of what.
type Wanted struct {
	SKU      string
	Quantity int32
}

// OrderChange changes the fields that are not nil or false.
type OrderChange struct {
	ShippingAddress *Address
	Cancel          bool
}

// PlaceOrder decides an order: every item must be known, in stock and of one currency. The products
// are those of the wanted SKUs that exist, as they were read. The store checks price and stock
// again when it commits.
func PlaceOrder(wanted NewOrder, products []Product, id uuid.UUID, now time.Time, unpaidFor time.Duration) (Order, Changes, *Error) {
	order := Order{ID: id, CustomerID: wanted.CustomerID, Status: OrderPending,
		CreatedAt: now, UpdatedAt: now, ExpiresAt: now.Add(unpaidFor)}
	bySKU := make(map[string]Product, len(products))
	for _, p := range products {
		bySKU[p.SKU] = p
	}
	for _, w := range wanted.Items {
		product, known := bySKU[w.SKU]
		if !known {
			return Order{}, Changes{}, unknownProduct(w.SKU)
		}
		if err := order.add(product, w.Quantity); err != nil {
			return Order{}, Changes{}, err
		}
	}
	if err := wanted.supports.check(order.Total); err != nil {
		return Order{}, Changes{}, err
	}
	return order, Changes{CreatedOrder: &order, TakenStock: order.Items, Events: []Event{OrderEvent("placed", order)}}, nil
}

func (o *Order) add(product Product, quantity int32) *Error {
	if refused := product.checkStock(quantity); refused != nil {
		return refused
	}
	if len(o.Items) == 0 {
		o.Total.Currency = product.Price.Currency
	}
	if o.Total.Currency != product.Price.Currency {
		return unprocessable("mixed_currencies", "All items of an order must have one currency.")
	}
	line, fits := product.Price.Times(quantity)
	if !fits {
		return unprocessable("total_too_large", "The total of the order is too large.")
	}
	if o.Total, fits = o.Total.Plus(line); !fits || o.Total.Amount > MaxAmount {
		return unprocessable("total_too_large", "The total of the order is too large.")
	}
	o.Items = append(o.Items, OrderItem{SKU: product.SKU, Name: product.Name, Quantity: quantity, UnitPrice: product.Price})
	return nil
}

// UpdateOrder decides a change of a locked order. A cancelled one returns its stock.
func UpdateOrder(order Order, change OrderChange, now time.Time) (Order, Changes, *Error) {
	if order.Status == OrderCancelled || order.Status == OrderExpired {
		return Order{}, Changes{}, conflict("order_"+string(order.Status), "The order is %s and can't be changed.", order.Status)
	}
	if change.ShippingAddress != nil {
		order.ShippingAddress = change.ShippingAddress
	}
	if !change.Cancel {
		order.UpdatedAt = now
		return order, Changes{ChangedOrder: &order, Events: []Event{OrderEvent("updated", order)}}, nil
	}
	switch order.Status {
	case OrderPending:
		changes := order.end(OrderCancelled, now)
		return *changes.ChangedOrder, changes, nil
	case OrderPaying:
		return Order{}, Changes{}, payingNow(order.UpdatedAt)
	default:
		return Order{}, Changes{}, conflict("order_already_paid", "The order is paid; refund it instead of cancelling it.")
	}
}

// ExpireOrder decides what follows for a locked, unpaid order when its time is up.
func ExpireOrder(order Order, now time.Time) Changes { return order.end(OrderExpired, now) }

// end is the end of an unpaid order, which returns its stock.
func (o Order) end(status OrderStatus, now time.Time) Changes {
	ended := o.as(status, now)
	return Changes{ChangedOrder: ended, ReturnedStock: o.Items, Events: []Event{OrderEvent(string(status), *ended)}}
}

// as is the order in another status.
func (o Order) as(status OrderStatus, now time.Time) *Order {
	o.Status, o.UpdatedAt = status, now
	return &o
}

// payingNow is retryable: the state settles by itself, in either direction.
func payingNow(since time.Time) *Error {
	return &Error{Kind: KindConflict, Code: "order_being_paid", Retryable: true, Since: since,
		Message: "Another payment of this order is being processed."}
}

// unknownProduct is retryable: the catalogue may be corrected, and nothing was written.
func unknownProduct(sku string) *Error {
	return &Error{Kind: KindUnprocessable, Code: "unknown_product", Retryable: true,
		Message: "There is no product " + sku + " in this account."}
}
