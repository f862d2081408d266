package checkout

import (
	"time"

	"github.com/google/uuid"
)

// WalletCurrency is the currency of every wallet.
const WalletCurrency = "USD"

// Wallet is a customer's balance with the shop; it never goes below zero.
type Wallet struct {
	CustomerID uuid.UUID
	Balance    Money
	UpdatedAt  time.Time
}

// TopUp puts money into a wallet.
type TopUp struct {
	ID         uuid.UUID
	CustomerID uuid.UUID
	Amount     Money
	Balance    Money // after the top-up
	CreatedAt  time.Time
}

// NewTopUp asks for a top-up.
type NewTopUp struct {
	CustomerID uuid.UUID
	Amount     Money
}

// TopUp decides a top-up of the locked wallet.
func (w Wallet) TopUp(id uuid.UUID, amount Money, now time.Time) (TopUp, *Error) {
	if amount.Currency != w.Balance.Currency {
		return TopUp{}, unprocessable("currency_mismatch", "The wallet is in %s.", w.Balance.Currency)
	}
	balance, fits := w.Balance.Plus(amount)
	if !fits {
		return TopUp{}, unprocessable("balance_too_large", "The wallet can't hold that much.")
	}
	return TopUp{ID: id, CustomerID: w.CustomerID, Amount: amount, Balance: balance, CreatedAt: now}, nil
}

// CheckCovers says whether the locked wallet can pay the amount.
func (w Wallet) CheckCovers(amount Money) *Error {
	if amount.Currency != w.Balance.Currency {
		return unprocessable("currency_mismatch", "The wallet is in %s, the order in %s.", w.Balance.Currency, amount.Currency)
	}
	if w.Balance.Amount < amount.Amount {
		return &Error{Kind: KindDeclined, Code: "insufficient_funds", Message: "The wallet does not cover the order. Nothing was charged."}
	}
	return nil
}
