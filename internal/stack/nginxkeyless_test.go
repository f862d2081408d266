package stack

import (
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNginx_MakesNoCopyOfAChangeWithoutAKey has the first replica that is asked break after it has
// read the whole request, as one that is killed after its commit.
func TestNginx_MakesNoCopyOfAChangeWithoutAKey(t *testing.T) {
	t.Parallel()
	const body = `{"stock":3}`
	for name, c := range map[string]struct {
		request string // its line, and a header with its end of line
		copies  int64
	}{
		"PUT":                     {"PUT /v1/products/a HTTP/1.1\r\n", 1},
		"PATCH":                   {"PATCH /v1/customers/a HTTP/1.1\r\n", 1},
		"POST":                    {"POST /v1/orders HTTP/1.1\r\n", 1},
		"DELETE":                  {"DELETE /v1/orders/a HTTP/1.1\r\n", 1},
		"a method of its own":     {"BREW /v1/orders/a HTTP/1.1\r\n", 1},
		"an empty key":            {"PUT /v1/products/a HTTP/1.1\r\nIdempotency-Key: \r\n", 1},
		"PUT with a key":          {"PUT /v1/products/a HTTP/1.1\r\nIdempotency-Key: k\r\n", 2},
		"PATCH with a key":        {"PATCH /v1/customers/a HTTP/1.1\r\nidempotency-key: \"a b\"\r\n", 2},
		"POST with a key":         {"POST /v1/orders HTTP/1.1\r\nIdempotency-Key: k\r\n", 2},
		"GET":                     {"GET /v1/products/a HTTP/1.1\r\n", 2},
		"a provider event":        {"POST /v1/webhooks/psp HTTP/1.1\r\n", 2},
		"beside a provider event": {"PUT /v1/webhooks/psp HTTP/1.1\r\n", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupNginx(t)
			var copies atomic.Int64
			breaks := func(_ http.ResponseWriter, r *http.Request) {
				read, err := io.ReadAll(r.Body)
				require.NoError(t, err)
				require.Equal(t, body, string(read))
				if copies.Add(1) == 1 {
					panic(http.ErrAbortHandler)
				}
			}
			b.replica(t, API1, breaks)
			b.replica(t, API2, breaks)
			resp, answer := b.exchange(t, c.request+"Host: x\r\nX-Request-ID: r1\r\nContent-Length: 11\r\n\r\n"+body)
			require.Equal(t, c.copies, copies.Load())
			if c.copies == 1 {
				requireProblem(t, name, resp, answer, 502, "bad_gateway")
				require.Contains(t, string(answer), "Without a key, the request may have been executed.")
				require.Equal(t, "1", resp.Header.Get("Retry-After"))
				resp, _ = b.exchange(t, c.request+"Host: x\r\nContent-Length: 11\r\n\r\n"+body)
			}
			require.Equal(t, 200, resp.StatusCode)
		})
	}
}
