package postgres

import (
	"context"

	"github.com/google/uuid"

	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/postgres/internal/dbsqlc"
)

// Wallet gives the wallet of a customer.
func (s *Store) Wallet(ctx context.Context, account, customer uuid.UUID) (checkout.Wallet, error) {
	return read(ctx, s, func(ctx context.Context, q *dbsqlc.Queries) (checkout.Wallet, error) {
		row, err := q.GetWallet(ctx, dbsqlc.GetWalletParams{AccountID: account, CustomerID: customer})
		return walletOf(row), found("customer", err)
	})
}

// TopUp puts money into a wallet.
func (s *Store) TopUp(ctx context.Context, call checkout.Call, wanted checkout.NewTopUp,
	render checkout.Render[checkout.TopUp],
) (checkout.Reply, error) {
	return once(ctx, s, call, render, func(ctx context.Context, tx *transaction) (checkout.TopUp, error) {
		lock := tx.LockWallet(ctx, []dbsqlc.LockWalletParams{{AccountID: tx.account, CustomerID: wanted.CustomerID}})
		if err := tx.load(ctx); err != nil {
			return checkout.TopUp{}, err
		}
		row, err := one(lock)
		if err != nil {
			return checkout.TopUp{}, found("customer", err)
		}
		topUp, refused := walletOf(row).TopUp(newID(), wanted.Amount, tx.now)
		if refused != nil {
			return checkout.TopUp{}, refused
		}
		tx.InsertTopUp(ctx, []dbsqlc.InsertTopUpParams{{ID: topUp.ID, AccountID: tx.account, CustomerID: topUp.CustomerID,
			Amount: topUp.Amount.Amount, Currency: topUp.Amount.Currency, Balance: topUp.Balance.Amount, CreatedAt: topUp.CreatedAt}})
		tx.setBalance(ctx, topUp.CustomerID, topUp.Balance)
		tx.post(ctx, topUp.Ledger(newID()))
		return topUp, tx.publish(ctx, checkout.ToppedUp(topUp))
	})
}

func (tx *transaction) setBalance(ctx context.Context, customer uuid.UUID, balance checkout.Money) {
	tx.SetBalance(ctx, []dbsqlc.SetBalanceParams{{AccountID: tx.account, CustomerID: customer,
		Balance: balance.Amount, UpdatedAt: tx.now}})
}

func walletOf(row dbsqlc.Wallet) checkout.Wallet {
	return checkout.Wallet{CustomerID: row.CustomerID, UpdatedAt: row.UpdatedAt,
		Balance: checkout.Money{Amount: row.Balance, Currency: row.Currency}}
}
