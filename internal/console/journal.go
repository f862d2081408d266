package console

import (
	"crypto/rand"
	"encoding/hex"
	"slices"
	"time"
)

// keptAttempts is how many attempts are remembered: what you sent, beside a demonstration.
const keptAttempts = 32

// journal remembers the newest attempts, oldest first. Safe for concurrent use.
type journal struct {
	guarded[[]attempt]
	begun int // changes with the list
}

// begin adds an attempt, and gives it its number, trace and time.
func (j *journal) begin(a attempt) attempt {
	var trace [16]byte
	_, _ = rand.Read(trace[:]) // never fails
	a.Trace, a.Began = hex.EncodeToString(trace[:]), time.Now()
	j.change(func(list *[]attempt) {
		j.begun++
		a.ID = j.begun
		*list = append(slices.Clone((*list)[max(0, len(*list)+1-keptAttempts):]), a)
	})
	return a
}

// end notes what became of an attempt.
func (j *journal) end(a attempt) {
	j.changeOne(a.Trace, func(kept *attempt) {
		a.Calls, a.Done, a.Took = kept.Calls, true, time.Since(a.Began)
		*kept = a
	})
}

// addCall adds what a replica did for the attempt of a trace, and returns the attempt; false: there
// is no such attempt.
func (j *journal) addCall(trace string, c call) (of attempt, found bool) {
	found = j.changeOne(trace, func(kept *attempt) {
		if !slices.ContainsFunc(kept.Calls, func(known call) bool { return known.Span == c.Span }) {
			kept.Calls = append(slices.Clone(kept.Calls), c)
			slices.SortStableFunc(kept.Calls, func(a, b call) int { return a.Began.Compare(b.Began) })
		}
		of = *kept
	})
	return of, found
}

// changeOne changes the attempt of a trace, in a copy of the list: others may be reading it.
func (j *journal) changeOne(trace string, change func(*attempt)) (found bool) {
	j.change(func(list *[]attempt) {
		i := slices.IndexFunc(*list, func(a attempt) bool { return a.Trace == trace })
		if found = i >= 0; found {
			*list = slices.Clone(*list)
			change(&(*list)[i])
		}
	})
	return found
}

// of returns the attempts with a key, oldest first.
func (j *journal) of(key string) []attempt {
	return slices.DeleteFunc(slices.Clone(j.now()), func(a attempt) bool { return a.Key != key })
}

// drop forgets all attempts of a sender.
func (j *journal) drop(by string) {
	j.change(func(list *[]attempt) {
		*list = slices.DeleteFunc(slices.Clone(*list), func(a attempt) bool { return a.By == by })
	})
}

// workerOf is the replica that works on the newest open attempt with a key, or "".
func (j *journal) workerOf(key string) (worker string) {
	for _, a := range j.of(key) {
		if !a.Done {
			worker = a.worker()
		}
	}
	return worker
}

// firstWorker is the replica that began the oldest known attempt with a key, or "".
func (j *journal) firstWorker(key string) string {
	for _, a := range j.of(key) {
		if len(a.Calls) > 0 {
			return a.Calls[0].Replica
		}
		if a.ServedBy != "" {
			return a.ServedBy
		}
	}
	return ""
}
