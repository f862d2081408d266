package checkout

import (
	"context"

	"github.com/google/uuid"
)

// Product returns one product.
func (s *Service) Product(ctx context.Context, account uuid.UUID, sku string) (Product, error) {
	return s.store.Product(ctx, account, sku)
}

// Products lists products by SKU.
func (s *Service) Products(ctx context.Context, account uuid.UUID, page ProductPage) ([]Product, error) {
	return s.store.Products(ctx, account, page)
}

// Customer returns one customer.
func (s *Service) Customer(ctx context.Context, account, id uuid.UUID) (Customer, error) {
	return s.store.Customer(ctx, account, id)
}

// Wallet returns the wallet of a customer.
func (s *Service) Wallet(ctx context.Context, account, customer uuid.UUID) (Wallet, error) {
	return s.store.Wallet(ctx, account, customer)
}

// Order returns one order.
func (s *Service) Order(ctx context.Context, account, id uuid.UUID) (Order, error) {
	return s.store.Order(ctx, account, id)
}

// Orders lists orders, newest first.
func (s *Service) Orders(ctx context.Context, account uuid.UUID, page OrderPage) ([]Order, error) {
	return s.store.Orders(ctx, account, page)
}

// Payment returns one payment.
func (s *Service) Payment(ctx context.Context, account, id uuid.UUID) (Payment, error) {
	return s.store.Payment(ctx, account, id)
}

// Payments lists the payments of an order, newest first.
func (s *Service) Payments(ctx context.Context, account, order uuid.UUID, page Page) ([]Payment, error) {
	return s.store.Payments(ctx, account, order, page)
}

// Refunds lists the refunds of a payment, newest first.
func (s *Service) Refunds(ctx context.Context, account, payment uuid.UUID, page Page) ([]Refund, error) {
	return s.store.Refunds(ctx, account, payment, page)
}

// Key returns what is known of an idempotency key.
func (s *Service) Key(ctx context.Context, account uuid.UUID, key string) (Key, error) {
	return s.store.Key(ctx, account, key)
}
