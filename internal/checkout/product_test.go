package checkout

import (
	"testing"
	"time"

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

func TestProduct_ChangesItsStockByUnits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		stock, change, after int64
		code                 string
	}{
		{10, 5, 15, ""}, {10, -10, 0, ""}, {10, 0, 10, ""}, {10, -11, 0, "out_of_stock"},
		{MaxStock - 1, 1, MaxStock, ""}, {MaxStock, 1, 0, "stock_too_large"},
		{MaxStock + 5, -1, MaxStock + 4, ""}, // an order that was cancelled may have returned units
	} {
		before := Product{SKU: "cap", Name: "Cap", Stock: c.stock, Version: 3}
		after, err := before.Apply(ProductChange{StockChange: c.change}, time.Unix(9, 0))
		if c.code != "" {
			require.Equal(t, c.code, err.Code)
			require.False(t, err.Retryable, "it is kept")
			continue
		}
		require.Nil(t, err)
		require.Equal(t, Product{SKU: "cap", Name: "Cap", Stock: c.after, Version: 4, UpdatedAt: time.Unix(9, 0)}, after)
	}
}
