package postgres

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/postgres/internal/dbsqlc"
)

// Customer returns one customer.
func (s *Store) Customer(ctx context.Context, account, id uuid.UUID) (checkout.Customer, error) {
	return read(ctx, s, func(ctx context.Context, q *dbsqlc.Queries) (checkout.Customer, error) {
		row, err := q.GetCustomer(ctx, dbsqlc.GetCustomerParams{AccountID: account, ID: id})
		return customerOf(row), found("customer", err)
	})
}

// CreateCustomer makes a customer with an empty wallet.
func (s *Store) CreateCustomer(ctx context.Context, call checkout.Call, wanted checkout.NewCustomer) (checkout.Answer, error) {
	return onceUpToDate(ctx, s, call, func(ctx context.Context, tx *transaction) decision[checkout.Customer] {
		taken := tx.emailTaken(ctx, wanted.Email, uuid.Nil)
		return func() (checkout.Customer, checkout.Changes, *checkout.Error) {
			return checkout.CreateCustomer(wanted, *taken, newID(), tx.Now())
		}
	})
}

// UpdateCustomer changes a customer.
func (s *Store) UpdateCustomer(ctx context.Context, call checkout.Call, id uuid.UUID, change checkout.CustomerChange) (checkout.Answer, error) {
	return onceUpToDate(ctx, s, call, func(ctx context.Context, tx *transaction) decision[checkout.Customer] {
		customer := tx.lockCustomer(ctx, id)
		taken := tx.emailTaken(ctx, text(change.Email), id)
		return func() (checkout.Customer, checkout.Changes, *checkout.Error) {
			return checkout.UpdateCustomer(*customer, change, *taken, tx.Now())
		}
	})
}

// emailTaken queues a look whether another customer has the address.
func (tx *transaction) emailTaken(ctx context.Context, email string, except uuid.UUID) *bool {
	query := tx.EmailTaken(ctx, []dbsqlc.EmailTakenParams{{AccountID: tx.account, Email: email, NotID: except}})
	return loaded(tx, func() (bool, error) {
		taken, err := one(query)
		return taken, translate("look for the e-mail address", err)
	})
}

// requireCustomer queues a look at a customer. Loading fails if there is none.
func (tx *transaction) requireCustomer(ctx context.Context, id uuid.UUID) {
	query := tx.CustomerExists(ctx, []dbsqlc.CustomerExistsParams{{AccountID: tx.account, ID: id}})
	loaded(tx, func() (bool, error) {
		exists, err := one(query)
		return exists, foundCustomer(exists, err)
	})
}

// requireCustomerOfOrder queues a look at the customer of an order that is locked. Loading fails if
// the customer was erased.
func (tx *transaction) requireCustomerOfOrder(ctx context.Context, order uuid.UUID) {
	query := tx.CustomerOfOrderExists(ctx, []dbsqlc.CustomerOfOrderExistsParams{{AccountID: tx.account, OrderID: order}})
	loaded(tx, func() (bool, error) {
		exists, err := one(query)
		return exists, foundCustomer(exists, err)
	})
}

func foundCustomer(exists bool, err error) error {
	if err == nil && !exists {
		err = pgx.ErrNoRows
	}
	return found("customer", err)
}

func (tx *transaction) lockCustomer(ctx context.Context, id uuid.UUID) *checkout.Customer {
	query := tx.LockCustomer(ctx, []dbsqlc.LockCustomerParams{{AccountID: tx.account, ID: id}})
	return loaded(tx, func() (checkout.Customer, error) {
		row, err := one(query)
		return customerOf(row), found("customer", err)
	})
}

func (tx *transaction) insertCustomer(ctx context.Context, c checkout.Customer) {
	tx.InsertCustomer(ctx, []dbsqlc.InsertCustomerParams{{ID: c.ID, AccountID: tx.account, Name: c.Name, Email: c.Email,
		CreatedAt: c.CreatedAt, UpdatedAt: c.UpdatedAt}})
}

func (tx *transaction) updateCustomer(ctx context.Context, c checkout.Customer) {
	tx.UpdateCustomer(ctx, []dbsqlc.UpdateCustomerParams{{AccountID: tx.account, ID: c.ID, Name: c.Name, Email: c.Email,
		UpdatedAt: c.UpdatedAt}})
}

func customerOf(row dbsqlc.Customer) checkout.Customer {
	return checkout.Customer{ID: row.ID, Name: row.Name, Email: row.Email, CreatedAt: row.CreatedAt, UpdatedAt: row.UpdatedAt}
}
