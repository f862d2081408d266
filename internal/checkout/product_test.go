package checkout

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProductCondition_HoldsOfAVersion(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		condition   ProductCondition
		absent, at7 bool // whether it holds of no product, and of version 7
	}{
		"none":              {ProductCondition{}, true, true},
		"absent":            {ProductCondition{Absent: true}, true, false},
		"present":           {ProductCondition{Present: true}, false, true},
		"that version":      {ProductCondition{Present: true, Versions: []int64{3, 7}}, false, true},
		"another version":   {ProductCondition{Present: true, Versions: []int64{6}}, false, false},
		"no version":        {ProductCondition{Present: true, Versions: []int64{}}, false, false},
		"absent or present": {ProductCondition{Absent: true, Present: true}, false, false},
	} {
		require.Equal(t, c.absent, c.condition.check(nil) == nil, name)
		require.Equal(t, c.at7, c.condition.check(&Product{Version: 7}) == nil, name)
	}
}

func TestUpdateProduct_AddsToTheStock(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		stock, change, after int64
		code                 string
	}{
		{10, 5, 15, ""}, {10, -10, 0, ""}, {10, 0, 10, ""}, {10, -11, 0, "out_of_stock"},
		{MaxStock - 1, 1, MaxStock, ""}, {MaxStock, 1, 0, "stock_too_large"},
		{MaxStock + 5, -1, MaxStock + 4, ""}, // an order that was cancelled may have returned units
		{MaxStock + 5, 0, MaxStock + 5, ""},
	} {
		before := Product{SKU: "cap", Name: "Cap", Stock: c.stock, Version: 3}
		value, changes, refused := UpdateProduct(&before, ProductChange{StockChange: c.change}, now)
		if c.code != "" {
			requireRefused(t, c.code, false, value, changes, refused)
			continue
		}
		after := Product{SKU: "cap", Name: "Cap", Stock: c.after, Version: 4, UpdatedAt: now}
		requireDecided(t, after, Changes{ChangedProduct: &after}, value, changes, refused)
	}
}

func TestPutProduct_CreatesOrReplaces(t *testing.T) {
	t.Parallel()
	wanted := ProductWrite{SKU: "cap", Name: "Cap", Price: usd(900), Stock: 7}
	product := Product{SKU: "cap", Name: "Cap", Price: usd(900), Stock: 7, Version: 1, UpdatedAt: now}
	value, changes, refused := PutProduct(nil, wanted, now)
	requireDecided(t, product, Changes{CreatedProduct: &product}, value, changes, refused)
	require.True(t, value.IsNew())

	before := Product{SKU: "cap", Name: "Hat", Price: eur(1), Stock: 3, Version: 6, UpdatedAt: begun}
	product.Version = 7
	value, changes, refused = PutProduct(&before, wanted, now)
	requireDecided(t, product, Changes{ChangedProduct: &product}, value, changes, refused)
	require.False(t, value.IsNew())

	wanted.If.Absent = true
	value, changes, refused = PutProduct(&before, wanted, now)
	requireRefused(t, "precondition_failed", false, value, changes, refused)
}

func TestUpdateProduct_ChangesWhatIsNotNil(t *testing.T) {
	t.Parallel()
	name, price := "Hat", usd(1000)
	product := Product{SKU: "cap", Name: "Cap", Price: usd(900), Stock: 7, Version: 1, UpdatedAt: begun}
	for _, c := range []struct {
		change ProductChange
		want   Product
	}{
		{ProductChange{Name: &name}, in(product, func(p *Product) { p.Name = name })},
		{ProductChange{Price: &price}, in(product, func(p *Product) { p.Price = price })},
	} {
		c.want.Version, c.want.UpdatedAt = 2, now
		value, changes, refused := UpdateProduct(&product, c.change, now)
		requireDecided(t, c.want, Changes{ChangedProduct: &c.want}, value, changes, refused)
	}
	value, changes, refused := UpdateProduct(&product, ProductChange{If: ProductCondition{Present: true, Versions: []int64{2}}}, now)
	requireRefused(t, "precondition_failed", false, value, changes, refused)
	value, changes, refused = UpdateProduct(nil, ProductChange{}, now)
	requireRefused(t, "product_not_found", true, value, changes, refused)
}
