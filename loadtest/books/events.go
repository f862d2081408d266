package books

import "slices"

// events checks that each event is published, that a subject's events first appear in order, and
// that each has its effect once in each group that acts on it. The stream may repeat an event.
func events(b Books) (found []Violation) {
	placed, paid := map[string]int{}, map[string]int{}
	for _, e := range b.Events {
		if !e.Published {
			found = append(found, Broken(EventsOnce, "event %s %s of %s was not published", e.ID, e.Type, e.Subject))
		}
		switch e.Type {
		case orderPlaced:
			placed[e.Subject] = 1
		case paymentSucceeded:
			paid[e.Subject] = 1
		}
	}
	for _, s := range b.Streams {
		found = append(found, s.inOrder(b.Events)...)
	}
	return slices.Concat(found, b.unpublished(), Differ(EventsOnce, "confirmations of order", placed, b.Confirmations, nil),
		Differ(EventsOnce, "notices to the warehouse of order", paid, b.WarehouseNotices, nil))
}

// trimmed is a length from which the relay may have removed entries that every group has had.
const trimmed = 50_000

// unpublished finds events that are in no stream, if Redis has lost nothing.
func (b Books) unpublished() (found []Violation) {
	if len(b.Streams) != 1 || len(b.Streams[0].IDs) >= trimmed {
		return nil
	}
	there := b.Streams[0].positions()
	for _, e := range b.Events {
		if _, ok := there[e.ID]; e.Published && !ok {
			found = append(found, Broken(EventsOnce, "event %s %s of %s is in no stream", e.ID, e.Type, e.Subject))
		}
	}
	return found
}

// positions are where events come first.
func (s Stream) positions() map[string]int {
	first := map[string]int{}
	for i, id := range slices.Backward(s.IDs) {
		first[id] = i
	}
	return first
}

// inOrder looks only at events that cannot have been published before the stream began.
func (s Stream) inOrder(events []Event) (found []Violation) {
	position := s.positions()
	last := map[string]Event{}
	for _, e := range events { // in the order of what happened
		at, ok := position[e.ID]
		if !ok || e.Created.Before(s.Since) {
			continue
		}
		if before, seen := last[e.Subject]; seen && position[before.ID] > at {
			found = append(found, Broken(EventsOnce, "%s of %s came before %s", e.Type, e.Subject, before.Type))
		}
		last[e.Subject] = e
	}
	return found
}

// Consumed says whether every event has had its effects, as the checks want them; until then it is
// too early for these.
func (b Books) Consumed() bool { return len(events(b)) == 0 && len(mailed(b)) == 0 }

// Repeated counts the events that are in a stream more than once.
func (b Books) Repeated() (n int) {
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

// mailed checks that each confirmation of an order or a payment was sent at least once, under the
// ID of its event, and that no mail has another one. It checks nothing where the mails were not
// read.
func mailed(b Books) (found []Violation) {
	if b.Mails == nil {
		return nil
	}
	rows, refused, want := map[string]int{}, map[string]bool{}, map[string]int{}
	for _, row := range b.Mailable {
		rows[row.Event]++
		refused[row.Event] = row.Refused
	}
	for _, e := range b.Events {
		if e.Type != orderPlaced && e.Type != paymentSucceeded {
			continue
		}
		want[e.ID] = 1
		if b.Mails[e.ID] == 0 && !refused[e.ID] {
			found = append(found, Broken(EachMailed, "event %s %s of %s has no mail", e.ID, e.Type, e.Subject))
		}
	}
	for id := range b.Mails {
		if want[id] == 0 {
			found = append(found, Broken(EachMailed, "a mail has the Message-ID of no event: %s", id))
		}
	}
	return append(found, Differ(EachMailed, "confirmations of event", want, rows, nil)...)
}

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
