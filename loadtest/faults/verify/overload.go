package verify

import (
	"net/http"
	"slices"

	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
)

// OnlyTurnedAway says whether no attempt of a key was let in.
func OnlyTurnedAway(attempts []journal.Attempt) bool {
	letIn := func(a journal.Attempt) bool { return a.Outcome() != journal.TurnedAway }
	return len(attempts) > 0 && !slices.ContainsFunc(attempts, letIn)
}

// TurnedAwayLeftNothing finds traces of requests that were only turned away: a row in PostgreSQL,
// or a record that Redis has held. Those that may have been sent twice on their way are left out.
func TurnedAwayLeftNothing(attempts []journal.Attempt, b books.Books, records []string, sentTwice func(journal.Attempt) bool) []books.Violation {
	traces := map[string]string{} // by key; those of campaigns are unique
	for _, key := range records {
		traces[key] = "Redis has held a record"
	}
	for _, row := range b.Keys {
		traces[row.Key] = "there is a row, " + row.Status
	}
	var found []books.Violation
	for id, attempts := range History(attempts) {
		if trace := traces[id.Key]; trace != "" && OnlyTurnedAway(attempts) && !slices.ContainsFunc(attempts, sentTwice) {
			found = append(found, books.Broken(TurnedAwayClean, "turned away %d times, and yet %s", len(attempts), trace).Of(id))
		}
	}
	return found
}

// OrdersServed counts the orders that were sent for a purpose and placed. Those that counts does
// not take are left out.
func OrdersServed(purpose journal.Purpose, attempts []journal.Attempt, counts func(journal.Attempt) bool) (served int) {
	for _, a := range attempts {
		if a.Purpose == purpose && a.Operation == "order" && a.Outcome() == journal.Succeeded && counts(a) {
			served++
		}
	}
	return served
}

// ThroughNginx counts the attempts through nginx, and how many of them were turned away. Those that
// counts does not take are left out.
func ThroughNginx(attempts []journal.Attempt, counts func(journal.Attempt) bool) (all, turnedAway int) {
	for _, a := range attempts {
		if a.Via != "nginx" || !counts(a) {
			continue
		}
		all++
		if a.Outcome() == journal.TurnedAway {
			turnedAway++
		}
	}
	return all, turnedAway
}

// BesideTheGreedy counts the attempts of accounts that are not greedy, and how many of them were
// turned away or limited. Those that counts does not take are left out.
func BesideTheGreedy(attempts []journal.Attempt, counts func(journal.Attempt) bool) (all, refused int) {
	greedy := map[string]bool{}
	for _, a := range attempts {
		greedy[a.Account] = greedy[a.Account] || a.Purpose == journal.Greedy
	}
	for _, a := range attempts {
		if greedy[a.Account] || !counts(a) {
			continue
		}
		all++
		if a.Outcome() == journal.TurnedAway || a.Status == http.StatusTooManyRequests {
			refused++
		}
	}
	return all, refused
}

// AnsweredAgain counts the requests among attempts whose answer a client had seen before they were
// sent, and how many of them were turned away. Those that counts does not take are left out.
func AnsweredAgain(attempts []journal.Attempt, counts func(journal.Attempt) bool) (all, turnedAway int) {
	for _, ofKey := range History(attempts) {
		for _, a := range ofKey {
			answered := func(b journal.Attempt) bool { return b.Outcome() == journal.Succeeded && b.Return < a.Invoke }
			if !slices.ContainsFunc(ofKey, answered) || !counts(a) {
				continue
			}
			all++
			if a.Outcome() == journal.TurnedAway {
				turnedAway++
			}
		}
	}
	return all, turnedAway
}
