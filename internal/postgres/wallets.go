package postgres

import (
	"context"

	"github.com/google/uuid"

	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/postgres/internal/dbsqlc"
)

// Wallet returns the wallet of a customer.
func (s *Store) Wallet(ctx context.Context, account, customer uuid.UUID) (checkout.Wallet, error) {
	return read(ctx, s, func(ctx context.Context, q *dbsqlc.Queries) (checkout.Wallet, error) {
		row, err := q.GetWallet(ctx, dbsqlc.GetWalletParams{AccountID: account, CustomerID: customer})
		return walletOf(row), found("customer", err)
	})
}

// TopUp puts money into a wallet.
func (s *Store) TopUp(ctx context.Context, call checkout.Call, wanted checkout.NewTopUp) (checkout.Answer, error) {
	return once(ctx, s, call, func(ctx context.Context, tx *transaction) decision[checkout.TopUp] {
		wallet := tx.lockWallet(ctx, wanted.CustomerID)
		return func() (checkout.TopUp, checkout.Changes, *checkout.Error) {
			return checkout.TopUpWallet(*wallet, wanted, newID(), tx.Now())
		}
	})
}

func (tx *transaction) lockWallet(ctx context.Context, customer uuid.UUID) *checkout.Wallet {
	return loadedWallet(tx, tx.LockWallet(ctx, []dbsqlc.LockWalletParams{{AccountID: tx.account, CustomerID: customer}}))
}

func (tx *transaction) lockWalletOfOrder(ctx context.Context, order uuid.UUID) *checkout.Wallet {
	return loadedWallet(tx, tx.LockWalletOfOrder(ctx, []dbsqlc.LockWalletOfOrderParams{{AccountID: tx.account, OrderID: order}}))
}

func (tx *transaction) lockWalletOfPayment(ctx context.Context, payment uuid.UUID) *checkout.Wallet {
	return loadedWallet(tx, tx.LockWalletOfPayment(ctx, []dbsqlc.LockWalletOfPaymentParams{{AccountID: tx.account, PaymentID: payment}}))
}

func loadedWallet(tx *transaction, query rowOf[dbsqlc.Wallet]) *checkout.Wallet {
	return loaded(tx, func() (checkout.Wallet, error) {
		row, err := one(query)
		return walletOf(row), found("customer", err)
	})
}

// insertWallet queues an empty wallet.
func (tx *transaction) insertWallet(ctx context.Context, w checkout.Wallet) {
	tx.InsertWallet(ctx, []dbsqlc.InsertWalletParams{{CustomerID: w.CustomerID, AccountID: tx.account,
		Currency: w.Balance.Currency, UpdatedAt: w.UpdatedAt}})
}

func (tx *transaction) insertTopUp(ctx context.Context, t checkout.TopUp) {
	tx.InsertTopUp(ctx, []dbsqlc.InsertTopUpParams{{ID: t.ID, AccountID: tx.account, CustomerID: t.CustomerID,
		Amount: t.Amount.Amount, Currency: t.Amount.Currency, Balance: t.Balance.Amount, CreatedAt: t.CreatedAt}})
}

func (tx *transaction) setBalance(ctx context.Context, w checkout.Wallet) {
	tx.SetBalance(ctx, []dbsqlc.SetBalanceParams{{AccountID: tx.account, CustomerID: w.CustomerID,
		Balance: w.Balance.Amount, UpdatedAt: w.UpdatedAt}})
}

func walletOf(row dbsqlc.Wallet) checkout.Wallet {
	return checkout.Wallet{CustomerID: row.CustomerID, UpdatedAt: row.UpdatedAt,
		Balance: checkout.Money{Amount: row.Balance, Currency: row.Currency}}
}
