package idempotency

import (
	"bytes"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// plainRecords are in progress, finished, without a body, and with all that a record can have.
func plainRecords() []Record {
	at := time.Date(2026, 1, 2, 3, 4, 5, 678_900_000, time.UTC)
	pending := Record{Scope: "acc", Key: "key-1", Status: StatusInProgress, Owner: NewOwner(), CreatedAt: at, ExpiresAt: at.Add(time.Second)}
	done, bare, omitted := pending, pending, pending
	done.Status, done.TraceParent = StatusCompleted, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	done.Response = Response{StatusCode: 201, Body: []byte("{}\n"), Header: http.Header{"Content-Type": {"application/json"}, "Link": {"a, b", ""}}}
	bare.Status, bare.Response = StatusFailed, Response{StatusCode: 404}
	omitted.Status, omitted.Response = StatusCompleted, Response{StatusCode: 200, BodyOmitted: true}
	return []Record{pending, done, bare, omitted}
}

func TestParsePlain_ReadsWhatMarshalBinaryWrites(t *testing.T) {
	t.Parallel()
	for _, r := range plainRecords() {
		data, err := r.MarshalBinary()
		require.NoError(t, err)
		line, _, _ := bytes.Cut(data, []byte("\n"))
		var m metadata
		require.True(t, m.parsePlain(string(line)), "%s", line)
	}
}

// FuzzParsePlain compares it with encoding/json, which may only take more.
func FuzzParsePlain(f *testing.F) {
	for _, r := range plainRecords() {
		data, _ := r.MarshalBinary()
		line, _, _ := bytes.Cut(data, []byte("\n"))
		f.Add(string(line))
		for _, odd := range []string{`\"`, "é", "\x00", `",`, "{", "9"} {
			f.Add(string(bytes.Replace(line, []byte("key-1"), []byte(odd), 1)))
			f.Add(string(bytes.Replace(line, []byte(`application/json`), []byte(odd), 1)))
			f.Add(string(line[:len(line)/2]) + odd + string(line[len(line)/2:]))
		}
	}
	f.Fuzz(func(t *testing.T, line string) {
		var plain, decoded metadata
		if !plain.parsePlain(line) {
			return
		}
		if !json.Valid(plain.Header) && plain.Status != StatusInProgress {
			return // and is refused when the headers are read
		}
		require.NoError(t, json.Unmarshal([]byte(line), &decoded))
		require.Equal(t, decoded, plain)
	})
}
