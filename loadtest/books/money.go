package books

import (
	"maps"
	"slices"
)

// charges matches the provider's charges with the card payments that succeeded, by order.
func charges(b Books) []Violation {
	want := map[string]int64{}
	for _, p := range b.Payments {
		if p.Method == "card" && p.Status == "succeeded" {
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
	for _, r := range b.Refunds {
		if card[r.Payment] && r.Status == "succeeded" {
			want[r.ID] = r.Amount
		}
	}
	return pair(OneRefund, want, b.ProviderRefunds, b.owners())
}

// MaxDeclines is how many card payments of one order may be declined.
const MaxDeclines = 20

func declines(b Books) []Violation {
	count := map[string]int{}
	for _, p := range b.Payments {
		if p.Status == "declined" {
			count[p.Order]++
		}
	}
	found, owners := []Violation(nil), b.owners()
	for order, n := range count {
		if n > MaxDeclines {
			found = append(found, Broken(DeclinesLimited, "order %s: %d payments were declined", order, n).Of(owners[order]))
		}
	}
	return found
}

// pair matches the provider's list with the amounts that we want in it, by reference.
func pair(rule Rule, want map[string]int64, is []Charge, owners map[string]KeyID) []Violation {
	var found []Violation
	for _, c := range is {
		if c.Status != "succeeded" {
			continue
		}
		amount, ok := want[c.Reference]
		delete(want, c.Reference) // so that a second one finds none
		if !ok || amount != c.Amount {
			found = append(found, Broken(rule, "the provider moved %d (%s) for %s, ours is %d (known: %t)", c.Amount, c.ID, c.Reference, amount, ok).Of(owners[c.Reference]))
		}
	}
	for reference, amount := range want {
		found = append(found, Broken(rule, "%s of %d: the provider moved nothing", reference, amount).Of(owners[reference]))
	}
	return found
}

// ledger checks that each movement of money has one balanced transaction, and that there is no
// other.
func ledger(b Books) []Violation {
	moved := map[string]int64{}
	for _, p := range b.Payments {
		if p.Status == "succeeded" {
			moved[p.ID] = p.Amount
		}
	}
	for _, r := range b.Refunds {
		if r.Status == "succeeded" {
			moved[r.ID] = r.Amount
		}
	}
	for _, t := range b.TopUps {
		moved[t.ID] = t.Amount
	}
	found, owners := []Violation(nil), b.owners()
	for _, t := range b.Transactions {
		amount, ok := moved[t.Subject]
		delete(moved, t.Subject)
		if !ok || t.Sum != 0 || t.Volume != amount {
			found = append(found, Broken(LedgerBalances, "transaction %s of %s: sum %d, volume %d, want %d (known: %t)", t.ID, t.Subject, t.Sum, t.Volume, amount, ok).Of(owners[t.Subject]))
		}
	}
	for id, amount := range moved {
		found = append(found, Broken(LedgerBalances, "%s of %d has no transaction", id, amount).Of(owners[id]))
	}
	return found
}

func wallets(b Books) []Violation {
	want := map[string]int64{}
	for customer := range b.Wallets {
		want[customer] = 0
	}
	for _, t := range b.TopUps {
		want[t.Customer] += t.Amount
	}
	owner := map[string]string{}
	for _, p := range b.Payments {
		if p.Method == "wallet" && p.Status == "succeeded" {
			owner[p.ID] = p.Customer
			want[p.Customer] -= p.Amount
		}
	}
	for _, r := range b.Refunds {
		if customer, ok := owner[r.Payment]; ok && r.Status == "succeeded" {
			want[customer] += r.Amount
		}
	}
	var found []Violation
	for _, customer := range slices.Sorted(maps.Keys(want)) {
		if b.Wallets[customer] != want[customer] {
			found = append(found, Broken(WalletsMatch, "%s: want %d, is %d", customer, want[customer], b.Wallets[customer]))
		}
	}
	return found
}
