package console

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A payment is refused once, answered, and replayed.
func TestWatch_CountsWhatTheShoppersSee(t *testing.T) {
	t.Parallel()
	const id = "0199c0de-0000-7000-8000-000000000001"
	payments := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Served-By", "api-2")
		if strings.HasSuffix(r.URL.Path, "/payments") {
			payments++
			switch payments {
			case 1:
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			case 3:
				w.Header().Set("X-Idempotent-Replay", "true")
			case 4:
				w.WriteHeader(http.StatusPaymentRequired)
				_, _ = fmt.Fprint(w, `{"code":"payment_declined"}`)
				return
			}
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprint(w, `{"id":"`+id+`"}`)
	}))
	t.Cleanup(server.Close)
	w, err := openShop(t.Context(), server.URL)
	require.NoError(t, err)
	t.Cleanup(w.shop.client.CloseIdleConnections)
	require.Equal(t, id, w.customer)
	w.next()

	w.buy(t.Context())
	seen := w.now
	require.Equal(t, []int{3, 1, 1, 1, 0}, []int{seen.answers, seen.paid, seen.replays, seen.retries, seen.errors})
	require.Equal(t, map[string]int{"api-2": 3}, seen.by)
	require.Zero(t, w.waiting)
	require.Regexp(t, `^ +3 +0 +3 +1 +1 +1 +0 +0 +\d+ ms$`, w.next())

	w.buy(t.Context())
	require.Equal(t, 1, w.now.errors)
	require.Contains(t, w.next(), "/v1/orders/"+id+"/payments: 402 payment_declined")
	require.Equal(t, second{by: map[string]int{}}, w.now)
}
