package postgres

import (
	"context"
	"slices"
	"strings"

	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/postgres/internal/dbsqlc"
)

// takeStock queues the reservation of an order's items. The commit fails with errOutdated if the
// stock no longer suffices or the price is another one, which the statement decides (TakeStock).
func (tx *transaction) takeStock(ctx context.Context, items []checkout.OrderItem) {
	taken := make([]dbsqlc.TakeStockParams, len(items))
	for i, item := range inLockOrder(items) {
		// A transaction that already holds the locks must not wait for a turn: those who have the
		// turns wait for its locks.
		if !tx.locks {
			tx.takes = append(tx.takes, product{tx.account, item.SKU})
		}
		taken[i] = dbsqlc.TakeStockParams{AccountID: tx.account, Sku: item.SKU, Quantity: int64(item.Quantity),
			PriceAmount: item.UnitPrice.Amount, PriceCurrency: item.UnitPrice.Currency}
	}
	tx.TakeStock(ctx, taken)
	if len(tx.takes) > 0 {
		tx.BeforeCommit(func(ctx context.Context) (leave func()) { return tx.store.turns.take(ctx, tx.takes) })
	}
}

// returnStock queues the return of an order's items.
func (tx *transaction) returnStock(ctx context.Context, items []checkout.OrderItem) {
	returned := make([]dbsqlc.AddStockParams, len(items))
	for i, item := range inLockOrder(items) {
		returned[i] = dbsqlc.AddStockParams{AccountID: tx.account, Sku: item.SKU, Quantity: int64(item.Quantity)}
	}
	tx.AddStock(ctx, returned)
}

// inLockOrder sorts by SKU: whoever changes several products does it in this order.
func inLockOrder(items []checkout.OrderItem) []checkout.OrderItem {
	return slices.SortedFunc(slices.Values(items), func(a, b checkout.OrderItem) int { return strings.Compare(a.SKU, b.SKU) })
}
