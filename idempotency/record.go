package idempotency

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// Status is where a record stands.
type Status string

// The three states of a record.
const (
	StatusInProgress Status = "InProgress" // an owner holds the key under a lease
	StatusCompleted  Status = "Completed"  // answered with 2xx or 3xx
	StatusFailed     Status = "Failed"     // answered with a final 4xx
)

// Owner names one attempt at one request: 128 random bits as 32 hexadecimal
// digits. A record is changed only by the owner that wrote it.
type Owner string

// NewOwner draws a new owner from the system's random source.
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
	// BodyOmitted says that the body was too large to be kept: a retry can be
	// told that the request is done, but can't be given the answer again.
	BodyOmitted bool
}

// Record is what is known of one key in one scope.
type Record struct {
	Scope, Key  string
	Status      Status
	Fingerprint Fingerprint
	Owner       Owner
	Response    Response // empty while in progress
	CreatedAt   time.Time
	// TraceParent names the request that wrote the record, in whatever notation
	// [WithTraceParent] gives. The answer to a replay isn't touched by it.
	TraceParent string
	// ExpiresAt is written by the store, on the clock of the process that wrote
	// the record last; the store's own expiry is what counts.
	ExpiresAt time.Time
}

// metadata is the first line of a stored record. Names are for the people who
// read it with redis-cli, and for records written by other versions: unknown
// members are ignored, and all but status and requestFingerprint may be absent.
type metadata struct {
	Scope       string      `json:"scope"`
	Key         string      `json:"key"`
	Status      Status      `json:"status"`
	Fingerprint string      `json:"requestFingerprint"`
	Owner       Owner       `json:"owner"`
	CreatedAt   time.Time   `json:"createdAt,omitzero"`
	ExpiresAt   time.Time   `json:"expiresAt,omitzero"`
	StatusCode  int         `json:"responseStatusCode,omitempty"`
	Header      http.Header `json:"responseHeaders,omitempty"`
	BodyOmitted bool        `json:"responseBodyOmitted,omitempty"`
	TraceParent string      `json:"traceParent,omitempty"`
}

// MarshalBinary gives one line of JSON metadata, "\n", and the body's raw
// bytes: a replay is byte-identical by construction, and a person can read it.
func (r Record) MarshalBinary() ([]byte, error) {
	line, err := json.Marshal(metadata{
		Scope: r.Scope, Key: r.Key, Status: r.Status, Fingerprint: r.Fingerprint.String(), Owner: r.Owner,
		CreatedAt: r.CreatedAt.UTC(), ExpiresAt: r.ExpiresAt.UTC(),
		StatusCode: r.Response.StatusCode, Header: r.Response.Header, BodyOmitted: r.Response.BodyOmitted,
		TraceParent: r.TraceParent,
	})
	if err != nil {
		return nil, fmt.Errorf("marshal record: %w", err)
	}
	return append(append(line, '\n'), r.Response.Body...), nil
}

// UnmarshalBinary is the inverse of MarshalBinary. Its errors wrap [ErrCorrupt].
func (r *Record) UnmarshalBinary(data []byte) error {
	line, body, found := bytes.Cut(data, []byte("\n"))
	if !found {
		return fmt.Errorf("%w: no line of metadata", ErrCorrupt)
	}
	var m metadata
	if err := json.Unmarshal(line, &m); err != nil {
		return fmt.Errorf("%w: metadata: %w", ErrCorrupt, err)
	}
	fingerprint, err := ParseFingerprint(m.Fingerprint)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if err := m.check(); err != nil {
		return err
	}
	*r = Record{
		Scope: m.Scope, Key: m.Key, Status: m.Status, Fingerprint: fingerprint, Owner: m.Owner,
		CreatedAt: m.CreatedAt, ExpiresAt: m.ExpiresAt, TraceParent: m.TraceParent,
		Response: Response{StatusCode: m.StatusCode, Header: m.Header, Body: bytes.Clone(body), BodyOmitted: m.BodyOmitted},
	}
	return nil
}

// check makes sure that a finished record can be answered with.
func (m metadata) check() error {
	switch m.Status {
	case StatusInProgress:
		return nil
	case StatusCompleted, StatusFailed:
		if m.StatusCode < 200 || m.StatusCode > 499 {
			return fmt.Errorf("%w: response status %d", ErrCorrupt, m.StatusCode)
		}
		return nil
	}
	return fmt.Errorf("%w: status %q", ErrCorrupt, m.Status)
}
