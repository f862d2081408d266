package idempotency_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
)

func TestRecord_SurvivesMarshalling(t *testing.T) {
	t.Parallel()
	want := idempotency.Record{
		Scope: "acct_1", Key: `a"b`, Status: idempotency.StatusFailed, Owner: idempotency.NewOwner(), Fingerprint: fingerprint("x"),
		CreatedAt: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), ExpiresAt: time.Date(2026, 1, 4, 3, 4, 5, 6, time.UTC),
		TraceParent: "00-1-2-01",
		Response: idempotency.Response{
			StatusCode: 402, Header: http.Header{"Link": {"<a>", "<b>"}}, Body: []byte("{\n\x00\xff}\n"),
		},
	}
	data, err := want.MarshalBinary()
	require.NoError(t, err)
	var got idempotency.Record
	require.NoError(t, got.UnmarshalBinary(data))
	require.Equal(t, want, got)

	line, body, _ := bytes.Cut(data, []byte("\n"))
	require.Equal(t, want.Response.Body, body, "the body is kept as it is")
	for _, member := range []string{
		`"key":"a\"b"`, `"scope":"acct_1"`, `"status":"Failed"`, `"requestFingerprint":"` + want.Fingerprint.String() + `"`,
		`"owner":"` + string(want.Owner) + `"`, `"responseStatusCode":402`, `"responseHeaders":{"Link":["\u003ca\u003e","\u003cb\u003e"]}`,
		`"createdAt":"2026-01-02T03:04:05.000000006Z"`, `"expiresAt":"2026-01-04T03:04:05.000000006Z"`,
		`"traceParent":"00-1-2-01"`,
	} {
		require.Contains(t, string(line), member)
	}
	for i := range data {
		data[i] = 'x'
	}
	require.Equal(t, want, got, "the record has its own copy")
}

func TestRecord_RefusesCorruptBytes(t *testing.T) {
	t.Parallel()
	zeros := strings.Repeat("0", 64)
	for _, data := range []string{
		"", "\n", "x\n", "{}\n", "null\n", "[]\n", `{"status":"InProgress"}` + "\n",
		`{"status":"InProgress","requestFingerprint":"` + zeros + `"}`, // no newline
		`{"status":"Completed","requestFingerprint":"` + zeros + `"}` + "\n",
		`{"status":"Completed","requestFingerprint":"` + zeros + `","responseStatusCode":101}` + "\n",
		`{"status":"Completed","requestFingerprint":"` + zeros + `","responseStatusCode":500}` + "\n",
		`{"status":"Completed","requestFingerprint":"` + zeros + `","responseStatusCode":"200"}` + "\n",
		`{"status":"Unheard","requestFingerprint":"` + zeros + `"}` + "\n",
		`{"status":"InProgress","requestFingerprint":"x` + zeros[1:] + `"}` + "\n",
		`{"status":"InProgress","requestFingerprint":"` + zeros[1:] + `"}` + "\n",
		`{"status":"InProgress","requestFingerprint":"` + zeros + `0"}` + "\n",
	} {
		var got idempotency.Record
		require.ErrorIs(t, got.UnmarshalBinary([]byte(data)), idempotency.ErrCorrupt, data)
		require.Equal(t, idempotency.Record{}, got, "nothing is taken from it")
	}
}

func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"status":"Completed","requestFingerprint":"` + strings.Repeat("0", 64) + `","responseStatusCode":200}` + "\nbody"))
	f.Add([]byte("garbage"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var first, second idempotency.Record
		if err := first.UnmarshalBinary(data); err != nil {
			require.ErrorIs(t, err, idempotency.ErrCorrupt)
			return
		}
		again, err := first.MarshalBinary()
		require.NoError(t, err)
		require.NoError(t, second.UnmarshalBinary(again))
		require.Equal(t, first.Response.Body, second.Response.Body)
		require.Equal(t, first.Fingerprint, second.Fingerprint)
		require.Equal(t, first.Status, second.Status)
	})
}

func TestNewOwner_IsRandom(t *testing.T) {
	t.Parallel()
	first, second := idempotency.NewOwner(), idempotency.NewOwner()
	require.Regexp(t, "^[0-9a-f]{32}$", string(first))
	require.NotEqual(t, first, second)
}
