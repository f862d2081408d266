package audit

import (
	"bytes"
	"encoding/json"
	"iter"
	"net/http"

	"github.com/oncepay/oncepay/loadtest/books"
)

// Codes of the problems that a plan may ask for.
const (
	codeInProgress = "idempotency_in_progress"
	codeReused     = "idempotency_key_reused"
)

// Answers holds the answers that clients got, by key. Not safe for concurrent use.
type Answers struct {
	byKey   map[string]*entry
	entries []*entry // in the order of their first answers
}

// entry is one key: its request, and the first 201 that it got.
type entry struct {
	Request
	id    string // of the order or payment, once acknowledged
	body  []byte
	fresh int // 201s that were no replay, so effects
}

// NewAnswers returns an empty one.
func NewAnswers() *Answers {
	return &Answers{byKey: map[string]*entry{}}
}

// Acknowledged counts the keys of op that got a 201.
func (b *Answers) Acknowledged(op Operation) int {
	n := 0
	for range b.acknowledged(op) {
		n++
	}
	return n
}

func (b *Answers) acknowledged(op Operation) iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		for _, e := range b.entries {
			if e.Operation == op && e.body != nil && !yield(e) {
				return
			}
		}
	}
}

// payments are the keys of card and wallet payments that got a 201.
func (b *Answers) payments() iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		for _, op := range []Operation{Card, Wallet} {
			for e := range b.acknowledged(op) {
				if !yield(e) {
					return
				}
			}
		}
	}
}

// Record enters an answer and returns what is wrong with it. The ID is that of
// the order or payment which the answer acknowledges, empty otherwise.
func (b *Answers) Record(q Request, a Answer) (id string, wrong []Violation) {
	e, ok := b.byKey[q.Key]
	if !ok {
		e = &entry{Request: q}
		b.byKey[q.Key] = e
		b.entries = append(b.entries, e)
	}
	wrong = classify(q, a)
	if a.Err != "" || a.Status != http.StatusCreated || q.Expect == Mismatch {
		return "", wrong
	}
	id, more := e.acknowledge(a)
	return id, append(wrong, more...)
}

// classify compares the answer with the plan.
func classify(q Request, a Answer) []Violation {
	code := problemCode(a)
	unexpected := func(rule Rule) []Violation {
		return []Violation{books.Broken(rule, "%s %s, key %s: %d %s %s", q.Expect, q.Operation, q.Key, a.Status, code, a.Err)}
	}
	switch {
	case a.Err != "":
		return unexpected(NoAnswer)
	case a.Status >= http.StatusInternalServerError:
		return unexpected(ServerError)
	case q.Expect == Mismatch && a.Status == http.StatusUnprocessableEntity && code == codeReused:
		return nil
	case q.Expect == Raced && a.Status == http.StatusConflict && code == codeInProgress:
		return nil
	case q.Expect == Mismatch || a.Status != http.StatusCreated:
		return unexpected(WrongStatus)
	case q.Expect == First && a.Replayed:
		return unexpected(WrongReplay)
	case q.Expect == Replay && !a.Replayed:
		return unexpected(NotReplayed)
	}
	return nil
}

func problemCode(a Answer) string {
	var problem struct{ Code string }
	if a.Status >= http.StatusBadRequest {
		_ = json.Unmarshal(a.Body, &problem) // no code is as wrong as another one
	}
	return problem.Code
}

// acknowledge enters a 201: one key has one effect and one body.
func (e *entry) acknowledge(a Answer) (id string, wrong []Violation) {
	if !a.Replayed {
		e.fresh++
	}
	if e.fresh > 1 {
		wrong = append(wrong, books.Broken(SecondEffect, "%s, key %s: answered %d times as new", e.Operation, e.Key, e.fresh))
	}
	if e.body != nil {
		if !bytes.Equal(e.body, a.Body) {
			wrong = append(wrong, books.Broken(BodiesDiffer, "%s, key %s: %s and then %s", e.Operation, e.Key, e.body, a.Body))
		}
		return e.id, wrong
	}
	e.body = a.Body
	r, err := parseReceipt(a.Body)
	if err != nil {
		return "", append(wrong, books.Broken(WrongAnswer, "%s, key %s: %v", e.Operation, e.Key, err))
	}
	e.id = r.ID
	if !e.fits(r) {
		wrong = append(wrong, books.Broken(WrongAnswer, "%s, key %s: asked for %d of order %q, got %s", e.Operation, e.Key, e.Amount, e.Order, a.Body))
	}
	return e.id, wrong
}

// unacknowledged finds the keys for which no client got a 201.
func (b *Answers) unacknowledged() []Violation {
	var found []Violation
	for _, e := range b.entries {
		if e.body == nil {
			found = append(found, books.Broken(Unacknowledged, "%s, key %s", e.Operation, e.Key))
		}
	}
	return found
}
