package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/postgres/internal/dbsqlc"
)

// Order returns one order.
func (s *Store) Order(ctx context.Context, account, id uuid.UUID) (checkout.Order, error) {
	return read(ctx, s, func(ctx context.Context, q *dbsqlc.Queries) (checkout.Order, error) {
		row, err := q.GetOrder(ctx, dbsqlc.GetOrderParams{AccountID: account, ID: id})
		if err != nil {
			return checkout.Order{}, found("order", err)
		}
		return orderOf(row.Order, row.Items)
	})
}

// Orders lists orders, newest first.
func (s *Store) Orders(ctx context.Context, account uuid.UUID, page checkout.OrderPage) ([]checkout.Order, error) {
	return read(ctx, s, func(ctx context.Context, q *dbsqlc.Queries) ([]checkout.Order, error) {
		rows, err := q.ListOrders(ctx, dbsqlc.ListOrdersParams{AccountID: account, Before: page.Before,
			Customer: page.Customer, PageSize: page.Limit})
		if err != nil {
			return nil, translate("list orders", err)
		}
		orders := make([]checkout.Order, len(rows))
		for i, row := range rows {
			if orders[i], err = orderOf(row.Order, row.Items); err != nil {
				return nil, err
			}
		}
		return orders, nil
	})
}

// PlaceOrder reserves stock for an order, or reserves nothing.
func (s *Store) PlaceOrder(ctx context.Context, call checkout.Call, wanted checkout.NewOrder) (checkout.Answer, error) {
	return onceUpToDate(ctx, s, call, placeOrder(wanted))
}

// placeOrder locks nothing before it writes.
func placeOrder(wanted checkout.NewOrder) command[checkout.Order] {
	return func(ctx context.Context, tx *transaction) decision[checkout.Order] {
		tx.requireCustomer(ctx, wanted.CustomerID)
		products := tx.readProducts(ctx, skusOf(wanted.Items))
		return func() (checkout.Order, checkout.Changes, *checkout.Error) {
			return checkout.PlaceOrder(wanted, *products, newID(), tx.Now(), tx.store.unpaidFor)
		}
	}
}

// UpdateOrder changes the address of an order, or cancels it and returns its stock.
func (s *Store) UpdateOrder(ctx context.Context, call checkout.Call, id uuid.UUID, change checkout.OrderChange) (checkout.Answer, error) {
	return once(ctx, s, call, func(ctx context.Context, tx *transaction) decision[checkout.Order] {
		order := tx.lockOrder(ctx, id)
		if change.ShippingAddress != nil {
			tx.requireCustomerOfOrder(ctx, id)
		}
		return func() (checkout.Order, checkout.Changes, *checkout.Error) {
			return checkout.UpdateOrder(*order, change, tx.Now())
		}
	})
}

func skusOf(items []checkout.Wanted) []string {
	skus := make([]string, len(items))
	for i, item := range items {
		skus[i] = item.SKU
	}
	return skus
}

func (tx *transaction) lockOrder(ctx context.Context, id uuid.UUID) *checkout.Order {
	query := tx.LockOrder(ctx, []dbsqlc.LockOrderParams{{AccountID: tx.account, ID: id}})
	return loaded(tx, func() (checkout.Order, error) {
		row, err := one(query)
		if err != nil {
			return checkout.Order{}, found("order", err)
		}
		return orderOf(row.Order, row.Items)
	})
}

// lockOrderOfPayment queues the lock of a payment's order, before that of the payment.
func (tx *transaction) lockOrderOfPayment(ctx context.Context, payment uuid.UUID) *checkout.Order {
	query := tx.LockOrderOfPayment(ctx, []dbsqlc.LockOrderOfPaymentParams{{AccountID: tx.account, PaymentID: payment}})
	return loaded(tx, func() (checkout.Order, error) {
		row, err := one(query)
		if err != nil {
			return checkout.Order{}, found("payment", err)
		}
		return orderOf(row.Order, row.Items)
	})
}

func (tx *transaction) insertOrder(ctx context.Context, order checkout.Order) {
	tx.InsertOrder(ctx, []dbsqlc.InsertOrderParams{{ID: order.ID, AccountID: tx.account, CustomerID: order.CustomerID,
		Status: string(order.Status), TotalAmount: order.Total.Amount, TotalCurrency: order.Total.Currency,
		CreatedAt: order.CreatedAt, UpdatedAt: order.UpdatedAt, ExpiresAt: order.ExpiresAt}})
	items := make([]dbsqlc.InsertOrderItemParams, len(order.Items))
	for i, item := range order.Items {
		items[i] = dbsqlc.InsertOrderItemParams{OrderID: order.ID, Position: int32(i), AccountID: tx.account,
			Sku: item.SKU, Name: item.Name, Quantity: item.Quantity, UnitPrice: item.UnitPrice.Amount}
	}
	tx.InsertOrderItem(ctx, items)
}

// updateOrder queues the columns of an order that may change.
func (tx *transaction) updateOrder(ctx context.Context, order checkout.Order) error {
	var stored []byte
	if order.ShippingAddress != nil {
		var err error
		if stored, err = json.Marshal(address(*order.ShippingAddress)); err != nil {
			return fmt.Errorf("encode the shipping address: %w", err)
		}
	}
	tx.UpdateOrder(ctx, []dbsqlc.UpdateOrderParams{{AccountID: tx.account, ID: order.ID, Status: string(order.Status),
		ShippingAddress: stored, UpdatedAt: order.UpdatedAt}})
	return nil
}

// address is how an address is stored.
type address struct {
	Line1      string `json:"line1"`
	Line2      string `json:"line2"`
	City       string `json:"city"`
	PostalCode string `json:"postal_code"`
	Country    string `json:"country"`
}

// item is a row of order_items as JSON.
type item struct {
	SKU       string `json:"sku"`
	Name      string `json:"name"`
	Quantity  int32  `json:"quantity"`
	UnitPrice int64  `json:"unit_price"`
}

func orderOf(row dbsqlc.Order, itemsJSON []byte) (checkout.Order, error) {
	order := checkout.Order{ID: row.ID, CustomerID: row.CustomerID, Status: checkout.OrderStatus(row.Status),
		Total:     checkout.Money{Amount: row.TotalAmount, Currency: row.TotalCurrency},
		CreatedAt: row.CreatedAt, UpdatedAt: row.UpdatedAt, ExpiresAt: row.ExpiresAt}
	var items []item
	if err := json.Unmarshal(itemsJSON, &items); err != nil {
		return checkout.Order{}, fmt.Errorf("decode the items of order %s: %w", row.ID, err)
	}
	for _, i := range items {
		order.Items = append(order.Items, checkout.OrderItem{SKU: i.SKU, Name: i.Name, Quantity: i.Quantity,
			UnitPrice: checkout.Money{Amount: i.UnitPrice, Currency: row.TotalCurrency}})
	}
	if row.ShippingAddress != nil {
		var stored address
		if err := json.Unmarshal(row.ShippingAddress, &stored); err != nil {
			return checkout.Order{}, fmt.Errorf("decode the address of order %s: %w", row.ID, err)
		}
		order.ShippingAddress = (*checkout.Address)(&stored)
	}
	return order, nil
}
