package httpapi

import (
	"context"

	"github.com/oncepay/oncepay/api"
	"github.com/oncepay/oncepay/internal/checkout"
)

func wireProduct(p checkout.Product) api.Product {
	return api.Product{Sku: p.SKU, Name: p.Name, Price: wireMoney(p.Price), Stock: p.Stock, UpdatedAt: instant(p.UpdatedAt)}
}

// ListProducts implements GET /products.
func (h handlers) ListProducts(ctx context.Context, r api.ListProductsRequestObject) (api.ListProductsResponseObject, error) {
	limit := limitOf(r.Params.Limit)
	after, err := afterSKU(r.Params.Cursor)
	if err != nil {
		return nil, err
	}
	products, err := h.service.Products(ctx, accountOf(ctx), checkout.ProductPage{After: after, Limit: limit + 1})
	if err != nil {
		return nil, err
	}
	products, next := page(products, limit, func(last checkout.Product) string { return makeCursor(productCursor, last.SKU) })
	return api.ListProducts200JSONResponse{Data: mapped(products, wireProduct), NextCursor: next}, nil
}

// GetProduct implements GET /products/{sku}.
func (h handlers) GetProduct(ctx context.Context, r api.GetProductRequestObject) (api.GetProductResponseObject, error) {
	product, err := h.service.Product(ctx, accountOf(ctx), r.Sku)
	return api.GetProduct200JSONResponse(wireProduct(product)), err
}

// PutProduct implements PUT /products/{sku}, which is idempotent by nature.
func (h handlers) PutProduct(ctx context.Context, r api.PutProductRequestObject) (api.PutProductResponseObject, error) {
	product, created, err := h.service.PutProduct(ctx, callOf(ctx, "put_product"), checkout.Product{
		SKU: r.Sku, Name: r.Body.Name, Price: moneyOf(r.Body.Price), Stock: r.Body.Stock})
	if err != nil || !created {
		return api.PutProduct200JSONResponse(wireProduct(product)), err
	}
	location := basePath + "/products/" + product.SKU
	return api.PutProduct201JSONResponse{Body: wireProduct(product),
		Headers: api.PutProduct201ResponseHeaders{Location: &location}}, nil
}
