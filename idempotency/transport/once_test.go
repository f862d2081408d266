package transport_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency/transport"
)

// TestOnce_SendsNothingAgain breaks a kept connection after the request has arrived. The control
// shows that net/http by itself sends it again.
func TestOnce_SendsNothingAgain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		wrap func(http.RoundTripper) http.RoundTripper
		body io.Reader
		want int64
	}{
		{"control", func(rt http.RoundTripper) http.RoundTripper { return rt }, strings.NewReader("{}"), 2},
		{"control without a body", func(rt http.RoundTripper) http.RoundTripper { return rt }, http.NoBody, 2},
		{"once", transport.Once, strings.NewReader("{}"), 1},
		{"once without a body", transport.Once, http.NoBody, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var charges atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost && (r.Header.Get("Idempotency-Key") != "payment-1" || r.ContentLength < 0) {
					t.Error("the request is another one")
				}
				if r.Method == http.MethodPost && charges.Add(1) == 1 {
					panic(http.ErrAbortHandler) // charged, and the connection breaks
				}
			}))
			defer server.Close()
			base := &http.Transport{}
			defer base.CloseIdleConnections()
			client := &http.Client{Transport: c.wrap(base)}
			kept, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, http.NoBody)
			require.NoError(t, err)
			answer, err := client.Do(kept)
			require.NoError(t, err)
			require.NoError(t, answer.Body.Close())

			charge, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, c.body)
			require.NoError(t, err)
			charge.Header.Set("Idempotency-Key", "payment-1")
			answer, err = client.Do(charge)
			require.Equal(t, c.want, charges.Load())
			if c.want == 1 {
				require.Error(t, err)
				return
			}
			require.NoError(t, err)
			require.NoError(t, answer.Body.Close())
		})
	}
}
