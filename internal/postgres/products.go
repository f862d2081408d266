package postgres

import (
	"context"

	"github.com/google/uuid"

	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/postgres/internal/dbsqlc"
)

// PutProduct creates or replaces a product. It locks the product before it decides. If another one
// has created it by the commit, the commit fails and it decides again.
func (s *Store) PutProduct(ctx context.Context, call checkout.Call, wanted checkout.ProductWrite) (checkout.Answer, error) {
	return onceUpToDate(ctx, s, call, func(ctx context.Context, tx *transaction) decision[checkout.Product] {
		current := tx.lockProduct(ctx, wanted.SKU)
		return func() (checkout.Product, checkout.Changes, *checkout.Error) {
			return checkout.PutProduct(*current, wanted, tx.Now())
		}
	})
}

// UpdateProduct changes a product.
func (s *Store) UpdateProduct(ctx context.Context, call checkout.Call, sku string, change checkout.ProductChange) (checkout.Answer, error) {
	return once(ctx, s, call, func(ctx context.Context, tx *transaction) decision[checkout.Product] {
		current := tx.lockProduct(ctx, sku)
		return func() (checkout.Product, checkout.Changes, *checkout.Error) {
			return checkout.UpdateProduct(*current, change, tx.Now())
		}
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

// lockProduct queues the lock of a product, before the key as in readProducts; nil: there is none.
func (tx *transaction) lockProduct(ctx context.Context, sku string) **checkout.Product {
	query := tx.LockProducts(ctx, []dbsqlc.LockProductsParams{{AccountID: tx.account, Skus: []string{sku}}})
	return loaded(tx, func() (*checkout.Product, error) {
		rows, err := many(query)
		if err != nil || len(rows) == 0 {
			return nil, translate("lock a product", err)
		}
		product := productOf(rows[0])
		return &product, nil
	})
}

func (tx *transaction) insertProduct(ctx context.Context, p checkout.Product) {
	tx.InsertProduct(ctx, []dbsqlc.InsertProductParams{dbsqlc.InsertProductParams(tx.productRow(p))})
}

func (tx *transaction) updateProduct(ctx context.Context, p checkout.Product) {
	tx.UpdateProduct(ctx, []dbsqlc.UpdateProductParams{tx.productRow(p)})
}

func (tx *transaction) productRow(p checkout.Product) dbsqlc.UpdateProductParams {
	return dbsqlc.UpdateProductParams{AccountID: tx.account, Sku: p.SKU, Name: p.Name,
		PriceAmount: p.Price.Amount, PriceCurrency: p.Price.Currency, Stock: p.Stock, UpdatedAt: p.UpdatedAt}
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
