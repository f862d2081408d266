// Package audit checks a load test. A Answers holds the answers that clients got, a State what the
// system and the payment provider hold, and Check names every difference. It does not depend on how
// the load was made, so that it can be tested with planted anomalies.
package audit

import "github.com/oncepay/oncepay/loadtest/books"

// Operation is what a request asks for.
type Operation string

// The operations whose effects are counted.
const (
	Order  Operation = "order"
	Card   Operation = "card payment"
	Wallet Operation = "wallet payment"
)

// Expectation is the plan for one request's answer.
type Expectation string

// What may be expected of a request.
const (
	First    Expectation = "first"    // its key is new: 201, and not as a replay
	Raced    Expectation = "raced"    // its key is sent twice at once: 201, or 409 while the other runs
	Replay   Expectation = "replay"   // its key has been answered: the same 201 again
	Mismatch Expectation = "mismatch" // its key belongs to another request: 422
)

// Request is one request as it was planned.
type Request struct {
	Key       string
	Operation Operation
	Expect    Expectation
	Customer  string           // the customer's ID
	Order     string           // the order that is paid; empty when one is placed
	Amount    int64            // minor units: the order's total
	Items     map[string]int64 // quantity by SKU, of an order that is placed
}

// Answer is what came back. Err is set when nothing did, or not all of it.
type Answer struct {
	Status   int
	Replayed bool // X-Idempotent-Replay
	Body     []byte
	Err      string
}

type (
	// Rule is a promise.
	Rule = books.Rule
	// Violation is a broken promise.
	Violation = books.Violation
)

// The rules about answers, and about what they acknowledge. Each has a test that breaks it.
const (
	NoAnswer       Rule = "no answer"
	ServerError    Rule = "server error"
	WrongStatus    Rule = "unexpected status"
	NotReplayed    Rule = "not marked as a replay"
	WrongReplay    Rule = "replay of a new key"
	SecondEffect   Rule = "second effect under one key"
	BodiesDiffer   Rule = "two bodies under one key"
	WrongAnswer    Rule = "answer does not fit the request"
	Unacknowledged Rule = "key never acknowledged"
	LostOrder      Rule = "acknowledged order is missing"
	SurplusOrder   Rule = "order without a key"
	WrongOrder     Rule = "order differs from its acknowledgement"
	LostPayment    Rule = "acknowledged payment is missing"
	WrongPayment   Rule = "payment differs from its acknowledgement"
	AskedAgain     Rule = "provider asked more than once"
	LateEvents     Rule = "events are late"
)
