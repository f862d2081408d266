package checkout

import "testing"

// purse is a wallet of 10 dollars.
var purse = Wallet{CustomerID: buyer, Balance: usd(1000), UpdatedAt: begun}

// holding is the wallet after a decision.
func holding(amount int64) *Wallet {
	return &Wallet{CustomerID: buyer, Balance: usd(amount), UpdatedAt: now}
}

func TestTopUpWallet_MovesTheMoney(t *testing.T) {
	t.Parallel()
	topUp := TopUp{ID: newID, CustomerID: buyer, Amount: usd(250), Balance: usd(1250), CreatedAt: now}
	value, changes, refused := TopUpWallet(purse, NewTopUp{CustomerID: buyer, Amount: usd(250)}, newID, now)
	requireDecided(t, topUp, Changes{CreatedTopUp: &topUp, ChangedWallet: holding(1250),
		Ledger: moved("top_up", newID, "funding", "wallet:"+buyer.String(), 250), Events: []Event{ToppedUp(topUp)}}, value, changes, refused)
}

func TestTopUpWallet_IsBounded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		balance int64
		amount  Money
		code    string
	}{
		{MaxBalance - 9, usd(10), "balance_too_large"},
		{1, usd(1<<63 - 1), "balance_too_large"},
		{1, eur(1), "currency_mismatch"},
	} {
		full := in(purse, func(w *Wallet) { w.Balance.Amount = c.balance })
		value, changes, refused := TopUpWallet(full, NewTopUp{CustomerID: buyer, Amount: c.amount}, newID, now)
		requireRefused(t, c.code, false, value, changes, refused)
	}
	full := in(purse, func(w *Wallet) { w.Balance.Amount = MaxBalance - 10 })
	if _, _, refused := TopUpWallet(full, NewTopUp{CustomerID: buyer, Amount: usd(10)}, newID, now); refused != nil {
		t.Fatal(refused)
	}
}
