package httpapi

import (
	"context"

	"github.com/oncepay/oncepay/api"
	"github.com/oncepay/oncepay/internal/checkout"
)

func wireOrder(o checkout.Order) api.Order {
	return api.Order{ID: o.ID, CustomerID: o.CustomerID, Status: api.OrderStatus(o.Status),
		Items: mapped(o.Items, wireItem), Total: wireMoney(o.Total), ShippingAddress: wireAddress(o.ShippingAddress),
		CreatedAt: instant(o.CreatedAt), UpdatedAt: instant(o.UpdatedAt), ExpiresAt: instant(o.ExpiresAt)}
}

func orderPath(o checkout.Order) string { return at("orders", o.ID) }

func wireItem(i checkout.OrderItem) api.OrderItem {
	return api.OrderItem{Sku: i.SKU, Name: i.Name, Quantity: i.Quantity, UnitPrice: wireMoney(i.UnitPrice)}
}

func wireAddress(a *checkout.Address) *api.Address {
	if a == nil {
		return nil
	}
	return &api.Address{Line1: a.Line1, Line2: optional(a.Line2), City: a.City, PostalCode: a.PostalCode, Country: a.Country}
}

func addressOf(a *api.Address) *checkout.Address {
	if a == nil {
		return nil
	}
	return &checkout.Address{Line1: a.Line1, Line2: valueOf(a.Line2), City: a.City, PostalCode: a.PostalCode, Country: a.Country}
}

// ListOrders implements GET /orders.
func (h handlers) ListOrders(ctx context.Context, r api.ListOrdersRequestObject) (api.ListOrdersResponseObject, error) {
	limit := limitOf(r.Params.Limit)
	before, err := beforeID(orderCursor, r.Params.Cursor)
	if err != nil {
		return nil, err
	}
	orders, err := h.service.Orders(ctx, accountOf(ctx),
		checkout.OrderPage{Before: before, Customer: r.Params.CustomerID, Limit: limit + 1})
	if err != nil {
		return nil, err
	}
	orders, next := page(orders, limit, func(last checkout.Order) string { return makeCursor(orderCursor, last.ID.String()) })
	return api.ListOrders200JSONResponse{Data: mapped(orders, wireOrder), NextCursor: next}, nil
}

// GetOrder implements GET /orders/{order_id}.
func (h handlers) GetOrder(ctx context.Context, r api.GetOrderRequestObject) (api.GetOrderResponseObject, error) {
	order, err := h.service.Order(ctx, accountOf(ctx), r.OrderID)
	return api.GetOrder200JSONResponse(wireOrder(order)), err
}

// CreateOrder implements POST /orders.
func (h handlers) CreateOrder(ctx context.Context, r api.CreateOrderRequestObject) (api.CreateOrderResponseObject, error) {
	wanted := checkout.NewOrder{CustomerID: r.Body.CustomerID, Items: make([]checkout.Wanted, len(r.Body.Items))}
	for i, item := range r.Body.Items {
		wanted.Items[i] = checkout.Wanted{SKU: item.Sku, Quantity: item.Quantity}
	}
	kept, err := h.service.PlaceOrder(ctx, callOf(ctx, "place_order", created(ctx, wireOrder, orderPath)), wanted)
	return answered(ctx, kept, err)
}

// UpdateOrder implements PATCH /orders/{order_id}.
func (h handlers) UpdateOrder(ctx context.Context, r api.UpdateOrderRequestObject) (api.UpdateOrderResponseObject, error) {
	change := checkout.OrderChange{ShippingAddress: addressOf(r.Body.ShippingAddress),
		Cancel: r.Body.Status != nil && *r.Body.Status == api.OrderUpdateStatusCancelled}
	kept, err := h.service.UpdateOrder(ctx, callOf(ctx, "update_order", changed(ctx, wireOrder, orderPath)), r.OrderID, change)
	return answered(ctx, kept, err)
}
