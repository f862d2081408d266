package verify

import (
	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
)

// Watch finds keys with contradicting answers while a campaign runs: a part of what [All] finds.
// Not safe for concurrent use.
type Watch struct {
	told   map[books.KeyID]state
	broken map[books.KeyID]bool
	seen   int
}

// NewWatch has seen nothing yet.
func NewWatch() *Watch { return &Watch{told: map[books.KeyID]state{}, broken: map[books.KeyID]bool{}} }

// Look takes all attempts so far, skips those that it knows, and returns the number of keys with
// two different final answers.
func (w *Watch) Look(attempts []journal.Attempt) int {
	for _, a := range attempts[w.seen:] {
		if a.Key == "" {
			continue
		}
		if o := a.Outcome(); o != journal.Succeeded && o != journal.Refused {
			continue
		}
		id, told := books.KeyID{Account: a.Account, Key: a.Key}, state{fingerprint: a.Fingerprint, status: a.Status, body: a.Body}
		if before, known := w.told[id]; known && before != told {
			w.broken[id] = true
		}
		w.told[id] = told
	}
	w.seen = len(attempts)
	return len(w.broken)
}
