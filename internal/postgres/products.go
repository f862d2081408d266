package postgres

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/postgres/internal/dbsqlc"
)

// PutProduct creates or replaces a product, including its stock. An older copy of the request would
// set stock that orders have taken meanwhile: it finds that its client is gone, or if it is paused
// after that, PostgreSQL ends its transaction.
func (s *Store) PutProduct(ctx context.Context, call checkout.Call, p checkout.Product) (stored checkout.Product, created bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, transactionTimeout)
	defer cancel()
	tx, err := s.begin(ctx, call.Account)
	if err != nil {
		return checkout.Product{}, false, err
	}
	defer tx.close(ctx)
	tx.probeKey(ctx, call)
	if err := tx.load(ctx); errors.Is(err, errKeyTaken) {
		return checkout.Product{}, false, checkout.ErrUnauthorized // there is no account
	} else if err != nil {
		return checkout.Product{}, false, err
	}
	put := tx.PutProduct(ctx, []dbsqlc.PutProductParams{{AccountID: call.Account, Sku: p.SKU, Name: p.Name,
		PriceAmount: p.Price.Amount, PriceCurrency: p.Price.Currency, Stock: p.Stock}})
	var row dbsqlc.PutProductRow
	err = tx.commitAnd(ctx, func() (err error) {
		row, err = one(put)
		return err
	})
	return productOf(row.Product), row.Created, err
}

// Product returns one product.
func (s *Store) Product(ctx context.Context, account uuid.UUID, sku string) (checkout.Product, error) {
	return read(ctx, s, func(ctx context.Context, q *dbsqlc.Queries) (checkout.Product, error) {
		row, err := q.GetProduct(ctx, dbsqlc.GetProductParams{AccountID: account, Sku: sku})
		return productOf(row), found("product", err)
	})
}

// Products lists products in the order of their SKU.
func (s *Store) Products(ctx context.Context, account uuid.UUID, page checkout.ProductPage) ([]checkout.Product, error) {
	return read(ctx, s, func(ctx context.Context, q *dbsqlc.Queries) ([]checkout.Product, error) {
		rows, err := q.ListProducts(ctx, dbsqlc.ListProductsParams{AccountID: account, After: page.After, PageSize: page.Limit})
		return productsOf(rows), translate("list products", err)
	})
}

// readProducts locks the products if the transaction locks. They are then locked before the key,
// against the usual order: another attempt with the key that has claimed it and waits for one of
// them is a deadlock. PostgreSQL ends it by failing one of the two, whose client retries.
func (tx *transaction) readProducts(ctx context.Context, skus []string) *[]checkout.Product {
	var query rowsOf[dbsqlc.Product]
	if tx.locks {
		query = tx.LockProducts(ctx, []dbsqlc.LockProductsParams{{AccountID: tx.account, Skus: skus}})
	} else {
		query = tx.ReadProducts(ctx, []dbsqlc.ReadProductsParams{{AccountID: tx.account, Skus: skus}})
	}
	return loaded(tx, func() ([]checkout.Product, error) {
		rows, err := many(query)
		return productsOf(rows), translate("read products", err)
	})
}

// takeStock queues the reservation of an order's items. The commit fails with errOutdated if the
// stock no longer suffices or the price is another one.
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

// lockProductsOfOrders locks within each account in the order of inLockOrder.
func (tx *transaction) lockProductsOfOrders(ctx context.Context, orders []uuid.UUID) {
	tx.LockProductsOfOrders(ctx, [][]uuid.UUID{orders})
}

func productOf(row dbsqlc.Product) checkout.Product {
	return checkout.Product{SKU: row.Sku, Name: row.Name, Stock: row.Stock, UpdatedAt: row.UpdatedAt,
		Price: checkout.Money{Amount: row.PriceAmount, Currency: row.PriceCurrency}}
}

func productsOf(rows []dbsqlc.Product) []checkout.Product {
	products := make([]checkout.Product, len(rows))
	for i, row := range rows {
		products[i] = productOf(row)
	}
	return products
}
