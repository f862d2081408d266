package postgres

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/checkout"
)

// product reads a product.
func (b *bundle) product(sku string) checkout.Product {
	b.t.Helper()
	product, err := b.Product(b.ctx, b.account, sku)
	require.NoError(b.t, err)
	return product
}

func TestPutProduct_CreatesOrReplaces(t *testing.T) {
	t.Parallel()
	b := setup(t)
	wanted := checkout.ProductWrite{SKU: "cap", Name: "Cap", Price: usd(1500), Stock: 5}
	for version := int64(1); version <= 3; version++ {
		answer, err := b.PutProduct(b.ctx, b.keyless(), wanted)
		stored := decode[checkout.Product](t, answer, err)
		require.Equal(t, version, stored.Version)
		read := b.product("cap")
		require.True(t, stored.UpdatedAt.Equal(read.UpdatedAt))
		read.UpdatedAt = stored.UpdatedAt // of another time zone
		require.Equal(t, stored, read)
		require.Equal(t, wanted.Stock, read.Stock)
		wanted.Stock += 2
	}

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

// TestPutProduct_WithAKeyUndoesNoSale has a copy of the request arrive after an order.
func TestPutProduct_WithAKeyUndoesNoSale(t *testing.T) {
	t.Parallel()
	b := setup(t)
	wanted := checkout.ProductWrite{SKU: "tee-black", Name: "Tee", Price: usd(2500), Stock: 10}
	older, newer := b.attempts("k", wanted)
	for _, call := range []checkout.Call{newer, newer, older} {
		answer, err := b.PutProduct(b.ctx, call, wanted)
		require.EqualValues(t, 10, decode[checkout.Product](t, answer, err).Stock, "as it was answered first")
		if !answer.Replayed {
			b.sell("tee-black", 3)
		}
	}
	require.EqualValues(t, 7, b.stock("tee-black"))
	_, err := b.PutProduct(b.ctx, b.call("k", "another"), wanted)
	require.ErrorIs(t, err, checkout.ErrKeyReused)
}

// TestProductVersion_NeverReturns although the stock does. Another program that changes a product
// has to count, too.
func TestProductVersion_NeverReturns(t *testing.T) {
	t.Parallel()
	b := setup(t)
	before := b.product("limited-print")
	order, err := b.PlaceOrder(b.ctx, b.keyless(), wants(b.customer().ID, "limited-print", 1))
	placed := decode[checkout.Order](t, order, err)
	require.Equal(t, before.Version+1, b.product("limited-print").Version)
	_, err = b.UpdateOrder(b.ctx, b.keyless(), placed.ID, checkout.OrderChange{Cancel: true})
	require.NoError(t, err)
	after := b.product("limited-print")
	require.Equal(t, before.Stock, after.Stock)
	require.Equal(t, before.Version+2, after.Version)

	ifUnchanged := checkout.ProductWrite{SKU: "limited-print", Name: "Print", Price: usd(1), Stock: 10,
		If: checkout.ProductCondition{Present: true, Versions: []int64{before.Version}}}
	answer, err := b.PutProduct(b.ctx, b.keyless(), ifUnchanged)
	requireRefused(t, "precondition_failed", answer, err)
	for _, uncounted := range []string{"stock = 8", "stock = 8, version = 1", "stock = 8, version = version + 2"} {
		_, err = b.pool.Exec(b.ctx, "UPDATE products SET "+uncounted+" WHERE sku = 'limited-print'")
		require.ErrorContains(t, err, "a change of a product must set version = version + 1", uncounted)
	}
	_, err = b.pool.Exec(b.ctx, "UPDATE products SET stock = 8, version = version + 1 WHERE sku = 'limited-print'")
	require.NoError(t, err)
	require.Equal(t, before.Version+3, b.product("limited-print").Version)
}

// TestProductVersion_IsCountedInPlace looks whether updates are still heap-only: no index changes.
func TestProductVersion_IsCountedInPlace(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tx, err := b.pool.Begin(b.ctx)
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(b.ctx) }()
	_, err = tx.Exec(b.ctx, "UPDATE products SET stock = stock - 1, version = version + 1 WHERE sku = 'tee-black'")
	require.NoError(t, err)
	var heapOnly int
	require.NoError(t, tx.QueryRow(b.ctx, "SELECT pg_stat_get_xact_tuples_hot_updated('products'::regclass)").Scan(&heapOnly))
	require.Equal(t, 2, heapOnly)
}

// TestPutProduct_ChecksItsConditionUnderTheLock lets clients who read one version write at once.
func TestPutProduct_ChecksItsConditionUnderTheLock(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const clients = 8
	for name, condition := range map[string]struct {
		sku string
		If  checkout.ProductCondition
	}{
		"replace": {"tee-black", checkout.ProductCondition{Present: true, Versions: []int64{1}}},
		"create":  {"new", checkout.ProductCondition{Absent: true}},
	} {
		results := inParallel(clients, func(i int) result {
			return resultOf(b.PutProduct(b.ctx, b.keyless(), checkout.ProductWrite{
				SKU: condition.sku, Name: "By", Price: usd(1), Stock: int64(i), If: condition.If}))
		})
		require.Equal(t, map[string]int{"": 1, "precondition_failed": clients - 1}, tally(results), name)
	}
	require.EqualValues(t, 2, b.product("tee-black").Version)
	require.EqualValues(t, 1, b.product("new").Version)
}

// TestPutProduct_CreatedAtOnceIsReplaced: none of them has a condition, so each succeeds.
func TestPutProduct_CreatedAtOnceIsReplaced(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const clients = 8
	results := inParallel(clients, func(i int) result {
		return resultOf(b.PutProduct(b.ctx, b.keyless(), checkout.ProductWrite{SKU: "new", Name: "New", Price: usd(1), Stock: int64(i)}))
	})
	require.Equal(t, map[string]int{"": clients}, tally(results))
	require.EqualValues(t, clients, b.product("new").Version)
}

// TestPutProduct_KeepsAFailedCondition: the product that the client asks for comes later.
func TestPutProduct_KeepsAFailedCondition(t *testing.T) {
	t.Parallel()
	b := setup(t)
	wanted := checkout.ProductWrite{SKU: "new", Name: "New", Price: usd(1), Stock: 1, If: checkout.ProductCondition{Present: true}}
	for range 2 {
		answer, err := b.PutProduct(b.ctx, b.call("k", wanted), wanted)
		requireRefused(t, "precondition_failed", answer, err)
		create := wanted
		create.If = checkout.ProductCondition{}
		_, err = b.PutProduct(b.ctx, b.keyless(), create)
		require.NoError(t, err)
	}
	require.EqualValues(t, 2, b.product("new").Version)
}

// TestUpdateProduct_AddsOnceForAKey sends copies of one restocking while orders take units.
func TestUpdateProduct_AddsOnceForAKey(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const copies, orders, added = 6, 8, 5
	customer, before := b.customer().ID, b.product("tee-black")
	restock := checkout.ProductChange{StockChange: added}
	results := inParallel(copies+orders, func(i int) result {
		if i < copies {
			return resultOf(b.UpdateProduct(b.ctx, b.call("restock", restock), "tee-black", restock))
		}
		return resultOf(b.PlaceOrder(b.ctx, b.keyless(), wants(customer, "tee-black", 1)))
	})
	require.Equal(t, map[string]int{"": copies + orders}, tally(results))
	after := b.product("tee-black")
	require.Equal(t, before.Stock+added-orders, after.Stock)
	require.Equal(t, before.Version+1+orders, after.Version)
	require.Equal(t, before.Name, after.Name)
	require.Equal(t, before.Price, after.Price)
}

func TestUpdateProduct_KeepsARefusalOfTheStock(t *testing.T) {
	t.Parallel()
	b := setup(t)
	take := checkout.ProductChange{StockChange: -11}
	for range 2 {
		answer, err := b.UpdateProduct(b.ctx, b.call("take", take), "limited-print", take)
		requireRefused(t, "out_of_stock", answer, err)
		_, err = b.UpdateProduct(b.ctx, b.keyless(), "limited-print", checkout.ProductChange{StockChange: 1})
		require.NoError(t, err)
	}
	require.EqualValues(t, 12, b.stock("limited-print"))
}
