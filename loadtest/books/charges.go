package books

import "slices"

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

// movements are how often something was moved, and how much in all.
type movements struct {
	times int
	sum   int64
}

func (m movements) and(amount int64) movements { return movements{m.times + 1, m.sum + amount} }

// charges matches the provider's charges with the card payments that succeeded, by order.
func charges(b Books) []Violation {
	want := map[string]movements{}
	for _, p := range b.Paid() {
		if p.Method == "card" {
			want[p.Order] = movements{1, p.Amount}
		}
	}
	return Differ(OneCharge, "charged for order", want, moved(b.Charges), b.owners())
}

func providerRefunds(b Books) []Violation {
	card := map[string]bool{}
	for _, p := range b.Payments {
		card[p.ID] = p.Method == "card"
	}
	want := map[string]movements{}
	for _, r := range b.Refunded() {
		if card[r.Payment] {
			want[r.ID] = movements{1, r.Amount}
		}
	}
	return Differ(OneRefund, "given back for refund", want, moved(b.ProviderRefunds), b.owners())
}

// moved is what the provider moved, by reference.
func moved(list []Charge) map[string]movements {
	all := map[string]movements{}
	for _, c := range list {
		if c.Status == succeeded {
			all[c.Reference] = all[c.Reference].and(c.Amount)
		}
	}
	return all
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
	want, entered, owners := map[string]movements{}, map[string]movements{}, b.owners()
	for _, p := range b.Paid() {
		want[p.ID] = movements{1, p.Amount}
	}
	for _, r := range b.Refunded() {
		want[r.ID] = movements{1, r.Amount}
	}
	for _, t := range b.TopUps {
		want[t.ID] = movements{1, t.Amount}
	}
	for _, t := range b.Transactions {
		entered[t.Subject] = entered[t.Subject].and(t.Volume)
		if t.Sum != 0 {
			found = append(found, Broken(LedgerBalances, "transaction %s of %s: sum %d", t.ID, t.Subject, t.Sum).Of(owners[t.Subject]))
		}
	}
	return append(found, Differ(LedgerBalances, "entered for", want, entered, owners)...)
}

func wallets(b Books) []Violation {
	want := map[string]int64{}
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
	return Differ(WalletsMatch, "in the wallet of", want, b.Wallets, nil)
}
