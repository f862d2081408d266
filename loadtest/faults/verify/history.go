package verify

import (
	"fmt"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/oncepay/oncepay/loadtest/faults/journal"
)

// state is what a key is to the model: nothing, or one request with one answer.
type state struct {
	fingerprint string
	status      int
	body        string
}

type call struct {
	fingerprint string
	contested   bool // another request with the key began before this one returned
}

// model is a key as clients may see it. An attempt with an unknown outcome, or that met another one, fixes nothing; the first
// answer that is kept fixes everything.
var model = porcupine.Model{
	Init: func() any { return state{} },
	Step: func(s, input, output any) (bool, any) {
		is, in, out := s.(state), input.(call), output.(journal.Attempt)
		free := is == state{}
		switch out.Outcome() {
		case journal.Succeeded, journal.Refused:
			told := state{in.fingerprint, out.Status, out.Body}
			return free || is == told, told
		case journal.Reused:
			return in.contested && is.fingerprint != in.fingerprint, s
		}
		return true, s
	},
	DescribeOperation: func(_, output any) string { return output.(journal.Attempt).String() },
}

// histories checks each key against the model; a check that comes to no end is no proof.
func histories(keys map[KeyID][]journal.Attempt, patience time.Duration) []Violation {
	var found []Violation
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
			found = append(found, broken(OneHistory, "porcupine: %s, %s", verdict, answersOf(attempts)).of(id))
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

// answersKept wants a completed row for each 2xx and a failed one for each final 4xx, with the very bytes.
func answersKept(keys map[KeyID][]journal.Attempt, b Books) []Violation {
	rows := map[KeyID]KeyRow{}
	for _, row := range b.Keys {
		rows[row.KeyID] = row
	}
	var found []Violation
	for id, attempts := range keys {
		row, ok := rows[id]
		for _, a := range attempts {
			want := map[journal.Outcome]string{journal.Succeeded: "completed", journal.Refused: "failed"}[a.Outcome()]
			if want == "" || (want == "failed" && row.Status == "completed") { // the latter is another rule's
				continue
			}
			if !ok || row.Status != want || row.ResponseStatus != a.Status || row.Body != a.Body {
				found = append(found, broken(AnswersKept, "seen %d %s %.8s, kept %s %d %.8s (row: %t)",
					a.Status, a.Code, a.Body, row.Status, row.ResponseStatus, row.Body, ok).of(id))
				break
			}
		}
	}
	return found
}

// refusedHaveNoEffect looks for a resource under a key that was refused.
func refusedHaveNoEffect(keys map[KeyID][]journal.Attempt, b Books) []Violation {
	done := map[KeyID]string{}
	for _, row := range b.Keys {
		if row.Status == "completed" {
			done[row.KeyID] = row.Resource
		}
	}
	var found []Violation
	for id, attempts := range keys {
		for _, a := range attempts {
			if resource := done[id]; a.Outcome() == journal.Refused && resource != "" {
				found = append(found, broken(RefusedNoting, "answered %d %s, and yet there is %s", a.Status, a.Code, resource).of(id))
				break
			}
		}
	}
	return found
}

// decided wants an end for each key: nobody is left not knowing.
func decided(keys map[KeyID][]journal.Attempt) []Violation {
	var found []Violation
	for id, attempts := range keys {
		known := false
		for _, a := range attempts {
			o := a.Outcome()
			known = known || o == journal.Succeeded || o == journal.Refused
		}
		if !known {
			last := attempts[len(attempts)-1]
			found = append(found, broken(Decided, "after %d attempts: %d %s %s", len(attempts), last.Status, last.Code, last.Error).of(id))
		}
	}
	return found
}
