package storetest

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
)

// largeBody is in bytes: large, but within the usual limit.
const largeBody = 256 << 10

func contentCases(run cases) {
	run("status, headers and body come back byte for byte", func(t *testing.T, b *bench) {
		large, visible := make([]byte, largeBody), make([]byte, 0, 256)
		random := rand.New(rand.NewPCG(1, 2)) // any bytes, the same in each run
		for i := range large {
			large[i] = byte(random.IntN(256)) //nolint:gosec // it fits
		}
		for c := 0x20; c < 0x100; c++ { // a header may hold any byte but controls
			visible = append(visible, byte(c))
		}
		all := []idempotency.Response{
			{StatusCode: 200, Body: large},
			{StatusCode: 303, BodyOmitted: true, Header: http.Header{
				"Location": {"/v1/orders/1"}, "Link": {"<a>; rel=x", `<b>; title="é\n"`}, "Content-Type": {},
			}},
			{StatusCode: 201, Body: []byte("body"), Header: http.Header{"Location": {string(visible)}, "Link": {"caf\xe9", "caf\u00e9", ""}}},
		}
		for _, likeFraming := range []string{"", "\n", "\n\n{}", "\x00", "\r\n", `{"status":"InProgress","owner":"x"}` + "\n", "\xff\xfe"} {
			all = append(all, idempotency.Response{StatusCode: 200, Body: []byte(likeFraming)})
		}
		for i, response := range all {
			finished := b.held(t, strconv.Itoa(i), long)
			finished.Status, finished.Response = completed, response
			require.NoError(t, b.Store.Complete(t.Context(), finished, long))
			b.requireHolds(t, finished)
		}
	})
	run("a finished record whose answer looks like a record in progress stays as it is", func(t *testing.T, b *bench) {
		for i, body := range []string{"", "x"} {
			pending := b.held(t, string(rune('a'+i)), long)
			likeness := `"status":"InProgress","owner":"` + string(pending.Owner) + `"`
			finished := done(pending, body+likeness)
			finished.Response.Header = http.Header{"Location": {likeness}, "Etag": {`",` + likeness}}
			if body == "" {
				finished.Response.Body = nil
			}
			require.NoError(t, b.Store.Complete(t.Context(), finished, long))
			require.ErrorIs(t, b.Store.Extend(t.Context(), pending, long), idempotency.ErrLost)
			require.ErrorIs(t, b.Store.Release(t.Context(), pending), idempotency.ErrLost)
			b.requireHolds(t, finished)
		}
	})
	run("the trace parent comes back, of the pending record and of the finished one", func(t *testing.T, b *bench) {
		pending := b.pending("key")
		pending.TraceParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
		existing, err := b.Store.Acquire(t.Context(), pending, long)
		require.NoError(t, err)
		require.Nil(t, existing)
		b.requireHolds(t, pending)

		finished := done(pending, "answer")
		finished.TraceParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01" // an earlier one's
		require.NoError(t, b.Store.Complete(t.Context(), finished, long))
		b.requireHolds(t, finished)
		b.requireHolds(t, b.completed(t, "another", "answer")) // which has none
	})
	run("scope and key together name a record", func(t *testing.T, b *bench) {
		base := b.scope
		for _, scope := range []string{base, base + ":a", base + ":a:b", base + "%3Aa", base + " ", base + "é", base + "*"} {
			for _, key := range []string{"key", "a:key", "b:key", ":key", "%3Akey", "KEY", "key ", `"key"`, `\key`, "{key}", "*", "k?y"} {
				b.scope = scope
				b.held(t, key, long)
			}
		}
	})
	run("a record is the caller's to change afterwards", func(t *testing.T, b *bench) {
		pending := b.held(t, "key", long)
		finished := done(pending, "answer")
		require.NoError(t, b.Store.Complete(t.Context(), finished, long))
		finished.Response.Body[0] = 'X'
		finished.Response.Header.Set("Content-Type", "changed")
		b.requireHolds(t, done(pending, "answer"))

		met := b.look(t, "key")
		met.Response.Body[0] = 'Y'
		met.Response.Header.Set("Content-Type", "changed")
		b.requireHolds(t, done(pending, "answer"))
	})
}

const (
	olderFingerprint = "00000000000000000000000000000000000000000000000000000000000000ff"
	olderCompleted   = `{"status":"Completed","requestFingerprint":"` + olderFingerprint + `","responseStatusCode":201,` +
		`"someday":{"nested":[1,2,{"deep":null}]}}` + "\nbody\n"
	olderPending = `{"status":"InProgress","requestFingerprint":"` + olderFingerprint + `"}` + "\n"
)

// corrupt are values that another program may have stored under a key.
var corrupt = map[string]string{
	"empty": "", "text": "garbage", "no line": `{"status":"InProgress"}`, "empty line": "\n", "open": "{\n", "null": "null\n",
	"array": "[1]\n", "number": "1\n", "no members": "{}\n", "wrong type": `{"status":1}` + "\n", "binary": "\x00\x01\xff\n\x00",
}

func bytesCases(t *testing.T, setup func(t *testing.T) Bench) {
	t.Helper()
	if setup(t).Plant == nil {
		return
	}
	run := runner(t, setup)
	run("a record of another version is readable", func(t *testing.T, b *bench) {
		b.Plant(t, b.scope, "key", []byte(olderCompleted))
		met := b.look(t, "key")
		require.NotNil(t, met)
		require.Equal(t, idempotency.StatusCompleted, met.Status)
		require.Equal(t, olderFingerprint, met.Fingerprint.String())
		require.Equal(t, 201, met.Response.StatusCode)
		require.Equal(t, "body\n", string(met.Response.Body))
		require.ErrorIs(t, b.Store.Release(t.Context(), b.pending("key")), idempotency.ErrLost)
	})
	run("a pending record of another version has no owner", func(t *testing.T, b *bench) {
		b.Plant(t, b.scope, "key", []byte(olderPending))
		pending := b.pending("key")
		require.ErrorIs(t, b.Store.Extend(t.Context(), pending, long), idempotency.ErrLost)
		require.ErrorIs(t, b.Store.Complete(t.Context(), done(pending, "x"), long), idempotency.ErrLost)
		require.ErrorIs(t, b.Store.Release(t.Context(), pending), idempotency.ErrLost)
		met := b.look(t, "key")
		require.NotNil(t, met)
		require.Equal(t, idempotency.StatusInProgress, met.Status)
	})
	if _, repairs := setup(t).Store.(idempotency.Repairer); repairs {
		repairCases(run)
	}
	for name, data := range corrupt {
		run("corrupt: "+name, func(t *testing.T, b *bench) {
			b.Plant(t, b.scope, "key", []byte(data))
			pending := b.pending("key")
			existing, err := b.Store.Acquire(t.Context(), pending, long)
			require.ErrorIs(t, err, idempotency.ErrCorrupt)
			require.Nil(t, existing)
			require.ErrorIs(t, b.Store.Extend(t.Context(), pending, long), idempotency.ErrCorrupt)
			require.ErrorIs(t, b.Store.Complete(t.Context(), done(pending, "x"), long), idempotency.ErrCorrupt)
			require.ErrorIs(t, b.Store.Release(t.Context(), pending), idempotency.ErrCorrupt)
		})
	}
}
