package verify

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
)

// key is what is known of a client's key.
type key struct {
	books.KeyID

	attempts []journal.Attempt // as they were sent, at least one
	lookUps  []journal.Attempt
	row      books.KeyRow // zero: there is none
}

// by groups attempts; those that have no group are left out.
func by(attempts []journal.Attempt, group func(journal.Attempt) string) map[books.KeyID][]journal.Attempt {
	groups := map[books.KeyID][]journal.Attempt{}
	for _, a := range attempts {
		if id := (books.KeyID{Account: a.Account, Key: group(a)}); id.Key != "" {
			groups[id] = append(groups[id], a)
		}
	}
	return groups
}

// History is the journal by key, without look-ups and requests that have none.
func History(attempts []journal.Attempt) map[books.KeyID][]journal.Attempt {
	return by(attempts, func(a journal.Attempt) string {
		if a.LookUp != nil {
			return ""
		}
		return a.Key
	})
}

func keysOf(attempts []journal.Attempt, b books.Books) (all []key) {
	rows, sent := map[books.KeyID]books.KeyRow{}, by(attempts, func(a journal.Attempt) string { return a.Key })
	for _, row := range b.Keys {
		rows[row.KeyID] = row
	}
	for id, attempts := range History(attempts) {
		slices.SortStableFunc(attempts, func(a, b journal.Attempt) int { return cmp.Compare(a.Invoke, b.Invoke) })
		lookUps := slices.DeleteFunc(sent[id], func(a journal.Attempt) bool { return a.LookUp == nil })
		all = append(all, key{id, attempts, lookUps, rows[id]})
	}
	return all
}

// check applies a rule to each key. What it returns is the detail of a violation, or empty.
func check(rule books.Rule, keys []key, broken func(key) string) (found []books.Violation) {
	for _, k := range keys {
		if detail := broken(k); detail != "" {
			found = append(found, books.Violation{Rule: rule, Detail: detail}.Of(k.KeyID))
		}
	}
	return found
}

// find returns the first attempt with this outcome.
func (k key) find(outcome journal.Outcome) (a journal.Attempt, ok bool) {
	if i := slices.IndexFunc(k.attempts, func(a journal.Attempt) bool { return a.Outcome() == outcome }); i >= 0 {
		return k.attempts[i], true
	}
	return a, false
}

// last is the attempt that was sent last.
func (k key) last() journal.Attempt { return k.attempts[len(k.attempts)-1] }

// oneHistory wants one request with one answer under a key. An attempt with an unknown outcome, or
// that met another one, decides nothing; all answers that are kept are the same answer to the same
// request. A request is told that the key is another one's only if another one was sent, and never
// if it is the one that is answered. The order of the attempts changes none of this.
func oneHistory(k key) string {
	type told struct {
		fingerprint string
		status      int
		body        string
	}
	answers, answered := map[told]bool{}, map[string]bool{}
	for _, a := range k.attempts {
		if a.Outcome().Kept() {
			answers[told{a.Fingerprint, a.Status, a.Body}], answered[a.Fingerprint] = true, true
		}
	}
	for _, a := range k.attempts {
		another := func(other journal.Attempt) bool { return other.Fingerprint != a.Fingerprint && other.Invoke < a.Return }
		if a.Outcome() == journal.Reused && (answered[a.Fingerprint] || !slices.ContainsFunc(k.attempts, another)) {
			return fmt.Sprintf("attempt %d of %s is told that the key is another request's", a.Number, a.Fingerprint)
		}
	}
	if len(answers) > 1 {
		return fmt.Sprint("different answers: ", answers)
	}
	return ""
}

// answersKept checks that each 2xx has a completed row and each final 4xx a failed one, with the
// same bytes.
func answersKept(k key) string {
	for _, a := range k.attempts {
		want := map[journal.Outcome]string{journal.Succeeded: "completed", journal.Refused: "failed"}[a.Outcome()]
		switch row := k.row; {
		case want == "", want == "failed" && row.Succeeded(): // the latter is another rule's
		case row.Status == books.Expired && row.ResponseStatus == a.Status: // the bytes are gone, as they may be
		case row.Status != want || row.ResponseStatus != a.Status || row.Body != a.Body:
			return fmt.Sprintf("seen %d %s %.8s, kept %q %d %.8s", a.Status, a.Code, a.Body, row.Status, row.ResponseStatus, row.Body)
		}
	}
	return ""
}

// reusedForAReason finds keys that were called another request's although no answer is kept under
// them: a 422 is final, and only a kept answer stops older copies of the request that got it.
func reusedForAReason(k key) string {
	if a, reused := k.find(journal.Reused); reused && k.row.ResponseStatus == 0 {
		return fmt.Sprintf("attempt %d got 422 at %.3fs, and no answer is kept", a.Number, a.Return.Seconds())
	}
	return ""
}

// refusedHasNoEffect looks for a resource under a key that was refused.
func refusedHasNoEffect(k key) string {
	if a, refused := k.find(journal.Refused); refused && k.row.Succeeded() && k.row.Resource != "" {
		return fmt.Sprintf("answered %d %s, and yet there is %s", a.Status, a.Code, k.row.Resource)
	}
	return ""
}

// apart is how much later one attempt has to be sent than another to be the later one for the
// system, too: before that they race.
const apart = 250 * time.Millisecond

// refusalHolds finds keys whose latest attempt was refused without a kept answer, and that had an
// effect: an older copy acted after its client had seen the refusal. The latest one was sent
// clearly after all others.
func refusalHolds(k key) string {
	last, n := k.last(), len(k.attempts)
	races := n > 1 && k.attempts[n-2].Invoke > last.Invoke-apart
	if races || !k.row.Succeeded() || !last.RefusedForNow() {
		return ""
	}
	return fmt.Sprintf("the latest attempt was answered %d %s, and yet there is %s", last.Status, last.Code, k.row.Resource)
}

// leaves has the purposes of clients that do not come back.
var leaves = map[journal.Purpose]bool{journal.Crowd: true, journal.WalkAway: true, journal.HangUp: true, journal.Greedy: true}

// decided finds keys whose clients never got to know their end, or lost it again: what was answered
// once is answered again when the faults are over. A client whose request is meant to be refused
// knows that nothing was done; one that has corrected it does not. It is refused if its last
// attempt is, or one that ended after that began: of two at once either may be read last.
func decided(k key) string {
	last := k.last()
	refused := slices.ContainsFunc(k.attempts, func(a journal.Attempt) bool {
		return a.RefusedForNow() && a.Fingerprint == last.Fingerprint && a.Return > last.Invoke
	})
	var answered, known, finishing, again bool
	for _, a := range k.attempts {
		answered = answered || a.Outcome().Kept()
		known = known || a.Outcome() == journal.Expired ||
			refused && a.Purpose == journal.Refusal && a.Fingerprint == last.Fingerprint
		finishing = finishing || a.Purpose == journal.Finishing
		again = again || a.Purpose == journal.Finishing && a.Outcome().Decided()
	}
	known = known || answered || onlyTurnedAway(k) && leaves[last.Purpose] // and knows that nothing was done
	if known && (!answered || !finishing || again) {
		return ""
	}
	return fmt.Sprintf("after %d attempts: %d %s %s", len(k.attempts), last.Status, last.Code, last.Error)
}

// lookUpsAgree compares each look-up with the answers before and after it. Before the answer, only
// a look-up that says that there is one can be wrong.
func lookUpsAgree(k key) string {
	for _, l := range k.lookUps {
		answered := l.LookUp.State != "" && l.LookUp.State != "in_progress"
		if l.Error != "" || l.Status != http.StatusOK && l.Status != http.StatusNotFound {
			continue
		}
		for _, a := range k.attempts {
			after, before := a.Return < l.Invoke, l.Return < a.Invoke
			if a.Outcome().Kept() && (after && !answered || (after || before) && answered && l.LookUp.Status != a.Status) {
				return fmt.Sprintf("look-up at %.3fs: %q %d, answer from %.3fs to %.3fs: %d",
					l.Invoke.Seconds(), l.LookUp.State, l.LookUp.Status, a.Invoke.Seconds(), a.Return.Seconds(), a.Status)
			}
		}
	}
	return ""
}

// onlyTurnedAway says whether no attempt of a key was let in.
func onlyTurnedAway(k key) bool {
	return !slices.ContainsFunc(k.attempts, func(a journal.Attempt) bool { return a.Outcome() != journal.TurnedAway })
}

// TurnedAwayLeftNothing finds traces of requests that were only turned away: a row in PostgreSQL,
// or a record that Redis has held. Those that may have been sent twice on their way are left out.
func TurnedAwayLeftNothing(
	attempts []journal.Attempt, b books.Books, held map[string]time.Duration, sentTwice func(journal.Attempt) bool,
) []books.Violation {
	return check(TurnedAwayClean, keysOf(attempts, b), func(k key) string {
		_, held := held[k.Key] // those of campaigns are unique
		if !held && k.row.Status == "" || !onlyTurnedAway(k) || slices.ContainsFunc(k.attempts, sentTwice) {
			return ""
		}
		return fmt.Sprintf("turned away %d times, and yet its row is %q; Redis has held a record: %t", len(k.attempts), k.row.Status, held)
	})
}

// InProgressForAReason finds attempts that were answered 409 in progress although no other attempt
// of their key had begun, except those that may have been sent twice on their way.
func InProgressForAReason(attempts []journal.Attempt, sentTwice func(journal.Attempt) bool) []books.Violation {
	return check(WaitedFor, keysOf(attempts, books.Books{}), func(k key) string {
		for _, a := range k.attempts {
			alone := len(k.attempts) == 1 || k.attempts[1].Invoke >= a.Return
			if a.Outcome() == journal.InProgress && alone && !sentTwice(a) {
				return fmt.Sprintf("attempt %d is in progress at %s, and there is no other", a.Number, a.Via)
			}
		}
		return ""
	})
}
