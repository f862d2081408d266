package postgres

import (
	"context"

	"github.com/google/uuid"

	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/postgres/internal/dbsqlc"
)

// PutProduct creates or replaces a product, including its stock.
func (s *Store) PutProduct(ctx context.Context, account uuid.UUID, p checkout.Product) (stored checkout.Product, created bool, err error) {
	stored, err = write(ctx, s, func(ctx context.Context, q *dbsqlc.Queries) (checkout.Product, error) {
		row, err := q.PutProduct(ctx, dbsqlc.PutProductParams{AccountID: account, Sku: p.SKU, Name: p.Name,
			PriceAmount: p.Price.Amount, PriceCurrency: p.Price.Currency, Stock: p.Stock})
		created = row.Created
		return productOf(row.Product), translate("put the product", err)
	})
	return stored, created, err
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

func (tx *transaction) lockProducts(ctx context.Context, skus []string) later[[]checkout.Product] {
	query := tx.LockProducts(ctx, []dbsqlc.LockProductsParams{{AccountID: tx.account, Skus: skus}})
	return func() ([]checkout.Product, error) {
		rows, err := many(query)
		return productsOf(rows), translate("lock products", err)
	}
}

func (tx *transaction) lockProductsOfOrder(ctx context.Context, order uuid.UUID) {
	tx.LockProductsOfOrder(ctx, []dbsqlc.LockProductsOfOrderParams{{AccountID: tx.account, OrderID: order}})
}

// lockProductsOfOrders locks within each account in the order of lockProducts.
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
