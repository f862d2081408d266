package idempotency_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
)

// TestBody_OfAServerThatWasReadInPartIsRefused: a decoder reads a value, and not all that follows.
func TestBody_OfAServerThatWasReadInPartIsRefused(t *testing.T) {
	t.Parallel()
	long := `{"sku":"` + strings.Repeat("x", 502) + "\"}\n" // the decoder's first read ends before the newline
	for name, tt := range map[string]struct {
		body    func() io.Reader
		decoded bool // by middleware further out
		want    int
	}{
		"with a length":     {func() io.Reader { return strings.NewReader(long) }, true, http.StatusInternalServerError},
		"... unread":        {func() io.Reader { return strings.NewReader(long) }, false, http.StatusCreated},
		"chunked":           {func() io.Reader { return io.MultiReader(strings.NewReader("{}")) }, true, http.StatusInternalServerError},
		"... unread too":    {func() io.Reader { return io.MultiReader(strings.NewReader("{}")) }, false, http.StatusCreated},
		"none":              {func() io.Reader { return nil }, false, http.StatusCreated},
		"none, but decoded": {func() io.Reader { return nil }, true, http.StatusCreated},
	} {
		for _, http2 := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				b := setup(t, idempotency.Policy{}, nil)
				server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if tt.decoded {
						var value any
						_ = json.NewDecoder(r.Body).Decode(&value)
					}
					b.handler.ServeHTTP(w, r)
				}))
				server.EnableHTTP2 = http2
				server.StartTLS()
				t.Cleanup(server.Close)
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, tt.body())
				require.NoError(t, err)
				r.Header.Set(idempotency.HeaderKey, "key")
				r.Header.Set("Content-Type", "application/json")
				answer, err := server.Client().Do(r)
				require.NoError(t, err)
				require.NoError(t, answer.Body.Close())
				require.Equal(t, http2, answer.ProtoMajor == 2)
				require.Equal(t, tt.want, answer.StatusCode)
			})
		}
	}
}
