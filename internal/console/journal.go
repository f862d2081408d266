package console

import (
	"crypto/rand"
	"encoding/hex"
	"slices"
	"sync"
	"time"
)

// keptAttempts is how many attempts are remembered: what you sent, beside a demonstration.
const keptAttempts = 32

// journal remembers the newest attempts. Safe for concurrent use.
type journal struct {
	mu       sync.Mutex
	next     int
	attempts []*attempt // oldest first
}

// begin adds an attempt, and gives it its number, trace and time.
func (j *journal) begin(a attempt) attempt {
	var trace [16]byte
	_, _ = rand.Read(trace[:]) // never fails
	j.mu.Lock()
	defer j.mu.Unlock()
	j.next++
	a.ID, a.Trace, a.Began = j.next, hex.EncodeToString(trace[:]), time.Now()
	kept := a
	j.attempts = append(j.attempts[max(0, len(j.attempts)+1-keptAttempts):], &kept)
	return a
}

// end notes what became of an attempt.
func (j *journal) end(a attempt) {
	j.change(a.Trace, func(kept *attempt) {
		a.Calls, a.Done, a.Took = kept.Calls, true, time.Since(a.Began)
		*kept = a
	})
}

// addCall adds what a replica did for the attempt of a trace, and returns the attempt; false: there
// is no such attempt.
func (j *journal) addCall(trace string, c call) (of attempt, found bool) {
	found = j.change(trace, func(kept *attempt) {
		if !slices.ContainsFunc(kept.Calls, func(known call) bool { return known.Span == c.Span }) {
			calls := append(slices.Clone(kept.Calls), c) // copies of the attempt share the slice
			slices.SortStableFunc(calls, func(a, b call) int { return a.Began.Compare(b.Began) })
			kept.Calls = calls
		}
		of = *kept
	})
	return of, found
}

func (j *journal) change(trace string, change func(*attempt)) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	i := slices.IndexFunc(j.attempts, func(a *attempt) bool { return a.Trace == trace })
	if i >= 0 {
		change(j.attempts[i])
	}
	return i >= 0
}

// all returns the attempts, oldest first.
func (j *journal) all() []attempt {
	j.mu.Lock()
	defer j.mu.Unlock()
	list := make([]attempt, len(j.attempts))
	for i, a := range j.attempts {
		list[i] = *a
	}
	return list
}

// of returns the attempts with a key, oldest first.
func (j *journal) of(key string) []attempt {
	return slices.DeleteFunc(j.all(), func(a attempt) bool { return a.Key != key })
}

// drop forgets all attempts of a sender.
func (j *journal) drop(by string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.attempts = slices.DeleteFunc(j.attempts, func(a *attempt) bool { return a.By == by })
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
