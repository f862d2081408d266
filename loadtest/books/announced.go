package books

// CustomerUpdated is the event of a changed customer.
const CustomerUpdated = "customer.updated"

// announced checks that each change has exactly one event.
func announced(b Books) []Violation {
	events := map[string]int{}
	for _, e := range b.Events {
		if e.Type != CustomerUpdated { // no row tells how often it happened: the campaign compares it with the requests
			events[e.Type+" "+e.About]++
		}
	}
	return Differ(OneEventEach, "events", changes(b), events, nil)
}

// changes counts what the rows say has happened.
func changes(b Books) map[string]int {
	all := map[string]int{}
	happened := func(kind, about string) { all[kind+" "+about]++ }
	for customer := range b.Wallets {
		happened("customer.created", customer)
	}
	for _, t := range b.TopUps {
		happened("wallet.topped_up", t.ID)
	}
	for _, o := range b.Orders {
		happened(orderPlaced, o.ID)
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
