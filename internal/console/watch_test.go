package console

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/stack"
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
	var out strings.Builder
	var at stack.Topology
	at.Offset = server.Listener.Addr().(*net.TCPAddr).Port - at.Port(stack.Nginx)
	w, err := openShop(t.Context(), &at, &out)
	require.NoError(t, err)
	t.Cleanup(w.shop.client.CloseIdleConnections)
	require.Contains(t, w.cart, `"customer_id":"`+id+`"`)

	w.buy(t.Context())
	w.tell()
	require.Regexp(t, `^..:..:.. +3 req/s +0 api-1 +3 api-2 +1 paid +1 replays +1 retries +0 errors +0 waiting\n$`, out.String())

	out.Reset()
	w.buy(t.Context())
	w.tell()
	require.Contains(t, out.String(), "POST /v1/orders/"+id+"/payments: 402 payment_declined\n")
	require.Regexp(t, ` 1 req/s .* 0 paid .* 1 errors +0 waiting\n$`, out.String())
}
