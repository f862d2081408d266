package postgres

import (
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/testenv"
)

// BenchmarkPlaceOrder compares orders of one product that everybody wants with orders of a thousand
// products. Test servers do not wait for the disk, so the figures are of CPU and locks.
func BenchmarkPlaceOrder(b *testing.B) {
	const buyers = 16 // as many as there are connections
	for _, products := range []int{1000, 1} {
		b.Run(strconv.Itoa(products)+"-products", func(b *testing.B) {
			store, customer := benchmarkShop(b, products)
			var next atomic.Int64
			b.SetParallelism(buyers)
			b.ResetTimer()
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					n := int(next.Add(1))
					call := checkout.Call{Account: demoAccounts[0].id, Claim: claimFor(b, newID().String(), n), Encode: encode}
					answer, err := store.PlaceOrder(b.Context(), call, wants(customer, "sku-"+strconv.Itoa(n%products), 1))
					if err != nil || contentOf(answer).Status != 201 {
						b.Error(answer, err)
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "orders/s")
		})
	}
}

// benchmarkShop is a store with so many products and a customer.
func benchmarkShop(b *testing.B, products int) (*Store, uuid.UUID) {
	b.Helper()
	pool := open(b, testenv.Postgres(b))
	require.NoError(b, Seed(b.Context(), pool))
	store := NewStore(pool, Options{})
	for i := range products {
		_, err := store.PutProduct(b.Context(), checkout.Call{Account: demoAccounts[0].id, Encode: encode},
			checkout.ProductWrite{SKU: "sku-" + strconv.Itoa(i), Name: "Thing", Price: usd(2500), Stock: 1_000_000_000})
		require.NoError(b, err)
	}
	answer, err := store.CreateCustomer(b.Context(), checkout.Call{Account: demoAccounts[0].id, Encode: encode},
		checkout.NewCustomer{Name: "Ada", Email: "ada@example.com"})
	return store, decode[checkout.Customer](b, answer, err).ID
}
