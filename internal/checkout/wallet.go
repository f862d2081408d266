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
	after, refused := w.Credit(amount)
	if refused != nil {
		return TopUp{}, refused
	}
	return TopUp{ID: id, CustomerID: w.CustomerID, Amount: amount, Balance: after.Balance, CreatedAt: now}, nil
}

// Credit is the locked wallet with the amount put into it.
func (w Wallet) Credit(amount Money) (Wallet, *Error) {
	if amount.Currency != w.Balance.Currency {
		return Wallet{}, w.otherCurrency(amount)
	}
	balance, fits := w.Balance.Plus(amount)
	if !fits || balance.Amount > MaxBalance {
		return Wallet{}, unprocessable("balance_too_large", "The wallet can't hold that much.")
	}
	w.Balance = balance
	return w, nil
}

// Debit is the locked wallet with the amount taken out of it.
func (w Wallet) Debit(amount Money) (Wallet, *Error) {
	if amount.Currency != w.Balance.Currency {
		return Wallet{}, w.otherCurrency(amount)
	}
	if w.Balance.Amount < amount.Amount {
		return Wallet{}, &Error{Kind: KindDeclined, Code: "insufficient_funds", Message: "The wallet does not cover the order. Nothing was charged."}
	}
	w.Balance.Amount -= amount.Amount
	return w, nil
}

func (w Wallet) otherCurrency(amount Money) *Error {
	return unprocessable("currency_mismatch", "The wallet is in %s, the amount in %s.", w.Balance.Currency, amount.Currency)
}
