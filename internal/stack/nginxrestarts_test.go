package stack

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// nginx takes both replicas out for a second or two when both are restarted within that time.
func TestNginx_AsksAReplicaThatIsBackAlthoughBothHaveFailed(t *testing.T) {
	t.Parallel()
	b := setupNginx(t)
	answer := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }
	requireServed := func() {
		t.Helper()
		for range 4 { // both are asked
			resp, _ := b.exchange(t, "POST /v1/orders HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
			require.Equal(t, http.StatusNoContent, resp.StatusCode)
		}
	}
	stopFirst, stopSecond := b.replica(t, API1, answer), b.replica(t, API2, answer)
	requireServed()
	for range 3 {
		stopFirst()
		requireServed()
		stopFirst = b.replica(t, API1, answer)
		stopSecond()
		requireServed()
		stopSecond = b.replica(t, API2, answer)
	}
}
