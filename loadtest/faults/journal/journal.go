// Package journal keeps what clients did and saw: one line of JSON per client attempt, written
// before any rule is applied, so that a verdict can be checked again from the file alone.
package journal

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/oncepay/oncepay/loadtest/books"
)

// Attempt is a client attempt (docs/glossary.md): one request on the wire.
type Attempt struct {
	Invoke time.Duration `json:"invoke"` // nanoseconds since the campaign began
	Return time.Duration `json:"return"`

	Client      int     `json:"client"`
	Account     string  `json:"account"`   // its API key
	Key         string  `json:"key"`       // empty: the request is sent once
	Operation   string  `json:"operation"` // order, payment, refund, top-up, cancel, …
	Purpose     Purpose `json:"purpose,omitempty"`
	Fingerprint string  `json:"fingerprint"`       // names the request's meaning: two requests are the same if it is
	Number      int     `json:"number"`            // of the attempt within its logical request, from one
	Via         string  `json:"via"`               // the endpoint that it was sent to: nginx or a replica
	RequestID   string  `json:"request_id"`        // as its client set it; no other attempt of the campaign has it
	Proxied     bool    `json:"proxied,omitempty"` // its client is a proxy, which tells a replica when it read it

	Replica  string  `json:"replica,omitempty"` // who answered
	Status   int     `json:"status,omitempty"`
	Code     string  `json:"code,omitempty"` // of a problem
	Replayed bool    `json:"replayed,omitempty"`
	Body     string  `json:"body,omitempty"`     // SHA-256 of the answer's body, in hexadecimal
	Resource string  `json:"resource,omitempty"` // ID in a 2xx
	Error    string  `json:"error,omitempty"`    // why there was no whole answer
	LookUp   *LookUp `json:"look_up,omitempty"`
	Change   *Change `json:"change,omitempty"`
}

// Change is what an attempt does to a product or customer whose history is checked, and what its
// answer tells of that.
type Change struct {
	Of      string `json:"of"` // the SKU, or the customer's ID
	Kind    Kind   `json:"kind"`
	Amount  int64  `json:"amount,omitempty"`   // the stock to set or to add; of a customer the number in its name
	IfMatch int64  `json:"if_match,omitempty"` // the version to change; 0: any
	Stock   *int64 `json:"stock,omitempty"`    // in the answer
	Version int64  `json:"version,omitempty"`  // in the answer's ETag
}

// Kind is the kind of a change.
type Kind string

// The kinds.
const (
	Get Kind = "get"
	Set Kind = "set"
	Add Kind = "add" // an order takes: it adds a negative amount
)

func (c *Change) String() string {
	if c == nil {
		return ""
	}
	text, _ := json.Marshal(c) // strings and numbers
	return string(text)
}

// LookUp is what GET /v1/idempotency-keys/{key} says about a key.
type LookUp struct {
	State  string `json:"state,omitempty"`  // empty: nothing is known of the key
	Status int    `json:"status,omitempty"` // of the answer that was given
}

// Rename is the operation that changes a customer's name.
const Rename = "rename"

// Purpose is why a client sent a request.
type Purpose string

// The purposes.
const (
	Alone        Purpose = "alone"         // one client wants one thing
	Burst        Purpose = "burst"         // one of several places that send one request at once
	Storm        Purpose = "storm"         // one of several requests at once for what is scarce
	Reuse        Purpose = "reuse"         // another request had the key
	OtherAccount Purpose = "other account" // another account uses the key, too
	Race         Purpose = "race"          // against another request about the same thing
	WalkAway     Purpose = "walk away"     // its client does not ask again
	HangUp       Purpose = "hang up"       // its client breaks the connection and does not ask again
	Again        Purpose = "again"         // it was answered some time ago
	Finishing    Purpose = "finishing"     // no client knew its end
	Probe        Purpose = "probe"         // to see whether the service is back
	Refusal      Purpose = "refusal"       // it is refused, and its client leaves
	Patient      Purpose = "patient"       // its client waits for the answer of another attempt
	Crowd        Purpose = "crowd"         // one of many more requests than the replicas can serve
	RetryStorm   Purpose = "retry storm"   // one of many that are repeated without a pause
	SlowPayer    Purpose = "slow payer"    // one of hundreds whose payment takes the provider long
	Greedy       Purpose = "greedy"        // one of many of an account that takes what it can get
	Sale         Purpose = "sale"          // one of many buyers of the few units of one product
	Trade        Purpose = "trade"         // about a product or a customer whose history is checked
)

// Outcome is what an attempt says about its key.
type Outcome string

// The outcomes.
const (
	Succeeded  Outcome = "succeeded"   // 2xx: the effect is there
	Refused    Outcome = "refused"     // a final 4xx: there is no effect, and never will be
	Reused     Outcome = "reused"      // the key belongs to another request
	InProgress Outcome = "in progress" // another attempt runs
	Rejected   Outcome = "rejected"    // another 4xx: not executed, and the key is free
	Expired    Outcome = "expired"     // the key was used, and its answer is no longer kept
	LookedUp   Outcome = "looked up"   // it asks about a key, and uses none
	TurnedAway Outcome = "turned away" // 503 overloaded: this attempt was not executed, and left nothing behind
	Unknown    Outcome = "unknown"     // no answer, or another 5xx
)

// retryable are the codes of 4xx answers that are not kept under the key (the table of errors in
// the API's description).
var retryable = map[string]bool{
	"order_being_paid": true, "payment_processing": true, "unknown_product": true, "email_taken": true,
	"newer_attempt_refused": true,
}

// ID is the attempt's key in its scope.
func (a Attempt) ID() books.KeyID { return books.KeyID{Account: a.Account, Key: a.Key} }

// Outcome classifies the attempt.
func (a Attempt) Outcome() Outcome {
	switch {
	case a.Error == "" && a.Code == "overloaded":
		return TurnedAway
	case a.Error != "" || a.Status >= http.StatusInternalServerError || a.Status == 0:
		return Unknown
	case a.LookUp != nil:
		return LookedUp
	case a.Status < http.StatusMultipleChoices:
		return Succeeded
	case a.Code == "idempotency_key_expired":
		return Expired
	case a.Code == "idempotency_key_reused":
		return Reused
	case a.Code == "idempotency_in_progress":
		return InProgress
	case a.RefusedForNow():
		return Rejected
	case a.Status == http.StatusConflict, a.Status == http.StatusPaymentRequired, a.Status == http.StatusUnprocessableEntity,
		a.Status == http.StatusPreconditionFailed:
		return Refused
	}
	return Rejected
}

// RefusedForNow says that the answer is a refusal that is not kept: the same request may succeed
// later, and no older copy of it may.
func (a Attempt) RefusedForNow() bool {
	return a.Status < http.StatusInternalServerError && retryable[a.Code]
}

// Kept says that the answer is kept under the key: it is the end of the request.
func (o Outcome) Kept() bool { return o == Succeeded || o == Refused }

// Decided says that no retry can change what the client knows now.
func (o Outcome) Decided() bool { return o.Kept() || o == Reused || o == Expired }

func (a Attempt) String() string {
	return fmt.Sprintf("%9.3f–%9.3fs client %2d %-7s #%d via %-5s by %-5s %s %s %d %s replay=%t %.8s %s %s %s", a.Invoke.Seconds(), a.Return.Seconds(), a.Client,
		a.Operation, a.Number, a.Via, a.Replica, a.Fingerprint, a.Outcome(), a.Status, a.Code, a.Replayed, a.Body, a.Resource, a.Change, a.Error)
}

// Writer appends attempts to a file and remembers them. Safe for concurrent use.
type Writer struct {
	mu       sync.Mutex
	out      *bufio.Writer
	encoder  *json.Encoder
	attempts []Attempt
}

// NewWriter writes to out.
func NewWriter(out io.Writer) *Writer {
	buffered := bufio.NewWriter(out)
	return &Writer{out: buffered, encoder: json.NewEncoder(buffered)}
}

// Add enters an attempt. Close returns what went wrong with the file.
func (w *Writer) Add(a Attempt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.attempts = append(w.attempts, a)
	_ = w.encoder.Encode(a) // the buffer keeps its first error
}

// Attempts are all that were entered so far.
func (w *Writer) Attempts() []Attempt {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.attempts[:len(w.attempts):len(w.attempts)]
}

// Close writes what is buffered. It does not close the file.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Flush() // the file's error names it
}
