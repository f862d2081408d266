package transport_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency/transport"
)

// BenchmarkTransport is what the transport adds to a request, with an answer of the size of an
// order's.
func BenchmarkTransport(b *testing.B) {
	body := strings.Repeat("x", 500)
	rt := &transport.Transport{Base: roundTripper(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusCreated, Header: http.Header{}, Request: r,
			ContentLength: int64(len(body)), Body: io.NopCloser(strings.NewReader(body))}, nil
	})}
	b.ReportAllocs()
	for b.Loop() {
		r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, "http://shop.example/orders", strings.NewReader("{}"))
		require.NoError(b, err)
		response, err := rt.RoundTrip(r)
		require.NoError(b, err)
		_, err = io.Copy(io.Discard, response.Body)
		require.NoError(b, err)
		require.NoError(b, response.Body.Close())
	}
}
