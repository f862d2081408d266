package checkout

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var catalogue = []Product{
	{SKU: "mug", Name: "Mug", Price: usd(1200), Stock: 3},
	{SKU: "tee", Name: "Tee", Price: usd(2500), Stock: 1},
	{SKU: "print", Name: "Print", Price: eur(9900), Stock: 9},
	{SKU: "yacht", Name: "Yacht", Price: usd(MaxAmount / 2), Stock: 1 << 40},
}

// pending is an order of two mugs and a T-shirt.
var pending = Order{ID: orderN, CustomerID: buyer, Status: OrderPending, Total: usd(4900),
	Items:     []OrderItem{{SKU: "mug", Name: "Mug", Quantity: 2, UnitPrice: usd(1200)}, {SKU: "tee", Name: "Tee", Quantity: 1, UnitPrice: usd(2500)}},
	CreatedAt: begun, UpdatedAt: begun, ExpiresAt: begun.Add(time.Hour)}

// inStatus is the order as it was left in a status.
func inStatus(status OrderStatus) Order { return in(pending, func(o *Order) { o.Status = status }) }

// becoming is the order as a decision leaves it.
func becoming(status OrderStatus) *Order {
	return new(in(pending, func(o *Order) { o.Status, o.UpdatedAt = status, now }))
}

func TestPlaceOrder_ReservesAtThePricesOfNow(t *testing.T) {
	t.Parallel()
	wanted := NewOrder{CustomerID: buyer, Items: []Wanted{{"mug", 2}, {"tee", 1}}}
	placed := in(pending, func(o *Order) { o.ID, o.CreatedAt, o.UpdatedAt, o.ExpiresAt = newID, now, now, now.Add(time.Hour) })
	value, changes, refused := PlaceOrder(wanted, catalogue, newID, now, time.Hour)
	requireDecided(t, placed, Changes{CreatedOrder: &placed, TakenStock: placed.Items, Events: []Event{OrderEvent("placed", placed)}},
		value, changes, refused)
}

func TestPlaceOrder_ReservesAllOrNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		items     []Wanted
		code      string
		retryable bool
	}{
		{[]Wanted{{"mug", 1}, {"tea", 1}}, "unknown_product", true},
		{[]Wanted{{"mug", 1}, {"tee", 2}}, "out_of_stock", false},
		{[]Wanted{{"mug", 1}, {"print", 1}}, "mixed_currencies", false},
		{[]Wanted{{"mug", 1}, {"yacht", 2}}, "total_too_large", false},
		{[]Wanted{{"yacht", 3}}, "total_too_large", false},
		{[]Wanted{{"yacht", 1 << 30}}, "total_too_large", false},
	} {
		value, changes, refused := PlaceOrder(NewOrder{CustomerID: buyer, Items: c.items}, catalogue, newID, now, time.Hour)
		requireRefused(t, c.code, c.retryable, value, changes, refused)
	}
	_, _, refused := PlaceOrder(NewOrder{Items: []Wanted{{"yacht", 2}}}, catalogue, newID, now, time.Hour)
	require.Nil(t, refused, "the largest total")
}

func TestPlaceOrder_IsOfAnAmountThatTheProviderSupports(t *testing.T) {
	t.Parallel()
	for code, provider := range map[string]*scripted{"amount_not_supported": {unsupported: true}, "": {}} {
		wanted := NewOrder{Items: []Wanted{{"mug", 1}}, supports: NewService(noOperations{}, provider).supports}
		value, changes, refused := PlaceOrder(wanted, catalogue, newID, now, time.Hour)
		if code == "" {
			require.Nil(t, refused)
			continue
		}
		requireRefused(t, code, false, value, changes, refused)
	}
	old := in(catalogue[0], func(p *Product) { p.Price.Currency = "ZZZ" })
	value, changes, refused := PlaceOrder(NewOrder{Items: []Wanted{{old.SKU, 1}}, supports: NewService(noOperations{}, &scripted{}).supports},
		[]Product{old}, newID, now, time.Hour)
	requireRefused(t, "amount_not_supported", false, value, changes, refused)
}

func TestUpdateOrder_FollowsFromTheStatus(t *testing.T) {
	t.Parallel()
	address := &Address{Line1: "1 Way", City: "Town", PostalCode: "1", Country: "NL"}
	for _, c := range []struct {
		status           OrderStatus
		moved, cancelled string // codes; empty: it may be
		retryable        bool
	}{
		{OrderPending, "", "", false},
		{OrderPaying, "", "order_being_paid", true},
		{OrderPaid, "", "order_already_paid", false},
		{OrderPartiallyRefunded, "", "order_already_paid", false},
		{OrderRefunded, "", "order_already_paid", false},
		{OrderCancelled, "order_cancelled", "order_cancelled", false},
		{OrderExpired, "order_expired", "order_expired", false},
	} {
		before := inStatus(c.status)
		value, changes, refused := UpdateOrder(before, OrderChange{ShippingAddress: address}, now)
		if c.moved != "" {
			requireRefused(t, c.moved, c.retryable, value, changes, refused)
		} else {
			want := in(*becoming(c.status), func(o *Order) { o.ShippingAddress = address })
			requireDecided(t, want, Changes{ChangedOrder: &want, Events: []Event{OrderEvent("updated", want)}}, value, changes, refused)
		}
		value, changes, refused = UpdateOrder(before, OrderChange{Cancel: true, ShippingAddress: address}, now)
		if c.cancelled != "" {
			requireRefused(t, c.cancelled, c.retryable, value, changes, refused)
			continue
		}
		want := in(*becoming(OrderCancelled), func(o *Order) { o.ShippingAddress = address })
		requireDecided(t, want, Changes{ChangedOrder: &want, ReturnedStock: want.Items, Events: []Event{OrderEvent("cancelled", want)}},
			value, changes, refused)
	}
}

func TestExpireOrder_ReturnsItsStock(t *testing.T) {
	t.Parallel()
	expired := becoming(OrderExpired)
	require.Equal(t, Changes{ChangedOrder: expired, ReturnedStock: pending.Items, Events: []Event{OrderEvent("expired", *expired)}},
		ExpireOrder(pending, now))
}
