package idempotency_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/memstore"
)

// These tests are about middleware around the library's, and behind it.

func TestReplay_LeavesHeadersToOuterMiddleware(t *testing.T) {
	t.Parallel()
	b := setup(t, idempotency.Policy{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Content-Language", "en")
		w.Header().Add("Vary", "Accept-Language")
	})
	send := func(link string) http.Header {
		w := httptest.NewRecorder()
		w.Header().Set("Link", link)
		w.Header().Set("Cache-Control", "no-cache")
		w.Header().Set("Content-Language", "en")
		w.Header().Add("Vary", link)
		b.handler.ServeHTTP(w, request(t, "key", ""))
		return w.Header()
	}
	send("<a>")
	kept, err := idempotency.Lookup(t.Context(), b.memory(), "ada", "key")
	require.NoError(t, err)
	require.Equal(t, http.Header{"Cache-Control": {"no-store"}, "Vary": {"<a>", "Accept-Language"}}, kept.Response.Header)
	again := send("<b>")
	require.Equal(t, []string{"<b>"}, again["Link"], "of this exchange")
	require.Equal(t, []string{"no-store"}, again["Cache-Control"], "the handler's")
	require.Equal(t, []string{"en"}, again["Content-Language"])
	require.Equal(t, []string{"<b>", "<a>", "Accept-Language"}, again["Vary"])
}

// gzipping is the simplest compressor there is: it does not even remove Content-Length.
func gzipping(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Vary", "Accept-Encoding")
		if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		defer func() { _ = z.Close() }()
		next.ServeHTTP(gzipWriter{w, z}, r)
	})
}

type gzipWriter struct {
	http.ResponseWriter
	z *gzip.Writer
}

func (w gzipWriter) Write(p []byte) (int, error) { return w.z.Write(p) }

// TestReplay_HasNoEncodingThatTheClientDoesNotAccept has a compressor on either side, and clients
// that accept gzip or do not, in each order.
func TestReplay_HasNoEncodingThatTheClientDoesNotAccept(t *testing.T) {
	t.Parallel()
	const body = `{"id":1}`
	app := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { write(w, body) })
	for _, outside := range []bool{true, false} {
		for _, accepted := range [][]string{{"gzip", "identity", "gzip"}, {"identity", "gzip", "identity"}} {
			keys := idempotency.New(memstore.New(), idempotency.Always(idempotency.Policy{Required: true}), idempotency.WithSharedScope())
			handler := keys.Handler(gzipping(app))
			if outside {
				handler = gzipping(keys.Handler(app))
			}
			server := httptest.NewServer(handler)
			for i, encoding := range accepted {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, http.NoBody)
				require.NoError(t, err)
				r.Header.Set(idempotency.HeaderKey, "key")
				r.Header.Set("Accept-Encoding", encoding)
				response, err := server.Client().Do(r)
				require.NoError(t, err)
				content := io.Reader(response.Body)
				if response.Header.Get("Content-Encoding") != "" {
					require.Equal(t, "gzip", encoding)
					content, err = gzip.NewReader(content)
					require.NoError(t, err)
				}
				got, err := io.ReadAll(content)
				require.NoError(t, err, "outside: %v, %v", outside, accepted[:i+1])
				require.NoError(t, response.Body.Close())
				require.Equal(t, body, string(got))
				require.Equal(t, []string{"Accept-Encoding"}, response.Header["Vary"])
			}
			server.Close()
		}
	}
}

func TestAlways_PassesSafeMethods(t *testing.T) {
	t.Parallel()
	policy := idempotency.Policy{Required: true}
	always := idempotency.Always(policy)
	explicit := func(*http.Request) *idempotency.Policy { return &policy }
	for _, tt := range []struct {
		method, override string
		policyFor        func(*http.Request) *idempotency.Policy
		passes           bool
	}{
		{"GET", "", always, true}, {"head", "", always, true}, {"OPTIONS", "", always, true}, {"TRACE", "", always, true},
		{"GET", "DELETE", always, false}, {"POST", "", always, false}, {"PUT", "", always, false}, {"QUERY", "", always, false},
		{"GET", "", explicit, false}, {"OPTIONS", "", explicit, true},
	} {
		handler := idempotency.New(memstore.New(), tt.policyFor, idempotency.WithSharedScope()).Handler(
			http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
		r := request(t, "", "")
		r.Method = tt.method
		if tt.override != "" {
			r.Header.Set("X-Http-Method-Override", tt.override)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		require.Equal(t, tt.passes, w.Code == http.StatusNoContent, tt)
	}
}

// TestAlways_LetsAClientFollowItsRedirect: http.Client sends the key again with the GET.
func TestAlways_LetsAClientFollowItsRedirect(t *testing.T) {
	t.Parallel()
	b := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			http.Redirect(w, r, "/orders/1", http.StatusSeeOther)
		}
	})
	keys := idempotency.New(memstore.New(), idempotency.Always(idempotency.Policy{Required: true}), idempotency.WithSharedScope())
	server := httptest.NewServer(keys.Handler(b))
	defer server.Close()
	for range 2 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/orders", http.NoBody)
		require.NoError(t, err)
		r.Header.Set(idempotency.HeaderKey, "key")
		response, err := server.Client().Do(r)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, http.StatusOK, response.StatusCode)
		require.Equal(t, "/orders/1", response.Request.URL.Path)
	}
}

// TestReplay_IsRefusedInAnEncodingThatTheClientDoesNotAccept: the handler encodes whatever it is
// asked for.
func TestReplay_IsRefusedInAnEncodingThatTheClientDoesNotAccept(t *testing.T) {
	t.Parallel()
	b := setup(t, idempotency.Policy{}, func(w http.ResponseWriter, r *http.Request) {
		require.NotContains(t, r.Header.Get("Accept-Encoding"), "br")
		w.Header().Set("Content-Encoding", r.Header.Get("X-Encoding"))
		write(w, "compressed")
	})
	key, encoding := "key", "br"
	send := func(accepted ...string) *httptest.ResponseRecorder {
		r := request(t, key, "")
		r.Header["Accept-Encoding"] = accepted
		r.Header.Set("X-Encoding", encoding)
		return b.send(r)
	}
	first := send("gzip, br")
	for _, accepted := range [][]string{{"br"}, {"gzip", "BR ; q=0.5"}, {"*"}, {"gzip;q=0, *;q=0.1"}, nil} {
		requireReplay(t, first, send(accepted...))
	}
	for _, accepted := range []string{"identity", "gzip", "br;q=0", "br; q=0.000, *", "*;q=0", ""} {
		requireProblem(t, send(accepted), http.StatusConflict, idempotency.CodeResponseNotKept)
	}
	require.Equal(t, 1, b.ran())
	key, encoding = "plain", "identity"
	requireReplay(t, send("gzip"), send("gzip"))
}
