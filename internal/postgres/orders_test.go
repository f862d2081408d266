package postgres

import (
	"math"
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/checkout"
)

func TestOrder_ReadsBackAsItWasPlaced(t *testing.T) {
	t.Parallel()
	b := setup(t)
	wanted := checkout.NewOrder{CustomerID: b.customer().ID, Items: []checkout.Wanted{{SKU: "tee-black", Quantity: 2}, {SKU: "mug-white", Quantity: 1}}}
	answer, err := b.PlaceOrder(b.ctx, b.keyless(), wanted)
	placed := decode[checkout.Order](t, answer, err)
	require.Equal(t, usd(6200), placed.Total)
	require.Equal(t, DefaultUnpaidFor, placed.ExpiresAt.Sub(placed.CreatedAt))

	stored, err := b.Order(b.ctx, b.account, placed.ID)
	require.NoError(t, err)
	require.Equal(t, placed, stored)
	require.Equal(t, []string{"order.placed"}, b.events(placed.ID))
}

func TestPlaceOrder_NeverOversells(t *testing.T) {
	t.Parallel()
	b := setup(t)
	customer := b.customer().ID
	answers := inParallel(50, func(int) result {
		wanted := wants(customer, "limited-print", 1)
		return resultOf(b.PlaceOrder(b.ctx, b.call(newID().String(), wanted), wanted))
	})
	require.Equal(t, map[string]int{"": 10, "out_of_stock": 40}, tally(answers))
	require.Zero(t, b.stock("limited-print"))
	require.Equal(t, 10, b.count("orders"))
}

func TestPlaceOrder_DoesNotDeadlock(t *testing.T) {
	t.Parallel()
	b := setup(t)
	customer := b.customer().ID
	skus := []string{"tee-black", "mug-white", "sticker-pack"}
	answers := inParallel(30, func(i int) result {
		wanted := checkout.NewOrder{CustomerID: customer}
		for _, sku := range append(slices.Clone(skus[i%3:]), skus[:i%3]...) {
			wanted.Items = append(wanted.Items, checkout.Wanted{SKU: sku, Quantity: 1})
		}
		placed := resultOf(b.PlaceOrder(b.ctx, b.keyless(), wanted))
		if placed.code() != "" || i%2 == 0 {
			return placed
		}
		order := decode[checkout.Order](t, placed.answer, nil)
		return resultOf(b.UpdateOrder(b.ctx, b.keyless(), order.ID, checkout.OrderChange{Cancel: true}))
	})
	require.Equal(t, map[string]int{"": 30}, tally(answers))
	for _, sku := range skus {
		require.EqualValues(t, plenty-15, b.stock(sku))
	}
}

func TestPlaceOrder_OutOfStockReservesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	wanted := checkout.NewOrder{CustomerID: b.customer().ID, Items: []checkout.Wanted{{SKU: "mug-white", Quantity: 1}, {SKU: "limited-print", Quantity: 11}}}
	answer, err := b.PlaceOrder(b.ctx, b.keyless(), wanted)
	requireRefused(t, "out_of_stock", answer, err)
	require.EqualValues(t, plenty, b.stock("mug-white"))
}

func TestPlaceOrder_RefusesATotalTooLarge(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.PutProduct(b.ctx, b.keyless(), checkout.ProductWrite{SKU: "yacht", Name: "Yacht", Price: usd(math.MaxInt64), Stock: 9})
	require.NoError(t, err)
	answer, err := b.PlaceOrder(b.ctx, b.keyless(), wants(b.customer().ID, "yacht", 2))
	requireRefused(t, "total_too_large", answer, err)
	require.EqualValues(t, 9, b.stock("yacht"))
}

func TestUpdateOrder_CancelReturnsTheStockOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	order := b.order(b.customer().ID, 3)
	require.EqualValues(t, plenty-3, b.stock("tee-black"))
	answers := inParallel(8, func(int) result {
		return resultOf(b.UpdateOrder(b.ctx, b.keyless(), order.ID, checkout.OrderChange{Cancel: true}))
	})
	require.Equal(t, map[string]int{"": 1, "order_cancelled": 7}, tally(answers))
	require.EqualValues(t, plenty, b.stock("tee-black"))
	require.Equal(t, []string{"order.placed", "order.cancelled"}, b.events(order.ID))
}

func TestOrder_IsCancelledOrPaidOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	customer := b.customer().ID
	b.topUp(customer, 1_000_000)
	for range 10 {
		order := b.order(customer, 1)
		stock := b.stock("tee-black")
		answers := inParallel(2, func(i int) result {
			if i == 0 {
				return resultOf(b.UpdateOrder(b.ctx, b.keyless(), order.ID, checkout.OrderChange{Cancel: true}))
			}
			return resultOf(b.PayFromWallet(b.ctx, b.keyless(), checkout.NewPayment{OrderID: order.ID, Method: checkout.MethodWallet}))
		})
		if answers[0].code() == "" {
			require.Equal(t, "order_cancelled", answers[1].code())
			require.Equal(t, checkout.OrderCancelled, b.orderStatus(order.ID))
			require.Equal(t, stock+1, b.stock("tee-black"))
		} else {
			require.Equal(t, "order_already_paid", answers[0].code())
			require.Empty(t, answers[1].code())
			require.Equal(t, checkout.OrderPaid, b.orderStatus(order.ID))
			require.Equal(t, stock, b.stock("tee-black"))
		}
	}
	b.requireBooks()
}

func TestUpdateOrder_StoresTheShippingAddress(t *testing.T) {
	t.Parallel()
	b := setup(t)
	order := b.order(b.customer().ID, 1)
	address := checkout.Address{Line1: "1 Main St", Line2: "Apt 2", City: "Zürich", PostalCode: "8001", Country: "CH"}
	answer, err := b.UpdateOrder(b.ctx, b.call("k", address), order.ID, checkout.OrderChange{ShippingAddress: &address})
	changed := decode[checkout.Order](t, answer, err)
	require.Equal(t, &address, changed.ShippingAddress)
	stored, err := b.Order(b.ctx, b.account, order.ID)
	require.NoError(t, err)
	require.Equal(t, changed, stored)
	require.Equal(t, []string{"order.placed", "order.updated"}, b.events(order.ID))
}

func TestOrders_AreListedNewestFirst(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ada, bob := b.customer().ID, b.customer().ID
	var ids []uuid.UUID
	for _, customer := range []uuid.UUID{ada, bob, ada} {
		ids = append(ids, b.order(customer, 1).ID)
	}
	list := func(page checkout.OrderPage) (got []uuid.UUID) {
		orders, err := b.Orders(b.ctx, b.account, page)
		require.NoError(t, err)
		for _, order := range orders {
			require.Len(t, order.Items, 1)
			got = append(got, order.ID)
		}
		return got
	}
	require.Equal(t, []uuid.UUID{ids[2], ids[1]}, list(checkout.OrderPage{Limit: 2}))
	require.Equal(t, []uuid.UUID{ids[0]}, list(checkout.OrderPage{Limit: 2, Before: &ids[1]}))
	require.Equal(t, []uuid.UUID{ids[2], ids[0]}, list(checkout.OrderPage{Limit: 9, Customer: &ada}))
}
