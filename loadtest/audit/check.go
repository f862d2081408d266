package audit

import (
	"maps"
	"slices"
)

// Opening is what there was before the first request of the load.
type Opening struct {
	Wallets map[string]int64 // top-ups by customer ID, minor units
	Stock   map[string]int64 // by SKU
}

// State is what the system and the provider hold after the load.
type State struct {
	Orders   []OrderRow         // all orders of the load's customers
	Payments map[string]Payment // by ID; the acknowledged ones that exist
	Charges  []Charge           // of those orders, or of acknowledged ones
	Wallets  map[string]int64   // balance by customer ID, minor units
	Stock    map[string]int64   // by SKU
	Events   *Events            // nil: they were not measured
}

// OrderRow is an order as the API lists it.
type OrderRow struct {
	ID, Customer, Status string
	Total                int64
	Items                map[string]int64 // quantity by SKU
}

// Payment is a payment as the API reads it.
type Payment struct {
	Order, Method, Status string
	Amount                int64
}

// Charge is an entry of the provider's own list.
type Charge struct {
	ID        string `json:"id"`
	Reference string `json:"reference"` // the order's ID
	Status    string `json:"status"`
	Amount    int64  `json:"amount"`
	Attempts  int    `json:"attempts"` // how often the provider was asked
}

// Check compares what was promised with what is there; it finds nothing when
// every key had one effect, and nothing else had any.
func Check(b *Book, opening Opening, s State) []Finding {
	return slices.Concat(
		b.unacknowledged(),
		checkOrders(b, s),
		checkPayments(b, s),
		checkCharges(b, s),
		checkAmounts(WrongBalance, balances(b, opening), s.Wallets),
		checkAmounts(WrongStock, stock(b, opening), s.Stock),
		checkEvents(s.Events),
	)
}

func checkOrders(b *Book, s State) []Finding {
	paid := map[string]bool{}
	for _, op := range []Operation{Card, Wallet} {
		for e := range b.acknowledged(op) {
			paid[e.Order] = true
		}
	}
	rows := map[string]OrderRow{}
	var found []Finding
	for _, row := range s.Orders {
		if _, twice := rows[row.ID]; twice {
			found = append(found, finding(SurplusOrder, "order %s is listed twice", row.ID))
		}
		rows[row.ID] = row
	}
	for e := range b.acknowledged(Order) {
		row, ok := rows[e.id]
		delete(rows, e.id)
		want := "pending"
		if paid[e.id] {
			want = "paid"
		}
		switch {
		case !ok:
			found = append(found, finding(LostOrder, "order %s, key %s", e.id, e.Key))
		case row.Status != want, row.Customer != e.Customer, row.Total != e.Amount, !maps.Equal(row.Items, e.Items):
			found = append(found, finding(WrongOrder, "order %s, key %s: want %s %d %v, is %+v", e.id, e.Key, want, e.Amount, e.Items, row))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(rows)) {
		found = append(found, finding(SurplusOrder, "order %s of customer %s", id, rows[id].Customer))
	}
	return found
}

func checkPayments(b *Book, s State) []Finding {
	var found []Finding
	for _, op := range []Operation{Card, Wallet} {
		method := map[Operation]string{Card: "card", Wallet: "wallet"}[op]
		for e := range b.acknowledged(op) {
			want := Payment{Order: e.Order, Method: method, Status: "succeeded", Amount: e.Amount}
			is, ok := s.Payments[e.id]
			switch {
			case !ok:
				found = append(found, finding(LostPayment, "payment %s, key %s", e.id, e.Key))
			case is != want:
				found = append(found, finding(WrongPayment, "payment %s, key %s: want %+v, is %+v", e.id, e.Key, want, is))
			}
		}
	}
	return found
}

// checkCharges wants one charge per card payment, asked for once.
func checkCharges(b *Book, s State) []Finding {
	charges := map[string][]Charge{}
	for _, c := range s.Charges {
		charges[c.Reference] = append(charges[c.Reference], c)
	}
	var found []Finding
	for e := range b.acknowledged(Card) {
		of := charges[e.Order]
		if len(of) == 0 {
			found = append(found, finding(LostCharge, "order %s, key %s", e.Order, e.Key))
			continue
		}
		if c := of[0]; c.Status != "succeeded" || c.Amount != e.Amount || c.Attempts != 1 {
			found = append(found, finding(WrongCharge, "order %s, key %s: want one of %d, is %+v", e.Order, e.Key, e.Amount, c))
		}
		charges[e.Order] = of[1:]
	}
	for _, order := range slices.Sorted(maps.Keys(charges)) {
		for _, c := range charges[order] {
			found = append(found, finding(SurplusCharge, "order %s: %+v", order, c))
		}
	}
	return found
}

func balances(b *Book, opening Opening) map[string]int64 {
	want := maps.Clone(opening.Wallets)
	for e := range b.acknowledged(Wallet) {
		want[e.Customer] -= e.Amount
	}
	return want
}

func stock(b *Book, opening Opening) map[string]int64 {
	want := maps.Clone(opening.Stock)
	for e := range b.acknowledged(Order) {
		for sku, quantity := range e.Items {
			want[sku] -= quantity
		}
	}
	return want
}

func checkAmounts(rule Rule, want, is map[string]int64) []Finding {
	var found []Finding
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if amount, ok := is[name]; !ok || amount != want[name] {
			found = append(found, finding(rule, "%s: want %d, is %d (known: %t)", name, want[name], amount, ok))
		}
	}
	return found
}
