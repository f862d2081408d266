package idempotency_test

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
)

// These tests are about what is compared, and what is kept of an answer.

func TestReplay_KeepsEveryByteOfAHeader(t *testing.T) {
	t.Parallel()
	all := "/"
	for b := 0x20; b < 0x100; b++ {
		if b != 0x7f {
			all += string([]byte{byte(b)})
		}
	}
	b := setup(t, idempotency.Policy{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", all)
		w.Header().Set("Content-Disposition", "attachment; filename=\"caf\xe9.txt\"")
	})
	first, again := b.post(t, "key", ""), b.post(t, "key", "")
	requireReplay(t, first, again)
	for _, name := range []string{"Location", "Content-Disposition"} {
		require.Equal(t, first.Header()[name], again.Header()[name])
	}
}

// TestReplay_HasTheHeadersThatProtectAPage, and that say which part of an object it is.
func TestReplay_HasTheHeadersThatProtectAPage(t *testing.T) {
	t.Parallel()
	names := []string{
		"Content-Range", "Content-Security-Policy", "Cross-Origin-Opener-Policy", "Cross-Origin-Resource-Policy",
		"Referrer-Policy", "X-Content-Type-Options", "X-Frame-Options",
	}
	b := setup(t, idempotency.Policy{}, func(w http.ResponseWriter, _ *http.Request) {
		for _, name := range names {
			w.Header().Set(name, "of "+name)
		}
	})
	first, again := b.post(t, "key", ""), b.post(t, "key", "")
	requireReplay(t, first, again)
	for _, name := range names {
		require.Equal(t, "of "+name, again.Header().Get(name))
	}
}

func TestRecord_WithAnotherBodyLengthIsCorrupt(t *testing.T) {
	t.Parallel()
	for _, status := range []idempotency.Status{idempotency.StatusCompleted, idempotency.StatusInProgress} {
		record := idempotency.Record{Status: status, Response: idempotency.Response{StatusCode: 200, Body: []byte("body")}}
		if status == idempotency.StatusInProgress {
			record.Response = idempotency.Response{}
		}
		data, err := record.MarshalBinary()
		require.NoError(t, err)
		require.NoError(t, record.UnmarshalBinary(data))
		require.ErrorIs(t, record.UnmarshalBinary(append(data, '\n')), idempotency.ErrCorrupt, status)
		if status == idempotency.StatusCompleted {
			require.ErrorIs(t, record.UnmarshalBinary(data[:len(data)-1]), idempotency.ErrCorrupt)
		}
	}
}

func TestMaxResponse_CountsHeaders(t *testing.T) {
	t.Parallel()
	large := "/" + strings.Repeat("x", 1<<20)
	for name, tt := range map[string]struct {
		header string
		body   string
		kept   bool
		where  string // the Location that a retry gets
	}{
		"small":          {"/1", "body", true, "/1"},
		"exactly":        {"/1", strings.Repeat("x", 100-len("Location: /1\r\n")), true, "/1"},
		"one over":       {"/1", strings.Repeat("x", 101-len("Location: /1\r\n")), false, "/1"},
		"large header":   {large, "", false, ""},
		"... and a body": {large, "body", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, idempotency.Policy{}, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", tt.header)
				w.WriteHeader(http.StatusCreated)
				write(w, tt.body)
			}, idempotency.WithMaxResponse(100), idempotency.WithHeaderAllowList("Location"))
			first := b.post(t, "key", "")
			require.Equal(t, tt.header, first.Header().Get("Location"), "the client receives everything")
			require.Equal(t, tt.body, first.Body.String())
			again := b.post(t, "key", "")
			require.Equal(t, tt.where, again.Header().Get("Location"))
			if tt.kept {
				requireReplay(t, first, again)
			} else {
				requireProblem(t, again, http.StatusConflict, idempotency.CodeResponseNotKept)
			}
			require.Equal(t, 1, b.ran())
			record, err := idempotency.Lookup(t.Context(), b.memory(), "ada", "key")
			require.NoError(t, err)
			data, err := record.MarshalBinary()
			require.NoError(t, err)
			require.Less(t, len(data), 1000)
		})
	}
}

// TestMaxResponse_HoldsForStoredAnswers: the limit was higher when they were stored.
func TestMaxResponse_HoldsForStoredAnswers(t *testing.T) {
	t.Parallel()
	for name, response := range map[string]idempotency.Response{
		"body":   {StatusCode: 201, Header: http.Header{"Location": {"/1"}}, Body: make([]byte, 2<<20)},
		"header": {StatusCode: 201, Header: http.Header{"Location": {"/1"}, "Link": {strings.Repeat("x", 2<<20)}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, idempotency.Policy{}, nil)
			record := idempotency.Record{
				Scope: "ada", Key: "key", Status: idempotency.StatusInProgress, Owner: idempotency.NewOwner(),
				Fingerprint: idempotency.FingerprintOf(request(t, "key", ""), nil),
			}
			_, err := b.memory().Acquire(t.Context(), record, time.Minute)
			require.NoError(t, err)
			record.Status, record.Response = idempotency.StatusCompleted, response
			require.NoError(t, b.memory().Complete(t.Context(), record, time.Minute))
			w := b.post(t, "key", "")
			requireProblem(t, w, http.StatusConflict, idempotency.CodeResponseNotKept)
			require.Equal(t, "/1", w.Header().Get("Location"))
			require.Zero(t, b.ran())
		})
	}
}

func TestMethod_CaseMakesNoDifference(t *testing.T) {
	t.Parallel()
	b := setup(t, idempotency.Policy{Required: true}, nil)
	lower := request(t, "key", "")
	lower.Method = "post"
	first := b.send(lower)
	requireReplay(t, first, b.post(t, "key", ""))

	var asked []string
	m := idempotency.New(b.memory(), func(r *http.Request) *idempotency.Policy {
		asked = append(asked, r.Method)
		return nil
	}, idempotency.WithSharedScope())
	var seen string
	m.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = r.Method })).ServeHTTP(nil, lower)
	require.Equal(t, []string{"POST"}, asked)
	require.Equal(t, "post", seen, "the handler gets what the client sent")
}

// TestBody_ThatWasReadBeforeIsRefused: without its body every request has one fingerprint.
func TestBody_ThatWasReadBeforeIsRefused(t *testing.T) {
	t.Parallel()
	form := url.Values{"sku": {"tee"}}.Encode()
	for name, tt := range map[string]struct {
		contentType string
		body        string
		chunked     bool
		before      func(*http.Request)
		refused     bool
	}{
		"a form":             {"application/x-www-form-urlencoded", form, false, func(r *http.Request) { _ = r.ParseForm() }, true},
		"a chunked form":     {"application/x-www-form-urlencoded", form, true, func(r *http.Request) { _ = r.ParseForm() }, true},
		"another type":       {"application/json", `{"sku":"tee"}`, false, func(r *http.Request) { _ = r.ParseForm() }, false},
		"chunked, unread":    {"application/json", `{"sku":"tee"}`, true, func(r *http.Request) { _ = r.ParseForm() }, false},
		"chunked and empty":  {"application/json", "", true, func(*http.Request) {}, true}, // as if it was read
		"... without a type": {"", "", true, func(r *http.Request) { r.Header.Del("Content-Type") }, false},
		"all of it":          {"text/plain", "body", false, func(r *http.Request) { _, _ = io.ReadAll(r.Body) }, true},
		"decoded, shorter":   {"text/plain", "0123456789", false, func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader("x")) }, false},
		"decoded, longer":    {"text/plain", "0", false, func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader("xyz")) }, false},
		"replaced by none":   {"application/json", `{"sku":"tee"}`, false, func(r *http.Request) { r.Body = http.NoBody }, true},
		"removed":            {"application/json", `{"sku":"tee"}`, false, func(r *http.Request) { r.Body = nil }, true},
		"a form that stayed": {"application/x-www-form-urlencoded", form, false, func(*http.Request) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, idempotency.Policy{}, nil)
			r := request(t, "key", tt.body)
			r.Header.Set("Content-Type", tt.contentType)
			if tt.chunked {
				r.ContentLength = -1
			}
			tt.before(r)
			w := b.send(r)
			if !tt.refused {
				require.Equal(t, http.StatusCreated, w.Code)
				return
			}
			requireProblem(t, w, http.StatusInternalServerError, idempotency.CodeBodyConsumed)
			require.Zero(t, b.ran())
			require.ErrorContains(t, b.lastCheck().Err, "ContentLength", "the log says what to do")
		})
	}
}
