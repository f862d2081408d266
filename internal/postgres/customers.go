package postgres

import (
	"context"

	"github.com/google/uuid"

	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/postgres/internal/dbsqlc"
)

// Customer gives one customer.
func (s *Store) Customer(ctx context.Context, account, id uuid.UUID) (checkout.Customer, error) {
	return read(ctx, s, func(ctx context.Context, q *dbsqlc.Queries) (checkout.Customer, error) {
		row, err := q.GetCustomer(ctx, dbsqlc.GetCustomerParams{AccountID: account, ID: id})
		return customerOf(row), found("customer", err)
	})
}

// CreateCustomer makes a customer with an empty wallet. Whether the e-mail
// address is free shows at the commit.
func (s *Store) CreateCustomer(ctx context.Context, call checkout.Call, wanted checkout.NewCustomer,
	render checkout.Render[checkout.Customer],
) (checkout.Reply, error) {
	return once(ctx, s, call, render, func(ctx context.Context, tx *transaction) (checkout.Customer, error) {
		if err := tx.load(ctx); err != nil {
			return checkout.Customer{}, err
		}
		customer := checkout.Customer{ID: newID(), Name: wanted.Name, Email: wanted.Email, CreatedAt: tx.now, UpdatedAt: tx.now}
		tx.InsertCustomer(ctx, []dbsqlc.InsertCustomerParams{{ID: customer.ID, AccountID: tx.account, Name: customer.Name,
			Email: customer.Email, CreatedAt: customer.CreatedAt, UpdatedAt: customer.UpdatedAt}})
		tx.InsertWallet(ctx, []dbsqlc.InsertWalletParams{{CustomerID: customer.ID, AccountID: tx.account,
			Currency: checkout.WalletCurrency, UpdatedAt: tx.now}})
		return customer, tx.publish(ctx, checkout.CustomerCreated(customer))
	})
}

// UpdateCustomer changes a customer.
func (s *Store) UpdateCustomer(ctx context.Context, call checkout.Call, id uuid.UUID, change checkout.CustomerChange,
	render checkout.Render[checkout.Customer],
) (checkout.Reply, error) {
	return once(ctx, s, call, render, func(ctx context.Context, tx *transaction) (checkout.Customer, error) {
		lock := tx.LockCustomer(ctx, []dbsqlc.LockCustomerParams{{AccountID: tx.account, ID: id}})
		if err := tx.load(ctx); err != nil {
			return checkout.Customer{}, err
		}
		row, err := one(lock)
		if err != nil {
			return checkout.Customer{}, found("customer", err)
		}
		customer := customerOf(row).Apply(change)
		customer.UpdatedAt = tx.now
		tx.UpdateCustomer(ctx, []dbsqlc.UpdateCustomerParams{{AccountID: tx.account, ID: id, Name: customer.Name,
			Email: customer.Email, UpdatedAt: customer.UpdatedAt}})
		return customer, tx.publish(ctx, checkout.CustomerUpdated(customer))
	})
}

func customerOf(row dbsqlc.Customer) checkout.Customer {
	return checkout.Customer{ID: row.ID, Name: row.Name, Email: row.Email, CreatedAt: row.CreatedAt, UpdatedAt: row.UpdatedAt}
}
