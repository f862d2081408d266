package idempotency

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/oncepay/oncepay/idempotency/internal/headers"
)

// metadata is the first line of a stored record. Its names are for people who read it with
// redis-cli. For records of other versions unknown members are ignored, and all members but
// status and requestFingerprint may be absent.
type metadata struct {
	Scope       string          `json:"scope"`
	Key         string          `json:"key"`
	Status      Status          `json:"status"`
	Fingerprint string          `json:"requestFingerprint"`
	Owner       Owner           `json:"owner"`
	CreatedAt   time.Time       `json:"createdAt,omitzero"`
	ExpiresAt   time.Time       `json:"expiresAt,omitzero"`
	StatusCode  int             `json:"responseStatusCode,omitempty"`
	Header      json.RawMessage `json:"responseHeaders,omitempty"` // see package headers
	BodyLength  *int            `json:"responseBodyLength,omitempty"`
	BodyOmitted bool            `json:"responseBodyOmitted,omitempty"`
	TraceParent string          `json:"traceParent,omitempty"`
}

// MarshalBinary returns one line of JSON metadata, "\n", and the raw bytes of the body: a
// replay has the same bytes by construction, and a person can read the record.
func (r Record) MarshalBinary() ([]byte, error) {
	m := metadata{
		Scope: r.Scope, Key: r.Key, Status: r.Status, Fingerprint: r.Fingerprint.String(), Owner: r.Owner,
		CreatedAt: r.CreatedAt.UTC(), ExpiresAt: r.ExpiresAt.UTC(), TraceParent: r.TraceParent,
	}
	if r.Status != StatusInProgress {
		header, err := headers.Marshal(r.Response.Header)
		if err != nil {
			return nil, fmt.Errorf("marshal record: %w", err)
		}
		length := len(r.Response.Body)
		m.StatusCode, m.Header, m.BodyLength, m.BodyOmitted = r.Response.StatusCode, header, &length, r.Response.BodyOmitted
	}
	line, err := json.Marshal(m)
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
	fingerprint, err := parseFingerprint(m.Fingerprint)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	response, err := m.response(body)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	*r = Record{
		Scope: m.Scope, Key: m.Key, Status: m.Status, Fingerprint: fingerprint, Owner: m.Owner,
		CreatedAt: m.CreatedAt, ExpiresAt: m.ExpiresAt, TraceParent: m.TraceParent, Response: response,
	}
	return nil
}

// response returns the answer of a finished record, if it can be sent.
func (m metadata) response(body []byte) (Response, error) {
	switch m.Status {
	case StatusInProgress:
		if len(body) > 0 {
			return Response{}, fmt.Errorf("%d bytes of body in progress", len(body))
		}
		return Response{}, nil
	case StatusCompleted, StatusFailed:
	default:
		return Response{}, fmt.Errorf("status %q", m.Status)
	}
	if m.StatusCode < 200 || m.StatusCode > 499 {
		return Response{}, fmt.Errorf("response status %d", m.StatusCode)
	}
	if m.BodyLength != nil && *m.BodyLength != len(body) {
		return Response{}, fmt.Errorf("%d bytes of body instead of %d", len(body), *m.BodyLength)
	}
	response := Response{StatusCode: m.StatusCode, Body: bytes.Clone(body), BodyOmitted: m.BodyOmitted}
	if m.Header == nil {
		return response, nil
	}
	var err error
	response.Header, err = headers.Unmarshal(m.Header)
	return response, err
}
