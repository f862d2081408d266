package idempotency

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
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
	CreatedAt   time.Time       `json:"createdAt"`
	ExpiresAt   time.Time       `json:"expiresAt"`
	StatusCode  int             `json:"responseStatusCode"`
	Header      json.RawMessage `json:"responseHeaders"` // see package headers
	BodyLength  *int            `json:"responseBodyLength"`
	BodyOmitted bool            `json:"responseBodyOmitted"`
	TraceParent string          `json:"traceParent"`
}

// plainLine reads a line of metadata in the notation of [Record.MarshalBinary], whose texts need no
// escapes. Nearly every record is such a line. All others are read by encoding/json, which takes
// longer.
type plainLine struct {
	rest   string
	failed bool // the line is another one
}

// parsePlain returns false if the line must be read as JSON.
func (m *metadata) parsePlain(line string) bool {
	p := plainLine{rest: line}
	*m = metadata{
		Scope: p.text(`{"scope":"`), Key: p.text(`,"key":"`), Status: Status(p.text(`,"status":"`)),
		Fingerprint: p.text(`,"requestFingerprint":"`), Owner: Owner(p.text(`,"owner":"`)),
		CreatedAt: p.moment(`,"createdAt":"`), ExpiresAt: p.moment(`,"expiresAt":"`),
	}
	if m.Status != StatusInProgress {
		m.StatusCode = p.number(`,"responseStatusCode":`)
		m.Header = json.RawMessage(p.until(`,"responseHeaders":`, `,"responseBodyLength":`))
		length := p.number("")
		m.BodyLength = &length
		m.BodyOmitted = p.has(`,"responseBodyOmitted":true`)
	}
	if strings.HasPrefix(p.rest, `,`) {
		m.TraceParent = p.text(`,"traceParent":"`)
	}
	return !p.failed && p.rest == "}"
}

// has skips a text if the rest of the line begins with it.
func (p *plainLine) has(text string) (found bool) {
	p.rest, found = strings.CutPrefix(p.rest, text)
	return found
}

// until returns what lies between two texts, of which the rest of the line begins with the first.
func (p *plainLine) until(prefix, end string) (value string) {
	found := p.has(prefix)
	value, rest, ended := strings.Cut(p.rest, end)
	p.rest, p.failed = rest, p.failed || !found || !ended
	return value
}

func (p *plainLine) text(prefix string) string {
	value := p.until(prefix, `"`)
	for i := range len(value) {
		p.failed = p.failed || value[i] < ' ' || value[i] > '~' || value[i] == '\\'
	}
	return value
}

func (p *plainLine) moment(prefix string) time.Time {
	value := p.text(prefix)
	t, err := time.Parse(time.RFC3339Nano, value) // takes more than JSON does
	var room [len(time.RFC3339Nano)]byte
	p.failed = p.failed || err != nil || string(t.AppendFormat(room[:0], time.RFC3339Nano)) != value
	return t
}

func (p *plainLine) number(prefix string) int {
	found := p.has(prefix)
	digits := p.rest[:len(p.rest)-len(strings.TrimLeft(p.rest, "0123456789"))]
	p.rest = p.rest[len(digits):]
	n, err := strconv.Atoi(digits)
	p.failed = p.failed || !found || err != nil || len(digits) > 1 && digits[0] == '0'
	return n
}
