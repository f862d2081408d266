package verify

import (
	"net/http"

	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
)

// lookUpsAgree compares each look-up with the answers before and after it.
func lookUpsAgree(attempts []journal.Attempt, keys map[books.KeyID][]journal.Attempt) []books.Violation {
	var found []books.Violation
	for _, l := range attempts {
		known := l.Status == http.StatusOK || l.Status == http.StatusNotFound
		if l.LookUp == nil || l.Error != "" || !known {
			continue
		}
		id := books.KeyID{Account: l.Account, Key: l.Key}
		for _, a := range keys[id] {
			if contradicts(l, a) {
				found = append(found, books.Broken(LookUpsAgree, "look-up at %.3fs: %q %d, answer from %.3fs to %.3fs: %d",
					l.Invoke.Seconds(), l.LookUp.State, l.LookUp.Status, a.Invoke.Seconds(), a.Return.Seconds(), a.Status).Of(id))
				break
			}
		}
	}
	return found
}

// contradicts says whether a look-up and a kept answer cannot both be right. Before the answer,
// only a look-up that says that there is one can be wrong.
func contradicts(l, a journal.Attempt) bool {
	if o := a.Outcome(); o != journal.Succeeded && o != journal.Refused {
		return false
	}
	after, before := a.Return < l.Invoke, l.Return < a.Invoke
	answered := l.LookUp.State != "" && l.LookUp.State != "in_progress"
	return after && !answered || (after || before) && answered && l.LookUp.Status != a.Status
}
