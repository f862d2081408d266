package verify

import (
	"slices"
	"time"

	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
)

// apart is how much later one attempt has to be sent than another to be the later one for the
// system, too: before that they race.
const apart = 250 * time.Millisecond

// refusalsHold finds keys whose latest attempt was refused without a kept answer, and that had an
// effect: an older copy acted after its client had seen the refusal.
func refusalsHold(keys map[books.KeyID][]journal.Attempt, b books.Books) []books.Violation {
	done := map[books.KeyID]books.KeyRow{}
	for _, row := range b.Keys {
		if row.Succeeded() {
			done[row.KeyID] = row
		}
	}
	var found []books.Violation
	for id, attempts := range keys {
		row, ok := done[id]
		if i := latest(attempts); ok && i >= 0 && attempts[i].RefusedForNow() {
			found = append(found, books.Broken(RefusalsHold, "the latest attempt was answered %d %s, and yet there is %s",
				attempts[i].Status, attempts[i].Code, row.Resource).Of(id))
		}
	}
	return found
}

// latest is the index of the attempt that was sent clearly after all others, or -1.
func latest(attempts []journal.Attempt) int {
	last := 0
	for i, a := range attempts {
		if a.Invoke > attempts[last].Invoke {
			last = i
		}
	}
	races := func(a journal.Attempt) bool { return a.Invoke > attempts[last].Invoke-apart }
	others := slices.Concat(attempts[:last], attempts[last+1:])
	if slices.ContainsFunc(others, races) {
		return -1
	}
	return last
}
