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

// Place decides an order: every item must be known, in stock and of one currency. The products are
// those of the wanted SKUs that exist, as they were read. The store checks price and stock again
// when it commits.
func Place(id uuid.UUID, wanted NewOrder, products []Product, now time.Time, unpaidFor time.Duration) (Order, *Error) {
	order := Order{ID: id, CustomerID: wanted.CustomerID, Status: OrderPending,
		CreatedAt: now, UpdatedAt: now, ExpiresAt: now.Add(unpaidFor)}
	bySKU := make(map[string]Product, len(products))
	for _, p := range products {
		bySKU[p.SKU] = p
	}
	for _, w := range wanted.Items {
		product, known := bySKU[w.SKU]
		if !known {
			return Order{}, unknownProduct(w.SKU)
		}
		if product.Stock < int64(w.Quantity) {
			return Order{}, conflict("out_of_stock", "Only %d of %s left; nothing was reserved.", product.Stock, w.SKU)
		}
		if err := order.add(product, w.Quantity); err != nil {
			return Order{}, err
		}
	}
	return order, nil
}

func (o *Order) add(product Product, quantity int32) *Error {
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

// Apply decides a change of an order.
func (o Order) Apply(change OrderChange, now time.Time) (Order, *Error) {
	if o.Status == OrderCancelled || o.Status == OrderExpired {
		return Order{}, conflict("order_"+string(o.Status), "The order is %s and can't be changed.", o.Status)
	}
	if change.ShippingAddress != nil {
		o.ShippingAddress = change.ShippingAddress
	}
	if change.Cancel {
		switch o.Status {
		case OrderPending:
			o.Status = OrderCancelled
		case OrderPaying:
			return Order{}, payingNow(o.UpdatedAt)
		default:
			return Order{}, conflict("order_already_paid", "The order is paid; refund it instead of cancelling it.")
		}
	}
	o.UpdatedAt = now
	return o, nil
}

// Expire is an unpaid order whose time is up.
func (o Order) Expire(now time.Time) Order {
	o.Status, o.UpdatedAt = OrderExpired, now
	return o
}

// CheckPayable says whether a payment of the order may start.
func (o Order) CheckPayable() *Error {
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

// AfterRefund is the status of a paid order of which this much was refunded.
func (o Order) AfterRefund(refunded Money) OrderStatus {
	if refunded.Amount >= o.Total.Amount {
		return OrderRefunded
	}
	return OrderPartiallyRefunded
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
