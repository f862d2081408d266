package postgres

import (
	"context"

	"github.com/google/uuid"

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
func (s *Store) CreateCustomer(ctx context.Context, call checkout.Call, wanted checkout.NewCustomer,
	render checkout.Render[checkout.Customer],
) (checkout.Answer, error) {
	return onceUpToDate(ctx, s, call, render, func(ctx context.Context, tx *transaction) (checkout.Customer, error) {
		checkEmail := tx.checkEmail(ctx, wanted.Email, uuid.Nil)
		if err := tx.load(ctx); err != nil {
			return checkout.Customer{}, err
		}
		if err := checkEmail(); err != nil {
			return checkout.Customer{}, err
		}
		customer := checkout.Customer{ID: newID(), Name: wanted.Name, Email: wanted.Email, CreatedAt: tx.now, UpdatedAt: tx.now}
		tx.insertCustomer(ctx, customer)
		tx.insertWallet(ctx, customer.ID)
		return customer, tx.publish(ctx, checkout.CustomerCreated(customer))
	})
}

// UpdateCustomer changes a customer.
func (s *Store) UpdateCustomer(ctx context.Context, call checkout.Call, id uuid.UUID, change checkout.CustomerChange,
	render checkout.Render[checkout.Customer],
) (checkout.Answer, error) {
	return onceUpToDate(ctx, s, call, render, func(ctx context.Context, tx *transaction) (checkout.Customer, error) {
		lockCustomer := tx.lockCustomer(ctx, id)
		checkEmail := tx.checkEmail(ctx, text(change.Email), id)
		if err := tx.load(ctx); err != nil {
			return checkout.Customer{}, err
		}
		customer, err := lockCustomer()
		if err != nil {
			return checkout.Customer{}, err
		}
		if err := checkEmail(); err != nil {
			return checkout.Customer{}, err
		}
		customer = customer.Apply(change)
		customer.UpdatedAt = tx.now
		tx.updateCustomer(ctx, customer)
		return customer, tx.publish(ctx, checkout.CustomerUpdated(customer))
	})
}

// checkEmail queues a look whether another customer has the address. The result is an error if so.
func (tx *transaction) checkEmail(ctx context.Context, email string, except uuid.UUID) func() error {
	query := tx.EmailTaken(ctx, []dbsqlc.EmailTakenParams{{AccountID: tx.account, Email: email, NotID: except}})
	return func() error {
		taken, err := one(query)
		if err == nil && taken {
			return checkout.EmailTaken()
		}
		return translate("look for the e-mail address", err)
	}
}

// customerExists queues a look at a customer. The result is an error if there is none.
func (tx *transaction) customerExists(ctx context.Context, id uuid.UUID) func() error {
	query := tx.CustomerExists(ctx, []dbsqlc.CustomerExistsParams{{AccountID: tx.account, ID: id}})
	return func() error {
		exists, err := one(query)
		if err == nil && !exists {
			return checkout.NotFound("customer")
		}
		return found("customer", err)
	}
}

func (tx *transaction) lockCustomer(ctx context.Context, id uuid.UUID) later[checkout.Customer] {
	query := tx.LockCustomer(ctx, []dbsqlc.LockCustomerParams{{AccountID: tx.account, ID: id}})
	return func() (checkout.Customer, error) {
		row, err := one(query)
		return customerOf(row), found("customer", err)
	}
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
