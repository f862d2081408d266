package verify

import (
	"maps"
	"slices"
)

// updateOrder is the operation that makes nothing, but changes an order; the campaign's clients only ever cancel by it.
const updateOrder = "update_order"

// noOrphans wants each order, settled payment, refund and top-up under exactly one key, and so each cancellation.
func noOrphans(b Books) []Violation {
	keys, cancels := map[string]int{}, map[string]int{}
	for _, row := range b.Keys {
		switch {
		case row.Status != "completed":
		case row.Operation == updateOrder:
			cancels[row.Resource]++
		default:
			keys[row.Resource]++
		}
	}
	var found []Violation
	check := func(kind, id string) {
		if keys[id] != 1 {
			found = append(found, broken(NoOrphans, "%s %s has %d keys", kind, id, keys[id]))
		}
		delete(keys, id)
	}
	for _, o := range b.Orders {
		check("order", o.ID)
		if isCancelled := o.Status == "cancelled"; isCancelled != (cancels[o.ID] == 1) || cancels[o.ID] > 1 {
			found = append(found, broken(NoOrphans, "order %s is %s, and was cancelled by %d keys", o.ID, o.Status, cancels[o.ID]))
		}
	}
	for _, p := range b.Payments {
		if p.Status == "succeeded" {
			check("payment", p.ID)
		}
	}
	for _, r := range b.Refunds {
		if r.Status == "succeeded" {
			check("refund", r.ID)
		}
	}
	for _, t := range b.TopUps {
		check("top-up", t.ID)
	}
	for customer := range b.Wallets {
		check("customer", customer)
	}
	for id, n := range keys {
		found = append(found, broken(NoOrphans, "%d keys promise %s, which is not there", n, id))
	}
	return found
}

// charges pairs what the provider charged with the payments by card that succeeded, by the order; keys are ours to get wrong.
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
	return pair(OneRefund, want, b.PSPRefunds, b.owners())
}

// owners finds the key of a payment, refund or top-up, and that of an order's payment; of what it does not find, the zero key.
func (b Books) owners() map[string]KeyID {
	keys := map[string]KeyID{}
	for _, row := range b.Keys {
		keys[row.Resource] = row.KeyID
	}
	for _, p := range b.Payments {
		if key, ok := keys[p.ID]; ok {
			keys[p.Order] = key
		}
	}
	return keys
}

func pair(rule Rule, want map[string]int64, is []Charge, owners map[string]KeyID) []Violation {
	var found []Violation
	for _, c := range is {
		if c.Status != "succeeded" {
			continue
		}
		amount, ok := want[c.Reference]
		delete(want, c.Reference) // so that a second one finds none
		if !ok || amount != c.Amount {
			found = append(found, broken(rule, "the provider moved %d (%s) for %s, ours is %d (known: %t)", c.Amount, c.ID, c.Reference, amount, ok).of(owners[c.Reference]))
		}
	}
	for reference, amount := range want {
		found = append(found, broken(rule, "%s of %d: the provider moved nothing", reference, amount).of(owners[reference]))
	}
	return found
}

// ledger wants one balanced transaction per movement of money, and no other.
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
			found = append(found, broken(LedgerZero, "transaction %s of %s: sum %d, volume %d, want %d (known: %t)", t.ID, t.Subject, t.Sum, t.Volume, amount, ok).of(owners[t.Subject]))
		}
	}
	for id, amount := range moved {
		found = append(found, broken(LedgerZero, "%s of %d has no transaction", id, amount).of(owners[id]))
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
			found = append(found, broken(WalletsRight, "%s: want %d, is %d", customer, want[customer], b.Wallets[customer]))
		}
	}
	return found
}

func stock(b Books) []Violation {
	type shelf struct{ account, sku string }
	sold := map[shelf]int64{}
	for _, o := range b.Orders {
		if o.Status == "cancelled" || o.Status == "expired" {
			continue
		}
		for sku, n := range o.Items {
			sold[shelf{o.Account, sku}] += n
		}
	}
	var found []Violation
	for _, p := range b.Products {
		if want := p.Opening - sold[shelf{p.Account, p.SKU}]; p.Stock < 0 || p.Stock != want {
			found = append(found, broken(StockRight, "%s of %s: want %d, is %d", p.SKU, p.Account, want, p.Stock))
		}
	}
	return found
}

// orders compares an order's status with its one payment and with what was given back of it.
func orders(b Books) []Violation {
	paid, refunded, of := map[string]int64{}, map[string]int64{}, map[string]int{}
	for _, p := range b.Payments {
		if p.Status == "succeeded" {
			paid[p.Order] += p.Amount
			of[p.Order]++
		}
	}
	for _, r := range b.Refunds {
		if r.Status == "succeeded" {
			refunded[r.Order] += r.Amount
		}
	}
	found, owners := []Violation(nil), b.owners()
	for _, o := range b.Orders {
		fits := of[o.ID] == 1 && paid[o.ID] == o.Total
		switch o.Status {
		case "paid":
			fits = fits && refunded[o.ID] == 0
		case "partially_refunded":
			fits = fits && refunded[o.ID] > 0 && refunded[o.ID] < o.Total
		case "refunded":
			fits = fits && refunded[o.ID] == o.Total
		default:
			fits = of[o.ID] == 0
		}
		if !fits {
			found = append(found, broken(OrdersRight, "order %s of %d is %s: %d payments of %d, refunds of %d", o.ID, o.Total, o.Status, of[o.ID], paid[o.ID], refunded[o.ID]).of(owners[o.ID]))
		}
	}
	return found
}

// Unfinished wants nothing half done: no key in progress and no money on its way.
func Unfinished(b Books) []Violation {
	var found []Violation
	for _, row := range b.Keys {
		if row.Status == "in_progress" {
			found = append(found, broken(NothingOpen, "the authority's row is in progress").of(row.KeyID))
		}
	}
	for _, name := range b.Pending {
		found = append(found, broken(NothingOpen, "Redis record %s", name))
	}
	for _, p := range b.Payments {
		if p.Status == "processing" {
			found = append(found, broken(NothingOpen, "payment %s is processing", p.ID))
		}
	}
	for _, r := range b.Refunds {
		if r.Status == "processing" {
			found = append(found, broken(NothingOpen, "refund %s is processing", r.ID))
		}
	}
	return found
}

// events wants each event published, the first appearances of a subject's events in order, and one effect each of those that have
// one. The stream may hold an event several times.
func events(b Books) []Violation {
	var found []Violation
	confirmed, noticed := maps.Clone(b.Confirmed), maps.Clone(b.Noticed)
	effect := func(done map[string]int, e Event, what string) {
		if n := done[e.Subject]; n != 1 {
			found = append(found, broken(EventsOnce, "order %s was %s %d times (event %s %s)", e.Subject, what, n, e.ID, e.Type))
		}
		delete(done, e.Subject)
	}
	for _, e := range b.Events {
		if !e.Published {
			found = append(found, broken(EventsOnce, "event %s %s of %s was not published", e.ID, e.Type, e.Subject))
		}
		switch e.Type {
		case "order.placed":
			effect(confirmed, e, "confirmed")
		case "payment.succeeded":
			effect(noticed, e, "told to the warehouse")
		}
	}
	for order := range confirmed {
		found = append(found, broken(EventsOnce, "order %s was confirmed without an event", order))
	}
	for order := range noticed {
		found = append(found, broken(EventsOnce, "order %s was told to the warehouse without an event", order))
	}
	for _, s := range b.Streams {
		found = append(found, s.inOrder(b.Events)...)
	}
	return found
}

// inOrder looks at the events that can't have been published before the stream began.
func (s Stream) inOrder(events []Event) []Violation {
	var found []Violation
	position := map[string]int{}
	for i, id := range s.IDs {
		if _, seen := position[id]; !seen {
			position[id] = i
		}
	}
	last := map[string]Event{}
	for _, e := range events { // in the order of what happened
		at, ok := position[e.ID]
		if !ok || e.Created.Before(s.Since) {
			continue
		}
		if before, seen := last[e.Subject]; seen && position[before.ID] > at {
			found = append(found, broken(EventsOnce, "%s of %s came before %s", e.Type, e.Subject, before.Type))
		}
		last[e.Subject] = e
	}
	return found
}

// Consumed says whether every event is published and has had its effects: until then it is too early to judge them.
func (b Books) Consumed() bool {
	for _, e := range b.Events {
		if !e.Published || e.Type == "order.placed" && b.Confirmed[e.Subject] == 0 || e.Type == "payment.succeeded" && b.Noticed[e.Subject] == 0 {
			return false
		}
	}
	return true
}

// Repeated counts the events that are in a stream more than once.
func (b Books) Repeated() int {
	n := 0
	for _, s := range b.Streams {
		seen := map[string]int{}
		for _, id := range s.IDs {
			if seen[id]++; seen[id] == 2 {
				n++
			}
		}
	}
	return n
}
