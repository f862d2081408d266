package idempotency

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/oncepay/oncepay/idempotency/internal/headers"
)

// MarshalBinary returns one line of JSON metadata, "\n", and the raw bytes of the body: a
// replay has the same bytes by construction, and a person can read the record. The line
// is written without reflection: every request pays for two of them. It returns no error.
func (r Record) MarshalBinary() ([]byte, error) {
	line := make([]byte, 0, 512+len(r.Response.Body))
	text := func(name, value string) { line = appendText(append(line, name...), value) }
	text(`{"scope":`, r.Scope)
	text(`,"key":`, r.Key)
	text(`,"status":`, string(r.Status))
	text(`,"requestFingerprint":`, r.Fingerprint.String())
	text(`,"owner":`, string(r.Owner))
	moment := func(name string, t time.Time) {
		if !t.IsZero() {
			line = append(t.UTC().AppendFormat(append(line, name...), time.RFC3339Nano), '"')
		}
	}
	moment(`,"createdAt":"`, r.CreatedAt)
	moment(`,"expiresAt":"`, r.ExpiresAt)
	if r.Status != StatusInProgress {
		line = strconv.AppendInt(append(line, `,"responseStatusCode":`...), int64(r.Response.StatusCode), 10)
		line = append(append(line, `,"responseHeaders":`...), headers.Marshal(r.Response.Header)...)
		line = strconv.AppendInt(append(line, `,"responseBodyLength":`...), int64(len(r.Response.Body)), 10)
		if r.Response.BodyOmitted {
			line = append(line, `,"responseBodyOmitted":true`...)
		}
	}
	if r.TraceParent != "" {
		text(`,"traceParent":`, r.TraceParent)
	}
	return append(append(line, "}\n"...), r.Response.Body...), nil
}

// appendText appends a JSON string. Most texts need no escaping.
func appendText(out []byte, text string) []byte {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			escaped, _ := json.Marshal(text) // a string never fails
			return append(out, escaped...)
		}
	}
	return append(append(append(out, '"'), text...), '"')
}

// UnmarshalBinary is the inverse of MarshalBinary. Its errors wrap [ErrCorrupt].
func (r *Record) UnmarshalBinary(data []byte) error { return r.UnmarshalString(string(data)) }

// UnmarshalString is UnmarshalBinary without a copy of the metadata, for stores whose client
// returns strings.
func (r *Record) UnmarshalString(data string) error {
	line, body, found := strings.Cut(data, "\n")
	if !found {
		return fmt.Errorf("%w: no line of metadata", ErrCorrupt)
	}
	var m metadata
	if !m.parsePlain(line) {
		m = metadata{}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			return fmt.Errorf("%w: metadata: %w", ErrCorrupt, err)
		}
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
func (m *metadata) response(body string) (Response, error) {
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
	response := Response{StatusCode: m.StatusCode, Body: []byte(body), BodyOmitted: m.BodyOmitted}
	if m.Header == nil {
		return response, nil
	}
	var err error
	response.Header, err = headers.Unmarshal(m.Header)
	return response, err
}
