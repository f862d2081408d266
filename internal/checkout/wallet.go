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

// TopUpWallet decides a top-up of a locked wallet.
func TopUpWallet(wallet Wallet, wanted NewTopUp, id uuid.UUID, now time.Time) (TopUp, Changes, *Error) {
	wallet, refused := wallet.credit(wanted.Amount, now)
	if refused != nil {
		return TopUp{}, Changes{}, refused
	}
	topUp := TopUp{ID: id, CustomerID: wallet.CustomerID, Amount: wanted.Amount, Balance: wallet.Balance, CreatedAt: now}
	return topUp, Changes{CreatedTopUp: &topUp, ChangedWallet: &wallet, Ledger: topUp.ledger(), Events: []Event{ToppedUp(topUp)}}, nil
}

// credit is the wallet with the amount put into it.
func (w Wallet) credit(amount Money, now time.Time) (Wallet, *Error) {
	if amount.Currency != w.Balance.Currency {
		return Wallet{}, w.otherCurrency(amount)
	}
	balance, fits := w.Balance.Plus(amount)
	if !fits || balance.Amount > MaxBalance {
		return Wallet{}, unprocessable("balance_too_large", "The wallet can't hold that much.")
	}
	w.Balance, w.UpdatedAt = balance, now
	return w, nil
}

// debit is the wallet with the amount taken out of it.
func (w Wallet) debit(amount Money, now time.Time) (Wallet, *Error) {
	if amount.Currency != w.Balance.Currency {
		return Wallet{}, w.otherCurrency(amount)
	}
	if w.Balance.Amount < amount.Amount {
		return Wallet{}, &Error{Kind: KindDeclined, Code: "insufficient_funds", Message: "The wallet does not cover the order. Nothing was charged."}
	}
	w.Balance.Amount, w.UpdatedAt = w.Balance.Amount-amount.Amount, now
	return w, nil
}

func (w Wallet) otherCurrency(amount Money) *Error {
	return unprocessable("currency_mismatch", "The wallet is in %s, the amount in %s.", w.Balance.Currency, amount.Currency)
}
