package postgres

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/checkout"
)

func TestPutProduct_CreatesOrReplaces(t *testing.T) {
	t.Parallel()
	b := setup(t)
	product := checkout.Product{SKU: "cap", Name: "Cap", Price: usd(1500), Stock: 5}
	for _, wantCreated := range []bool{true, false} {
		stored, created, err := b.PutProduct(b.ctx, checkout.Call{Account: b.account}, product)
		require.NoError(t, err)
		require.Equal(t, wantCreated, created)
		read, err := b.Product(b.ctx, b.account, "cap")
		require.NoError(t, err)
		require.Equal(t, stored, read)
		product.Stock = 7
	}
	require.EqualValues(t, 7, b.stock("cap"))

	first, err := b.Products(b.ctx, b.account, checkout.ProductPage{Limit: 2})
	require.NoError(t, err)
	rest, err := b.Products(b.ctx, b.account, checkout.ProductPage{After: first[1].SKU, Limit: 9})
	require.NoError(t, err)
	var skus []string
	for _, p := range append(first, rest...) {
		skus = append(skus, p.SKU)
	}
	require.Equal(t, []string{"cap", "limited-print", "mug-white", "sticker-pack", "tee-black"}, skus)
}
