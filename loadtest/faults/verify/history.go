package verify

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oncepay/oncepay/loadtest/books"

	"github.com/anishathalye/porcupine"

	"github.com/oncepay/oncepay/loadtest/faults/journal"
)

// state is what a key is to the model: nothing, or one request with one answer.
type state struct {
	fingerprint string
	status      int
	body        string
	others      string // fingerprints of requests that were told that the key is another one's
}

type call struct {
	fingerprint string
	contested   bool // another request with the key began before this one returned
}

// model is a key as clients may see it. An attempt with an unknown outcome, or that met another
// one, decides nothing; the first answer that is kept decides everything. It may be one that no
// client saw: then a request that is told that the key is another one's is decided by that.
var model = porcupine.Model{
	Init: func() any { return state{} },
	Step: func(s, input, output any) (bool, any) {
		is, in, out := s.(state), input.(call), output.(journal.Attempt)
		switch out.Outcome() {
		case journal.Succeeded, journal.Refused:
			told := state{in.fingerprint, out.Status, out.Body, is.others}
			return (is.fingerprint == "" || is == told) && !strings.Contains(is.others, in.fingerprint), told
		case journal.Reused:
			right := in.contested && is.fingerprint != in.fingerprint
			if !strings.Contains(is.others, in.fingerprint) {
				is.others += " " + in.fingerprint
			}
			return right, is
		}
		return true, s
	},
	DescribeOperation: func(_, output any) string { return output.(journal.Attempt).String() },
}

// histories checks each key against the model; a check that does not end in time is a violation.
func histories(keys map[books.KeyID][]journal.Attempt, patience time.Duration) []books.Violation {
	var found []books.Violation
	for id, attempts := range keys {
		var operations []porcupine.Operation
		for _, a := range attempts {
			if o := a.Outcome(); o != journal.Succeeded && o != journal.Refused && o != journal.Reused {
				continue // it may or may not have been executed: nothing to place
			}
			operations = append(operations, porcupine.Operation{ClientId: len(operations),
				Input: call{a.Fingerprint, contested(attempts, a)}, Output: a, Call: int64(a.Invoke), Return: int64(a.Return)})
		}
		if verdict := porcupine.CheckOperationsTimeout(model, operations, patience); verdict != porcupine.Ok {
			found = append(found, books.Broken(OneHistory, "porcupine: %s, %s", verdict, answersOf(attempts)).Of(id))
		}
	}
	return found
}

func contested(attempts []journal.Attempt, a journal.Attempt) bool {
	for _, other := range attempts {
		if other.Fingerprint != a.Fingerprint && other.Invoke < a.Return {
			return true
		}
	}
	return false
}

// answersOf counts the different answers.
func answersOf(attempts []journal.Attempt) string {
	count := map[string]int{}
	for _, a := range attempts {
		count[fmt.Sprintf("%s %d %s %.8s", a.Fingerprint, a.Status, a.Code, a.Body)]++
	}
	return fmt.Sprint(count)
}

// answersKept checks that each 2xx has a completed row and each final 4xx a failed one, with the
// same bytes.
func answersKept(keys map[books.KeyID][]journal.Attempt, b books.Books) []books.Violation {
	rows := map[books.KeyID]books.KeyRow{}
	for _, row := range b.Keys {
		rows[row.KeyID] = row
	}
	var found []books.Violation
	for id, attempts := range keys {
		row, ok := rows[id]
		for _, a := range attempts {
			want := map[journal.Outcome]string{journal.Succeeded: "completed", journal.Refused: "failed"}[a.Outcome()]
			if want == "" || (want == "failed" && row.Succeeded()) { // the latter is another rule's
				continue
			}
			if row.Status == books.Expired && row.ResponseStatus == a.Status {
				continue // the bytes are gone, as they may be
			}
			if !ok || row.Status != want || row.ResponseStatus != a.Status || row.Body != a.Body {
				found = append(found, books.Broken(AnswersKept, "seen %d %s %.8s, kept %s %d %.8s (row: %t)",
					a.Status, a.Code, a.Body, row.Status, row.ResponseStatus, row.Body, ok).Of(id))
				break
			}
		}
	}
	return found
}

// reusedHaveAnAnswer finds keys that were called another request's although no answer is kept under
// them: a 422 is final, and only a kept answer stops older copies of the request that got it.
func reusedHaveAnAnswer(keys map[books.KeyID][]journal.Attempt, b books.Books) []books.Violation {
	kept := map[books.KeyID]bool{}
	for _, row := range b.Keys {
		kept[row.KeyID] = row.ResponseStatus != 0
	}
	var found []books.Violation
	for id, attempts := range keys {
		reused := func(a journal.Attempt) bool { return a.Outcome() == journal.Reused }
		if i := slices.IndexFunc(attempts, reused); i >= 0 && !kept[id] {
			found = append(found, books.Broken(ReusedForAReason, "attempt %d got 422 at %.3fs, and no answer is kept",
				attempts[i].Number, attempts[i].Return.Seconds()).Of(id))
		}
	}
	return found
}

// refusedHaveNoEffect looks for a resource under a key that was refused.
func refusedHaveNoEffect(keys map[books.KeyID][]journal.Attempt, b books.Books) []books.Violation {
	done := map[books.KeyID]string{}
	for _, row := range b.Keys {
		if row.Succeeded() {
			done[row.KeyID] = row.Resource
		}
	}
	var found []books.Violation
	for id, attempts := range keys {
		for _, a := range attempts {
			if resource := done[id]; a.Outcome() == journal.Refused && resource != "" {
				found = append(found, books.Broken(RefusedNoEffect, "answered %d %s, and yet there is %s", a.Status, a.Code, resource).Of(id))
				break
			}
		}
	}
	return found
}

// leaves has the purposes of clients that do not come back.
var leaves = map[journal.Purpose]bool{journal.Crowd: true, journal.WalkAway: true, journal.HangUp: true, journal.Greedy: true}

// decided finds keys whose clients never got to know their end, or lost it again: what was answered
// once is answered again when the faults are over.
func decided(keys map[books.KeyID][]journal.Attempt) []books.Violation {
	var found []books.Violation
	for id, attempts := range keys {
		// A client whose request is meant to be refused knows that nothing was done; one that has
		// corrected it does not.
		last := slices.MaxFunc(attempts, func(a, b journal.Attempt) int { return cmp.Compare(a.Invoke, b.Invoke) })
		known := last.RefusedForNow() && slices.ContainsFunc(attempts, func(a journal.Attempt) bool {
			return a.Purpose == journal.Refusal && a.Fingerprint == last.Fingerprint
		})
		known = known || OnlyTurnedAway(attempts) && leaves[last.Purpose] // and knows that nothing was done
		for _, a := range attempts {
			o := a.Outcome()
			known = known || o == journal.Succeeded || o == journal.Refused || o == journal.Expired
		}
		if !known || lostAgain(attempts) {
			found = append(found, books.Broken(Decided, "after %d attempts: %d %s %s", len(attempts), last.Status, last.Code, last.Error).Of(id))
		}
	}
	return found
}

// lostAgain says whether a client had its answer, and yet none of its last retries, after all
// faults, got one.
func lostAgain(attempts []journal.Attempt) bool {
	last := func(a journal.Attempt) bool { return a.Purpose == journal.Finishing }
	final := func(a journal.Attempt) bool { o := a.Outcome(); return o == journal.Succeeded || o == journal.Refused }
	decided := func(a journal.Attempt) bool { return last(a) && a.Outcome().Decided() }
	return slices.ContainsFunc(attempts, final) && slices.ContainsFunc(attempts, last) && !slices.ContainsFunc(attempts, decided)
}
