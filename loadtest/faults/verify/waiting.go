package verify

import (
	"slices"

	"github.com/oncepay/oncepay/loadtest/faults/journal"
)

// WaitsForSomebody wants another attempt before each that is told to wait for it, but for those that may have been sent twice on
// their way.
func WaitsForSomebody(attempts []journal.Attempt, sentTwice func(journal.Attempt) bool) []Violation {
	var found []Violation
	for id, attempts := range History(attempts) {
		for i, a := range attempts {
			if a.Outcome() != journal.InProgress || sentTwice(a) {
				continue
			}
			others := slices.Concat(attempts[:i], attempts[i+1:])
			if !slices.ContainsFunc(others, func(other journal.Attempt) bool { return other.Invoke < a.Return }) {
				found = append(found, broken(WaitedFor, "attempt %d by %s is told to wait, and there is no other", a.Number, a.Via).of(id))
				break
			}
		}
	}
	return found
}
