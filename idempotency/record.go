package idempotency

import (
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"time"
)

// Status is the state of a record.
type Status string

// The three states of a record.
const (
	StatusInProgress Status = "InProgress" // an owner holds the key under a lease
	StatusCompleted  Status = "Completed"  // answered with 2xx or 3xx
	StatusFailed     Status = "Failed"     // answered with a final 4xx
)

// Owner identifies one attempt at one request: 128 random bits as 32 hexadecimal digits. Only
// the owner that wrote a record changes it.
type Owner string

// NewOwner returns a new owner from the system's random source.
func NewOwner() Owner {
	var bits [16]byte
	_, _ = rand.Read(bits[:]) // never fails, see crypto/rand
	return Owner(hex.EncodeToString(bits[:]))
}

// Response is what is kept of an answer.
type Response struct {
	StatusCode int
	Header     http.Header // only the allow-listed ones
	Body       []byte
	// BodyOmitted says that the answer was too large to be kept: a retry learns that the
	// request is done, but does not get the answer again.
	BodyOmitted bool
}

// Record is what is known about one key in one scope.
type Record struct {
	Scope, Key  string
	Status      Status
	Fingerprint Fingerprint
	Owner       Owner
	Response    Response // empty while in progress
	CreatedAt   time.Time
	// TraceParent identifies the request that wrote the record, in the notation that
	// [WithTraceParent] uses.
	TraceParent string
	// ExpiresAt is set by the store, on the clock of the process that wrote the record last.
	// What counts is the store's own expiry.
	ExpiresAt time.Time
}

// isInProgress reports whether a request with the key is in progress elsewhere. It may be another
// request: its work may yet refuse it and leave the key to this one.
func (r *Record) isInProgress() bool { return r != nil && r.Status == StatusInProgress }
