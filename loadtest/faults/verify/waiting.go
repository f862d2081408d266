package verify

import (
	"slices"

	"github.com/oncepay/oncepay/loadtest/books"

	"github.com/oncepay/oncepay/loadtest/faults/journal"
)

// InProgressForAReason finds attempts that were answered 409 in progress although no other attempt
// of their key had begun, except those that may have been sent twice on their way.
func InProgressForAReason(attempts []journal.Attempt, sentTwice func(journal.Attempt) bool) []books.Violation {
	var found []books.Violation
	for id, attempts := range History(attempts) {
		for i, a := range attempts {
			if a.Outcome() != journal.InProgress || sentTwice(a) {
				continue
			}
			others := slices.Concat(attempts[:i], attempts[i+1:])
			if !slices.ContainsFunc(others, func(other journal.Attempt) bool { return other.Invoke < a.Return }) {
				found = append(found, books.Broken(WaitedFor, "attempt %d is in progress at %s, and there is no other", a.Number, a.Via).Of(id))
				break
			}
		}
	}
	return found
}
