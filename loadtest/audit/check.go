package audit

import (
	"maps"
	"slices"

	"github.com/oncepay/oncepay/loadtest/books"
)

// Opening is what there was before the first request of the load.
type Opening struct {
	Wallets map[string]int64 // top-ups by customer ID, minor units
	Stock   map[string]int64 // by SKU
}

// State is what the system and the provider hold after the load.
type State struct {
	// Books have the orders of the load's customers, their charges, wallets and products, and the
	// acknowledged payments that exist.
	Books  books.Books
	Events *Events // nil: they were not measured
}

// Check compares the answers that clients got with what is there, and what is there with itself. It
// finds nothing when every key had one effect, and nothing else had any.
func Check(b *Answers, s State) []Violation {
	return slices.Concat(b.unacknowledged(), checkOrders(b, s.Books.Orders), checkPayments(b, s.Books.Payments),
		checkAttempts(s.Books.Charges), books.CheckShop(s.Books), checkEvents(s.Events))
}

func checkOrders(b *Answers, orders []books.Order) []Violation {
	paid := map[string]bool{}
	for e := range b.payments() {
		paid[e.Order] = true
	}
	rows := map[string]books.Order{}
	var found []Violation
	for _, row := range orders {
		if _, twice := rows[row.ID]; twice {
			found = append(found, books.Broken(SurplusOrder, "order %s is listed twice", row.ID))
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
			found = append(found, books.Broken(LostOrder, "order %s, key %s", e.id, e.Key))
		case row.Status != want, row.Customer != e.Customer, row.Total != e.Amount, !maps.Equal(row.Items, e.Items):
			found = append(found, books.Broken(WrongOrder, "order %s, key %s: want %s %d %v, is %+v", e.id, e.Key, want, e.Amount, e.Items, row))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(rows)) {
		found = append(found, books.Broken(SurplusOrder, "order %s of customer %s", id, rows[id].Customer))
	}
	return found
}

func checkPayments(b *Answers, payments []books.Payment) []Violation {
	rows := map[string]books.Payment{}
	for _, row := range payments {
		rows[row.ID] = row
	}
	var found []Violation
	for e := range b.payments() {
		want := books.Payment{
			ID: e.id, Order: e.Order, Customer: e.Customer, Method: methods[e.Operation], Status: "succeeded", Amount: e.Amount,
		}
		is, ok := rows[e.id]
		switch {
		case !ok:
			found = append(found, books.Broken(LostPayment, "payment %s, key %s", e.id, e.Key))
		case is != want:
			found = append(found, books.Broken(WrongPayment, "payment %s, key %s: want %+v, is %+v", e.id, e.Key, want, is))
		}
	}
	return found
}

// methods are the payment methods of operations.
var methods = map[Operation]string{Card: "card", Wallet: "wallet"}

// checkAttempts checks that the provider was asked once for each charge: nothing fails in a load
// test.
func checkAttempts(charges []books.Charge) []Violation {
	var found []Violation
	for _, c := range charges {
		if c.Attempts != 1 {
			found = append(found, books.Broken(AskedAgain, "order %s: %+v", c.Reference, c))
		}
	}
	return found
}
