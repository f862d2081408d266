package httpapi

import (
	"context"
	"regexp"
	"strconv"
	"strings"

	"github.com/oncepay/oncepay/api"
	"github.com/oncepay/oncepay/idempotency/authority"
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
	tag := etag(product)
	return api.GetProduct200JSONResponse{Body: wireProduct(product), Headers: api.GetProduct200ResponseHeaders{ETag: &tag}}, err
}

// PutProduct implements PUT /products/{sku}, with or without a key.
func (h handlers) PutProduct(ctx context.Context, r api.PutProductRequestObject) (api.PutProductResponseObject, error) {
	wanted := checkout.ProductWrite{SKU: r.Sku, Name: r.Body.Name, Price: moneyOf(r.Body.Price), Stock: r.Body.Stock,
		If: conditionOf(r.Params.IfMatch)}
	wanted.If.Absent = r.Params.IfNoneMatch != nil // it is *
	first, later := created(ctx, wireProduct, productPath), changed(ctx, wireProduct, productPath)
	either := tagged(func(p checkout.Product, final *checkout.Error) authority.Answer {
		if p.IsNew() {
			return first(p, final)
		}
		return later(p, final)
	})
	kept, err := h.service.PutProduct(ctx, callOf(ctx, "put_product", either), wanted)
	return answered(ctx, kept, err)
}

// UpdateProduct implements PATCH /products/{sku}.
func (h handlers) UpdateProduct(ctx context.Context, r api.UpdateProductRequestObject) (api.UpdateProductResponseObject, error) {
	change := checkout.ProductChange{Name: r.Body.Name, If: conditionOf(r.Params.IfMatch)}
	change.If.Absent = r.Params.IfNoneMatch != nil // it is *
	if r.Body.Price != nil {
		price := moneyOf(*r.Body.Price)
		change.Price = &price
	}
	if r.Body.StockChange != nil {
		change.StockChange = *r.Body.StockChange
	}
	call := callOf(ctx, "update_product", tagged(changed(ctx, wireProduct, productPath)))
	kept, err := h.service.UpdateProduct(ctx, call, r.Sku, change)
	return answered(ctx, kept, err)
}

func productPath(p checkout.Product) string { return basePath + "/products/" + p.SKU }

// etag is a strong entity tag (RFC 9110, section 8.8.3).
func etag(p checkout.Product) string { return `"` + strconv.FormatInt(p.Version, 10) + `"` }

// tagged adds the entity tag of a product.
func tagged(untagged render[checkout.Product]) render[checkout.Product] {
	return func(p checkout.Product, final *checkout.Error) authority.Answer {
		answer := untagged(p, final)
		if final == nil {
			answer.Header["ETag"] = etag(p)
		}
		return answer
	}
}

var entityTag = regexp.MustCompile(`(W/)?"([^"]*)"`)

// conditionOf reads If-Match, which is valid. Tags are compared strongly, so a weak one names no
// version, and neither does one that is not ours (RFC 9110, section 13.1.1).
func conditionOf(ifMatch *string) checkout.ProductCondition {
	if ifMatch == nil {
		return checkout.ProductCondition{}
	}
	condition := checkout.ProductCondition{Present: true}
	if strings.TrimSpace(*ifMatch) == "*" {
		return condition
	}
	condition.Versions = []int64{}
	for _, tag := range entityTag.FindAllStringSubmatch(*ifMatch, -1) {
		version, err := strconv.ParseInt(tag[2], 10, 64)
		if p := (checkout.Product{Version: version}); err == nil && tag[0] == etag(p) {
			condition.Versions = append(condition.Versions, version)
		}
	}
	return condition
}
