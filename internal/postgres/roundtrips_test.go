package postgres

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/checkout"
)

// TestRoundTrips_AreAsPromised counts on the wire, for each operation, what
// docs/design.md#what-it-costs promises. Each is done before, as a connection prepares a statement
// at its first use.
func TestRoundTrips_AreAsPromised(t *testing.T) {
	t.Parallel()
	b := setup(t)
	customer := b.customer().ID
	b.topUp(customer, 1_000_000)
	store, w := b.wired()
	fast := &bundle{Store: store, t: t, ctx: b.ctx, account: b.account, other: b.other}
	wanted := wants(customer, "limited-print", 11)
	for _, operation := range []struct {
		name    string
		prepare func() func() error // returns what is measured
		trips   int
	}{
		{"create a customer", func() func() error {
			wanted := checkout.NewCustomer{Name: "Ada", Email: newID().String() + "@example.com"}
			return func() error {
				_, err := store.CreateCustomer(b.ctx, b.call(wanted.Email, wanted), wanted)
				return err
			}
		}, 2},
		{"update a customer without a key", func() func() error {
			name := newID().String()
			return func() error {
				_, err := store.UpdateCustomer(b.ctx, b.keyless(), customer, checkout.CustomerChange{Name: &name})
				return err
			}
		}, 2},
		{"top up", func() func() error {
			return func() error {
				_, err := store.TopUp(b.ctx, b.call(newID().String(), 1), checkout.NewTopUp{CustomerID: customer, Amount: usd(1)})
				return err
			}
		}, 2},
		{"place an order", func() func() error {
			return func() error {
				_, err := store.PlaceOrder(b.ctx, b.call(newID().String(), 1), wants(customer, "tee-black", 1))
				return err
			}
		}, 2},
		{"replay", func() func() error {
			return func() error {
				_, err := store.PlaceOrder(b.ctx, b.call("replay", 1), wants(customer, "tee-black", 1))
				return err
			}
		}, 2},
		{"refuse an order", func() func() error {
			return func() error {
				_, err := store.PlaceOrder(b.ctx, b.call(newID().String(), wanted), wanted)
				return err
			}
		}, 2},
		{"cancel an order", func() func() error {
			order := b.order(customer, 1)
			return func() error {
				_, err := store.UpdateOrder(b.ctx, b.call(newID().String(), 1), order.ID, checkout.OrderChange{Cancel: true})
				return err
			}
		}, 2},
		{"pay from the wallet", func() func() error {
			order := b.order(customer, 1)
			return func() error { fast.pay(order, checkout.MethodWallet); return nil }
		}, 2},
		{"refund to the wallet", func() func() error {
			payment := b.pay(b.order(customer, 1), checkout.MethodWallet)
			return func() error {
				_, err := store.RefundToWallet(b.ctx, b.call(newID().String(), 1), checkout.NewRefund{PaymentID: payment.ID})
				return err
			}
		}, 2},
		{"pay by card", func() func() error {
			order := b.order(customer, 1)
			return func() error { fast.pay(order, checkout.MethodCard); return nil }
		}, 4},
		{"take up a card payment", func() func() error {
			c := b.beginCardPayment(newID().String())
			return func() error { fast.resume(c); return nil }
		}, 2},
		{"settle a card payment too late", func() func() error {
			c := b.beginCardPayment(newID().String())
			_, err := b.CardPayments().Settle(b.ctx, c.begun, approved)
			require.NoError(t, err)
			return func() error {
				_, err := store.CardPayments().Settle(b.ctx, c.begun, approved)
				return err
			}
		}, 2},
		{"refund to the card", func() func() error {
			payment := b.pay(b.order(customer, 1), checkout.MethodCard)
			return func() error {
				refund := fast.beginCardRefund(newID().String(), checkout.NewRefund{PaymentID: payment.ID})
				_, err := store.CardRefunds().Settle(b.ctx, refund, approved)
				return err
			}
		}, 4},
		{"put a product", func() func() error {
			wanted := checkout.ProductWrite{SKU: "cap", Name: "Cap", Price: usd(1)}
			return func() error {
				_, err := store.PutProduct(b.ctx, b.call(newID().String(), wanted), wanted)
				return err
			}
		}, 2},
		{"put a product without a key", func() func() error {
			return func() error {
				_, err := store.PutProduct(b.ctx, b.keyless(), checkout.ProductWrite{SKU: "hat", Name: "Hat", Price: usd(1)})
				return err
			}
		}, 2},
		{"update a product", func() func() error {
			return func() error {
				_, err := store.UpdateProduct(b.ctx, b.call(newID().String(), 1), "mug-white", checkout.ProductChange{StockChange: 1})
				return err
			}
		}, 2},
		{"list orders", func() func() error {
			return func() error {
				_, err := store.Orders(b.ctx, b.account, checkout.OrderPage{Limit: 3})
				return err
			}
		}, 1},
		{"list the payments of an order", func() func() error {
			order := b.order(customer, 1)
			b.pay(order, checkout.MethodWallet)
			return func() error {
				_, err := store.Payments(b.ctx, b.account, order.ID, checkout.Page{Limit: 3})
				return err
			}
		}, 1},
	} {
		var err error
		measured := operation.prepare()
		for range 2 {
			require.NoError(t, operation.prepare()())
		}
		trips := w.measure(func() { err = measured() })
		require.NoError(t, err, operation.name)
		require.Equal(t, operation.trips, trips, operation.name)
	}
}

// TestRoundTrips_OfAFailedCommit: pgx prepares the statements of a batch anew after one of them has
// failed, for the second decision and for the next order on the connection.
func TestRoundTrips_OfAFailedCommit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	wanted := wants(b.customer().ID, "tee-black", 1)
	store, w := b.wired()
	nothing := func(checkout.Call) error { return nil }
	for _, change := range []struct {
		name string
		do   func(checkout.Call) error
		want []int // round trips of the order, and of the next two on the connection
	}{
		{"the key was taken", func(call checkout.Call) error {
			_, err := b.PlaceOrder(b.ctx, call, wanted)
			return err
		}, []int{6, 3, 2}},
		{"the price changed", func(checkout.Call) error {
			_, err := b.PutProduct(b.ctx, b.keyless(), checkout.ProductWrite{SKU: "tee-black", Name: "Tee", Price: usd(1), Stock: plenty})
			return err
		}, []int{7, 2, 2}},
	} {
		order := func(do func(checkout.Call) error) int {
			call := b.call(newID().String(), 1)
			return w.measure(func() {
				_, err := onceUpToDate(b.ctx, store, call, meanwhile(placeOrder(wanted), func() { require.NoError(t, do(call)) }))
				require.NoError(t, err)
			})
		}
		order(nothing)
		trips := []int{order(change.do), order(nothing), order(nothing)}
		require.Equal(t, change.want, trips, change.name)
	}
}
