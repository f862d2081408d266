package verify

import (
	"slices"

	"github.com/oncepay/oncepay/loadtest/faults/journal"
)

// waitsForSomebody wants another attempt before each that is told to wait for it. Attempts by nginx prove nothing: it may have sent
// one of them twice.
func waitsForSomebody(keys map[KeyID][]journal.Attempt) []Violation {
	var found []Violation
	for id, attempts := range keys {
		for i, a := range attempts {
			if a.Outcome() != journal.InProgress || a.Via == "nginx" {
				continue
			}
			others := slices.Concat(attempts[:i], attempts[i+1:])
			if !slices.ContainsFunc(others, func(other journal.Attempt) bool { return other.Invoke < a.Return }) {
				found = append(found, broken(WaitedFor, "attempt %d is told to wait, and there is no other", a.Number).of(id))
				break
			}
		}
	}
	return found
}
