package books

import "maps"

// events checks that each event is published, that a subject's events first appear in order, and
// that each has its effect once in each group that acts on it. The stream may repeat an event.
func events(b Books) []Violation {
	var found []Violation
	confirmations, notices := maps.Clone(b.Confirmations), maps.Clone(b.WarehouseNotices)
	effect := func(done map[string]int, e Event, what string) {
		if n := done[e.Subject]; n != 1 {
			found = append(found, Broken(EventsOnce, "order %s was %s %d times (event %s %s)", e.Subject, what, n, e.ID, e.Type))
		}
		delete(done, e.Subject)
	}
	for _, e := range b.Events {
		if !e.Published {
			found = append(found, Broken(EventsOnce, "event %s %s of %s was not published", e.ID, e.Type, e.Subject))
		}
		switch e.Type {
		case "order.placed":
			effect(confirmations, e, "confirmed")
		case "payment.succeeded":
			effect(notices, e, "notified to the warehouse")
		}
	}
	for order := range confirmations {
		found = append(found, Broken(EventsOnce, "order %s was confirmed without an event", order))
	}
	for order := range notices {
		found = append(found, Broken(EventsOnce, "the warehouse was notified of order %s without an event", order))
	}
	for _, s := range b.Streams {
		found = append(found, s.inOrder(b.Events)...)
	}
	return append(found, b.unpublished()...)
}

// trimmed is a length from which the relay may have removed entries that every group has had.
const trimmed = 50_000

// unpublished finds events that are in no stream, if Redis has lost nothing.
func (b Books) unpublished() []Violation {
	if len(b.Streams) != 1 || len(b.Streams[0].IDs) >= trimmed {
		return nil
	}
	there := map[string]bool{}
	for _, id := range b.Streams[0].IDs {
		there[id] = true
	}
	var found []Violation
	for _, e := range b.Events {
		if e.Published && !there[e.ID] {
			found = append(found, Broken(EventsOnce, "event %s %s of %s is in no stream", e.ID, e.Type, e.Subject))
		}
	}
	return found
}

// inOrder looks only at events that cannot have been published before the stream began.
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
			found = append(found, Broken(EventsOnce, "%s of %s came before %s", e.Type, e.Subject, before.Type))
		}
		last[e.Subject] = e
	}
	return found
}

// Consumed says whether every event is published and has had its effects; until then it is too
// early for the check of events.
func (b Books) Consumed() bool {
	for _, e := range b.Events {
		if !e.Published || e.Type == "order.placed" && b.Confirmations[e.Subject] == 0 || e.Type == "payment.succeeded" && b.WarehouseNotices[e.Subject] == 0 {
			return false
		}
	}
	return b.Mails == nil || b.areMailed()
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
