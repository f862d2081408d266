package books

// announcement is a type of event and the ID of what it tells of.
type announcement struct{ kind, about string }

// CustomerUpdated is the event of a changed customer.
const CustomerUpdated = "customer.updated"

// announced checks that each change has exactly one event.
func announced(b Books) (found []Violation) {
	want := changes(b)
	for _, e := range b.Events {
		if e.Type == CustomerUpdated {
			continue // no row tells how often it happened: the campaign compares it with the requests
		}
		a := announcement{e.Type, e.About}
		if want[a] == 0 {
			found = append(found, Broken(OneEventEach, "event %s: %s of %s, which did not happen or was announced before", e.ID, e.Type, e.About))
			continue
		}
		want[a]--
	}
	for a, n := range want {
		if n > 0 {
			found = append(found, Broken(OneEventEach, "%s of %s has no event", a.kind, a.about))
		}
	}
	return found
}

// changes counts what the rows say has happened.
func changes(b Books) map[announcement]int {
	all := map[announcement]int{}
	happened := func(kind, about string) { all[announcement{kind, about}]++ }
	for customer := range b.Wallets {
		happened("customer.created", customer)
	}
	for _, t := range b.TopUps {
		happened("wallet.topped_up", t.ID)
	}
	for _, o := range b.Orders {
		happened("order.placed", o.ID)
		if o.Status == "cancelled" || o.Status == "expired" {
			happened("order."+o.Status, o.ID)
		}
	}
	for _, p := range b.Payments {
		if p.Status != processing {
			happened("payment."+p.Status, p.ID)
		}
	}
	for _, r := range b.Refunds {
		if r.Status != processing {
			happened("refund."+r.Status, r.ID)
		}
	}
	return all
}

// ActedAgain says whether the event seems to have been acted on again: it settled something, and
// its verdict does not say so. The service's own transaction may have had the same microsecond.
func (e ProviderEvent) ActedAgain() bool { return e.Settled && e.Verdict != "settled" }

// providerEvents checks that an event that settled something says so: another verdict means that it
// was acted on again when it arrived again.
func providerEvents(b Books) (found []Violation) {
	for _, e := range b.ProviderEvents {
		if e.ActedAgain() {
			found = append(found, Broken(EachProviderEventOnce, "event %s settled something, and its verdict is %s", e.ID, e.Verdict))
		}
	}
	return found
}
