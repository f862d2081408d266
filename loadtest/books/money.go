package books

import (
	"maps"
	"slices"
)

// MaxDeclines is how many card payments of one order may be declined.
const MaxDeclines = 20

// Paid are the payments that succeeded.
func (b Books) Paid() []Payment {
	return slices.DeleteFunc(slices.Clone(b.Payments), func(p Payment) bool { return p.Status != succeeded })
}

// Refunded are the refunds that succeeded.
func (b Books) Refunded() []Refund {
	return slices.DeleteFunc(slices.Clone(b.Refunds), func(r Refund) bool { return r.Status != succeeded })
}

// charges matches the provider's charges with the card payments that succeeded, by order.
func charges(b Books) []Violation {
	want := map[string]int64{}
	for _, p := range b.Paid() {
		if p.Method == "card" {
			want[p.Order] = p.Amount
		}
	}
	return pair(OneCharge, want, b.Charges, b.owners())
}

func providerRefunds(b Books) []Violation {
	card := map[string]bool{}
	for _, p := range b.Payments {
		card[p.ID] = p.Method == "card"
	}
	want := map[string]int64{}
	for _, r := range b.Refunded() {
		if card[r.Payment] {
			want[r.ID] = r.Amount
		}
	}
	return pair(OneRefund, want, b.ProviderRefunds, b.owners())
}

func declines(b Books) (found []Violation) {
	count, owners := map[string]int{}, b.owners()
	for _, p := range b.Payments {
		if p.Status == "declined" {
			count[p.Order]++
		}
	}
	for order, n := range count {
		if n > MaxDeclines {
			found = append(found, Broken(DeclinesLimited, "order %s: %d payments were declined", order, n).Of(owners[order]))
		}
	}
	return found
}

// ledger checks that each movement of money has one balanced transaction, and that there is no
// other.
func ledger(b Books) (found []Violation) {
	moved := map[string]int64{}
	for _, p := range b.Paid() {
		moved[p.ID] = p.Amount
	}
	for _, r := range b.Refunded() {
		moved[r.ID] = r.Amount
	}
	for _, t := range b.TopUps {
		moved[t.ID] = t.Amount
	}
	owners := b.owners()
	var entered []Charge
	for _, t := range b.Transactions {
		if t.Sum != 0 {
			found = append(found, Broken(LedgerBalances, "transaction %s of %s: sum %d", t.ID, t.Subject, t.Sum).Of(owners[t.Subject]))
		}
		entered = append(entered, Charge{ID: t.ID, Reference: t.Subject, Status: succeeded, Amount: t.Volume})
	}
	return append(found, pair(LedgerBalances, moved, entered, owners)...)
}

// pair matches a list with the amounts that we want in it, by reference.
func pair(rule Rule, want map[string]int64, is []Charge, owners map[string]KeyID) (found []Violation) {
	for _, c := range is {
		if c.Status != succeeded {
			continue
		}
		amount, ok := want[c.Reference]
		delete(want, c.Reference) // so that a second one finds none
		if !ok || amount != c.Amount {
			found = append(found, Broken(rule, "%s moved %d for %s, want %d (known: %t)", c.ID, c.Amount, c.Reference, amount, ok).Of(owners[c.Reference]))
		}
	}
	for reference, amount := range want {
		found = append(found, Broken(rule, "%s of %d: nothing was moved", reference, amount).Of(owners[reference]))
	}
	return found
}

func wallets(b Books) (found []Violation) {
	want := map[string]int64{}
	for customer := range b.Wallets {
		want[customer] = 0
	}
	for _, t := range b.TopUps {
		want[t.Customer] += t.Amount
	}
	owner := map[string]string{}
	for _, p := range b.Paid() {
		if p.Method == "wallet" {
			owner[p.ID] = p.Customer
			want[p.Customer] -= p.Amount
		}
	}
	for _, r := range b.Refunded() {
		if customer, ok := owner[r.Payment]; ok {
			want[customer] += r.Amount
		}
	}
	for _, customer := range slices.Sorted(maps.Keys(want)) {
		if b.Wallets[customer] != want[customer] {
			found = append(found, Broken(WalletsMatch, "%s: want %d, is %d", customer, want[customer], b.Wallets[customer]))
		}
	}
	return found
}
