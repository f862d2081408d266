package postgres

import (
	"context"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/postgres/internal/dbsqlc"
)

// PutProduct creates or replaces a product. It locks the product before it decides. If another one
// has created it by the commit, the commit fails and it decides again.
func (s *Store) PutProduct(ctx context.Context, call checkout.Call, wanted checkout.ProductWrite,
	render checkout.Render[checkout.Product],
) (checkout.Answer, error) {
	return onceUpToDate(ctx, s, call, render, func(ctx context.Context, tx *transaction) (checkout.Product, error) {
		current, err := tx.loadProduct(ctx, wanted.SKU)
		if err != nil {
			return checkout.Product{}, err
		}
		product, refused := wanted.Put(current, tx.now)
		if refused != nil {
			return checkout.Product{}, refused
		}
		tx.writeProduct(ctx, product)
		return product, nil
	})
}

// UpdateProduct changes a product.
func (s *Store) UpdateProduct(ctx context.Context, call checkout.Call, sku string, change checkout.ProductChange,
	render checkout.Render[checkout.Product],
) (checkout.Answer, error) {
	return once(ctx, s, call, render, func(ctx context.Context, tx *transaction) (checkout.Product, error) {
		current, err := tx.loadProduct(ctx, sku)
		if err != nil {
			return checkout.Product{}, err
		}
		if current == nil {
			return checkout.Product{}, checkout.NotFound("product")
		}
		product, refused := current.Apply(change, tx.now)
		if refused != nil {
			return checkout.Product{}, refused
		}
		tx.writeProduct(ctx, product)
		return product, nil
	})
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

// loadProduct sends what is queued, and returns the product locked, or nil if there is none.
func (tx *transaction) loadProduct(ctx context.Context, sku string) (*checkout.Product, error) {
	tx.locks = true
	readProducts := tx.readProducts(ctx, []string{sku})
	if err := tx.load(ctx); err != nil {
		return nil, err
	}
	products, err := readProducts()
	if err != nil || len(products) == 0 {
		return nil, err
	}
	return &products[0], nil
}

// writeProduct queues a product that was decided on.
func (tx *transaction) writeProduct(ctx context.Context, p checkout.Product) {
	row := dbsqlc.UpdateProductParams{AccountID: tx.account, Sku: p.SKU, Name: p.Name,
		PriceAmount: p.Price.Amount, PriceCurrency: p.Price.Currency, Stock: p.Stock, UpdatedAt: p.UpdatedAt}
	if p.IsNew() {
		tx.InsertProduct(ctx, []dbsqlc.InsertProductParams{dbsqlc.InsertProductParams(row)})
	} else {
		tx.UpdateProduct(ctx, []dbsqlc.UpdateProductParams{row})
	}
}

// readProducts locks the products if the transaction locks. They are then locked before the key,
// against the usual order: another attempt with the key that has claimed it and waits for one of
// them is a deadlock. PostgreSQL ends it by failing one of the two, whose client retries.
func (tx *transaction) readProducts(ctx context.Context, skus []string) later[[]checkout.Product] {
	var query rowsOf[dbsqlc.Product]
	if tx.locks {
		query = tx.LockProducts(ctx, []dbsqlc.LockProductsParams{{AccountID: tx.account, Skus: skus}})
	} else {
		query = tx.ReadProducts(ctx, []dbsqlc.ReadProductsParams{{AccountID: tx.account, Skus: skus}})
	}
	return func() ([]checkout.Product, error) {
		rows, err := many(query)
		return productsOf(rows), translate("read products", err)
	}
}

// takeStock queues the reservation of an order's items. Only the event follows it before the
// commit. A popular product is therefore locked only briefly. Nor does a transaction wait for that
// lock after it has written to the outbox; the relay would have to wait for it. The commit fails
// with errOutdated if the stock no longer suffices or the price is another one.
func (tx *transaction) takeStock(ctx context.Context, order checkout.Order) {
	var taken []dbsqlc.TakeStockParams
	for _, item := range inLockOrder(order.Items) {
		// A transaction that already holds the locks must not wait for a turn: those who have the
		// turns wait for its locks.
		if !tx.locks {
			tx.takes = append(tx.takes, product{tx.account, item.SKU})
		}
		taken = append(taken, dbsqlc.TakeStockParams{AccountID: tx.account, Sku: item.SKU, Quantity: int64(item.Quantity),
			PriceAmount: item.UnitPrice.Amount, PriceCurrency: item.UnitPrice.Currency})
	}
	tx.TakeStock(ctx, taken)
}

// returnStock queues the return of an order's items.
func (tx *transaction) returnStock(ctx context.Context, order checkout.Order) {
	var returned []dbsqlc.AddStockParams
	for _, item := range inLockOrder(order.Items) {
		returned = append(returned, dbsqlc.AddStockParams{AccountID: tx.account, Sku: item.SKU, Quantity: int64(item.Quantity)})
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
	return checkout.Product{SKU: row.Sku, Name: row.Name, Stock: row.Stock, Version: row.Version, UpdatedAt: row.UpdatedAt,
		Price: checkout.Money{Amount: row.PriceAmount, Currency: row.PriceCurrency}}
}

func productsOf(rows []dbsqlc.Product) []checkout.Product {
	products := make([]checkout.Product, len(rows))
	for i, row := range rows {
		products[i] = productOf(row)
	}
	return products
}
