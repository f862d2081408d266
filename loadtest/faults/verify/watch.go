package verify

import "github.com/oncepay/oncepay/loadtest/faults/journal"

// Watch finds keys that contradict themselves while a campaign is still running. It sees only a part of what [All] finds, and does
// so in passing. Not safe for concurrent use.
type Watch struct {
	told   map[KeyID]state
	broken map[KeyID]bool
	seen   int
}

// NewWatch has seen nothing yet.
func NewWatch() *Watch { return &Watch{told: map[KeyID]state{}, broken: map[KeyID]bool{}} }

// Look takes all attempts so far, passes over those that it knows, and gives the number of keys with two different final answers.
func (w *Watch) Look(attempts []journal.Attempt) int {
	for _, a := range attempts[w.seen:] {
		if o := a.Outcome(); o != journal.Succeeded && o != journal.Refused {
			continue
		}
		id, told := KeyID{a.Account, a.Key}, state{a.Fingerprint, a.Status, a.Body}
		if before, known := w.told[id]; known && before != told {
			w.broken[id] = true
		}
		w.told[id] = told
	}
	w.seen = len(attempts)
	return len(w.broken)
}
